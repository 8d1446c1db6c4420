//! Tokens, budgets, splits and durable exchanges.

use std::collections::BTreeMap;

use epitome_loop::{Block, Message, TokenCount};
use epitome_summarizers::structured::{
    self, CharacterScale, Pairing, ResultNotes, ResultPlace, Retention, count_messages, durable_exchanges,
    estimate_text, split_by_budget, split_by_count,
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
    let cost: u64 = ours
        .iter()
        .filter_map(|&at| messages.get(at))
        .map(|message| count_messages(&scale, [message]).get())
        .sum();
    let check = cost <= budget.get() && parts_no_exchange(&ours, &Pairs::of(messages), split);
    let reference = super::reference_pass::pull(&history, &scale, split, budget.get());
    let rule = has_loose_durable(&history, split) && json!(reference) == expect["indices"];
    equal_or(is_equal, "the same messages", PAIRS_AND_HEADS, rule, check)
}

/// Whether everything that is paired with a kept message is kept too or stands behind the split.
fn parts_no_exchange(kept: &[usize], pairs: &Pairs, split: usize) -> bool {
    let is_kept = |at: &usize| *at >= split || kept.contains(at);
    pairs.pairs.iter().all(|(call, result)| {
        !kept.contains(call) && !kept.contains(result) || is_kept(call) && is_kept(result)
    }) && !pairs.lone_calls.iter().chain(&pairs.lone_results).any(|at| kept.contains(at))
}

/// Pairs of messages by call and result, and the messages of calls and results that stand alone. Of our library it takes
/// nothing.
pub(super) struct Pairs {
    pub(super) pairs: Vec<(usize, usize)>,
    pub(super) lone_calls: Vec<usize>,
    pub(super) lone_results: Vec<usize>,
}

impl Pairs {
    pub(super) fn of(messages: &[Message]) -> Self {
        let mut open: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let (mut pairs, mut lone_results) = (Vec::new(), Vec::new());
        for (at, message) in messages.iter().enumerate() {
            for block in message.blocks().iter() {
                match block {
                    Block::ToolUse(call) => open.entry(&call.id).or_default().push(at),
                    Block::ToolResult(result) => {
                        match open.get_mut(result.tool_use_id.as_str()).and_then(Vec::pop) {
                            Some(call) => pairs.push((call, at)),
                            None => lone_results.push(at),
                        }
                    }
                    _ => {}
                }
            }
        }
        let lone_calls = open.into_values().flatten().collect();
        Self { pairs, lone_calls, lone_results }
    }
}

/// Whether the exchange of a durable result is more than the result's message and its calls, or something in it stands
/// alone.
pub(super) fn has_loose_durable(history: &History, split: usize) -> bool {
    let pairs = Pairs::of(&history.messages);
    durable_messages(history, split).any(|at| {
        let calls: Vec<usize> =
            pairs.pairs.iter().filter(|(_, result)| *result == at).map(|(call, _)| *call).collect();
        let reaches_further = pairs.pairs.iter().any(|(call, result)| calls.contains(call) && *result != at);
        let is_loose = |lone: &[usize]| lone.iter().any(|one| *one == at || calls.contains(one));
        reaches_further || is_loose(&pairs.lone_calls) || is_loose(&pairs.lone_results)
    })
}

/// The indices of messages before the split with a durable result.
fn durable_messages(history: &History, split: usize) -> impl Iterator<Item = usize> {
    let messages = history.messages.iter().enumerate().take(split);
    let is_durable = |at: usize, block: usize, content: &Block| match content {
        Block::ToolResult(result) => {
            let place = ResultPlace { message: at, block, tool_use_id: &result.tool_use_id, call: None };
            history.note(place).retention == Retention::Durable
        }
        _ => false,
    };
    let holds = move |(at, message): &(usize, &Message)| {
        message.blocks().iter().enumerate().any(|(block, content)| is_durable(*at, block, content))
    };
    messages.filter(holds).map(|(at, _)| at)
}
