//! Declarations of functions, to and from the forms of other providers.

use epitome_loop::RawJson;

use crate::faults::Faults;
use crate::json::{Kind, Source, Value, array, object, raw_json};
use crate::loss::{LossKind, Losses};

/// Collects the tools of a request: each function by itself, and what is no function as it stands.
pub(super) fn declarations(tools: Value<'_>, into: &mut Vec<RawJson>, faults: &mut Faults) {
    for tool in tools.elements() {
        let [functions, functions_snake] =
            faults.pick(tool, ["functionDeclarations", "function_declarations"]);
        match functions.or(functions_snake) {
            Some(functions) => {
                into.extend(functions.elements().map(|function| raw_json(function.bytes(), &mut faults.text)))
            }
            None => into.push(raw_json(tool.bytes(), &mut faults.text)),
        }
    }
}

/// A function as Gemini declares it.
pub(crate) struct Declaration<'a> {
    /// Its name, as JSON.
    pub(crate) name: &'a [u8],
    /// What it does, as JSON.
    pub(crate) description: Option<&'a [u8]>,
    /// The JSON schema of its arguments.
    pub(crate) schema: Vec<u8>,
}

/// The function that a tool definition declares in Gemini's form; `None` when it has another form.
pub(crate) fn declaration(tool: Value<'_>) -> Option<Declaration<'_>> {
    let ([name, description, parameters, schema, schema_snake, kind, function, input], _) = tool.pick([
        "name",
        "description",
        "parameters",
        "parametersJsonSchema",
        "parameters_json_schema",
        "type",
        "function",
        "input_schema",
    ]);
    if kind.or(function).or(input).is_some() {
        return None;
    }
    let schema = schema.or(schema_snake).or(parameters).map(json_schema);
    Some(Declaration {
        name: name?.bytes(),
        description: description.map(Value::bytes),
        schema: schema.unwrap_or_else(|| br#"{"type":"object"}"#.to_vec()),
    })
}

/// The tools of a request; nothing when there are none. Functions of other providers become declarations;
/// other tools are left out.
pub(crate) fn encode_tools(tools: &[RawJson], losses: &mut Losses) -> Option<Vec<u8>> {
    let mut functions = Vec::new();
    for tool in tools {
        let source = Source::small(tool.as_str().as_bytes());
        let value = source.whole();
        if declaration(value).is_some() {
            functions.push(source.bytes().to_vec());
            continue;
        }
        let function = value.get("function").unwrap_or(value);
        let ([name, description, parameters, input], _) =
            function.pick(["name", "description", "parameters", "input_schema"]);
        let (Some(name), Some(schema)) = (name, parameters.or(input)) else {
            losses.add(LossKind::Tool);
            continue;
        };
        functions.push(object(|out| {
            out.raw("name", name.bytes());
            if let Some(description) = description {
                out.raw("description", description.bytes());
            }
            out.raw("parametersJsonSchema", schema.bytes());
        }));
    }
    if functions.is_empty() {
        return None;
    }
    let functions = array(|list| functions.iter().for_each(|function| list.raw(function)));
    Some(array(|list| list.object(|tool| tool.raw("functionDeclarations", &functions))))
}

/// A schema with its types in lower case: Gemini's own schemas write them in capitals, which nobody else reads.
fn json_schema(schema: Value<'_>) -> Vec<u8> {
    /// Deeper schemas are left as they stand.
    const DEEPEST: usize = 64;
    let mut out = Vec::new();
    push_schema(schema, DEEPEST, &mut out);
    out
}

/// `levels` bounds the recursion.
fn push_schema(value: Value<'_>, levels: usize, out: &mut Vec<u8>) {
    const TYPES: [&[u8]; 7] = [b"STRING", b"NUMBER", b"INTEGER", b"BOOLEAN", b"ARRAY", b"OBJECT", b"NULL"];
    let Some(levels) = levels.checked_sub(1) else {
        out.extend_from_slice(value.bytes());
        return;
    };
    match value.kind() {
        Kind::Object => {
            out.push(b'{');
            for (at, (key, field)) in value.fields().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                out.push(b'"');
                out.extend_from_slice(key);
                out.extend_from_slice(b"\":");
                if key == b"type" && field.kind() == Kind::String && TYPES.contains(&field.inner()) {
                    out.extend_from_slice(&field.bytes().to_ascii_lowercase());
                } else {
                    push_schema(field, levels, out);
                }
            }
            out.push(b'}');
        }
        Kind::Array => {
            out.push(b'[');
            for (at, element) in value.elements().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                push_schema(element, levels, out);
            }
            out.push(b']');
        }
        _ => out.extend_from_slice(value.bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_written_small_where_they_are_types() {
        let json = br#"{"name":"f","parameters":{"type":"OBJECT","properties":{"type":{"type":"STRING","enum":["STRING"]},"n":{"type":"ARRAY","items":{"type":"integer"}}}}}"#;
        let source = Source::small(json);
        let declared = declaration(source.whole()).unwrap();
        assert_eq!(
            std::str::from_utf8(&declared.schema).unwrap(),
            r#"{"type":"object","properties":{"type":{"type":"string","enum":["STRING"]},"n":{"type":"array","items":{"type":"integer"}}}}"#
        );
        for other in [
            r#"{"type":"web_search","name":"w"}"#,
            r#"{"googleSearch":{}}"#,
            r#"{"name":"a","input_schema":{}}"#,
        ] {
            assert!(declaration(Source::small(other.as_bytes()).whole()).is_none(), "{other}");
        }
    }

    #[test]
    fn tools_of_others_become_declarations() {
        let tools = [
            r#"{"type":"function","function":{"name":"a","parameters":{"type":"object"}}}"#,
            r#"{"name":"b","description":"B","input_schema":{}}"#,
            r#"{"name":"c","parameters":{"type":"OBJECT"}}"#,
            r#"{"type":"web_search_20250305","name":"web_search"}"#,
        ]
        .map(|json| RawJson::parse(json).unwrap());
        let mut losses = Losses::default();
        let encoded = encode_tools(&tools, &mut losses).unwrap();
        assert_eq!(
            String::from_utf8(encoded).unwrap(),
            r#"[{"functionDeclarations":[{"name":"a","parametersJsonSchema":{"type":"object"}},{"name":"b","description":"B","parametersJsonSchema":{}},{"name":"c","parameters":{"type":"OBJECT"}}]}]"#
        );
        assert_eq!(losses.into_list().len(), 1);
        assert!(encode_tools(&[], &mut Losses::default()).is_none());
    }
}
