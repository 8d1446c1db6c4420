//! How providers write tools and calls inside a prompt.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;
use serde_json::value::RawValue;

/// The values of a call's arguments, text without its escapes, everything else as JSON. `None` when the input
/// is no object.
pub(crate) fn argument_values(input: &str) -> Option<Vec<String>> {
    let arguments: BTreeMap<String, &RawValue> = serde_json::from_str(input).ok()?;
    let value = |raw: &RawValue| {
        let json = raw.get();
        // Text with half a surrogate pair cannot be read; its JSON stands for it.
        let text = json.starts_with('"').then(|| serde_json::from_str(json).ok()).flatten();
        text.unwrap_or_else(|| json.to_owned())
    };
    Some(arguments.into_values().map(value).collect())
}

/// The definitions of tools as OpenAI writes them for its models: functions' signatures in TypeScript, with
/// descriptions as comments. The form is not published by OpenAI; it was found by others and agrees with the
/// provider's figures. A definition without a name, or one that cannot be read, stands as its JSON.
pub(crate) fn signatures<'a>(definitions: impl Iterator<Item = &'a str>) -> String {
    let mut out = "namespace functions {\n\n".to_owned();
    for definition in definitions {
        match signature(definition) {
            Some(signature) => out.push_str(&signature),
            None => out.push_str(definition),
        }
    }
    out.push_str("} // namespace functions");
    out
}

fn signature(definition: &str) -> Option<String> {
    let definition: Value = serde_json::from_str(definition).ok()?;
    let function = definition.get("function").filter(|inner| inner.is_object()).unwrap_or(&definition);
    let name = function.get("name")?.as_str()?;
    let mut out = String::new();
    comment(&mut out, function);
    let schema = ["parameters", "input_schema", "inputSchema"].iter().find_map(|key| function.get(key));
    let fields = schema.map(fields).filter(|fields| !fields.is_empty());
    // Writing to a string does not fail.
    let _ = match fields {
        Some(fields) => write!(out, "type {name} = (_: {{\n{fields}}}) => any;\n\n"),
        None => write!(out, "type {name} = () => any;\n\n"),
    };
    Some(out)
}

/// The properties of an object's schema, one a line. Recursion is bounded: the reader of the JSON refuses what
/// is nested deeper than 128.
fn fields(schema: &Value) -> String {
    let mut out = String::new();
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let required: BTreeSet<&str> = required.filter_map(Value::as_str).collect();
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        comment(&mut out, property);
        let optional = if required.contains(name.as_str()) { "" } else { "?" };
        let _ = write!(out, "{name}{optional}: {},", type_of(property));
        if let Some(value) = property.get("default") {
            let _ = write!(out, " // default: {value}");
        }
        out.push('\n');
    }
    out
}

/// A description without what indents its later lines, as doc comments in source have it.
fn comment(out: &mut String, of: &Value) {
    let text = of.get("description").and_then(Value::as_str).unwrap_or_default().trim();
    if text.is_empty() {
        return;
    }
    let indent = |line: &str| line.len() - line.trim_start().len();
    let later = text.lines().skip(1).filter(|line| !line.trim().is_empty());
    let common = later.map(indent).min().unwrap_or(0);
    for (at, line) in text.lines().enumerate() {
        let line = if at == 0 { line } else { line.get(common..).unwrap_or(line.trim_start()) };
        out.push_str(if at == 0 { "// " } else { "" });
        out.push_str(line);
        out.push('\n');
    }
}

fn type_of(schema: &Value) -> String {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    if let Some(variants) = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key)?.as_array()) {
        return variants.iter().map(type_of).collect::<Vec<_>>().join(" | ");
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => "string".to_owned(),
        Some("number" | "integer") => "number".to_owned(),
        Some("boolean") => "boolean".to_owned(),
        Some("null") => "null".to_owned(),
        Some("array") => schema.get("items").map_or("any[]".to_owned(), |item| type_of(item) + "[]"),
        Some("object") => match fields(schema) {
            fields if fields.is_empty() => "object".to_owned(),
            fields => format!("{{\n{fields}}}"),
        },
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_becomes_a_signature() {
        let definition = r#"{"type":"function","function":{"name":"read","description":"Read a file.","parameters":
            {"type":"object","required":["path"],"properties":{"path":{"type":"string","description":"Where."},
            "mode":{"enum":["text","bytes"]},"lines":{"type":"array","items":{"type":"integer"}},
            "all":{"type":"boolean","default":false},"at":{"anyOf":[{"type":"object","properties":
            {"x":{"type":"number"}}},{"type":"null"}]},"rest":{}}}}}"#;
        let expected = "// Read a file.\ntype read = (_: {\nall?: boolean, // default: false\nat?: {\nx?: number,\n} \
                        | null,\nlines?: number[],\nmode?: \"text\" | \"bytes\",\n// Where.\npath: string,\nrest?: \
                        any,\n}) => any;\n\n";
        assert_eq!(signature(definition).as_deref(), Some(expected));
        let bare = r#"{"name":"now","input_schema":{"type":"object","properties":{}}}"#;
        assert_eq!(signature(bare).as_deref(), Some("type now = () => any;\n\n"));
        for none in ["{}", "[]", "7", r#"{"type":"web_search"}"#] {
            assert_eq!(signature(none), None, "{none}");
        }
        let indented = r#"{"name":"now","description":"One.\n\n    Two:\n        three\n    "}"#;
        let expected = "// One.\n\nTwo:\n    three\ntype now = () => any;\n\n";
        assert_eq!(signature(indented).as_deref(), Some(expected));
        let all = signatures([bare, "{}"].into_iter());
        assert_eq!(all, "namespace functions {\n\ntype now = () => any;\n\n{}} // namespace functions");
        let deep = format!(r#"{{"name":"d","parameters":{}1{}}}"#, "[".repeat(5_000), "]".repeat(5_000));
        assert_eq!(signature(&deep), None);
    }

    /// Looking for each name in the whole list of required ones would take minutes here.
    #[test]
    fn many_properties_are_marked_as_they_are_required() {
        let each = |of: &dyn Fn(usize) -> String| (0..60_000).map(of).collect::<Vec<_>>().join(",");
        let properties = each(&|at| format!(r#""p{at}":{{"type":"string"}}"#));
        let required = each(&|at| format!(r#""q{at}""#));
        let schema = format!(r#"{{"properties":{{{properties}}},"required":[{required},"p59999"]}}"#);
        let definition = format!(r#"{{"name":"f","parameters":{schema}}}"#);
        let signature = signature(&definition).unwrap();
        assert!(signature.contains("\np59998?: string,\np59999: string,\n"));
    }

    #[test]
    fn arguments_are_taken_one_by_one() {
        let values = argument_values(r#"{"b":"a\nb","a":{"x":[1]},"c":"\ud800"}"#);
        assert_eq!(
            values,
            Some(vec![r#"{"x":[1]}"#.to_owned(), "a\nb".to_owned(), r#""\ud800""#.to_owned()])
        );
        assert_eq!(argument_values("[1]"), None);
        assert_eq!(argument_values("{}"), Some(vec![]));
    }
}
