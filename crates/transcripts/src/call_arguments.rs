//! Arguments of a call, where a format wants an object.

use epitome_loop::RawJson;

use crate::json::{Object, sendable};
use crate::loss::{LossKind, Losses};

/// Writes the arguments under a key. Those that are no object are wrapped into one, which is a loss.
pub(crate) fn write_object(out: &mut Object<'_>, key: &str, input: Option<&RawJson>, losses: &mut Losses) {
    let Some(input) = input else { return out.raw(key, b"{}") };
    let input = sendable(input);
    let input = input.trim_ascii();
    if input.starts_with('{') {
        return out.raw(key, input.as_bytes());
    }
    losses.add(LossKind::Arguments);
    out.object(key, |out| out.raw("arguments", input.as_bytes()));
}
