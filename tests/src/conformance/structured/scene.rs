//! Values of the vectors as values of ours.

use std::collections::BTreeMap;
use std::sync::Arc;

use epitome_loop::{
    Block, Blocks, Image, Message, RawJson, SharedText, Thinking, TokenCount, ToolResult, ToolUse,
};
use epitome_summarizers::structured::{
    CharacterScale, MessageScale, ResultNote, ResultNotes, ResultPlace, Retention, StructuredSummary,
    StructuredSummaryConfig, SummarySection, SummaryTemplate,
};
use serde_json::{Value, json};

/// A history and what its host knows of its results.
pub(super) struct History {
    pub(super) messages: Vec<Message>,
    notes: BTreeMap<(usize, usize), ResultNote>,
}

impl ResultNotes for History {
    fn note(&self, place: ResultPlace<'_>) -> ResultNote {
        self.notes.get(&(place.message, place.block)).cloned().unwrap_or_default()
    }
}

/// The array, or none of it.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The string, or nothing.
pub(super) fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The number as an index.
pub(super) fn index(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|number| usize::try_from(number).ok())
}

pub(super) fn history(value: &Value) -> History {
    let mut notes = BTreeMap::new();
    let messages = list(value).iter().enumerate().map(|(at, message)| {
        let blocks: Blocks = match &message["parts"] {
            Value::Array(parts) => parts
                .iter()
                .enumerate()
                .map(|(block, part)| {
                    if part["type"] == "tool_result" {
                        notes.insert((at, block), note(part));
                    }
                    read_part(part)
                })
                .collect(),
            _ => Arc::from([Block::text(word(&message["text"]))]),
        };
        match word(&message["role"]) {
            "assistant" => Message::Assistant { blocks, usage: None },
            "system" => Message::System { blocks },
            _ => Message::User { blocks },
        }
    });
    let messages = messages.collect();
    History { messages, notes }
}

fn note(part: &Value) -> ResultNote {
    let retention = match word(&part["retention"]) {
        "durable" => Retention::Durable,
        "requery" => Retention::Requery,
        _ => Retention::Unknown,
    };
    ResultNote { retention, tool: Some(word(&part["name"]).into()) }
}

/// One part as a block.
pub(super) fn read_part(part: &Value) -> Block {
    match word(&part["type"]) {
        "thinking" => {
            let text = word(&part["text"]);
            let redacted =
                RawJson::parse(part["redacted"].to_string()).ok().filter(|_| part["redacted"].is_string());
            Block::Thinking(Thinking::new(text, "", "", redacted.map(|state| (state, "redacted".into()))))
        }
        "image" => Block::Image(Image::default()),
        "tool_call" => {
            let input = RawJson::parse(part["input"].to_string()).ok();
            Block::ToolUse(ToolUse::new(word(&part["id"]), word(&part["name"]), input, None))
        }
        "tool_result" => Block::ToolResult(ToolResult {
            tool_use_id: word(&part["call_id"]).into(),
            content: match &part["output"] {
                Value::Array(parts) => parts.iter().map(read_part).collect(),
                text => Arc::from([Block::text(word(text))]),
            },
            is_error: part["is_error"] == true,
        }),
        _ => Block::text(word(&part["text"])),
    }
}

/// A counter of the vectors.
pub(super) fn scale(value: &Value) -> Arc<dyn MessageScale> {
    if let Some(tokens) = value["constant"].as_u64() {
        return Arc::new(Constant(tokens));
    }
    if !value["ratio"].is_null() {
        #[expect(clippy::cast_possible_truncation, reason = "the reference's ratio has this type")]
        let ratio = float(&value["ratio"]) as f32;
        return Arc::new(CharacterScale::with_ratio(
            ratio,
            value["per_message"].as_u64().unwrap_or_default(),
        ));
    }
    Arc::new(match word(value) {
        "openai" => CharacterScale::openai(),
        "anthropic" => CharacterScale::anthropic(),
        "gemini" => CharacterScale::gemini(),
        "local" => CharacterScale::local(),
        _ => CharacterScale::default(),
    })
}

struct Constant(u64);

impl MessageScale for Constant {
    fn weight(&self, _: &Message) -> u128 {
        self.0.into()
    }

    fn tokens(&self, weight: u128) -> TokenCount {
        TokenCount(u64::try_from(weight).unwrap_or(u64::MAX))
    }
}

/// A float, or the name of one that JSON cannot hold.
pub(super) fn float(value: &Value) -> f64 {
    match word(value) {
        "nan" => f64::NAN,
        "inf" => f64::INFINITY,
        "-inf" => f64::NEG_INFINITY,
        _ => value.as_f64().unwrap_or_default(),
    }
}

fn section(name: &str) -> Option<SummarySection> {
    SummarySection::ALL.into_iter().find(|section| section.key() == name)
}

pub(super) fn template(value: &Value) -> SummaryTemplate {
    match word(value) {
        "action_only" => return SummaryTemplate::action_only(),
        _ if value.is_object() => {}
        _ => return SummaryTemplate::default_template(),
    }
    let sections = list(&value["sections"]).iter().filter_map(|name| section(word(name))).collect();
    let header =
        value["header"].as_str().map_or(SummaryTemplate::default_template().header, SharedText::from);
    SummaryTemplate { sections, header }
}

pub(super) fn summary(value: &Value) -> StructuredSummary {
    let mut summary = StructuredSummary::default();
    for section in SummarySection::ALL {
        *summary.items_mut(section) =
            list(&value[section.key()]).iter().map(|item| word(item).into()).collect();
    }
    summary
}

pub(super) fn summary_value(summary: Option<&StructuredSummary>) -> Value {
    let Some(summary) = summary else { return Value::Null };
    let items = |section| summary.items(section).iter().map(|item| item.as_str()).collect::<Vec<_>>();
    let entries =
        SummarySection::ALL.into_iter().map(|section| (section.key().to_owned(), json!(items(section))));
    Value::Object(entries.collect())
}

/// A config, each setter called that the case names.
pub(super) fn config(value: &Value) -> StructuredSummaryConfig {
    let mut config = StructuredSummaryConfig::for_model("scripted");
    if !value["summary_budget_pct"].is_null() {
        config = config.summary_budget_share(float(&value["summary_budget_pct"]));
    }
    if let Some(tokens) = value["max_summary_tokens"].as_u64() {
        config = config.max_summary_tokens(tokens);
    }
    if let Some(messages) = index(&value["min_messages"]) {
        config = config.min_messages(messages);
    }
    if let Some(messages) = index(&value["preserve_recent"]) {
        config = config.preserve_recent(messages);
    }
    if let Some(characters) = index(&value["transcript_max_chars"]) {
        config = config.transcript_max_characters(characters);
    }
    if let Some(instructions) = value["summary_instructions"].as_str() {
        config = config.summary_instructions(instructions);
    }
    if let Some(parse) = value["parse_output"].as_bool() {
        config = config.parse_output(parse);
    }
    if !value["template"].is_null() {
        config = config.template(template(&value["template"]));
    }
    config
}

/// The reference's text with our words for its two placeholders.
pub(super) fn with_our_words(text: &str) -> String {
    use epitome_summarizers::structured::render;
    let plain = SummaryTemplate::default_template();
    let empty = render(&StructuredSummary::default(), &plain);
    let stub = empty.rsplit('\n').next().unwrap_or_default();
    text.replace("{{STUB}}", stub).replace("{{DEFAULT_HEADER}}", &plain.header)
}
