//! Replies, in one piece or as the chunks of a stream, and what they report.

use epitome_loop::{TokenCount, Usage};

use super::blocks::messages;
use super::turn::{Data, Speaker, Turn};
use super::{UNNAMED, read};
use crate::assembly::{Assembly, as_it_stands};
use crate::faults::Faults;
use crate::json::{Source, Value, array, object};
use crate::{Note, ReadError};

/// Takes a reply, in the source or put together elsewhere, as the last message.
pub(crate) fn reply_message(
    reply: Value<'_>,
    is_in_source: bool,
    into: &mut Assembly,
) -> Result<(), ReadError> {
    if reply.is_array() {
        let chunks: Vec<&[u8]> = reply.elements().map(Value::bytes).collect();
        let Some(whole) = assemble(&chunks) else {
            into.note(Note::ReplyNotRead);
            return Ok(());
        };
        return reply_message(Source::small(&whole).whole(), false, into);
    }
    let [candidates, usage, usage_snake, model, model_snake] = into
        .faults
        .pick(reply, ["candidates", "usageMetadata", "usage_metadata", "modelVersion", "model_version"]);
    if into.model.is_none() {
        let name = into.faults.string(model.or(model_snake));
        into.model = read::model(&name);
    }
    let Some(candidate) = candidates.and_then(|list| list.elements().next()) else {
        into.note(Note::ReplyNotRead);
        return Ok(());
    };
    let content = candidate.get("content").filter(|content| content.has("parts"));
    let Some(content) = content else {
        // A call that was malformed, or an answer that was held back.
        into.note(Note::AbortedMessages { count: 1 });
        return Ok(());
    };
    let index = into.len();
    let mut turn = Turn::of_content(content, index)?;
    turn.speaker = Speaker::Model;
    for (number, part) in turn.parts.iter_mut().enumerate() {
        if let Data::Call { id, .. } = &mut part.data
            && id.is_empty()
        {
            *id = format!("{UNNAMED}reply_{number}");
        }
    }
    let usage = usage.or(usage_snake).and_then(self::usage);
    into.faults = turn.faults;
    let mut messages = messages(&turn, usage, &mut into.faults);
    if is_in_source && content.has("role") {
        into.close(as_it_stands(content.range()), messages);
    } else if let Some(message) = messages.pop() {
        into.close_without_original(message);
    }
    if let Some(usage) = usage {
        into.reported = Some((index, usage));
    }
    Ok(())
}

/// What one request took. The prompt includes what came from the cache; thoughts are counted beside the output.
fn usage(usage: Value<'_>) -> Option<Usage> {
    let number = |camel: &str, snake: &str| {
        let found = usage.get(camel).or_else(|| usage.get(snake));
        found.and_then(Value::number)
    };
    Some(request_usage(
        number("promptTokenCount", "prompt_token_count")?,
        number("cachedContentTokenCount", "cached_content_token_count"),
        number("candidatesTokenCount", "candidates_token_count"),
        number("thoughtsTokenCount", "thoughts_token_count"),
    ))
}

/// The usage out of the provider's numbers.
pub(super) fn request_usage(
    prompt: u64,
    cached: Option<u64>,
    answer: Option<u64>,
    thoughts: Option<u64>,
) -> Usage {
    let cached = cached.unwrap_or(0).min(prompt);
    let thoughts = thoughts.unwrap_or(0);
    Usage {
        input: TokenCount(prompt - cached),
        output: TokenCount(answer.unwrap_or(0).saturating_add(thoughts)),
        cache_read: TokenCount(cached),
        cache_creation: TokenCount::ZERO,
        reasoning: TokenCount(thoughts),
    }
}

