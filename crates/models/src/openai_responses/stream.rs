//! Answers of Responses in events: the last one holds the whole answer, so the pieces before it are not needed.

use epitome_loop::ModelCallErrorKind;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer::Response;
use crate::answer::Draft;
use crate::dialect::EventReader;
use crate::provider_error::error_in_answer;
use crate::wire_json::object;

#[derive(Deserialize)]
struct Head {
    #[serde(rename = "type", default)]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Last<'a> {
    #[serde(borrow)]
    response: Response<'a>,
}

#[derive(Deserialize)]
struct Failure<'a> {
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

/// Waits for the end.
#[derive(Default)]
pub(super) struct Reader {
    draft: Option<Draft>,
}

impl EventReader for Reader {
    fn take(&mut self, data: &[u8]) -> Result<(), ModelCallErrorKind> {
        if data.trim_ascii() == b"[DONE]" {
            return Ok(());
        }
        let Head { kind } = object(data)?;
        match kind.as_deref() {
            Some("response.completed" | "response.incomplete" | "response.failed") => {
                let Last { response } = object(data)?;
                self.draft = Some(response.draft()?);
            }
            // An event of its own, or an object as other interfaces send it.
            Some("error") | None => {
                let Failure { error } = object(data)?;
                let whole = object(data)?;
                let kind = error_in_answer(error).or_else(|| error_in_answer(Some(whole)));
                return Err(kind.unwrap_or(ModelCallErrorKind::Malformed));
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn end(self: Box<Self>) -> Result<Draft, ModelCallErrorKind> {
        self.draft.ok_or(ModelCallErrorKind::Network)
    }
}
