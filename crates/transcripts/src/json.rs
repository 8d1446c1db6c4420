//! JSON read in place: values stay slices of the input, so that each can be written back byte for byte.
//!
//! serde_json is not used for reading because three things must survive that a tree of values loses: where a
//! value stands in the file, keys that occur twice, and escapes of half a surrogate pair.

mod scan;
mod source;
mod stream;
mod string;
mod value;
mod writer;

pub(crate) use source::Source;
pub(crate) use stream::{Damage, Found, Values};
pub(crate) use string::{Text, raw_json, sendable};
pub(crate) use value::{Kind, Value};
pub(crate) use writer::{Array, Object, array, object};
