//! Reading answers.

use epitome_summarizers::structured::{heading_of_line, item_of_line, json_answer, read_summary};
use serde_json::{Value, json};

use super::super::Judgment;
use super::classes::BETTER_READING;
use super::scene::{list, summary_value, word};
use super::{equal_or, reference_reader};

pub(super) fn heading(input: &Value, expect: &Value) -> Judgment {
    let line = word(&input["line"]);
    let ours = heading_of_line(line).map_or(Value::Null, |section| json!(section.key()));
    let reference = reference_reader::heading(line)
        .and_then(|at| epitome_summarizers::structured::SummarySection::ALL.get(at).copied())
        .map_or(Value::Null, |section| json!(section.key()));
    let rule = reference == expect["section"] && (is_dressed_up(line) || is_star_bullet(line));
    equal_or(ours == expect["section"], "the section", BETTER_READING, rule, true)
}

pub(super) fn bullet(input: &Value, expect: &Value) -> Judgment {
    let line = word(&input["line"]);
    let ours = item_of_line(line).map_or(Value::Null, |item| json!(item));
    let reference = reference_reader::bullet(line).map_or(Value::Null, |item| json!(item));
    let rule = reference == expect["item"] && is_other_bullet(line);
    equal_or(ours == expect["item"], "the item", BETTER_READING, rule, true)
}

pub(super) fn extract_json(input: &Value, expect: &Value) -> Judgment {
    let text = word(&input["text"]);
    let ours = json_answer(text).and_then(|json| serde_json::from_str::<Value>(json).ok());
    let reference = reference_reader::extract_json(text);
    let expected = (expect["found"] == true).then(|| expect["value"].clone());
    // The reference looks anywhere, and quotes and earlier brackets in prose mislead it.
    let is_answer_alone =
        serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object() || value.is_array());
    let rule = reference == expected && !is_answer_alone;
    equal_or(ours == expected, "the value", BETTER_READING, rule, true)
}

pub(super) fn parse(input: &Value, expect: &Value) -> Judgment {
    let text = word(&input["text"]);
    let reference = reference_reader::parse(text);
    if reference != *expect {
        return Judgment::of("what the reference's rules give", "another reading");
    }
    let ours = summary_value(read_summary(text).as_ref());
    let rule = is_read_otherwise(text);
    equal_or(ours == expect["parsed"], "the lists", BETTER_READING, rule, keeps_items(text, &ours))
}

/// Whether a text has something that our rules read otherwise than the reference's: by its lines and its JSON alone.
pub(super) fn is_read_otherwise(text: &str) -> bool {
    is_json_read_otherwise(text) || are_lines_read_otherwise(text)
}

fn is_json_read_otherwise(text: &str) -> bool {
    let reference = reference_reader::extract_json(text);
    let ours = json_answer(text).and_then(|json| serde_json::from_str::<Value>(json).ok());
    let holds_more_than_text = |value: &Value| {
        epitome_summarizers::structured::SummarySection::ALL
            .iter()
            .any(|section| list(&value[section.key()]).iter().any(|item| !item.is_string()))
    };
    // JSON somewhere in a text that is not JSON, or lists of other things than text.
    (reference != ours && text.contains(['{', '['])) || reference.as_ref().is_some_and(holds_more_than_text)
}

fn are_lines_read_otherwise(text: &str) -> bool {
    let mut after_item = false;
    let mut in_section = false;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            continue;
        }
        let is_known = reference_reader::heading(line).is_some() || heading_of_line(line).is_some();
        let is_item = reference_reader::bullet(line).is_some() || is_other_bullet(line);
        let is_underlined = lines.peek().is_some_and(|next| {
            let next = next.trim();
            next.len() >= 3 && (next.trim_matches('=').is_empty() || next.trim_matches('-').is_empty())
        });
        let is_fence = trimmed.starts_with("```") || trimmed.starts_with("~~~");
        // The dress of a known heading, other bullets, other fences, headings of other names.
        let otherwise = reference_reader::heading(line).is_some() != heading_of_line(line).is_some()
            || in_section && is_other_bullet(line)
            || trimmed.starts_with("~~~")
            || in_section && !is_known && !is_item && (is_bold_or_labelled(trimmed) || is_underlined)
            // A line that goes on with a bullet.
            || after_item && !is_known && !is_item && !is_fence && !trimmed.starts_with('#')
                && trimmed.chars().any(char::is_alphanumeric)
            // A comment inside a fence.
            || in_section && trimmed.starts_with('#') && text.contains("```");
        if otherwise {
            return true;
        }
        if is_known {
            (in_section, after_item) = (true, false);
        } else if trimmed.starts_with('#') {
            (in_section, after_item) = (false, false);
        } else if is_item {
            after_item = in_section;
        }
    }
    false
}

