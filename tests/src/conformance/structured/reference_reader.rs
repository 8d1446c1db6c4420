//! The reference's rules for reading an answer, as they were measured. A vector that does not follow them is no case for
//! a class.

use epitome_summarizers::structured::SummarySection;
use serde_json::{Value, json};

const MOST_ITEMS: usize = 50;

/// The four lists, or null.
pub(super) fn read(text: &str) -> Value {
    lists_in_json(text).unwrap_or_else(|| scan_headings(text))
}

/// What a vector about reading says of a text.
pub(super) fn parse(text: &str) -> Value {
    let (in_json, in_lines) = (lists_in_json(text), scan_headings(text));
    match in_json {
        Some(lists) if in_lines.is_null() || in_lines == lists => json!({"parsed": lists, "via": "json"}),
        Some(lists) => json!({"parsed": lists, "via": "json", "heading_scan_would_give": in_lines}),
        None if in_lines.is_null() => json!({"parsed": null}),
        None => json!({"parsed": in_lines, "via": "headings"}),
    }
}

fn lists_in_json(text: &str) -> Option<Value> {
    lists_of(&extract_json(text)?)
}

fn value_of(lists: &[Vec<String>; 4]) -> Value {
    let entries =
        SummarySection::ALL.iter().zip(lists).map(|(section, list)| (section.key().to_owned(), json!(list)));
    Value::Object(entries.collect())
}

fn lists_of(value: &Value) -> Option<Value> {
    let object = value.as_object()?;
    let mut lists: [Vec<String>; 4] = Default::default();
    let mut is_recognized = false;
    for (section, list) in SummarySection::ALL.iter().zip(&mut lists) {
        let Some(Value::Array(values)) = object.get(section.key()) else { continue };
        let items = values.iter().filter_map(Value::as_str).filter(|item| !item.trim().is_empty());
        list.extend(items.take(MOST_ITEMS).map(str::to_owned));
        is_recognized |= values.is_empty() || !list.is_empty();
    }
    is_recognized.then(|| value_of(&lists))
}

/// The first balanced text that is JSON, quotes counted in prose too.
pub(super) fn extract_json(text: &str) -> Option<Value> {
    let text = text.trim();
    let (mut start, mut braces, mut brackets) = (None, 0_usize, 0_usize);
    let (mut in_string, mut is_escaped) = (false, false);
    for (at, character) in text.char_indices() {
        if is_escaped {
            is_escaped = false;
            continue;
        }
        match character {
            '\\' if in_string => is_escaped = true,
            '"' => in_string = !in_string,
            _ if in_string => {}
            '{' | '[' => {
                start = start.or(Some(at));
                if character == '{' { braces += 1 } else { brackets += 1 }
            }
            '}' | ']' => {
                let own = if character == '}' { &mut braces } else { &mut brackets };
                if *own == 0 {
                    (start, braces, brackets) = (None, 0, 0);
                    continue;
                }
                *own -= 1;
                if braces == 0 && brackets == 0 {
                    let slice = start.take().and_then(|start| text.get(start..=at))?;
                    if let Ok(value) = serde_json::from_str(slice) {
                        return Some(value);
                    }
                }
            }
            _ => {}
        }
    }
    None
}

/// The section of a heading by the reference's test, as an index.
pub(super) fn heading(line: &str) -> Option<usize> {
    let line = line.trim().trim_start_matches('#').trim().trim_matches('*').trim();
    let line = line.strip_suffix(':').unwrap_or(line).to_lowercase();
    SummarySection::ALL.iter().position(|section| section.title().to_lowercase() == line)
}

/// The text of a bullet by the reference's test.
pub(super) fn bullet(line: &str) -> Option<&str> {
    let line = line.trim();
    let marked = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
    let rest = marked.or_else(|| {
        let behind = line.trim_start_matches(|character: char| character.is_ascii_digit());
        let rest = behind.strip_prefix(". ").or_else(|| behind.strip_prefix(") "));
        rest.filter(|_| behind.len() < line.len())
    });
    rest.map(str::trim).filter(|text| !text.is_empty())
}

fn scan_headings(text: &str) -> Value {
    let mut lists: [Vec<String>; 4] = Default::default();
    let (mut current, mut is_recognized, mut is_unread) = (None, false, false);
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with("```") {
            continue;
        }
        if let Some(section) = heading(line) {
            current = Some(section);
            is_recognized = true;
            continue;
        }
        if line.starts_with('#') {
            current = None;
            is_unread = true;
            continue;
        }
        let list = current.and_then(|section: usize| lists.get_mut(section));
        match (list, bullet(line)) {
            (Some(list), Some(item)) if list.len() < MOST_ITEMS => list.push(item.to_owned()),
            (Some(_), Some(_)) => {}
            _ => is_unread = true,
        }
    }
    if !is_recognized || is_unread && lists.iter().all(Vec::is_empty) {
        return Value::Null;
    }
    value_of(&lists)
}
