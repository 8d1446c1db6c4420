//! TOML into the tree.

use toml::de::{DeTable, DeValue};

use std::num::IntErrorKind;

use super::{BYTE_ORDER_MARK, Entry, Fault, MAX_FILE_DEPTH, Node, Value};
use crate::{FileFormat, FileProblem};

/// Parses a file in TOML. Duplicate keys are found by the parser.
pub(super) fn parse(text: &str) -> Result<Node, Fault> {
    // One is skipped already, and the parser would skip another.
    if text.starts_with(BYTE_ORDER_MARK) {
        return Err(Fault::at(0, SYNTAX));
    }
    // Only the kind and the place are taken out of the parser's error: it quotes the file.
    let table = DeTable::parse(text).map_err(|error| {
        let problem = match error.message() {
            "duplicate key" => FileProblem::DuplicateKey,
            "recursion limit" | "cannot recurse further; max recursion depth met" => {
                FileProblem::TooDeep { limit: MAX_FILE_DEPTH }
            }
            _ => SYNTAX,
        };
        let at = error.span().map_or(0, |span| span.start);
        let at = if problem == SYNTAX { before_bad_key(text, at).unwrap_or(at) } else { at };
        Fault::at(at, problem)
    })?;
    Ok(Node { at: 0, value: table_value(table.into_inner(), MAX_FILE_DEPTH)? })
}

const SYNTAX: FileProblem = FileProblem::Syntax { format: FileFormat::Toml.as_str() };

/// The parser takes any run of characters at the head of a line for a key, and reports behind it that no value
/// follows. Where such a run holds what no bare key can, that is the fault, and this is where it stands.
fn before_bad_key(text: &str, at: usize) -> Option<usize> {
    let (before, _) = text.split_at_checked(at)?;
    let start = before.rfind('\n').map_or(0, |end| end.saturating_add(1));
    let (_, line) = before.split_at_checked(start)?;
    if line.contains(['"', '\'', '=', '[', '{', '#']) {
        return None;
    }
    let in_key = |byte: char| byte.is_ascii_alphanumeric() || matches!(byte, '-' | '_' | '.' | ' ' | '\t');
    line.find(|character| !in_key(character)).map(|inside| start.saturating_add(inside))
}

/// `levels` counts the levels that are still allowed, so recursion is bounded by it.
fn value_of(value: DeValue<'_>, at: usize, levels: usize) -> Result<Value, Fault> {
    let expected = |what: &'static str| Fault::at(at, FileProblem::Expected { what: what.into() });
    let syntax = || Fault::at(at, SYNTAX);
    Ok(match value {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Integer(number),
            Err(error) => {
                let large = matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow);
                // The parser lets a prefix such as `0b` pass without a digit behind it.
                return Err(if large { expected("a number that is not this large") } else { syntax() });
            }
        },
        DeValue::Float(number) => match number.as_str().parse() {
            Ok(number) => Value::Float(number),
            Err(_) => return Err(syntax()),
        },
        DeValue::Boolean(flag) => Value::Flag(flag),
        DeValue::Datetime(_) => Value::Other,
        DeValue::Array(values) => {
            let levels = deeper(levels, at)?;
            let nodes = values.into_iter().map(|inner| {
                let at = inner.span().start;
                Ok(Node { at, value: value_of(inner.into_inner(), at, levels)? })
            });
            Value::List(nodes.collect::<Result<_, Fault>>()?)
        }
        DeValue::Table(table) => table_value(table, deeper(levels, at)?)?,
    })
}

fn table_value(table: DeTable<'_>, levels: usize) -> Result<Value, Fault> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, inner) in table {
        let at = inner.span().start;
        let value = Node { at, value: value_of(inner.into_inner(), at, levels)? };
        entries.push(Entry { at: key.span().start, key: key.into_inner().into_owned(), value });
    }
    // The parser sorts by name; what counts entries counts them as they stand in the file.
    entries.sort_by_key(|entry| entry.at);
    Ok(Value::Table(entries))
}

fn deeper(levels: usize, at: usize) -> Result<usize, Fault> {
    levels.checked_sub(1).ok_or(Fault::at(at, FileProblem::TooDeep { limit: MAX_FILE_DEPTH }))
}
