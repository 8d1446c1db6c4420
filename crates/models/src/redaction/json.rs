//! Secrets in JSON that must stay JSON: strings are redacted one by one, what they escape included, and the name of
//! a field says what its value is.

use epitome_loop::RawJson;
use epitome_loop::json_string::string_end;

use super::{RedactionCounts, SecretKind, assignment, redact};

/// Redacts the strings of a value; `None` when nothing was found.
pub(crate) fn redact_json(json: &RawJson, counts: &mut RedactionCounts) -> Option<RawJson> {
    let text = json.as_str();
    let mut redacted = String::new();
    let (mut kept, mut at) = (0, 0);
    // The name of the field whose value comes next.
    let mut field: Option<String> = None;
    while let Some(offset) = text.get(at..).and_then(|rest| memchr::memchr(b'"', rest.as_bytes())) {
        // What stands between a name and its value is a colon and blanks; anything else ends the field.
        let between = text.get(at..at + offset).unwrap_or_default();
        let name = field.take().filter(|_| between.trim() == ":");
        let start = at + offset;
        let Ok(end) = string_end(text.as_bytes(), start) else { break };
        let raw = text.get(start..end).unwrap_or_default();
        // Half a pair of surrogates cannot be read; then the text is taken as it stands.
        let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
        let value: String = serde_json::from_str(raw).unwrap_or_else(|_| inner.to_owned());
        let is_secret = name.is_some_and(|name| assignment::is_secret_field(&name, &value));
        let found = redact(&value);
        let replaced = if found.text.is_some() {
            counts.add(&found.counts);
            found.text
        } else if is_secret {
            counts.count(SecretKind::AssignedSecret);
            Some(SecretKind::AssignedSecret.mark().to_owned())
        } else {
            None
        };
        if let Some(replaced) = replaced {
            redacted.push_str(text.get(kept..start).unwrap_or_default());
            redacted.push_str(&serde_json::to_string(&replaced).unwrap_or_default());
            kept = end;
        }
        at = end;
        field = Some(value);
    }
    if kept == 0 {
        return None;
    }
    redacted.push_str(text.get(kept..).unwrap_or_default());
    // Strings took the place of strings.
    Some(RawJson::parse_or_quote(&redacted))
}
