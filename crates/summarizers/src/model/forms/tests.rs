use super::*;
use crate::normalize_answer;
use epitome_loop::SummarySections;

mod matcher;

use matcher::Grammar;

fn sections() -> SummarySections {
    SummarySections {
        goal: vec!["Port it".into()],
        constraints: vec!["Never use a < b && c > d".into(), "`--force` is forbidden".into()],
        decisions: vec![],
        state: vec!["3 files read: src/a.rs".into(), "日本語 über".into()],
        open_items: vec!["/tests are missing".into()],
    }
}

/// The strict form with every item behind a mark, as the grammar has it.
fn written(sections: &SummarySections) -> String {
    let mut two = sections.clone();
    two.goal.push("second".into());
    two.state.push("second".into());
    let xml = two.render().xml.to_string();
    xml.replace("\n- second", "")
}

#[test]
fn the_grammar_admits_summaries_and_needs_no_repair() {
    let grammar = Grammar::read(&grammar(TokenCount(800)));
    let text = written(&sections());
    assert!(grammar.admits(&text), "{text}");
    let read = normalize_answer(&text).unwrap();
    assert_eq!((read.sections, read.repairs), (sections(), vec![]));
}

#[test]
fn the_grammar_admits_nothing_else() {
    let grammar = Grammar::read(&grammar(TokenCount(800)));
    let text = written(&sections());
    for other in [
        format!(" {text}"),
        format!("{text}\n"),
        text.replace("Port it", ""),
        text.replace("Port it", " "),
        text.replace("Port it", "a < b"),
        text.replace("Port it", "a & b"),
        text.replace("Port it", "..."),
        text.replace("Port it", "<b>it</b>"),
        text.replace("- Port", "Port"),
        text.replace("<goal>- Port it</goal>", "<goal></goal>"),
        text.replace("<decisions></decisions>", ""),
        text.replace("<decisions></decisions>", "<notes></notes>"),
        text.replace("Port it", &"x".repeat(301)),
        text.replace("Port it", "a\r"),
        text.replace("</conversation_summary>", ""),
        "{}".to_owned(),
    ] {
        assert!(!grammar.admits(&other), "{other}");
    }
}

#[test]
fn the_grammar_ends_in_time_whatever_the_budget() {
    for budget in [0, 1, 100, 1000, 100_000, u64::MAX] {
        let text = grammar(TokenCount(budget));
        let grammar = Grammar::read(&text);
        assert!(grammar.admits(&written(&SummarySections {
            goal: vec!["a1".into()],
            state: vec!["b2".into()],
            ..SummarySections::default()
        })));
        let longest = grammar.longest();
        assert!(longest <= 5 * 64 * 2000, "{longest}");
        if (100..10_000).contains(&budget) {
            // Escapes may be written for every character, and the frame comes on top.
            assert!(longest <= usize::try_from(budget).unwrap() * 3 * 5 + 2500, "{budget}: {longest}");
        }
    }
}

#[test]
fn the_schema_names_the_five_sections_and_nothing_else() {
    let Some(AnswerForm::JsonSchema { name, schema }) = SummaryForm::JsonSchema.answer_form(TokenCount(1))
    else {
        panic!("a schema")
    };
    assert!(name.chars().all(|part| part.is_ascii_alphanumeric() || part == '_'));
    let schema: serde_json::Value = serde_json::from_str(schema.as_str()).unwrap();
    assert_eq!(schema["additionalProperties"], false);
    let names = Section::ALL.map(Section::as_str);
    assert_eq!(schema["required"], serde_json::json!(names));
    let properties = schema["properties"].as_object().unwrap();
    assert_eq!(properties.len(), names.len());
    for section in Section::ALL {
        let list = &properties[section.as_str()];
        assert_eq!((&list["type"], &list["items"]["type"]), (&"array".into(), &"string".into()));
        assert_eq!(list.get("minItems").is_some(), section.is_required());
    }
}

#[test]
fn an_answer_of_the_schema_is_read_with_the_one_repair_that_json_is() {
    let text =
        r#"{"goal":["Port it"],"constraints":["a < b & c"],"decisions":[],"state":["x"],"open_items":[]}"#;
    let read = normalize_answer(text).unwrap();
    assert_eq!(read.repairs, [crate::Repair::Json]);
    assert_eq!(read.sections.constraints[0].as_str(), "a < b & c");
}
