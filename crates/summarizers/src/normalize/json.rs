//! An answer in JSON: one object, keyed by the names of the sections.

use epitome_loop::{InvalidSummaryReason, SUMMARY_ROOT, Section, SharedText, SummarySections};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Repair, leave_out};

/// The entries of an object, as often as they stand there.
pub(super) struct Entries(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Entries;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// The object that the answer is: all of it, or behind one line of introduction. An object that merely stands somewhere in
/// it is quoted, and no answer.
pub(super) fn find(text: &str, repairs: &mut Vec<Repair>) -> Result<Option<Entries>, InvalidSummaryReason> {
    if let Some(found) = with_farewell(text, repairs)? {
        return Ok(Some(found));
    }
    let Some((introduction, rest)) = text.split_once('\n') else { return Ok(None) };
    // The fence of an answer that was cut is never closed.
    if introduction.starts_with("```") {
        return with_farewell(rest.trim_start(), repairs);
    }
    if introduction.trim_start().starts_with(['#', '-', '*', '{']) {
        return Ok(None);
    }
    let found = with_farewell(rest.trim_start(), repairs)?;
    if found.is_some() {
        leave_out(introduction, repairs)?;
    }
    Ok(found)
}

/// The object that a text begins with. Prose behind it is a farewell.
fn with_farewell(text: &str, repairs: &mut Vec<Repair>) -> Result<Option<Entries>, InvalidSummaryReason> {
    if !text.starts_with('{') {
        return Ok(None);
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Entries>();
    let found = match values.next() {
        Some(Ok(found)) => found,
        // What is cut off may have lost more than its end.
        Some(Err(error)) if error.is_eof() && text.contains('"') => {
            return Err(InvalidSummaryReason::XmlSyntax);
        }
        _ => return Ok(None),
    };
    let farewell = text.get(values.byte_offset()..).unwrap_or_default().trim();
    if farewell.is_empty() {
        return Ok(Some(found));
    }
    // More than a line of prose may say more.
    if farewell.contains(['{', '}', '[', '"'])
        || farewell.lines().any(|line| line.starts_with(['#', '-', '*']))
    {
        return Ok(None);
    }
    leave_out(farewell, repairs)?;
    Ok(Some(found))
}

fn object(text: &str) -> Option<Entries> {
    text.starts_with('{').then(|| serde_json::from_str(text).ok())?
}

/// Reads the sections. A key that is no section or stands twice, and a value that is no text, would be lost: all are
/// refused.
pub(super) fn read(
    found: &Entries,
    repairs: &mut Vec<Repair>,
) -> Result<SummarySections, InvalidSummaryReason> {
    let Entries(entries) = found;
    repairs.push(Repair::Json);
    // Some put the name of the root around it.
    if let [(key, inner)] = entries.as_slice()
        && key == SUMMARY_ROOT
    {
        let inner = object(inner.get()).ok_or(InvalidSummaryReason::XmlStructure)?;
        return read_sections(&inner, repairs);
    }
    read_sections(found, repairs)
}

fn read_sections(
    Entries(entries): &Entries,
    repairs: &mut Vec<Repair>,
) -> Result<SummarySections, InvalidSummaryReason> {
    let mut sections = SummarySections::default();
    let mut seen = Vec::new();
    for (key, value) in entries {
        let section = Section::ALL.into_iter().find(|section| section.as_str() == key);
        let section = section.filter(|section| !seen.contains(section));
        let section = section.ok_or(InvalidSummaryReason::XmlStructure)?;
        seen.push(section);
        let value = serde_json::from_str(value.get()).map_err(|_| InvalidSummaryReason::XmlStructure)?;
        *sections.items_mut(section) = items(&value)?;
    }
    if seen.len() < Section::ALL.len() {
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
