//! Tool definitions.

use epitome_loop::RawJson;

use crate::json::{Source, object};
use crate::loss::{LossKind, Losses};

/// Tool definitions: those of chat completions and of Anthropic become functions. `same` says whether the session
/// holds definitions of this API already, of which all kinds stay.
pub(crate) fn encode_tools(tools: &[RawJson], same: bool, losses: &mut Losses) -> Vec<Vec<u8>> {
    tools.iter().filter_map(|tool| encode_tool(tool, same, losses)).collect()
}

fn encode_tool(tool: &RawJson, same: bool, losses: &mut Losses) -> Option<Vec<u8>> {
    let source = Source::small(tool.as_str().as_bytes());
    let value = source.whole();
    let ([kind, function, schema], _) = value.pick(["type", "function", "input_schema"]);
    let is_function = kind.is_some_and(|kind| kind.is_text("function"));
    if function.is_none() && schema.is_none() && (same || is_function) {
        return Some(source.bytes().to_vec());
    }
    let definition = function.unwrap_or(value);
    let ([name, description, parameters, strict], _) =
        definition.pick(["name", "description", "parameters", "strict"]);
    let Some(name) = name.filter(|_| function.or(schema).or(parameters).is_some()) else {
        losses.add(LossKind::Tool);
        return None;
    };
    Some(object(|out| {
        out.text("type", "function");
        out.raw("name", name.bytes());
        if let Some(description) = description {
            out.raw("description", description.bytes());
        }
        if let Some(schema) = parameters.or(schema) {
            out.raw("parameters", schema.bytes());
        }
        out.raw("strict", strict.map_or(b"false", |strict| strict.bytes()));
    }))
}
