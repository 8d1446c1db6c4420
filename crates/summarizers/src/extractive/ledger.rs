//! The ledger: which calls were made, which files and identifiers came up. One line each, in the state.

use epitome_loop::rendered_item_len;

use super::calls::Call;
use super::reading::Reading;
use super::supersession::{AbandonedSpans, Void};
use super::values::ValueKind;
use super::words::{Key, KeySet, key};

const CALLS: &str = "calls: ";
const FILES: &str = "files: ";
const IDS: &str = "ids: ";
/// Bytes that a list item takes beside its text: mark and line break.
pub(crate) const ITEM_BYTES: usize = 3;

/// Whether an item of a previous summary is a line of its ledger.
pub(crate) fn is_ledger_line(item: &str) -> bool {
    [CALLS, FILES, IDS].iter().any(|name| item.starts_with(name))
}

/// The ledger's lines, best entries first, in at most `room` bytes; what the summary says already is left out.
pub(crate) fn ledger_lines(reading: &Reading<'_>, void: &Void, said: &str, room: usize) -> Vec<String> {
    let mut said = said.to_lowercase();
    let mut lines = Vec::new();
    let calls = call_line(reading, &void.abandoned, &said, room / 2);
    let mut left = room;
    if let Some(line) = calls {
        left = left.saturating_sub(rendered_item_len(&line) + ITEM_BYTES);
        said.push(' ');
        said.push_str(&line.to_lowercase());
        lines.push(line);
    }
    let (mut files, mut ids) = (String::new(), String::new());
    for (_, identifier) in reading.identifiers.ranked(reading.conversation.messages) {
        let (first, last) = identifier.span();
        let is_overcome = first == last && reading.overcome.contains(&(first as Key));
        if is_overcome || is_within(&void.abandoned, first, last) || void.values.contains(&identifier.key) {
            continue;
        }
        let (line, name) = match identifier.kind {
            ValueKind::Path => (&mut files, FILES),
            _ => (&mut ids, IDS),
        };
        let opening = if line.is_empty() { name.len() + ITEM_BYTES } else { ", ".len() };
        let bytes = opening + rendered_item_len(&identifier.text);
        let lower = identifier.text.to_lowercase();
        if bytes > left || said.contains(&lower) {
            continue;
        }
        line.push_str(if line.is_empty() { name } else { ", " });
        line.push_str(&identifier.text);
        said.push(' ');
        said.push_str(&lower);
        left -= bytes;
        if left < 6 {
            break;
        }
    }
    lines.extend([files, ids].into_iter().filter(|line| !line.is_empty()));
    lines
}

/// The calls that worked, newest first: each with the values that no newer call and no item has. The calls of
/// one tool stand together: `get_user(mia_li)(kim_ho)`.
fn call_line(reading: &Reading<'_>, abandoned: &AbandonedSpans, said: &str, room: usize) -> Option<String> {
    /// So many of the newest calls are looked at.
    const LOOK_BACK: usize = 512;
    const SEPARATOR: &str = "; ";
    let mut tools: Vec<(&str, String)> = Vec::new();
    let mut left = room.checked_sub(CALLS.len() + ITEM_BYTES)?;
    let mut listed = 0;
    let mut seen_calls = KeySet::default();
    let mut seen_values = KeySet::default();
    let last_message = reading.conversation.messages;
    for call in reading.calls.iter().rev().take(LOOK_BACK) {
        let is_abandoned = is_within(abandoned, call.message, call.message);
        // A failure at the very end is where the work stands.
        let is_past_failure = call.has_failed && call.message + 3 < last_message;
        if is_abandoned || is_past_failure || !seen_calls.insert(identity(call)) {
            continue;
        }
        let is_new = |value: &&str| {
            let lower = value.to_lowercase();
            !seen_values.contains(&key(lower.as_bytes())) && !said.contains(&lower)
        };
        let values = call.arguments.iter().map(String::as_str);
        let shown: Vec<&str> = if listed < 2 { values.collect() } else { values.filter(is_new).collect() };
        if shown.is_empty() {
            continue;
        }
        let entry = entry(&shown);
        let known = tools.iter_mut().find(|(name, _)| *name == call.name);
        let opening = match &known {
            Some(_) => 0,
            None => rendered_item_len(call.name) + if listed > 0 { SEPARATOR.len() } else { 0 },
        };
        let Some(rest) = left.checked_sub(opening + rendered_item_len(&entry)) else { continue };
        left = rest;
        match known {
            Some((_, entries)) => entries.push_str(&entry),
            None => tools.push((call.name, entry)),
        }
        listed += 1;
        seen_values.extend(call.arguments.iter().map(|value| key(value.to_lowercase().as_bytes())));
    }
    let tools: Vec<String> = tools.into_iter().map(|(name, entries)| format!("{name}{entries}")).collect();
    (listed > 0).then(|| format!("{CALLS}{}", tools.join(SEPARATOR)))
}

/// Whether the messages from `first` to `last` are all part of one stretch of abandoned work.
fn is_within(abandoned: &AbandonedSpans, first: usize, last: usize) -> bool {
    abandoned.iter().any(|span| span.contains(&first) && span.contains(&last))
}

/// `(value, value)`, long values cut.
fn entry(values: &[&str]) -> String {
    const LONGEST: usize = 48;
    let shown: Vec<String> = values
        .iter()
        .map(|value| match value.split_at_checked(value.floor_char_boundary(LONGEST)) {
            Some((head, rest)) if !rest.is_empty() => format!("{head}..."),
            _ => (*value).to_owned(),
        })
        .collect();
    format!("({})", shown.join(", "))
}

/// What makes two calls the same call.
fn identity(call: &Call<'_>) -> Key {
    let mut identity = call.name.to_owned();
    for argument in &call.arguments {
        identity.push('\n');
        identity.push_str(argument);
    }
    key(identity.as_bytes())
}
