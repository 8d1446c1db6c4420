//! An answer in JSON: one object, keyed by the names of the sections.

use epitome_loop::{InvalidSummaryReason, Section, SharedText, SummarySections};
use serde_json::{Map, Value};

use super::Repair;

/// The object that the answer is: all of it, or behind one line of introduction. An object that merely stands somewhere in
/// it is quoted, and no answer.
pub(super) fn find(text: &str, repairs: &mut Vec<Repair>) -> Option<Map<String, Value>> {
    let whole = object(text);
    if whole.is_some() {
        return whole;
    }
    let (introduction, rest) = text.split_once('\n')?;
    let found = object(rest.trim()).filter(|_| !introduction.trim_start().starts_with(['#', '-', '*']));
    if found.is_some() {
        repairs.push(Repair::TextAround);
    }
    found
}

fn object(text: &str) -> Option<Map<String, Value>> {
    if !text.starts_with('{') {
        return None;
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}

/// Reads the sections. A key that is no section, and a value that is no text, would be lost: both are refused.
pub(super) fn read(
    object: &Map<String, Value>,
    repairs: &mut Vec<Repair>,
) -> Result<SummarySections, InvalidSummaryReason> {
    repairs.push(Repair::Json);
    // Some put the name of the root around it.
    if let Some(Value::Object(inner)) = object.get("conversation_summary").filter(|_| object.len() == 1) {
        return read(inner, repairs);
    }
    let mut sections = SummarySections::default();
    for (key, value) in object {
        let section = Section::ALL.into_iter().find(|section| section.as_str() == key);
        let section = section.ok_or(InvalidSummaryReason::XmlStructure)?;
        *sections.items_mut(section) = items(value)?;
    }
    if object.len() < Section::ALL.len() {
        repairs.push(Repair::MissingSections);
    }
    Ok(sections)
}

fn items(value: &Value) -> Result<Vec<SharedText>, InvalidSummaryReason> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(SummarySections::items_of_text(text)),
        Value::Array(values) => {
            let texts = values.iter().map(|value| value.as_str().ok_or(InvalidSummaryReason::XmlStructure));
            let texts = texts.collect::<Result<Vec<_>, _>>()?;
            // An item is one line, whatever breaks it has.
            let lines = texts.into_iter().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
            Ok(lines.filter(|line| !line.is_empty()).map(SharedText::from).collect())
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => Err(InvalidSummaryReason::XmlStructure),
    }
}
