//! JSON into the tree: strict, with the place of every key and value.

use std::collections::BTreeSet;

use super::{Entry, Fault, MAX_FILE_DEPTH, Node, Value};
use crate::{FileFormat, FileProblem};

/// Parses a file in JSON.
pub(super) fn parse(text: &str) -> Result<Node, Fault> {
    let mut reader = Reader { text, at: 0 };
    reader.skip_space();
    // The file itself is no level.
    let root = reader.value(MAX_FILE_DEPTH + 1)?;
    reader.skip_space();
    if reader.at == text.len() { Ok(root) } else { Err(reader.fault()) }
}

struct Reader<'a> {
    text: &'a str,
    /// How many bytes are read; always between two characters.
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn fault(&self) -> Fault {
        Fault::at(self.at, FileProblem::Syntax { format: FileFormat::Json.as_str() })
    }

    /// `levels` counts the levels that are still allowed, so recursion is bounded by it.
    fn value(&mut self, levels: usize) -> Result<Node, Fault> {
        let at = self.at;
        let value = match self.peek() {
            Some(b'{') => self.table(levels)?,
            Some(b'[') => self.list(levels)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Node { at, value })
    }

    fn deeper(&self, levels: usize) -> Result<usize, Fault> {
        levels.checked_sub(1).ok_or(Fault::at(self.at, FileProblem::TooDeep { limit: MAX_FILE_DEPTH }))
    }

    fn table(&mut self, levels: usize) -> Result<Value, Fault> {
        let levels = self.deeper(levels)?;
        self.at += 1;
        self.skip_space();
        let (mut entries, mut seen) = (Vec::new(), BTreeSet::new());
        if self.take(b'}') {
            return Ok(Value::Table(entries));
        }
        loop {
            let at = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.fault());
            }
            let key = self.string()?;
            if !seen.insert(key.clone()) {
                return Err(Fault::at(at, FileProblem::DuplicateKey));
            }
            self.skip_space();
            if !self.take(b':') {
                return Err(self.fault());
            }
            self.skip_space();
            let value = self.value(levels)?;
            entries.push(Entry { at, key, value });
            self.skip_space();
            if self.take(b'}') {
                return Ok(Value::Table(entries));
            }
            if !self.take(b',') {
                return Err(self.fault());
            }
            self.skip_space();
        }
    }

    fn list(&mut self, levels: usize) -> Result<Value, Fault> {
        let levels = self.deeper(levels)?;
        self.at += 1;
        self.skip_space();
        let mut values = Vec::new();
        if self.take(b']') {
            return Ok(Value::List(values));
        }
        loop {
            values.push(self.value(levels)?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Value::List(values));
            }
            if !self.take(b',') {
                return Err(self.fault());
            }
            self.skip_space();
        }
    }

    fn string(&mut self) -> Result<String, Fault> {
        let mut escaped = false;
        let end = self.rest().bytes().skip(1).position(|byte| match byte {
            _ if escaped => {
                escaped = false;
                false
            }
            b'\\' => {
                escaped = true;
                false
            }
            byte => byte == b'"',
        });
        // From the opening quote to the closing one.
        let raw = end.and_then(|end| self.rest().get(..end + 2)).ok_or_else(|| self.fault())?;
        let text = serde_json::from_str(raw).map_err(|_| self.fault())?;
        self.at += raw.len();
        Ok(text)
    }

    fn number(&mut self) -> Result<Value, Fault> {
        let is_part = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
        let length = self.rest().bytes().take_while(|byte| is_part(byte)).count();
        let raw = self.rest().get(..length).unwrap_or_default();
        // The JSON library judges the spelling: no leading zero, no bare dot.
        if serde_json::from_str::<&serde_json::value::RawValue>(raw).is_err() {
            return Err(self.fault());
        }
        let value = if raw.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit()) {
            let large = || FileProblem::Expected { what: "a number that is not this large".into() };
            raw.parse().map(Value::Integer).map_err(|_| Fault::at(self.at, large()))?
        } else {
            raw.parse().map(Value::Float).map_err(|_| self.fault())?
        };
        self.at += length;
        Ok(value)
    }

    fn word(&mut self) -> Result<Value, Fault> {
        for (word, value) in
            [("true", Value::Flag(true)), ("false", Value::Flag(false)), ("null", Value::Null)]
        {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.fault())
    }
}
