//! A rollout into the messages that Codex would send next.

use epitome_loop::{Message, ModelKey, SharedText, TokenCount, Usage};

use super::history::{Entry, History};
use super::record::{Record, is_bare, is_bare_header, record};
use super::write::CodexFile;
use crate::assembly::Assembly;
use crate::faults::Faults;
use crate::json::{Kind, Source, Value};
use crate::model::model_key;
use crate::openai_responses::{Calls, Grouping, Mapped, Part, map, openai_usage, string_message};
use crate::{Note, ReadError};

/// Reads a rollout into the assembly.
///
/// The context is the system prompt of the header and the items, as the newest compaction and the rollbacks leave
/// them. Events repeat the items for the screen and are no messages.
pub(crate) fn read(
    source: &Source<'_>,
    values: &[Value<'_>],
    into: &mut Assembly,
) -> Result<CodexFile, ReadError> {
    let stray = values.iter().filter(|value| !value.is_object()).count();
    into.note_count(stray as u64, |count| Note::StrayValues { count });
    let bare = is_bare(values);
    let header = values.first().copied().filter(|first| bare && is_bare_header(*first));
    let mut reader = Reader::default();
    reader.file.is_bare = bare;
    reader.file.header = header.map(Value::range);
    for (number, value) in values.iter().enumerate() {
        if value.is_object() && !(number == 0 && header.is_some()) {
            reader.record(*value, number, bare);
        }
    }
    let times = values.iter().rev().filter_map(|value| value.get("timestamp"));
    let newest = times.filter(|time| time.kind() == Kind::String).map(Value::range).next();
    reader.file.time = newest.clone();
    into.last_timestamp = newest.map(|time| shared(Some(source.value(time))));
    into.cwd = reader.cwd.map(|cwd| shared(Some(cwd)));
    into.context_window = reader.window;
    into.model = reader.model();
    let Reader { history, prompt, side, mut file, .. } = reader;
    let prompt = prompt.or_else(|| header?.get("instructions")).filter(|text| text.kind() == Kind::String);
    map_entries(&history, prompt, side, &mut file, into)?;
    Ok(file)
}

#[derive(Default)]
struct Reader<'a> {
    history: History<'a>,
    file: CodexFile,
    /// The system prompt.
    prompt: Option<Value<'a>>,
    provider: Option<Value<'a>>,
    model: Option<Value<'a>>,
    cwd: Option<Value<'a>>,
    window: Option<TokenCount>,
    side: u64,
}

impl<'a> Reader<'a> {
    fn record(&mut self, value: Value<'a>, number: usize, bare: bool) {
        let kind = record(value, bare);
        self.side += u64::from(!matches!(kind, Record::Item(_)));
        match kind {
            Record::Item(item) => {
                self.file.records.push((item.range().start, value.range()));
                self.history.push(item, number);
            }
            Record::Meta(meta) => self.meta(meta, value),
            Record::TurnContext(context) => {
                let ([model, cwd], _) = context.pick(["model", "cwd"]);
                self.model = model.or(self.model);
                self.cwd = cwd.or(self.cwd);
                self.file.context = Some(value.range());
            }
            Record::Compacted(compacted) => self.history.compact(compacted, number),
            Record::RolledBack(turns) => self.history.roll_back(turns),
            Record::Usage(info) => {
                let ([last, window], _) = info.pick(["last_token_usage", "model_context_window"]);
                self.window = window.and_then(Value::number).map(TokenCount).or(self.window);
                if let Some(usage) = last.and_then(usage) {
                    self.history.report(usage);
                }
            }
            Record::Prompt => {
                self.file.prompt.get_or_insert(value.range());
            }
            Record::Side => {}
        }
    }

