//! The two macros that keep case files small.

use serde_json::Value;

use super::CaseError;

/// Replaces `{"$repeat": [unit, n]}` and `{"$concat": [...]}` by the strings they stand for.
pub(super) fn expand(value: Value) -> Result<Value, CaseError> {
    match value {
        Value::Array(items) => items.into_iter().map(expand).collect::<Result<_, _>>().map(Value::Array),
        Value::Object(fields) => {
            if let Some(parts) = fields.get("$repeat") {
                return repeated(parts);
            }
            if let Some(Value::Array(parts)) = fields.get("$concat") {
                return joined(parts);
            }
            let fields = fields.into_iter().map(|(key, value)| Ok((key, expand(value)?)));
            fields.collect::<Result<_, _>>().map(Value::Object)
        }
        plain => Ok(plain),
    }
}

fn repeated(parts: &Value) -> Result<Value, CaseError> {
    let unit = parts[0].as_str().ok_or(CaseError::Macro)?;
    let times = parts[1].as_u64().and_then(|times| usize::try_from(times).ok()).ok_or(CaseError::Macro)?;
    Ok(Value::String(unit.repeat(times)))
}

fn joined(parts: &[Value]) -> Result<Value, CaseError> {
    let mut text = String::new();
    for part in parts {
        text.push_str(expand(part.clone())?.as_str().ok_or(CaseError::Macro)?);
    }
    Ok(Value::String(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn macros_become_strings_wherever_they_stand() {
        let value = json!({"a": [{"$concat": ["x", {"$repeat": ["ab", 2]}]}], "b": 1});
        assert_eq!(expand(value).unwrap(), json!({"a": ["xabab"], "b": 1}));
        assert!(matches!(expand(json!({"$repeat": [1, 2]})), Err(CaseError::Macro)));
    }
}
