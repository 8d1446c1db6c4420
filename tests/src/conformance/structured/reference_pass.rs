//! What the reference's pass answers, by its rules as they were measured: so that cases nobody has recorded can be
//! judged too. It stands on our split and counts, whose vectors are all equal.

use epitome_loop::{Message, Role, TokenCount};
use epitome_summarizers::structured::{
    MessageScale, Pairing, ResultNotes as _, ResultPlace, Retention, StructuredSummaryConfig, SummarySection,
    SummaryTemplate, count_messages, estimate_text, render_transcript, split_by_budget,
};
use serde_json::{Value, json};

use super::log::logged;
use super::prompts::{is_escaped, with_our_marks};
use super::reference_reader;
use super::scene::{History, history, list, scale, summary, summary_value, with_our_words, word};
use super::sizes::Pairs;
use super::trimming::render_text;

const MARK: &str = "[trimmed]";

/// What the reference trims a text to, as the only entry of a template's first section.
pub(super) fn trim(text: &str, template: &Value, budget: u64) -> Option<String> {
    let template = super::scene::template(template);
    let measure = |text: &str| estimate_text(&render_text(text, &template)).get();
    let mut text = text.to_owned();
    for _ in 0..3 {
        let excess = match measure(&text).checked_sub(budget) {
            None | Some(0) => break,
            Some(excess) => usize::try_from(excess).unwrap_or(usize::MAX),
        };
        let kept = text.chars().count().saturating_sub(excess.saturating_mul(6).saturating_add(64));
        let mut piece: String = text.chars().take(kept).collect();
        if let Some(at) = piece.rfind('\n').filter(|&at| at > 0) {
            piece.truncate(at);
        }
        text = format!("{piece}\n{MARK}");
    }
    (measure(&text) <= budget && is_substantive(&text)).then_some(text)
}

