//! Compact JSON written piece by piece.

use epitome_loop::json_text::push_base64;

/// An object that is being written.
pub(crate) struct Object<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

/// An array that is being written.
pub(crate) struct Array<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

/// An object with the fields that `fill` writes.
pub(crate) fn object(fill: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    push_object(&mut out, fill);
    out
}

/// An array with the elements that `fill` writes.
pub(crate) fn array(fill: impl FnOnce(&mut Array<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    push_array(&mut out, fill);
    out
}

impl Object<'_> {
    /// A field with text.
    pub(crate) fn text(&mut self, key: &str, text: &str) {
        self.key(key);
        push_text(self.out, text);
    }

    /// A field with text, unless the text is empty.
    pub(crate) fn text_if_any(&mut self, key: &str, text: &str) {
        if !text.is_empty() {
            self.text(key, text);
        }
    }

    /// A field with a number.
    pub(crate) fn number(&mut self, key: &str, number: u64) {
        self.key(key);
        self.out.extend_from_slice(number.to_string().as_bytes());
    }

    /// A field with true or false.
    pub(crate) fn boolean(&mut self, key: &str, value: bool) {
        self.key(key);
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }

    /// A field with a JSON value that is already written.
    pub(crate) fn raw(&mut self, key: &str, json: &[u8]) {
        self.key(key);
        self.out.extend_from_slice(json);
    }

    /// A field with bytes as base64.
    pub(crate) fn base64(&mut self, key: &str, data: &[u8]) {
        self.key(key);
        push_base64(self.out, Some(data));
    }

    /// A field with an object.
    pub(crate) fn object(&mut self, key: &str, fill: impl FnOnce(&mut Object<'_>)) {
        self.key(key);
        push_object(self.out, fill);
    }

    /// A field with an array.
    pub(crate) fn array(&mut self, key: &str, fill: impl FnOnce(&mut Array<'_>)) {
        self.key(key);
        push_array(self.out, fill);
    }

    fn key(&mut self, key: &str) {
        if !std::mem::replace(&mut self.empty, false) {
            self.out.push(b',');
        }
        push_text(self.out, key);
        self.out.push(b':');
    }
}

impl Array<'_> {
    /// An element that is an object.
    pub(crate) fn object(&mut self, fill: impl FnOnce(&mut Object<'_>)) {
        self.part();
        push_object(self.out, fill);
    }

    /// An element that is already written.
    pub(crate) fn raw(&mut self, json: &[u8]) {
        self.part();
        self.out.extend_from_slice(json);
    }

    fn part(&mut self) {
        if !std::mem::replace(&mut self.empty, false) {
            self.out.push(b',');
        }
    }
}

fn push_object(out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
    out.push(b'{');
    fill(&mut Object { out, empty: true });
    out.push(b'}');
}

fn push_array(out: &mut Vec<u8>, fill: impl FnOnce(&mut Array<'_>)) {
    out.push(b'[');
    fill(&mut Array { out, empty: true });
    out.push(b']');
}

/// Writes text as a JSON string with the fewest escapes.
fn push_text(out: &mut Vec<u8>, text: &str) {
    let before = out.len();
    if serde_json::to_writer(&mut *out, text).is_err() {
        // Writing to memory does not fail; an empty string keeps the output valid all the same.
        out.truncate(before);
        out.extend_from_slice(b"\"\"");
    }
}
