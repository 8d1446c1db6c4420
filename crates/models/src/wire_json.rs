//! Objects in JSON, as every answer is one.

use epitome_loop::ModelCallErrorKind;
use serde::Deserialize;

/// Reads an object. A list is none, although it could be read as its fields in order.
pub(crate) fn object<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, ModelCallErrorKind> {
    if json.trim_ascii_start().first() != Some(&b'{') {
        return Err(ModelCallErrorKind::Malformed);
    }
    serde_json::from_slice(json).map_err(|_| ModelCallErrorKind::Malformed)
}
