//! A folder with a session and a journal, and the command in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use epitome_journals::SqliteJournal;
use epitome_loop::{ContextLimits, EventId, Message, ModelKey, SessionId, Timestamp, TokenCount};
use epitome_sessionruntime::journal::{
    EncodedRecord, Journal as _, JournalError, JournalRecord, RecordBody, SessionOpened, WriterLease,
    encode_record,
};
use serde_json::{Value, json};

use crate::terminal::{code, epitome, json, stderr};

/// Words of the session that nothing but the session may say.
pub(crate) const CANARY: &str = "Never push to main";

/// A chat of one user message and many tool exchanges, indented, so that its bytes are its own.
pub(crate) fn chat(exchanges: usize) -> Vec<u8> {
    let mut messages = vec![
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "user", "content": format!("Fix the build. {CANARY}.")}),
    ];
    for at in 0..exchanges {
        let id = format!("call_{at}");
        let arguments = format!("{{\"path\": \"src/part_{at}.rs\"}}");
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "read_file", "arguments": arguments}}]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": format!(
            "line {at}: nothing is wrong in this part of the file, as far as anybody can see at a glance")}));
    }
    serde_json::to_vec_pretty(&messages).unwrap()
}

pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    /// A folder with `session.json`.
    pub(crate) fn with_chat(exchanges: usize) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::write(folder.path("session.json"), chat(exchanges)).unwrap();
        folder
    }

    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// `epitome session` with these arguments, on the journal `s.db`.
    pub(crate) fn session(&self, args: &[&str]) -> Output {
        self.run(&[&["session"], args, &["--journal", "s.db"]].concat())
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        let output = epitome(self.0.path(), args, b"");
        assert!(!stderr(&output).contains(CANARY), "{args:?}: {}", stderr(&output));
        output
    }

    /// As [`Folder::session`]; it must do what it is asked, and its report is JSON.
    pub(crate) fn report(&self, args: &[&str]) -> Value {
        let output = self.session(&[args, &["--json"]].concat());
        assert_eq!(code(&output), 0, "{args:?}: {}", stderr(&output));
        json(&output)
    }

    /// What an export writes.
    pub(crate) fn export(&self, args: &[&str]) -> Vec<u8> {
        let output = self.session(&[&["export"], args].concat());
        assert_eq!(code(&output), 0, "{args:?}: {}", stderr(&output));
        output.stdout
    }

    /// Imports `session.json`; the new session's id.
    pub(crate) fn import(&self) -> String {
        let report = self.report(&["import", "session.json", "--window", "4000"]);
        assert_eq!(report["outcome"], "imported");
        report["session"].as_str().unwrap().to_owned()
    }

    /// The lines of the log.
    pub(crate) fn log(&self, args: &[&str]) -> Vec<Value> {
        let output = self.session(&[&["log", "--json"], args].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn kinds(&self) -> Vec<String> {
        self.log(&["--all"]).iter().map(|line| line["kind"].as_str().unwrap().to_owned()).collect()
    }

    /// The journal as another process has it.
    pub(crate) fn elsewhere(&self, session: SessionId) -> Elsewhere {
        let journal = SqliteJournal::open(&self.path("s.db")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let lease = runtime.block_on(journal.open(session)).unwrap();
        Elsewhere { journal, runtime, lease, next: 1 }
    }
}

/// Somebody who has a session open for writing.
pub(crate) struct Elsewhere {
    journal: SqliteJournal,
    runtime: tokio::runtime::Runtime,
    lease: WriterLease,
    next: u64,
}

impl Elsewhere {
    pub(crate) fn event(number: u64) -> EventId {
        EventId::from_bytes(u128::from(number).to_be_bytes())
    }

    /// Writes a record; its id is the number of those written before it, and 1.
    pub(crate) fn write(&mut self, body: RecordBody) {
        let at = Timestamp(1_767_607_445_000_000_000 + self.next);
        let record = JournalRecord { id: Self::event(self.next), at, body };
        self.write_encoded(encode_record(&record).unwrap());
    }

    pub(crate) fn write_encoded(&mut self, record: EncodedRecord) {
        self.next += 1;
        self.runtime.block_on(self.journal.append(&self.lease, vec![record])).unwrap();
    }

    /// Whether somebody else has opened the session for writing since.
    pub(crate) fn is_stale(&self) -> bool {
        let told = self.runtime.block_on(self.journal.append(&self.lease, Vec::new()));
        matches!(told, Err(JournalError::StaleLease { .. }))
    }

    pub(crate) fn open(&mut self) {
        self.write(RecordBody::Opened(SessionOpened {
            model: ModelKey::new("openai", "gpt-4o"),
            limits: ContextLimits { window: TokenCount(128_000), ..ContextLimits::default() },
            policy_revision: "r".into(),
            tools: Arc::from([]),
        }));
    }

    pub(crate) fn append(&mut self, first: u64, messages: Vec<Message>) {
        self.write(RecordBody::Appended { first, messages: messages.into() });
    }
}
