//! Texts that say that there is no answer.

/// Whether a text begins like a refusal or an error, and so is no part of a summary where nothing else is said.
pub(crate) fn declines(text: &str) -> bool {
    const BEGINNINGS: [&str; 14] = [
        "i cannot",
        "i can't",
        "i can\u{2019}t",
        "i can not",
        "i'm sorry",
        "i\u{2019}m sorry",
        "i am sorry",
        "sorry,",
        "i'm unable",
        "i am unable",
        "as an ai",
        "error:",
        "error generating",
        "api error",
    ];
    let lower = text.trim().to_lowercase();
    let is_status =
        lower.strip_prefix("error ").is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_digit()));
    is_status || BEGINNINGS.iter().any(|beginning| lower.starts_with(beginning))
}

/// Whether a text is no answer at all: a refusal, an error, a page of a server, a call of a tool, or reasoning.
pub(crate) fn is_no_answer(text: &str) -> bool {
    const BEGINNINGS: [&str; 8] =
        ["<html", "<!doctype", "<tool_call", "<function", "<invoke", "{\"error\"", "[tool_calls]", "<|"];
    let text = text.trim();
    let lower: String =
        text.chars().take(24).flat_map(char::to_lowercase).filter(|next| !next.is_whitespace()).collect();
    let only_thinks = lower.starts_with("<think") && !text.contains("</think");
    declines(text) || only_thinks || BEGINNINGS.iter().any(|beginning| lower.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_that_there_is_no_answer_is_told_from_one() {
        for none in [
            "I'm sorry, but I can't help with that.",
            "Error: 503 upstream connect error",
            "Error 429",
            "<!DOCTYPE html><h1>502</h1>",
            "{ \"error\": {\"message\": \"overloaded\"}}",
            "<tool_call>{}</tool_call>",
            "<think>I should look first",
        ] {
            assert!(is_no_answer(none), "{none}");
        }
        for answer in [
            "Errors are handled.",
            "### Key facts\n- a",
            "<think>a</think>\n- b",
            "{\"key_facts\":[]}",
            "prose",
        ] {
            assert!(!is_no_answer(answer), "{answer}");
        }
    }
}
