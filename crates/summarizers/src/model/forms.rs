//! The forms that an answer is asked in, and how a provider is told to hold it to them.

use std::fmt::Write;

use epitome_loop::{AnswerForm, RawJson, SUMMARY_ROOT, Section, TokenCount};

/// The form that the answer is asked in.
///
/// Whatever form is asked for, an answer in any form that [`crate::normalize_answer`] reads is taken: a provider may not
/// hold answers to a form at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SummaryForm {
    /// The strict XML of a summary, in words alone.
    #[default]
    Xml,
    /// One JSON object, and the schema of it for providers that hold answers to a schema.
    JsonSchema,
    /// The strict XML, and a grammar of it in GBNF for servers on llama.cpp. It admits nothing else, so the answer needs
    /// no repair.
    Gbnf,
}

/// What an answer in JSON is held to. `minItems` of one is what providers with schemas allow; a longest list is not.
const SCHEMA: &str = r#"{"type":"object","properties":{"goal":{"type":"array","items":{"type":"string"},"minItems":1},"constraints":{"type":"array","items":{"type":"string"}},"decisions":{"type":"array","items":{"type":"string"}},"state":{"type":"array","items":{"type":"string"},"minItems":1},"open_items":{"type":"array","items":{"type":"string"}}},"required":["goal","constraints","decisions","state","open_items"],"additionalProperties":false}"#;

/// The name of the schema.
const SCHEMA_NAME: &str = SUMMARY_ROOT;

impl SummaryForm {
    /// What is sent for the provider to hold the answer to.
    pub(super) fn answer_form(self, budget: TokenCount) -> Option<AnswerForm> {
        match self {
            Self::Xml => None,
            Self::JsonSchema => {
                let schema = RawJson::parse(SCHEMA).ok()?;
                Some(AnswerForm::JsonSchema { name: SCHEMA_NAME.into(), schema })
            }
            Self::Gbnf => Some(AnswerForm::Gbnf(grammar(budget).into())),
        }
    }

    /// What an answer of this form takes at most for a summary of this size, before anything is added for the model's own
    /// way of counting. Quotes, commas and escapes make JSON longer.
    pub(super) fn answer_tokens(self, summary: u64) -> u64 {
        match self {
            Self::Xml | Self::Gbnf => summary,
            Self::JsonSchema => summary.saturating_add(summary / 8).saturating_add(16),
        }
    }
}

/// What items are made of: letters and digits of all scripts, and all characters but breaks, controls and markup.
const WORDS_AND_CHARACTERS: &str = r#"mark ::= [-./@#$~"'(`_]
word ::= [A-Za-z0-9\u00C0-\u1FFF\u2C00-\uD7FF\uF900-\uFDCF\uFDF0-\uFFDC\U00010000-\U0001FFFF]
char ::= [^<>&\x01-\x1F\x7F\uFFFE\uFFFF] | entity
entity ::= "&lt;" | "&gt;" | "&amp;"
"#;

/// Parts of the answer, in hundredths of its characters, that a section may take in the grammar.
fn share(section: Section) -> u64 {
    match section {
        Section::Goal | Section::Decisions | Section::OpenItems => 15,
        Section::Constraints => 25,
        Section::State => 30,
    }
}

/// A grammar of the strict XML, small enough for the budget: so many items of so many characters. A small model that
/// repeats itself comes to the end of it before it is cut.
pub(super) fn grammar(budget: TokenCount) -> String {
    const CHARACTERS_PER_TOKEN: u64 = 3;
    const MOST_ITEMS: u64 = 64;
    let characters = budget.get().saturating_mul(CHARACTERS_PER_TOKEN);
    let longest = (characters / 12).clamp(60, 300);
    let mut grammar = format!("root ::= \"<{SUMMARY_ROOT}>\"");
    for section in Section::ALL {
        let rule = section.as_str().replace('_', "-");
        let _ = write!(grammar, " {rule}");
    }
    let _ = writeln!(grammar, " \"</{SUMMARY_ROOT}>\"");
    for section in Section::ALL {
        let tag = section.as_str();
        let rule = tag.replace('_', "-");
        let room = u128::from(characters) * u128::from(share(section)) / 100 / u128::from(longest);
        let more = u64::try_from(room).unwrap_or(MOST_ITEMS).clamp(1, MOST_ITEMS) - 1;
        let further = if more > 0 { format!(" (\"\\n\" item){{0,{more}}}") } else { String::new() };
        let items =
            if section.is_required() { format!("item{further}") } else { format!("(item{further})?") };
        let _ = writeln!(grammar, "{rule} ::= \"<{tag}>\" {items} \"</{tag}>\"");
    }
    let _ = writeln!(grammar, "item ::= \"- \" mark{{0,3}} word char{{0,{}}}", longest - 4);
    // An item begins with a word, a number or a name, so that none is blank or a mark alone.
    grammar.push_str(WORDS_AND_CHARACTERS);
    grammar
}

#[cfg(test)]
mod tests;
