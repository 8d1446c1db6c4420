//! Answers of `streamGenerateContent`: each event is an answer with a further piece.

use epitome_loop::ModelCallErrorKind;

use super::answer::{Gathered, take};
use crate::answer::Draft;
use crate::dialect::EventReader;

/// Puts the pieces together.
#[derive(Default)]
pub(super) struct Reader {
    gathered: Gathered,
}

impl EventReader for Reader {
    fn take(&mut self, data: &[u8]) -> Result<(), ModelCallErrorKind> {
        take(data, &mut self.gathered)
    }

    fn end(self: Box<Self>) -> Result<Draft, ModelCallErrorKind> {
        // Every answer has an end with a name.
        if self.gathered.is_whole() { Ok(self.gathered.draft()) } else { Err(ModelCallErrorKind::Network) }
    }
}
