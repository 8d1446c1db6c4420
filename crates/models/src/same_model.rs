//! Whether the model that answered is the one that was asked.

/// Routes of gateways, written behind a model's name. They name a price or a speed, not another model.
const ROUTES: [&str; 7] = ["latest", "free", "nitro", "floor", "online", "exacto", "extended"];

/// Whether the two names are of one model.
///
/// Equal without regard to case; or equal but for
/// - the way to it that gateways and servers put in front: `openai/gpt-x`, `models/gemini-x`, `/srv/x.gguf`. Where
///   both names have one, one way must be the end of the other;
/// - a dated snapshot of the asked alias, or the alias of the asked snapshot: `-2024-08-06`, `-20241022`, `-0613`,
///   `-001`, `@20240620`. Two different snapshots are two models;
/// - `-latest`, and what stands behind a colon and names a route: `:latest`, `:free`.
#[must_use]
pub fn is_same_model(asked: &str, answered: &str) -> bool {
    let (asked_way, asked_name) = way_and_name(asked);
    let (answered_way, answered_name) = way_and_name(answered);
    let (asked, answered) = (Name::of(asked_name), Name::of(answered_name));
    is_end_of(asked_way, answered_way)
        && asked.base.eq_ignore_ascii_case(answered.base)
        && match (asked.snapshot, answered.snapshot) {
            (Some(asked), Some(answered)) => same_digits(asked, answered),
            _ => true,
        }
}

fn way_and_name(name: &str) -> (&str, &str) {
    name.trim().rsplit_once('/').unwrap_or(("", name.trim()))
}

/// Whether one of the two ways is the end of the other, step by step.
fn is_end_of(one: &str, other: &str) -> bool {
    let steps = |way| str::rsplit(way, '/').filter(|step: &&str| !step.is_empty());
    steps(one).zip(steps(other)).all(|(one, other)| one.eq_ignore_ascii_case(other))
}

struct Name<'a> {
    base: &'a str,
    snapshot: Option<&'a str>,
}

impl<'a> Name<'a> {
    fn of(name: &'a str) -> Self {
        let name = name.strip_suffix(".gguf").unwrap_or(name);
        let name = match name.rsplit_once(':') {
            Some((base, route)) if ROUTES.iter().any(|known| route.eq_ignore_ascii_case(known)) => base,
            _ => name,
        };
        if let Some((base, "latest")) = name.rsplit_once(['-', '@']) {
            return Self { base, snapshot: None };
        }
        match snapshot_start(name).and_then(|at| name.split_at_checked(at)) {
            Some((base, snapshot)) => Self { base, snapshot: Some(snapshot) },
            None => Self { base: name, snapshot: None },
        }
    }
}

/// Where the date begins that a name ends with, its mark included.
fn snapshot_start(name: &str) -> Option<usize> {
    let at = name.rfind(['-', '@'])?;
    let (before, last) = name.split_at_checked(at)?;
    let digits = |text: &str, lengths: &[usize]| {
        lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let last = last.get(1..)?;
    if digits(last, &[2]) {
        // Year, month and day, or month and day, each between dashes.
        let month = before.rfind('-')?;
        if !digits(before.get(month..)?.get(1..)?, &[2]) {
            return None;
        }
        let year = before.get(..month).and_then(|rest| {
            let at = rest.rfind('-')?;
            digits(rest.get(at..)?.get(1..)?, &[4]).then_some(at)
        });
        return Some(year.unwrap_or(month)).filter(|at| *at > 0);
    }
    (digits(last, &[3, 4, 6, 8]) && at > 0).then_some(at)
}

/// `2024-10-22` and `20241022` are one day.
fn same_digits(one: &str, other: &str) -> bool {
    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).collect::<Vec<_>>();
    digits(one) == digits(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_aliases_and_ways_are_one_model() {
        for (asked, answered) in [
            ("gpt-4o", "gpt-4o"),
            ("gpt-4o", "GPT-4o"),
            ("gpt-4o", "gpt-4o-2024-08-06"),
            ("gpt-4o-2024-08-06", "gpt-4o"),
            ("gpt-4", "gpt-4-0613"),
            ("openai/gpt-4o", "gpt-4o-2024-08-06"),
            ("gpt-4o", "openai/gpt-4o"),
            ("openrouter/openai/gpt-4o", "openai/gpt-4o"),
            ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
            ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
            ("claude-3-5-sonnet@20240620", "claude-3-5-sonnet-20240620"),
            ("gemini-2.0-flash", "models/gemini-2.0-flash-001"),
            ("models/gemini-2.5-flash-preview", "gemini-2.5-flash-preview-05-20"),
            ("gemini-flash-latest", "gemini-flash"),
            ("mistral-large-latest", "mistral-large-2411"),
            ("llama3.2", "llama3.2:latest"),
            ("deepseek/deepseek-r1:free", "deepseek/deepseek-r1"),
            ("smollm2-135m-q8.gguf", "/srv/models/smollm2-135m-q8.gguf"),
            ("Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-7B-Instruct"),
        ] {
            assert!(is_same_model(asked, answered), "{asked} {answered}");
        }
    }

    #[test]
    fn another_model_is_another_one() {
        for (asked, answered) in [
            ("gpt-4o", "gpt-4o-mini"),
            ("gpt-4o", "gpt-4o-mini-2024-07-18"),
            ("gpt-4o-2024-08-06", "gpt-4o-2024-05-13"),
            ("gpt-4", "gpt-4-32k"),
            ("gpt-4", "gpt-3.5-turbo"),
            ("claude-3", "claude-3-5"),
            ("claude-opus-4-1", "claude-opus-4-5"),
            ("claude-sonnet-4", "claude-sonnet-4-5"),
            ("llama3:8b", "llama3:70b"),
            ("llama3:8b", "llama3"),
            ("meta-llama/Llama-3", "somebody/Llama-3"),
            ("gemini-2.5-pro", "gemini-2.5-flash"),
            ("o1", "o1-preview"),
            ("a", ""),
            ("a", "b"),
        ] {
            assert!(!is_same_model(asked, answered), "{asked} {answered}");
            assert!(!is_same_model(answered, asked), "{answered} {asked}");
        }
    }

    #[test]
    fn strange_names_are_no_trouble() {
        for name in
            ["", "-", "@", "/", ":", "-12", "-12-12", "-2024-12-12", "\u{e9}-\u{e9}", "a/b/", "-latest"]
        {
            assert!(is_same_model(name, name), "{name}");
            assert!(!is_same_model(name, "gpt-4o"), "{name}");
        }
    }
}