/// Whether what the reference read of bullets is still said, for texts whose sections are the same to both.
fn keeps_items(text: &str, ours: &Value) -> bool {
    if ours.is_null() || is_json_read_otherwise(text) {
        return true;
    }
    let said: Vec<&str> = text.lines().map(str::trim).collect();
    // Nothing is invented: every entry starts with the text of a bullet, or is a checkbox or JSON.
    let starts_with_a_bullet = |item: &Value| {
        let item = word(item);
        said.iter().any(|line| {
            item_of_line(line).is_some_and(|bullet| item.starts_with(bullet)) || item.starts_with(line)
        })
    };
    json_answer(text).is_some()
        || ours
            .as_object()
            .is_some_and(|lists| lists.values().all(|items| list(items).iter().all(starts_with_a_bullet)))
}

fn is_dressed_up(line: &str) -> bool {
    line.contains([':', '：', '_', '#'])
}

fn is_star_bullet(line: &str) -> bool {
    line.trim().starts_with("* ")
}

fn is_other_bullet(line: &str) -> bool {
    let line = line.trim();
    ["+ ", "• ", "[ ] ", "[x] ", "[X] "].iter().any(|mark| line.starts_with(mark))
}

fn is_bold_or_labelled(line: &str) -> bool {
    let bare = line.trim_end_matches([':', '：']).trim_end();
    bare.len() < line.len() || ["**", "__"].iter().any(|mark| bare.starts_with(mark) && bare.ends_with(mark))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lines as models write them, well and badly.
    fn line() -> impl Strategy<Value = String> {
        let heading = prop::sample::select(vec![
            "### Key facts",
            "Decisions",
            "**Pending tasks:**",
            "**Open questions**:",
            "## Decisions :",
            "# Other",
            "**Other**",
            "Other:",
            "__Other__",
            "### Key facts ###",
            "#tag",
            "* Decisions",
            "### Pending tasks (cont.)",
            "KEY FACTS",
            "Other\n---",
            "Other\n===",
            "### Decisions::",
            "*Key facts*",
        ]);
        let bullet = prop::sample::select(vec![
            "- a", "* b", "+ c", "• d", "1. e", "2) f", "- [ ] g", "[x] h", "-i", "‣ j", "  - k", "- ", "-",
            "> q", "- \"", "- [", "a) z",
        ]);
        let other = prop::sample::select(vec![
            "",
            " ",
            "prose",
            "  goes on",
            "```",
            "```sh",
            "~~~",
            "# comment",
            "---",
            "<tag>",
            "| a |",
            "[trimmed]",
            "Note that:",
            "\u{1d}",
            "{\"key_facts\": [\"x\"]}",
            "{\"decisions\": []}",
            "- {\"decisions\": [\"y\"]}",
            "[1]",
            "{\"key_facts\": [1], \"decisions\": []}",
            "Here: {\"open_questions\": [\"z\"]}",
            "\"",
            "{",
            "]",
            "`{}`",
        ]);
        prop_oneof![3 => heading, 3 => bullet, 3 => other].prop_map(str::to_owned)
    }

    fn answer() -> impl Strategy<Value = String> {
        let breaks = prop::sample::select(vec!["\n", "\n", "\n", "\r\n", "\n\n"]);
        prop::collection::vec((line(), breaks), 0..14)
            .prop_map(|lines| lines.into_iter().map(|(line, end)| line + end).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// What the reference would answer is always equal to ours or in the class, also in files never seen.
        #[test]
        fn every_answer_is_equal_or_in_the_class(text in answer()) {
            let expect = reference_reader::parse(&text);
            let judgment = parse(&json!({"text": text}), &expect);
            prop_assert!(matches!(judgment, Judgment::Equal | Judgment::Better(_)), "{judgment:?} {text:?}");
        }

        #[test]
        fn every_line_is_equal_or_in_the_class(line in line()) {
            let section = reference_reader::heading(&line)
                .and_then(|at| epitome_summarizers::structured::SummarySection::ALL.get(at).copied())
                .map(epitome_summarizers::structured::SummarySection::key);
            let judgments = [
                heading(&json!({"line": line}), &json!({"section": section})),
                bullet(&json!({"line": line}), &json!({"item": reference_reader::bullet(&line)})),
            ];
            for judgment in judgments {
                prop_assert!(matches!(judgment, Judgment::Equal | Judgment::Better(_)), "{judgment:?} {line:?}");
            }
        }

        /// What fuzzing holds, on answers as models write them.
        #[test]
        fn the_law_of_fuzzing_holds(text in answer()) {
            crate::fuzzing::structured_reader(text.as_bytes());
        }

        #[test]
        fn every_json_is_equal_or_in_the_class(text in answer()) {
            let found = reference_reader::extract_json(&text);
            let expect = json!({"found": found.is_some(), "value": found});
            let judgment = extract_json(&json!({"text": text}), &expect);
            prop_assert!(matches!(judgment, Judgment::Equal | Judgment::Better(_)), "{judgment:?} {text:?}");
        }
    }
}
