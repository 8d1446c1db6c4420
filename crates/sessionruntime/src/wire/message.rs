//! Reading messages.

use epitome_loop::{Message, Role, SharedText, TokenCount, Usage};

use super::block::read_blocks;
use super::fault::{Fault, WireFault};
use super::reader::{Keys, Read, Reader};

const KEYS: [&str; 5] = ["role", "blocks", "usage", "tool_use_id", "is_error"];

/// The sets of [`KEYS`] that messages have, by role.
const OF_USER: Keys = Keys::first(2);
const OF_ASSISTANT: Keys = Keys::first(3);
const OF_TOOL: Keys = Keys::of(&[0, 1, 3, 4]);

const USAGE_KEYS: [&str; 5] =
    ["input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "reasoning_tokens"];

/// Reads a message. The role may come last, so it decides only afterwards which keys there may be.
pub(super) fn read_message(reader: &mut Reader<'_>) -> Read<Message> {
    let start = reader.at();
    let mut role = Role::User;
    let mut blocks = None;
    let mut usage = None;
    let mut tool_use_id: Option<SharedText> = None;
    let mut is_error = false;
    let keys = reader.object(&KEYS, |reader, index| {
        match index {
            0 => role = read_role(reader)?,
            1 => blocks = Some(read_blocks(reader, 0)?),
            2 => usage = read_usage(reader)?,
            3 => tool_use_id = Some(reader.text()?),
            _ => is_error = reader.boolean()?,
        }
        Ok(())
    })?;
    let end = reader.at();
    keys.require(Keys::first(1), end)?;
    let wanted = match role {
        Role::User | Role::System => OF_USER,
        Role::Assistant => OF_ASSISTANT,
        Role::Tool => OF_TOOL,
    };
    keys.require(wanted, end)?;
    keys.allow(wanted, start)?;
    let blocks = blocks.unwrap_or_default();
    Ok(match role {
        Role::User => Message::User { blocks },
        Role::System => Message::System { blocks },
        Role::Assistant => Message::Assistant { blocks, usage },
        Role::Tool => Message::ToolResult { blocks, tool_use_id: tool_use_id.unwrap_or_default(), is_error },
    })
}

fn read_role(reader: &mut Reader<'_>) -> Read<Role> {
    let at = reader.at();
    let name = reader.short_text()?;
    [Role::User, Role::Assistant, Role::System, Role::Tool]
        .into_iter()
        .find(|role| role.as_str() == name)
        .ok_or(Fault::new(WireFault::UnknownName, at))
}

fn read_usage(reader: &mut Reader<'_>) -> Read<Option<Usage>> {
    if reader.null() {
        return Ok(None);
    }
    let mut usage = Usage::default();
    let keys = reader.object(&USAGE_KEYS, |reader, index| {
        let count = match index {
            0 => &mut usage.input,
            1 => &mut usage.output,
            2 => &mut usage.cache_read,
            3 => &mut usage.cache_creation,
            _ => &mut usage.reasoning,
        };
        *count = TokenCount(reader.unsigned()?);
        Ok(())
    })?;
    keys.require(Keys::first(USAGE_KEYS.len()), reader.at())?;
    Ok(Some(usage))
}
