//! A thread that owns a connection and does one thing after the other.

use std::fmt;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Builder, JoinHandle};

use epitome_sessionruntime::journal::JournalError;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::read;

/// Where an answer goes to. Whoever asked may have gone away.
pub(super) type Reply<T> = oneshot::Sender<Result<T, JournalError>>;

pub(super) struct Worker<J> {
    /// `None` only while the worker is being dropped.
    jobs: Option<Sender<J>>,
    thread: Option<JoinHandle<()>>,
}

impl<J: Send + 'static> Worker<J> {
    /// Starts a thread that calls `work` with each job that comes in, and with those that wait behind it.
    pub(super) fn start<S: Send + 'static>(
        name: &str,
        mut state: S,
        mut work: impl FnMut(&mut S, J, &Receiver<J>) + Send + 'static,
    ) -> Result<Self, JournalError> {
        let (jobs, waiting) = mpsc::channel();
        let run = move || {
            while let Ok(job) = waiting.recv() {
                work(&mut state, job, &waiting);
            }
        };
        let thread = Builder::new().name(name.to_owned()).spawn(run);
        let thread = thread.map_err(|error| JournalError::File { kind: error.kind() })?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Hands a job over that nobody waits for; whether there is a thread to do it.
    pub(super) fn post(&self, job: J) -> bool {
        self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok())
    }

    /// Hands a job over and awaits its answer.
    pub(super) async fn ask<T>(&self, job: impl FnOnce(Reply<T>) -> J) -> Result<T, JournalError> {
        let (reply, answer) = oneshot::channel();
        let jobs = self.jobs.as_ref().ok_or(JournalError::Closed)?;
        jobs.send(job(reply)).map_err(|_| JournalError::Closed)?;
        // No answer comes only from a thread that has ended.
        answer.await.unwrap_or(Err(JournalError::Closed))
    }
}

impl Worker<read::Job> {
    /// Lets the thread read something.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        self.ask(|reply: Reply<T>| -> read::Job {
            Box::new(move |connection| {
                // Whoever asked may have gone away.
                let _ = reply.send(work(connection));
            })
        })
        .await
    }
}

impl<J> Drop for Worker<J> {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has no more to do.
            let _ = thread.join();
        }
    }
}

impl<J> fmt::Debug for Worker<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}
