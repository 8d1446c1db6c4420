//! Plays the time line of a case, step by step, as a host meets it.

use std::sync::Arc;
use std::time::Duration;

use epitome_loop::Message;
use epitome_sessionruntime::{Appended, SessionError};
use epitome_transcripts::{ReadOptions, read};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::super::CaseError;
use super::super::case_file::document;
use super::super::scenario::Named;
use super::host::Host;
use super::passes::{Passed, admit, compact};
use super::worker::Answer;

/// Longer than anything takes that does not wait for the next event. The clock stands still while something runs.
const A_MOMENT: Duration = Duration::from_millis(50);

/// A time line that is being played.
pub(super) struct Play<'a> {
    pub(super) host: &'a mut Host,
    /// Everything that was said, in order.
    pub(super) said: Vec<Named>,
    /// What each pass came to, in the order in which they began.
    pub(super) passed: Vec<Passed>,
    /// How many commits the time line asks for.
    pub(super) commits: usize,
    /// Whether what failed changed nothing.
    pub(super) survived_failures: bool,
    /// The context as it was before the first pass.
    pub(super) context_before: Option<Vec<Message>>,
    running: Vec<Running>,
    appends: Vec<JoinHandle<Result<Appended, SessionError>>>,
    has_ended: Vec<(usize, Passed)>,
    begun: usize,
}

/// A pass that was begun and not answered yet.
struct Running {
    number: usize,
    id: Option<String>,
    /// What its summarizer waits for.
    reply: Option<oneshot::Sender<Answer>>,
    context: Vec<Message>,
    task: JoinHandle<Passed>,
}

impl<'a> Play<'a> {
    pub(super) fn new(host: &'a mut Host) -> Self {
        Self {
            host,
            said: Vec::new(),
            passed: Vec::new(),
            commits: 0,
            survived_failures: true,
            context_before: None,
            running: Vec::new(),
            appends: Vec::new(),
            has_ended: Vec::new(),
            begun: 0,
        }
    }

    /// Adds what was said. It waits for its turn while a compaction runs, and the time line goes on.
    pub(super) async fn append(&mut self, messages: Vec<Named>) {
        let only: Arc<[Message]> = messages.iter().map(|named| named.message.clone()).collect();
        self.said.extend(messages);
        if only.is_empty() {
            return;
        }
        let session = self.host.session.clone();
        self.appends.push(tokio::spawn(async move { session.append(only).await }));
        moment().await;
    }

    /// Plays all events.
    pub(super) async fn events(&mut self, events: &[Value]) -> Result<(), CaseError> {
        for (at, event) in events.iter().enumerate() {
            let later = events.get(at + 1..).unwrap_or_default();
            self.event(event, later).await?;
        }
        self.end().await
    }

    async fn event(&mut self, event: &Value, later: &[Value]) -> Result<(), CaseError> {
        let id = event["id"].as_str().map(str::to_owned);
        match event["op"].as_str() {
            Some("append") => {
                let messages = messages_of(&event["message"])?;
                self.append(messages).await;
            }
            Some("compaction") => {
                self.end().await?;
                let first_kept = event["first_kept"].as_str();
                let first_kept = self.said.iter().position(|named| Some(named.name.as_str()) == first_kept);
                let first_kept = first_kept.unwrap_or(self.said.len());
                let summary = event["summary"].as_str().ok_or(CaseError::Part("stored compaction"))?;
                self.host.store_compaction(summary, first_kept as u64).await?;
            }
            Some("compact") => {
                self.answered().await;
                let is_forced = self.host.policy.force || event["force"] == true;
                let is_scripted = is_answered(&id, later);
                self.begin(id, is_forced, is_scripted).await;
                if !is_scripted {
                    self.answered().await;
                }
            }
            Some("compaction_start") => self.begin(id, true, true).await,
            Some("summary_reply") => {
                let text = event["text"].as_str().ok_or(CaseError::Part("reply"))?;
                self.reply(id.as_deref(), Ok(text.to_owned())).await;
            }
            Some("summary_error") => {
                let error = event["error"].as_str().map(str::to_owned);
                let error = error.or_else(|| event["error"].as_u64().map(|status| status.to_string()));
                self.reply(id.as_deref(), Err(error.unwrap_or_default())).await;
            }
            Some("commit") => {
                self.commits += 1;
                self.collect().await;
            }
            Some("tick") => {
                let milliseconds = event["ms"].as_u64().or(event["seconds"].as_u64().map(|s| s * 1_000));
                tokio::time::sleep(Duration::from_millis(milliseconds.unwrap_or(1_000))).await;
                self.collect().await;
            }
            Some("load" | "reload") => {
                self.end().await?;
                self.host.reload().await?;
            }
            Some("measure" | "pass") => {
                self.answered().await;
                self.begin(id, false, false).await;
                self.answered().await;
            }
            _ => return Err(CaseError::Part("events")),
        }
        Ok(())
    }