/// The reply out of the chunks of a stream, each one JSON; `None` when none is one of Gemini.
pub(crate) fn assemble(chunks: &[&[u8]]) -> Option<Vec<u8>> {
    let mut parts: Vec<Chunk> = Vec::new();
    let mut rest: [Option<Vec<u8>>; 2] = [None, None];
    let mut any = false;
    let mut faults = Faults::default();
    for chunk in chunks {
        let source = Source::small(chunk);
        let [candidates, usage, model] =
            faults.pick(source.whole(), ["candidates", "usageMetadata", "modelVersion"]);
        any |= candidates.is_some();
        for (slot, value) in rest.iter_mut().zip([usage, model]) {
            if let Some(value) = value {
                *slot = Some(value.bytes().to_vec());
            }
        }
        let candidate = candidates.and_then(|list| list.elements().next());
        let list = candidate.and_then(|candidate| candidate.get("content")?.get("parts"));
        for part in list.into_iter().flat_map(Value::elements) {
            let chunk = Chunk::of(part, &mut faults);
            match (parts.last_mut(), chunk) {
                (Some(Chunk::Words { text, thought }), Chunk::Words { text: more, thought: is_thought })
                    if *thought == is_thought =>
                {
                    text.push_str(&more);
                }
                (_, chunk) => parts.push(chunk),
            }
        }
    }
    any.then(|| {
        let candidate = object(|out| {
            out.object("content", |content| {
                content.raw("parts", &array(|list| parts.iter().for_each(|part| list.raw(&part.whole()))));
                content.text("role", "model");
            });
        });
        let [usage, model] = &rest;
        object(|out| {
            out.array("candidates", |list| list.raw(&candidate));
            if let Some(usage) = usage {
                out.raw("usageMetadata", usage);
            }
            if let Some(model) = model {
                out.raw("modelVersion", model);
            }
        })
    })
}

/// A part of a stream.
enum Chunk {
    /// Words and nothing else, which go on in the next chunk.
    Words { text: String, thought: bool },
    /// Anything else, as it stands.
    Part(Vec<u8>),
}

impl Chunk {
    fn of(part: Value<'_>, faults: &mut Faults) -> Self {
        let plain = part.fields().all(|(key, _)| matches!(key, b"text" | b"thought"));
        match part.get("text") {
            Some(text) if plain => Self::Words {
                text: faults.string(Some(text)),
                thought: part.get("thought").is_some_and(Value::is_true),
            },
            _ => Self::Part(part.bytes().to_vec()),
        }
    }

    fn whole(&self) -> Vec<u8> {
        match self {
            Self::Part(json) => json.clone(),
            Self::Words { text, thought } => object(|out| {
                out.text("text", text);
                if *thought {
                    out.boolean("thought", true);
                }
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assembled(chunks: &str) -> Option<String> {
        let source = Source::small(chunks.as_bytes());
        let chunks: Vec<&[u8]> = source.whole().elements().map(Value::bytes).collect();
        assemble(&chunks).and_then(|whole| String::from_utf8(whole).ok())
    }

    #[test]
    fn words_of_chunks_go_together_and_signed_parts_stay_apart() {
        let whole = assembled(
            r#"[{"candidates":[{"content":{"parts":[{"text":"So","thought":true}],"role":"model"}}]},
            {"candidates":[{"content":{"parts":[{"text":" on","thought":true},{"text":"Hel"}]}}],"modelVersion":"gemini-x"},
            {"candidates":[{"content":{"parts":[{"text":"lo"},{"text":"","thoughtSignature":"c2ln"}]},"finishReason":"STOP"}],
             "usageMetadata":{"promptTokenCount":5}}]"#,
        );
        assert_eq!(
            whole.as_deref(),
            Some(concat!(
                r#"{"candidates":[{"content":{"parts":[{"text":"So on","thought":true},{"text":"Hello"},"#,
                r#"{"text":"","thoughtSignature":"c2ln"}],"role":"model"}}],"#,
                r#""usageMetadata":{"promptTokenCount":5},"modelVersion":"gemini-x"}"#
            ))
        );
        assert_eq!(assembled(r#"[{"x":1}]"#), None);
    }

    #[test]
    fn the_prompt_includes_the_cache_and_thoughts_stand_beside_the_answer() {
        let json = br#"{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":7,"thoughtsTokenCount":20}"#;
        let found = usage(Source::small(json).whole()).unwrap();
        assert_eq!((found.input.get(), found.cache_read.get()), (40, 60));
        assert_eq!((found.output.get(), found.reasoning.get()), (27, 20));
        assert_eq!(usage(Source::small(b"{}").whole()), None);
    }
}