/// Whether the reference finds substance in a text.
pub(super) fn is_substantive(text: &str) -> bool {
    let text = text.strip_suffix(MARK).unwrap_or(text);
    text.lines().map(str::trim).any(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The durable results before a split that the reference pulls, each with the calls of all its message's results.
pub(super) fn pull(history: &History, scale: &dyn MessageScale, split: usize, budget: u64) -> Vec<usize> {
    let messages = &history.messages;
    let pairs = Pairs::of(messages);
    let count = |at: &usize| messages.get(*at).map_or(0, |message| count_messages(scale, [message]).get());
    let mut left = budget;
    let mut pulled = Vec::new();
    for at in (0..split).rev() {
        let Some(message) = messages.get(at) else { continue };
        let is_durable = message.blocks().iter().enumerate().any(|(block, content)| match content {
            epitome_loop::Block::ToolResult(result) => {
                let place = ResultPlace { message: at, block, tool_use_id: &result.tool_use_id, call: None };
                history.note(place).retention == Retention::Durable
            }
            _ => false,
        });
        if !is_durable {
            continue;
        }
        let calls =
            pairs.pairs.iter().filter(|(call, result)| *result == at && *call < split).map(|(call, _)| *call);
        let mut group: Vec<usize> = calls.chain([at]).collect();
        group.sort_unstable();
        group.dedup();
        let cost: u64 = group.iter().map(count).sum();
        if cost <= left {
            left -= cost;
            pulled.extend(group);
        }
    }
    pulled.sort_unstable();
    pulled.dedup();
    pulled
}

/// What a vector with this input would expect.
pub(super) fn compact(input: &Value) -> Value {
    let history = history(&input["messages"]);
    let messages = &history.messages;
    let (config, warned) = logged(|| super::scene::config(&input["config"]));
    let warnings = warned.len();
    let context = &input["context"];
    let scale = scale(&context["counter"]);
    let pinned = super::scene::history(&context["pinned"]).messages;
    let target = input["target_tokens"].as_u64().unwrap_or_default();
    let budget = config.budget(TokenCount(target)).get();
    let count = |messages: &[Message]| count_messages(&*scale, messages).get();
    let script = list(&input["script"]);
    let mut expect = json!({
        "budget": budget, "calls": 0, "prompts": [], "result": "no_change", "script_left": script.len(),
        "tokens_saved": 0, "messages_unchanged": true,
        "telemetry": {
            "config_warnings": warnings, "pass_complete": null, "pass_failed": null, "sections": [], "warnings": 0,
        },
    });
    if messages.len() <= config.least_messages() {
        return expect;
    }
    let heads = usize::from(messages.first().is_some_and(|message| message.role() == Role::System));
    let head = messages.get(..heads).unwrap_or_default();
    let mut tail_budget =
        target.saturating_sub(budget).saturating_sub(count(&pinned)).saturating_sub(count(head));
    let pairing = Pairing::of(messages);
    let (least, recent) = (config.least_messages(), config.recent_messages());
    let place = |budget: u64| {
        let split = split_by_budget(messages, &pairing, &*scale, least, recent, TokenCount(budget));
        (split, pull(&history, &*scale, split, budget))
    };
    let mut placed = place(tail_budget);
    loop {
        let pulled: Vec<Message> = placed.1.iter().filter_map(|&at| messages.get(at).cloned()).collect();
        let left = tail_budget.saturating_sub(count(&pulled));
        if left == tail_budget {
            break;
        }
        tail_budget = left;
        let again = place(left);
        if again == placed {
            break;
        }
        placed = again;
    }
    let (split, pulled) = placed;
    let dropped: Vec<usize> = (heads..split).filter(|at| !pulled.contains(at)).collect();
    if dropped.is_empty() {
        return expect;
    }
    let (committed, calls) = ask(script, &config, &input["config"]["template"], budget);
    let transcript =
        render_transcript(messages, &dropped, &pairing, &history, config.most_transcript_characters());
    let titles: Vec<_> = config.summary_template().rendered().iter().map(|section| section.title()).collect();
    let prompt = |at: usize| {
        let mut prompt = json!({
            "request_messages": 1,
            "system": {"budget_stated": budget, "sections": titles, "sharper_retry": at > 0},
        });
        if at == 0 {
            prompt["user"] = json!({
                "after_transcript": host_blocks(input),
                "transcript": transcript.text.as_str(),
                "transcript_chars": transcript.text.chars().count(),
            });
        } else {
            prompt["system_extends_first"] = json!(true);
            prompt["user_same_as_first"] = json!(true);
        }
        prompt
    };
    let before = context["tokens_before"].as_u64().unwrap_or_else(|| count(messages));
    expect["tokens_before"] = json!(before);
    // Where a pass fails, nothing is saved.
    expect["tokens_after"] = json!(before);
    expect["calls"] = json!(calls);
    expect["prompts"] = (0..calls).map(prompt).collect();
    expect["script_left"] = json!(script.len().saturating_sub(calls));
    match committed {
        Err((class, error_budget, mentions)) => {
            expect["result"] = json!("failed");
            expect["error_class"] = json!(class);
            expect["error_budget"] = json!(error_budget);
            expect["error_mentions"] = mentions;
            expect["telemetry"]["pass_failed"] = json!({"level": "WARN"});
        }
        Ok(summary) => {
            let text = render(&summary, config.summary_template());
            let tail = split..messages.len();
            let mut places: Vec<Value> = (0..heads).map(|at| json!({"src": at})).collect();
            places.extend((0..pinned.len()).map(|at| json!({"pin": at})));
            places.push(json!({"role": "assistant", "parts": 1, "text": text.as_str()}));
            places.extend(pulled.iter().copied().chain(tail.clone()).map(|at| json!({"src": at})));
            let kept = head.iter().chain(&pinned).cloned().chain([Message::assistant(with_our_words(&text))]);
            let rest = pulled.iter().copied().chain(tail).filter_map(|at| messages.get(at).cloned());
            let after: Vec<Message> = kept.chain(rest).collect();
            let is_populated = |section: &SummarySection| !list(&summary[section.key()]).is_empty();
            let sections = config.summary_template().rendered();
            let events = sections.iter().map(|section| {
                json!({
                    "level": "DEBUG", "metric": "loopctl.compaction.structured.sections", "section": section.slug(),
                    "state": if is_populated(section) { "populated" } else { "empty" },
                })
            });
            expect["result"] = json!("compacted");
            expect["messages"] = json!(places);
            expect["evicted"] = json!(dropped);
            expect["tokens_after"] = json!(count(&after));
            expect["tokens_saved"] = json!(before.saturating_sub(count(&after)));
            expect["messages_unchanged"] = json!(false);
            expect["telemetry"]["sections"] = events.collect();
            let populated = sections.iter().filter(|section| is_populated(section)).count();
            expect["telemetry"]["pass_complete"] =
                json!({"budget": budget, "level": "DEBUG", "populated": populated, "retried": calls == 2});
        }
    }
    expect
}

/// The names of the host's blocks behind a transcript.
pub(super) fn host_blocks(input: &Value) -> Vec<String> {
    let (config, context) = (&input["config"], &input["context"]);
    let given = |text: &Value, name: &str| text.is_string().then(|| name.to_owned());
    let contexts =
        (0..list(&context["additional_context"]).len()).map(|at| format!("additional_context[{at}]"));
    let instructs = given(&config["summary_instructions"], "config_instructions");
    instructs
        .filter(|_| !word(&config["summary_instructions"]).trim().is_empty())
        .into_iter()
        .chain(given(&context["instructions"], "hook_instructions"))
        .chain(contexts)
        .collect()
}

/// Why a pass fails: class, budget, what is mentioned.
type Failure = (&'static str, Option<u64>, Value);

/// The four lists that are committed, and how many calls it took.
fn ask(
    script: &[Value],
    config: &StructuredSummaryConfig,
    template: &Value,
    budget: u64,
) -> (Result<Value, Failure>, usize) {
    let raw = |text: &str| {
        let mut lists = summary_value(Some(&summary(&Value::Null)));
        if let Some(first) = config.summary_template().rendered().first() {
            lists[first.key()] = json!([text]);
        }
        lists
    };
    for at in 0..2 {
        let answer = script.get(at).unwrap_or(&Value::Null);
        let calls = at + 1;
        if !answer["error"].is_null() || answer.is_null() {
            return (Err(("api", None, answer["error"]["message"].clone())), calls);
        }
        let parts = list(&answer["parts"]).iter().filter(|part| part["type"] == "text");
        let text = match answer["text"].as_str() {
            Some(text) => text.to_owned(),
            None => parts.map(|part| word(&part["text"])).collect(),
        };
        if text.trim().is_empty() {
            if at == 1 {
                return (Err(("blank", None, Value::Null)), calls);
            }
            continue;
        }
        if estimate_text(&text).get() > budget {
            let trimmed = if at == 1 { trim(&text, template, budget) } else { None };
            return (trimmed.map(|text| raw(&text)).ok_or(("over_budget", Some(budget), Value::Null)), calls);
        }
        if !config.parses_output() {
            return (Ok(raw(&text)), calls);
        }
        let read = reference_reader::read(&text);
        if !read.is_null() && summary(&read).fits(config.summary_template()) {
            return (Ok(read), calls);
        }
        if at == 1 {
            return (Ok(raw(&text)), calls);
        }
    }
    (Err(("blank", None, Value::Null)), 2)
}

/// A summary as the reference renders it.
pub(super) fn render(lists: &Value, template: &SummaryTemplate) -> String {
    let mut text = template.header.to_string();
    if SummarySection::ALL.iter().all(|section| list(&lists[section.key()]).is_empty()) {
        return text + "\n\n{{STUB}}";
    }
    for section in template.rendered() {
        let items = list(&lists[section.key()]);
        if !items.is_empty() {
            text.push_str(&format!("\n\n### {}", section.title()));
            text.extend(items.iter().map(|item| format!("\n- {}", word(item))));
        }
    }
    text
}

/// What of a case does not follow the rules; such a case is neither equal nor in a class.
pub(super) fn broken_rules(input: &Value, expect: &Value) -> Vec<String> {
    let ours = compact(input);
    let names = [
        "budget",
        "calls",
        "result",
        "script_left",
        "evicted",
        "error_class",
        "error_budget",
        "tokens_saved",
        "messages_unchanged",
        "telemetry",
    ];
    let mut broken: Vec<String> =
        names.into_iter().filter(|&name| ours[name] != expect[name]).map(str::to_owned).collect();
    let mut say = |name: &str, holds: bool| {
        if !holds {
            broken.push(name.to_owned());
        }
    };
    // Errors of some kinds say nothing of their own.
    say(
        "error_mentions",
        expect["error_mentions"].is_null() || ours["error_mentions"] == expect["error_mentions"],
    );
    let places = |value: &Value| with_our_words(&value["messages"].to_string());
    say("messages", places(&ours) == places(expect));
    // Where nothing is to be done, nothing is counted here.
    if ours["result"] != "no_change" {
        say("tokens_before", ours["tokens_before"] == expect["tokens_before"]);
        say("tokens_after", ours["tokens_after"] == expect["tokens_after"]);
    }
    let messages = history(&input["messages"]).messages;
    let (ours, theirs) = (list(&ours["prompts"]), list(&expect["prompts"]));
    say("prompts", ours.len() == theirs.len());
    for (ours, theirs) in ours.iter().zip(theirs) {
        broken_prompt(ours, theirs, is_escaped(&messages), &mut say);
    }
    broken
}

/// What of a recorded prompt does not follow the rules. Our transcript stands for the reference's, but where it has
/// characters that we escape.
fn broken_prompt(ours: &Value, theirs: &Value, is_escaped: bool, say: &mut impl FnMut(&str, bool)) {
    for name in ["request_messages", "system", "system_extends_first", "user_same_as_first"] {
        say(name, ours[name] == theirs[name]);
    }
    let (ours, theirs) = (&ours["user"], &theirs["user"]);
    say("after_transcript", ours["after_transcript"] == theirs["after_transcript"]);
    match theirs["transcript"].as_str() {
        Some(text) => {
            say("transcript_chars", theirs["transcript_chars"] == text.chars().count());
            say("transcript", is_escaped || with_our_marks(text) == word(&ours["transcript"]));
        }
        // Long ones are given by their size alone.
        None => say("transcript_chars", is_escaped || ours["transcript_chars"] == theirs["transcript_chars"]),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::super::super::Judgment;
    use super::*;
    use crate::vectors::read_vectors;

    fn vectors(op: &str) -> Vec<(String, Value, Value)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/structured");
        let files = crate::conformance::files_of(&folder).unwrap();
        let cases = files.iter().flat_map(|(_, path)| read_vectors(path).unwrap());
        cases.filter(|case| case.op == op).map(|case| (case.id, case.input, case.expect)).collect()
    }

    /// The rules written down here are the reference's.
    #[test]
    fn the_rules_give_what_was_recorded() {
        for (id, input, expect) in vectors("trim") {
            let budget = input["budget"].as_u64().unwrap();
            let template = &input["template"];
            assert_eq!(
                json!(trim(input["text"].as_str().unwrap(), template, budget)),
                expect["text"],
                "{id}"
            );
        }
        for (id, input, expect) in vectors("parse") {
            assert_eq!(reference_reader::parse(input["text"].as_str().unwrap()), expect, "{id}");
        }
        for (id, input, expect) in vectors("compact") {
            assert_eq!(broken_rules(&input, &expect), Vec::<String>::new(), "{id}");
        }
    }

    fn text() -> impl Strategy<Value = Value> {
        let line = prop::sample::select(vec![
            "### Key facts",
            "### Decisions",
            "**Pending tasks**:",
            "Open questions",
            "- a fact of the build",
            "- keep sqlite",
            "+ plus",
            "prose of some length goes on here",
            "  wrapped",
            "",
            "# Other",
            "**Other**",
            "{\"decisions\": [\"x\"]}",
            "```",
            "* Decisions",
            "[trimmed]",
            "{\"key_facts\": [1]}",
        ]);
        prop::collection::vec(line, 0..24).prop_map(|lines| json!({"text": lines.join("\n")}))
    }

    fn answer() -> impl Strategy<Value = Value> {
        prop_oneof![
            4 => text(),
            1 => Just(json!({"text": " \n"})),
            1 => Just(json!({"text": "Error: 503 upstream connect error"})),
            1 => Just(json!({"text": "I'm sorry, but I can't help with that."})),
            1 => Just(json!({"parts": [{"type": "text", "text": "### Decisions\n- x"}, {"type": "tool_call", "id": "a", "name": "run", "input": {}}]})),
            1 => Just(json!({"error": {"kind": "http", "message": "down"}})),
            1 => Just(json!({"parts": [{"type": "thinking", "text": "hmm"}]})),
            1 => Just(json!({"text": "### Decisions\n- x"})),
            1 => (1..200_usize).prop_map(|lines| json!({"text": format!("### Key facts\n{}", "- fact\n".repeat(lines))})),
        ]
    }

    fn message() -> impl Strategy<Value = Value> {
        let words = "[a-z]{1,9}( [a-z]{1,9}){0,30}";
        let id = prop::sample::select(vec!["a", "b", "c", "d"]);
        let retention = prop::sample::select(vec![Value::Null, json!("durable"), json!("requery")]);
        let result = move |(id, retention, output): (&str, Value, String)| json!({"type": "tool_result", "call_id": id, "name": "run", "output": output, "is_error": false, "retention": retention});
        let call = |id: &str| json!({"type": "tool_call", "id": id, "name": "run", "input": {"cmd": id}});
        prop_oneof![
            4 => words.prop_map(|text| json!({"role": "user", "text": text})),
            4 => words.prop_map(|text| json!({"role": "assistant", "text": text})),
            1 => words.prop_map(|text| json!({"role": "system", "text": text})),
            2 => prop::collection::vec(id.clone(), 1..3)
                .prop_map(move |ids| json!({"role": "assistant", "parts": ids.into_iter().map(call).collect::<Vec<_>>()})),
            2 => prop::collection::vec((id, retention, words), 1..3)
                .prop_map(move |results| json!({"role": "user", "parts": results.into_iter().map(result).collect::<Vec<_>>()})),
        ]
    }

    fn input() -> impl Strategy<Value = Value> {
        let sections = prop::sample::select(vec![
            json!(["key_facts", "decisions", "pending_tasks", "open_questions"]),
            json!(["decisions", "pending_tasks"]),
            json!(["open_questions", "key_facts", "open_questions"]),
        ]);
        let counter = prop::sample::select(vec![Value::Null, json!("anthropic"), json!({"constant": 11})]);
        (
            prop::collection::vec(message(), 0..24),
            prop::collection::vec(answer(), 2..4),
            0_u64..1500,
            (2_u64..8, 1_u64..6, any::<bool>(), sections, counter, prop::collection::vec(message(), 0..2)),
        )
            .prop_map(
                |(messages, script, target, (least, recent, parse, sections, counter, pinned))| {
                    json!({
                        "messages": messages, "script": script, "target_tokens": target,
                        "config": {
                            "min_messages": least, "preserve_recent": recent, "parse_output": parse,
                            "template": {"header": "## Recap", "sections": sections},
                        },
                        "context": {"counter": counter, "pinned": pinned},
                    })
                },
            )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// A pass of the reference is always equal to ours or in a class, also in files never seen.
        #[test]
        fn every_pass_is_equal_or_in_a_class(input in input()) {
            let judgment = super::super::passes::compact(&input, &compact(&input));
            prop_assert!(matches!(judgment, Judgment::Equal | Judgment::Better(_)), "{judgment:?} {input}");
        }

        #[test]
        fn every_trim_is_equal_or_in_a_class(answer in text(), budget in 0_u64..160) {
            let template = json!({"header": "## Recap", "sections": ["key_facts", "decisions", "pending_tasks", "open_questions"]});
            let text = answer["text"].as_str().unwrap();
            let before = estimate_text(&render_text(text, &super::super::scene::template(&template))).get();
            let template_read = super::super::scene::template(&template);
            let trimmed = trim(text, &template, budget);
            let after = trimmed.as_deref().map(|text| estimate_text(&render_text(text, &template_read)).get());
            let expect = json!({
                "text": trimmed, "rendered_tokens_before": before, "rendered_tokens_after": after,
            });
            let input = json!({"text": text, "template": template, "budget": budget});
            let judgment = super::super::trimming::trim(&input, &expect);
            prop_assert!(matches!(judgment, Judgment::Equal | Judgment::Better(_)), "{judgment:?} {input} {expect}");
        }

        #[test]
        fn every_pull_is_equal_or_in_a_class(messages in prop::collection::vec(message(), 0..20), split in 0..20_usize, budget in 0_u64..200) {
            let value = json!(messages);
            let history = history(&value);
            // A split as passes make them parts no pair.
            let split = Pairing::of(&history.messages).slide(split.min(messages.len()));
            let scale = scale(&Value::Null);
            let expect = json!({"indices": pull(&history, &*scale, split, budget)});
            let judgment = super::super::sizes::durable(&json!({"messages": value, "split": split, "budget": budget}), &expect);
            prop_assert!(matches!(judgment, Judgment::Equal | Judgment::Better(_)), "{judgment:?} {value} {split} {budget}");
        }
    }
}
