//! What of the items of a rollout is sent next: compactions replace them, rollbacks take them away.

use epitome_loop::Usage;

use crate::faults::Faults;
use crate::json::{Kind, Value};

/// One item on the way to what is sent.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    /// The item; the text of a summary where that is no item.
    pub(super) value: Value<'a>,
    /// The number of its record, for errors.
    pub(super) number: usize,
    /// What the request took that it answers.
    pub(super) usage: Option<Usage>,
    /// Whether it is the summary of a compaction.
    pub(super) is_summary: bool,
    role: Role,
}

/// What an item is to a rollback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The user's own words: a turn begins.
    Turn,
    /// Put there by the program before the user's words.
    Context,
    /// Made by the model.
    Model,
    Other,
}

/// The items that would be sent, as the records so far leave them.
#[derive(Default)]
pub(super) struct History<'a> {
    entries: Vec<Entry<'a>>,
    /// Where turns begin, ascending.
    turns: Vec<usize>,
    /// The newest item of the model, until somebody reports on it.
    unreported: Option<usize>,
    /// How many items the newest compaction took the place of.
    pub(super) compacted: u64,
    /// How many items were taken back.
    pub(super) rolled_back: u64,
}

/// Old compactions keep the newest words of the user up to this many bytes, 20,000 tokens by Codex's own measure.
const KEPT_BYTES: usize = 80_000;

impl<'a> History<'a> {
    pub(super) fn entries(&self) -> &[Entry<'a>] {
        &self.entries
    }

    /// The next item.
    pub(super) fn push(&mut self, value: Value<'a>, number: usize) {
        let entry = Entry { value, number, usage: None, is_summary: false, role: role(value) };
        self.add(entry);
        if entry.role == Role::Model {
            self.unreported = self.entries.len().checked_sub(1);
        }
    }

    /// What the newest request took. A report that comes without anything new from the model repeats an old one, or
    /// is Codex's own guess.
    pub(super) fn report(&mut self, usage: Usage) {
        if let Some(entry) = self.unreported.take().and_then(|at| self.entries.get_mut(at)) {
            entry.usage = Some(usage);
        }
    }

    /// A compaction. The newer kind holds the items that take the place of all before; the older kind holds a summary,
    /// which stands behind the context at the front and the user's own words.
    pub(super) fn compact(&mut self, compacted: Value<'a>, number: usize) {
        let ([message, replacement], _) = compacted.pick(["message", "replacement_history"]);
        let before = std::mem::take(&mut self.entries);
        let first_turn = self.turns.first().copied().unwrap_or(before.len());
        self.turns.clear();
        self.unreported = None;
        self.compacted = before.len() as u64;
        if let Some(list) = replacement.filter(|list| list.is_array()) {
            let items: Vec<Value<'a>> = list.elements().filter(|item| item.is_object()).collect();
            let summary = message.and_then(|message| summary_of(&items, message));
            for (at, value) in items.into_iter().enumerate() {
                let is_summary = summary == Some(at);
                self.add(Entry { value, number, usage: None, is_summary, role: role(value) });
            }
            return;
        }
        let (context, rest) = before.split_at_checked(first_turn).unwrap_or_default();
        let mut room = KEPT_BYTES;
        let mut said: Vec<Entry<'a>> = rest
            .iter()
            .rev()
            .filter(|entry| entry.role == Role::Turn && !entry.is_summary)
            .take_while(|entry| {
                let fits = room > 0;
                room = room.saturating_sub(entry.value.bytes().len());
                fits
            })
            .copied()
            .collect();
        said.reverse();
        for entry in context.iter().filter(|entry| entry.role != Role::Model).chain(&said) {
            self.add(*entry);
        }
        if let Some(value) = message
            .filter(|message| message.kind() == Kind::String && !message.inner().trim_ascii().is_empty())
        {
            self.add(Entry { value, number, usage: None, is_summary: true, role: Role::Turn });
        }
    }

    /// The user takes the newest turns back, with what the program put before them.
    pub(super) fn roll_back(&mut self, turns: u64) {
        let turns = usize::try_from(turns).unwrap_or(usize::MAX);
        let Some(&first) = self.turns.first().filter(|_| turns > 0) else { return };
        let mut cut = match self.turns.len().checked_sub(turns) {
            Some(at) => self.turns.get(at).copied().unwrap_or(first),
            None => first,
        };
        while cut > first
            && cut
                .checked_sub(1)
                .and_then(|at| self.entries.get(at))
                .is_some_and(|entry| entry.role == Role::Context)
        {
            cut -= 1;
        }
        self.rolled_back += self.entries.len().saturating_sub(cut) as u64;
        self.entries.truncate(cut);
        while self.turns.last().is_some_and(|turn| *turn >= cut) {
            self.turns.pop();
        }
        self.unreported = None;
    }

    fn add(&mut self, entry: Entry<'a>) {
        if entry.role == Role::Turn {
            self.turns.push(self.entries.len());
        }
        self.entries.push(entry);
    }
}

impl Entry<'_> {
    /// Whether it is the text of a summary and no item.
    pub(super) fn is_bare_summary(&self) -> bool {
        self.is_summary && !self.value.is_object()
    }
}

fn role(item: Value<'_>) -> Role {
    let ([kind, role, content], _) = item.pick(["type", "role", "content"]);
    let kind_is = |name: &str| kind.is_some_and(|kind| kind.is_text(name));
    let Some(role) = role.filter(|_| kind.is_none() || kind_is("message")) else {
        let kind = kind.map_or(&b""[..], Value::inner);
        let by_client =
            kind.ends_with(b"_output") || kind.ends_with(b"_response") || kind == b"ghost_snapshot";
        return match kind {
            b"agent_message" => Role::Turn,
            _ if by_client => Role::Other,
            _ => Role::Model,
        };
    };
    if role.is_text("assistant") {
        return Role::Model;
    }
    let is_context = content
        .into_iter()
        .flat_map(Value::elements)
        .any(|part| part.get("text").is_some_and(|text| is_context(text, role)));
    match is_context {
        true => Role::Context,
        false if role.is_text("user") => Role::Turn,
        false => Role::Other,
    }
}

/// Whether a text was put there by the program. It marks what it says to the model by elements, and the user's own
/// standing instructions by a heading.
fn is_context(text: Value<'_>, role: Value<'_>) -> bool {
    const USER: [&[u8]; 8] = [
        b"# AGENTS.md instructions",
        b"<environment_context>",
        b"<user_instructions>",
        b"<skill>",
        b"<user_shell_command>",
        b"<turn_aborted>",
        b"<subagent_notification>",
        b"<hook_prompt",
    ];
    let text = text.inner().trim_ascii_start();
    if role.is_text("user") {
        let begins =
            |mark: &&[u8]| text.get(..mark.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(mark));
        return USER.iter().any(begins);
    }
    text.first() == Some(&b'<')
}

/// The newest item of the user that says what a compaction calls its summary.
fn summary_of(items: &[Value<'_>], message: Value<'_>) -> Option<usize> {
    let message = Faults::default().string(Some(message));
    if message.trim().is_empty() {
        return None;
    }
    items.iter().rposition(|item| {
        let ([role, content], _) = item.pick(["role", "content"]);
        role.is_some_and(|role| role.is_text("user"))
            && content.into_iter().flat_map(Value::elements).any(|part| {
                let text = part.get("text").filter(|text| text.inner().len() >= message.len());
                text.is_some_and(|text| Faults::default().string(Some(text)).ends_with(&message))
            })
    })
}
