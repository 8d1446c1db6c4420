//! TOML into the tree.

use toml::de::{DeTable, DeValue};

use super::{Entry, Fault, MAX_FILE_DEPTH, Node, Value};
use crate::{FileFormat, FileProblem};

/// Parses a file in TOML. Duplicate keys are found by the parser.
pub(super) fn parse(text: &str) -> Result<Node, Fault> {
    // Only the kind and the place are taken out of the parser's error: it quotes the file.
    let table = DeTable::parse(text).map_err(|error| {
        let problem = match error.message() {
            "duplicate key" => FileProblem::DuplicateKey,
            "recursion limit" | "cannot recurse further; max recursion depth met" => {
                FileProblem::TooDeep { limit: MAX_FILE_DEPTH }
            }
            _ => FileProblem::Syntax { format: FileFormat::Toml.as_str() },
        };
        Fault::at(error.span().map_or(0, |span| span.start), problem)
    })?;
    Ok(Node { at: 0, value: table_value(table.into_inner(), MAX_FILE_DEPTH)? })
}

/// `levels` counts the levels that are still allowed, so recursion is bounded by it.
fn value_of(value: DeValue<'_>, at: usize, levels: usize) -> Result<Value, Fault> {
    let expected = |what: &'static str| Fault::at(at, FileProblem::Expected { what: what.into() });
    Ok(match value {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Integer(number),
            Err(_) => return Err(expected("a number that is not this large")),
        },
        DeValue::Float(number) => match number.as_str().parse() {
            Ok(number) => Value::Float(number),
            Err(_) => return Err(expected("a number")),
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