    /// The first header counts: a session that was forked holds that of the older one too. One with a payload is no
    /// header of items that stand by themselves.
    fn meta(&mut self, meta: Value<'a>, record: Value<'a>) {
        if self.file.header.is_some() || self.file.is_bare {
            return;
        }
        self.file.header = Some(record.range());
        let ([base, cwd, provider], _) = meta.pick(["base_instructions", "cwd", "model_provider"]);
        self.prompt = base.map(|base| base.get("text").unwrap_or(base));
        self.cwd = self.cwd.or(cwd);
        self.provider = provider;
    }

    fn model(&self) -> Option<ModelKey> {
        let mut faults = Faults::default();
        let name = faults.string(Some(self.model?));
        let provider = faults.string(self.provider);
        if provider.is_empty() || name.trim().is_empty() {
            return model_key(&name, "openai");
        }
        Some(ModelKey::new(provider, name))
    }
}

/// Maps what is sent. The newest compaction item of the provider goes to the front, behind the instructions: it
/// stands for everything before it, and what stands before it in the list are copies of the user's words.
fn map_entries(
    history: &History<'_>,
    prompt: Option<Value<'_>>,
    mut side: u64,
    file: &mut CodexFile,
    into: &mut Assembly,
) -> Result<(), ReadError> {
    let mut calls = Calls::of(history.entries().iter().map(|entry| entry.value));
    let mut grouping = Grouping::new(into);
    if let Some(prompt) = prompt {
        let mut faults = Faults::default();
        if let Message::User { blocks } = string_message(prompt, &mut faults)
            && !blocks.is_empty()
        {
            file.instructions = Some(prompt.range());
            let message = Mapped::Message(Message::System { blocks });
            grouping.take(message, Some(Part::item(prompt.range())), faults);
        }
    }
    let mut mapped = Vec::new();
    for entry in history.entries() {
        let mut faults = Faults::default();
        let item = if entry.is_bare_summary() {
            Mapped::Message(string_message(entry.value, &mut faults))
        } else {
            map(entry.value, entry.number, &mut calls, &mut faults)?
        };
        mapped.push((entry, item, faults));
    }
    let is_instruction = |item: &Mapped| matches!(item, Mapped::Message(Message::System { .. }));
    let lead = mapped.iter().take_while(|(_, item, _)| is_instruction(item)).count();
    if let Some(at) = mapped.iter().rposition(|(_, item, _)| matches!(item, Mapped::Compaction(_)))
        && let Some(front) = mapped.get_mut(lead..=at)
    {
        front.rotate_right(1);
    }
    let mut summary = None;
    for (entry, item, faults) in mapped {
        side += u64::from(!grouping.take(item, Some(part(entry)), faults));
        if let Some(usage) = entry.usage {
            grouping.report(usage);
        }
        if entry.is_summary {
            summary = grouping.assembly().len().checked_sub(1);
        }
    }
    let into = grouping.assembly();
    if let Some(summary) = summary {
        // What stands before the summary, the words of the user that Codex kept, stems from the compaction too.
        into.derived_prefix = (summary + 1).saturating_sub(into.leading_system());
    }
    into.note_count(history.compacted, |count| Note::BeforeCompaction { count });
    into.note_count(history.rolled_back, |count| Note::RolledBack { count });
    into.note_count(side, |count| Note::SideRecords { count });
    file.parts = grouping.finish();
    Ok(())
}

fn part(entry: &Entry<'_>) -> Part {
    let range = entry.value.range();
    if entry.is_bare_summary() { Part::user_text(range) } else { Part::item(range) }
}

/// What the newest request took. Zeros stand where Codex only guesses, right behind a compaction.
fn usage(last: Value<'_>) -> Option<Usage> {
    let ([input, cached, output, reasoning], _) =
        last.pick(["input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens"]);
    let number = |value: Option<Value<'_>>| value.and_then(Value::number).unwrap_or(0);
    let input = input.and_then(Value::number).filter(|input| *input > 0)?;
    Some(openai_usage(input, number(cached), number(output), number(reasoning)))
}

fn shared(value: Option<Value<'_>>) -> SharedText {
    Faults::default().string(value).into()
}
