//! Tokens, budgets, splits and durable exchanges.

use epitome_loop::{Block, Message, TokenCount};
use epitome_summarizers::structured::{
    self, CharacterScale, Pairing, ResultNotes, count_messages, durable_exchanges, estimate_text,
    split_by_budget, split_by_count,
};
use serde_json::{Value, json};
use tracing::Level;

use super::super::Judgment;
use super::classes::PAIRS_AND_HEADS;
use super::equal_or;
use super::log::logged;
use super::scene::{History, float, history, index, list, scale, word};

pub(super) fn tokens(input: &Value, expect: &Value) -> Judgment {
    let history = history(&input["messages"]);
    let count = count_messages(&*scale(&input["counter"]), &history.messages);
    Judgment::of(expect["tokens"].to_string(), count.to_string())
}

pub(super) fn estimate(input: &Value, expect: &Value) -> Judgment {
    Judgment::of(expect["tokens"].to_string(), estimate_text(word(&input["text"])).to_string())
}

pub(super) fn config(input: &Value, expect: &Value) -> Judgment {
    let (config, events) = logged(|| super::scene::config(&input["config"]));
    let warnings = events.iter().filter(|event| event.level == Level::WARN).count();
    let template = config.summary_template();
    let sections: Vec<_> = template.sections.iter().map(|section| section.key()).collect();
    let budgets: Vec<_> = list(&input["targets"])
        .iter()
        .map(|target| json!([target, config.budget(TokenCount(target.as_u64().unwrap_or_default())).get()]))
        .collect();
    let header = super::scene::with_our_words(word(&expect["template_header"]));
    let ours = json!({
        "budgets": budgets,
        "max_summary_tokens": config.most_tokens(),
        "min_messages": config.least_messages(),
        "parse_output": config.parses_output(),
        "permille": config.per_mille(),
        "preserve_recent": config.recent_messages(),
        "summary_instructions": config.instructions().map(|text| text.as_str()),
        "template_sections": sections,
        "transcript_max_chars": config.most_transcript_characters(),
        "warnings": warnings,
    });
    let differing: Vec<_> = ours
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, value)| expect[name.as_str()] != **value)
        .map(|(name, _)| name.as_str())
        .chain((template.header.as_str() != header).then_some("template_header"))
        .chain((float(&expect["summary_budget_pct"]) != config.share()).then_some("summary_budget_pct"))
        .collect();
    Judgment::of("", differing.join(" "))
}

pub(super) fn boundaries(input: &Value, expect: &Value) -> Judgment {
    let history = history(&input["messages"]);
    let pairing = Pairing::of(&history.messages);
    let safe = structured::boundaries(&history.messages).into_iter().filter(|&at| pairing.slide(at) == at);
    Judgment::of(expect["indices"].to_string(), json!(safe.collect::<Vec<_>>()).to_string())
}

pub(super) fn split(input: &Value, expect: &Value) -> Judgment {
    let history = history(&input["messages"]);
    let messages = &history.messages;
    let pairing = Pairing::of(messages);
    let scale = scale(&input["counter"]);
    let least = index(&input["min_messages"]).unwrap_or(8);
    let recent = index(&input["preserve_recent"]).unwrap_or(4);
    let split = match input["tail_budget"].as_u64() {
        Some(budget) => split_by_budget(messages, &pairing, &*scale, least, recent, TokenCount(budget)),
        None => split_by_count(messages, &pairing, least, recent),
    };
    // The reference states these figures by its default counter.
    let count = |messages: &[Message]| count_messages(&CharacterScale::default(), messages).get();
    let (old, tail) = messages.split_at(split.min(messages.len()));
    let ours = json!({
        "compact_tokens": count(old),
        "preserved": tail.len(),
        "preserved_tokens": count(tail),
        "split_index": split,
        "to_compact": old.len(),
    });
    Judgment::of(expect.to_string(), ours.to_string())
}

pub(super) fn durable(input: &Value, expect: &Value) -> Judgment {
    let history = history(&input["messages"]);
    let messages = &history.messages;
    let pairing = Pairing::of(messages);
    let split = index(&input["split"]).unwrap_or_default();
    let budget = TokenCount(input["budget"].as_u64().unwrap_or_default());
    let scale = CharacterScale::default();
    let ours = durable_exchanges(messages, &pairing, &history, &scale, split, budget);
    let is_equal = json!(ours) == expect["indices"];
    let kept: Vec<Message> = ours.iter().filter_map(|&at| messages.get(at).cloned()).collect();
    let cost: u64 = kept.iter().map(|message| count_messages(&scale, [message]).get()).sum();
    let check = cost <= budget.get()
        && (is_equal || parts_no_exchange(&kept, messages.get(split..).unwrap_or_default()));
    let rule = has_loose_durable(&history, split) || shares_a_call(&history, split);
    equal_or(is_equal, "the same messages", PAIRS_AND_HEADS, rule, check)
}

/// The ids of calls and of results at the top level, in order.
pub(super) fn ids(messages: &[Message]) -> (Vec<&str>, Vec<&str>) {
    let blocks = || messages.iter().flat_map(|message| message.blocks().iter());
    let calls = blocks().filter_map(|block| match block {
        Block::ToolUse(call) => Some(call.id.as_str()),
        _ => None,
    });
    let results = blocks().filter_map(|block| match block {
        Block::ToolResult(result) => Some(result.tool_use_id.as_str()),
        _ => None,
    });
    (calls.collect(), results.collect())
}

/// Whether every call of what is kept has its result, and every result its call, in it or in what follows.
fn parts_no_exchange(kept: &[Message], tail: &[Message]) -> bool {
    let (calls, results) = ids(kept);
    let (_, later) = ids(tail);
    calls.iter().all(|id| results.contains(id) || later.contains(id))
        && results.iter().all(|id| calls.contains(id))
}

/// Whether an exchange of a durable result holds a call or result that stands alone, or more than the result's own pair.
pub(super) fn has_loose_durable(history: &History, split: usize) -> bool {
    let (calls, results) = ids(&history.messages);
    durable_messages(history, split).any(|message| {
        let (_, own) = ids(std::slice::from_ref(message));
        let is_lone = own.iter().any(|id| !calls.contains(id));
        let holders = history.messages.iter().filter(|other| {
            let (made, _) = ids(std::slice::from_ref(other));
            made.iter().any(|id| own.contains(id))
        });
        let holds_more = holders.clone().any(|holder| {
            let (made, _) = ids(std::slice::from_ref(holder));
            made.iter().any(|id| !own.contains(id) || !results.contains(id))
        });
        is_lone || holds_more || holders.count() > own.len()
    })
}

/// Whether two durable results answer calls of one message, which the reference charges twice.
fn shares_a_call(history: &History, split: usize) -> bool {
    durable_messages(history, split).count() > 1
        && history.messages.iter().take(split).any(|message| ids(std::slice::from_ref(message)).0.len() > 1)
}

fn durable_messages(history: &History, split: usize) -> impl Iterator<Item = &Message> {
    history
        .messages
        .iter()
        .enumerate()
        .take(split)
        .filter(|(at, message)| {
            message.blocks().iter().enumerate().any(|(block, content)| match content {
                Block::ToolResult(result) => {
                    let place = structured::ResultPlace {
                        message: *at,
                        block,
                        tool_use_id: &result.tool_use_id,
                        call: None,
                    };
                    history.note(place).retention == structured::Retention::Durable
                }
                _ => false,
            })
        })
        .map(|(_, message)| message)
}
