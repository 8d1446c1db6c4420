//! Contents into neutral messages.

use epitome_loop::{Message, ModelKey};

use super::blocks::messages;
use super::pairing::pair;
use super::snapshot::earlier_summary;
use super::tools::declarations;
use super::turn::{Speaker, Turn, parts_of};
use crate::ReadError;
use crate::assembly::{Assembly, as_it_stands};
use crate::container::{SystemField, whole_field};
use crate::conversation::Conversation;
use crate::faults::Faults;
use crate::json::Value;
use crate::model::model_key;
use crate::session::Original;

/// Reads a conversation into the assembly and says where its system prompt stands.
pub(crate) fn read(
    conversation: &Conversation<'_>,
    into: &mut Assembly,
) -> Result<Option<SystemField>, ReadError> {
    let system = conversation.object.and_then(|object| request(object, into));
    let mut turns = Vec::new();
    for (index, element) in conversation.messages.iter().enumerate() {
        turns.push(Turn::of_content(*element, index)?);
    }
    pair(&mut turns);
    let mut openings = Vec::new();
    for (element, turn) in conversation.messages.iter().zip(&turns) {
        into.faults = turn.faults;
        let messages = messages(turn, None, &mut into.faults);
        note_opening(&mut openings, &messages);
        into.close(original(*element), messages);
    }
    if let Some((prefix, summary)) = earlier_summary(&openings) {
        into.derived_prefix = prefix;
        into.before_summary = summary;
    }
    Ok(system)
}

/// How many messages at the start can tell of an earlier compression.
pub(super) const OPENING: usize = 4;

/// Collects the first messages.
pub(super) fn note_opening(openings: &mut Vec<Message>, messages: &[Message]) {
    let room = OPENING.saturating_sub(openings.len());
    openings.extend(messages.iter().take(room).cloned());
}

/// A bare list of parts is no content; what makes it one is written around it.
fn original(element: Value<'_>) -> Original {
    let original = as_it_stands(element.range());
    if element.is_array() {
        return Original { wrap: ("{\"role\":\"user\",\"parts\":", "}"), ..original };
    }
    original
}

/// Takes what stands beside the contents: model, tools and system prompt. SDKs put the last two into `config`.
fn request(object: Value<'_>, into: &mut Assembly) -> Option<SystemField> {
    let [model, version] = into.faults.pick(object, ["model", "modelVersion"]);
    let name = into.faults.string(model.or(version));
    into.model = self::model(&name);
    let homes = || std::iter::once(object).chain(object.get("config"));
    for tools in homes().filter_map(|home| home.get("tools")) {
        declarations(tools, &mut into.tools, &mut into.faults);
    }
    // Faults beside the messages make none of them differ.
    into.faults = Faults::default();
    for home in homes() {
        for name in ["systemInstruction", "system_instruction"] {
            let (Some(value), Some(field)) = (home.get(name), whole_field(home, name)) else { continue };
            let mut faults = Faults::default();
            let parts = parts_of(value.get("parts").or(Some(value)), &mut faults);
            let turn = Turn { speaker: Speaker::User, parts, faults, home: value.range().start };
            into.faults = faults;
            let messages = messages(&turn, None, &mut into.faults);
            if let [Message::User { blocks }] = messages.as_slice()
                && !blocks.is_empty()
            {
                let system = Message::System { blocks: blocks.clone() };
                into.close(as_it_stands(value.range()), vec![system]);
                return Some(SystemField { value: value.range(), field });
            }
        }
    }
    None
}

/// The key of a model that may be named by its resource, as in `models/gemini-2.5-pro`.
pub(super) fn model(name: &str) -> Option<ModelKey> {
    let bare = name.rsplit_once("models/").map_or(name, |(_, model)| model);
    model_key(bare, "google")
}
