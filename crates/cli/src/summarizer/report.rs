//! What is said about who wrote the summary.

use std::collections::BTreeMap;
use std::io;

use epitome_loop::{ModelCallErrorKind, SharedText, TokenCount, Usage};
use epitome_models::{RedactionCounts, RedactionReport, redact};
use epitome_sessionruntime::{CommandReport, RefusalReason};
use serde::Serialize;

use super::hustles::AskedHustle;
use super::watch::Seen;
use super::{SummarizerKind, Summarizing};
use crate::model_endpoint::{reason_name, server_advice};
use crate::report::{harmless, printable, tokens};

/// Who was to write the summary, and how that went.
#[derive(Clone, Serialize)]
pub(crate) struct SummarizerReport {
    /// `extractive`, `model` or `command`: who is asked first.
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<ModelReport>,
    /// Who is asked when that one gives no summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback: Option<&'static str>,
    /// How often it was asked for a summary.
    tries: u32,
    /// Why the last try failed, as far as the server or the program told.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorReport>,
    /// Whether the user's rules that a summary lacks are carried into it.
    carries_constraints: bool,
}

#[derive(Clone, Serialize)]
struct ModelReport {
    /// The kind of its server, or the address.
    endpoint: String,
    name: Option<String>,
    window: Option<u64>,
    /// Requests that were sent.
    calls: u32,
    /// What the provider reported for all of them.
    usage: Option<UsageReport>,
    /// How many secrets were replaced, by kind; `None`: they are sent as they stand.
    redacted: Option<RedactedReport>,
}

/// What a provider reported.
#[derive(Clone, Serialize)]
pub(crate) struct UsageReport {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_creation: u64,
    reasoning: u64,
}

#[derive(Clone, Serialize)]
struct RedactedReport {
    /// In what went to the model.
    sent: BTreeMap<&'static str, u64>,
    /// In what came back.
    received: BTreeMap<&'static str, u64>,
}

#[derive(Clone, Serialize)]
struct ErrorReport {
    reason: &'static str,
    message: String,
}

impl From<&Usage> for UsageReport {
    fn from(usage: &Usage) -> Self {
        let Usage { input, output, cache_read, cache_creation, reasoning } = *usage;
        Self {
            input: input.get(),
            output: output.get(),
            cache_read: cache_read.get(),
            cache_creation: cache_creation.get(),
            reasoning: reasoning.get(),
        }
    }
}

impl UsageReport {
    /// In words.
    pub(crate) fn words(&self) -> String {
        let Self { input, output, cache_read, cache_creation, reasoning } = *self;
        let sent = input.saturating_add(cache_read).saturating_add(cache_creation);
        let mut said = format!("{} tokens in, {} out", tokens(sent), tokens(output));
        if cache_read > 0 {
            said.push_str(&format!(", {} of the input from the cache", tokens(cache_read)));
        }
        if reasoning > 0 {
            said.push_str(&format!(", {} of the output reasoning", tokens(reasoning)));
        }
        said
    }
}

impl Summarizing {
    /// What there is to say about it up to now.
    pub(crate) fn report(&self) -> SummarizerReport {
        let mut hustles = self.hustles.iter();
        let first = hustles.next();
        let seen = first.map(|hustle| hustle.watch.seen()).unwrap_or_default();
        SummarizerReport {
            kind: first.map_or("none", |hustle| hustle.kind.as_str()),
            model: first.and_then(|hustle| ModelReport::of(hustle, &seen)),
            fallback: hustles.next().map(|hustle| hustle.kind.as_str()),
            tries: seen.tries,
            error: error_of(&seen),
            // A program writes what it writes.
            carries_constraints: self.carries
                && first.is_some_and(|hustle| hustle.kind != SummarizerKind::Command),
        }
    }

    /// What to do about a refused compaction, where it was refused for want of a summary.
    pub(crate) fn advice_for(&self, reason: &RefusalReason) -> String {
        match reason {
            RefusalReason::Hustle(_) => self.advice(),
            _ => String::new(),
        }
    }

    /// What to do about a summarizer that gave no summary; empty where none was asked.
    pub(crate) fn advice(&self) -> String {
        let Some(first) = self.hustles.first() else { return String::new() };
        let seen = first.watch.seen();
        if seen.tries == 0 {
            return String::new();
        }
        let mut said = String::new();
        if let Some(ErrorReport { message, .. }) = error_of(&seen) {
            let who = first.model.as_ref().map_or("the program", |model| model.endpoint.name());
            said.push_str(&format!("\n{}: {message}", printable(who)));
        }
        if let Some(program) = &seen.program {
            said.push_str(&stderr_of(program));
        }
        if let Some(usage) = &seen.usage {
            said.push_str(&format!("\nspent all the same: {}", UsageReport::from(usage).words()));
        }
        if first.kind != SummarizerKind::Extractive && self.hustles.len() == 1 {
            said.push_str("\nWith --fallback extractive the embedded summarizer writes the summary then.");
        }
        said
    }
}