    /// Begins a pass: a compaction, or a request that compacts if it must.
    pub(super) async fn begin(&mut self, id: Option<String>, is_forced: bool, is_scripted: bool) {
        let context = self.host.session.messages().to_vec();
        self.context_before.get_or_insert_with(|| context.clone());
        let session = self.host.session.clone();
        let frame = self.host.frame.clone();
        let reply = is_scripted.then(|| self.host.worker.expect());
        let task = tokio::spawn(async move {
            if is_forced { compact(session).await } else { admit(session, frame).await }
        });
        self.running.push(Running { number: self.begun, id, reply, context, task });
        self.begun += 1;
        moment().await;
    }

    /// The summarizer of a pass answers: of the one with this id, else of the oldest that waits.
    async fn reply(&mut self, id: Option<&str>, answer: Answer) {
        let waits =
            |running: &&mut Running| running.reply.is_some() && (id.is_none() || running.id.as_deref() == id);
        if let Some(reply) = self.running.iter_mut().find(waits).and_then(|running| running.reply.take()) {
            // A pass that is over needs no answer any more.
            let _over = reply.send(answer);
        }
        moment().await;
        self.collect().await;
    }

    /// Takes what passes have come to that are over.
    async fn collect(&mut self) {
        moment().await;
        let (over, running): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.running).into_iter().partition(|running| running.task.is_finished());
        self.running = running;
        for Running { number, context, task, .. } in over {
            if let Ok(passed) = task.await {
                if passed.failed() {
                    // What was appended meanwhile comes behind; everything else is as it was.
                    let now = self.host.session.messages();
                    self.survived_failures &= now.starts_with(&context) || self.has_committed();
                }
                self.has_ended.push((number, passed));
            }
        }
        self.has_ended.sort_by_key(|(number, _)| *number);
    }

    fn has_committed(&self) -> bool {
        self.has_ended.iter().any(|(_, passed)| !passed.failed())
    }

    /// Waits until no pass waits for anything but an answer that comes later.
    pub(super) async fn answered(&mut self) {
        self.collect().await;
        while self.running.iter().any(|running| running.reply.is_none()) {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.collect().await;
        }
    }

    /// What still runs is interrupted; what waits comes in.
    pub(super) async fn end(&mut self) -> Result<(), CaseError> {
        self.collect().await;
        while !self.running.is_empty() {
            self.host.session.interrupt().map_err(|_| CaseError::Part("session"))?;
            self.collect().await;
        }
        for append in std::mem::take(&mut self.appends) {
            let appended = append.await.map_err(|_| CaseError::Part("append"))?;
            appended.map_err(|_| CaseError::Part("append"))?;
        }
        self.passed.extend(std::mem::take(&mut self.has_ended).into_iter().map(|(_, passed)| passed));
        Ok(())
    }
}

async fn moment() {
    tokio::time::sleep(A_MOMENT).await;
}

/// Whether the time line gives an answer to a pass before it begins the next one.
fn is_answered(id: &Option<String>, later: &[Value]) -> bool {
    let is_start = |event: &&Value| matches!(event["op"].as_str(), Some("compact" | "compaction_start"));
    let is_reply = |event: &Value| matches!(event["op"].as_str(), Some("summary_reply" | "summary_error"));
    match id {
        Some(id) => later.iter().any(|event| is_reply(event) && event["id"] == id.as_str()),
        None => later.iter().take_while(|event| !is_start(event)).any(is_reply),
    }
}

/// The messages that a message of a case stands for.
fn messages_of(message: &Value) -> Result<Vec<Named>, CaseError> {
    let document = document(std::slice::from_ref(message))?;
    let options = ReadOptions { format: Some(document.format), conversation: None };
    let session = read(&document.bytes, &options, &mut |_| {}).map_err(|_| CaseError::Part("message"))?;
    let named = document.names.into_iter().zip(session.messages().iter().cloned());
    Ok(named.map(|(name, message)| Named { name, message }).collect())
}