impl ModelReport {
    fn of(hustle: &AskedHustle, seen: &Seen) -> Option<Self> {
        let model = hustle.model.as_ref()?;
        let window = model.limits.map(|limits| limits.window.max(limits.max_input));
        Some(Self {
            endpoint: model.endpoint.name().to_owned(),
            name: model.name.as_ref().map(|name| name.as_str().to_owned()),
            window: window.map(TokenCount::get),
            calls: seen.calls,
            usage: seen.usage.as_ref().map(Into::into),
            redacted: model.client.redactions().map(|RedactionReport { sent, received }| RedactedReport {
                sent: counts(&sent),
                received: counts(&received),
            }),
        })
    }
}

fn counts(counts: &RedactionCounts) -> BTreeMap<&'static str, u64> {
    counts.by_kind().filter(|(_, count)| *count > 0).map(|(kind, count)| (kind.as_str(), count)).collect()
}

fn error_of(seen: &Seen) -> Option<ErrorReport> {
    if let Some(error) = seen.error {
        let message = match error.kind {
            ModelCallErrorKind::Network => "the connection to the server failed, or broke off".to_owned(),
            kind => kind.to_string(),
        };
        return Some(ErrorReport {
            reason: reason_name(error.kind),
            message: message + server_advice(error),
        });
    }
    let exit = seen.program.as_ref()?.exit;
    match exit {
        Some(exit) if exit.success() => None,
        Some(exit) => Some(ErrorReport { reason: "exit", message: exit.to_string() }),
        None => Some(ErrorReport { reason: "killed", message: "it was stopped".to_owned() }),
    }
}

/// The last lines that a program wrote to stderr, for whoever runs it.
fn stderr_of(report: &CommandReport) -> String {
    const LINES: usize = 5;
    let last = if report.stderr.last.is_empty() { &report.stderr.first } else { &report.stderr.last };
    let text = String::from_utf8_lossy(last);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let shown = lines.iter().skip(lines.len().saturating_sub(LINES));
    shown.map(|line| format!("\n  | {}", printable(line))).collect()
}

impl SummarizerReport {
    /// Whether there is anything to say about it: the embedded summarizer alone is as ever.
    fn is_plain(&self) -> bool {
        self.kind == SummarizerKind::Extractive.as_str() && self.fallback.is_none()
    }

    /// The lines for a person.
    pub(crate) fn show(&self, out: &mut impl io::Write, degraded: Option<&str>) -> io::Result<()> {
        if self.is_plain() {
            return Ok(());
        }
        let asked = match &self.model {
            Some(ModelReport { endpoint, name, .. }) => {
                // Servers of one file name it by its path.
                let short = |name: &str| match name.rsplit_once('/') {
                    Some((_, file)) if file.ends_with(".gguf") => printable(file),
                    _ => printable(name),
                };
                let name = name.as_deref().map_or("a model".to_owned(), short);
                format!("{name} at {}", harmless(endpoint))
            }
            None => self.kind.to_owned(),
        };
        let tries = match self.tries {
            0 => return Ok(()),
            1 => "one try".to_owned(),
            tries => format!("{tries} tries"),
        };
        match degraded {
            None => writeln!(out, "summary   by {asked}, in {tries}")?,
            Some(reason) => {
                let fallback = self.fallback.unwrap_or("the fallback");
                writeln!(
                    out,
                    "DEGRADED  {asked} gave none in {tries} ({reason}); {fallback} wrote the summary"
                )?;
                if let Some(ErrorReport { message, .. }) = &self.error {
                    writeln!(out, "          {message}")?;
                }
            }
        }
        let Some(ModelReport { usage, redacted, .. }) = &self.model else { return Ok(()) };
        if let Some(usage) = usage {
            writeln!(out, "spent     {}", usage.words())?;
        }
        match redacted {
            Some(RedactedReport { sent, received }) => {
                if !sent.is_empty() || !received.is_empty() {
                    writeln!(
                        out,
                        "redacted  {} in what was sent, {} in what came back",
                        listed(sent),
                        listed(received)
                    )?;
                }
                Ok(())
            }
            None => writeln!(out, "redacted  nothing: secrets were sent as they stand"),
        }
    }
}

/// The rules that were carried into a summary, as a report may say them: a report never shows a secret.
pub(crate) fn carried_rules(carried: &[SharedText]) -> Vec<String> {
    carried.iter().map(|rule| redact(rule).text.unwrap_or_else(|| rule.as_str().to_owned())).collect()
}

/// What became of a model's answer, for a person.
pub(crate) fn show_answer(
    out: &mut impl io::Write,
    repairs: &[String],
    carried: &[String],
) -> io::Result<()> {
    if !repairs.is_empty() {
        writeln!(out, "mended    in the model's answer: {}", repairs.join(", "))?;
    }
    carried.iter().try_for_each(|rule| writeln!(out, "carried   {}", printable(rule)))
}

fn listed(counts: &BTreeMap<&'static str, u64>) -> String {
    if counts.is_empty() {
        return "nothing".to_owned();
    }
    let listed: Vec<String> =
        counts.iter().map(|(kind, count)| format!("{} {kind}", tokens(*count))).collect();
    listed.join(", ")
}
