//! The kind `command`: a program of the system that reads wire v1 and writes a summary.

mod excerpt;
mod process;
mod settings;
mod verdict;

use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use epitome_loop::{Cause, CauseKind, OutputFault, SharedBytes};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep_until};

use excerpt::Excerpt;
use process::Program;

use super::contained::contained_call;
use super::{
    EndSignal, HustleWorker, InputForm, StopStyle, WorkAnswer, WorkFailure, WorkInput, WorkOrder, WorkStage,
    WorkerTraits,
};

pub use excerpt::StderrExcerpt;
pub use settings::{CommandError, CommandSettings};
pub use verdict::{ExitVerdict, exit_verdict};

/// How long a pipe is still read after its program has exited and its group was killed. What the program wrote
/// is in the pipe already; only a process that left the group can keep it open longer.
const PIPE_GRACE: Duration = Duration::from_secs(2);

/// How much is read from a pipe at once.
const CHUNK: usize = 16 * 1024;

/// How one start of a program went. Shown to the host alone; `Debug` prints numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandReport {
    /// How it ended; `None` when it was killed because its run had ended or its output was too large.
    pub exit: Option<ExitStatus>,
    /// How many bytes it wrote to stdout, as far as they were read.
    pub stdout_bytes: u64,
    /// What it wrote to stderr.
    pub stderr: StderrExcerpt,
}

/// Sees how each start of a program went. A panic in it is dropped.
pub trait CommandListener: Send + Sync {
    /// The program is gone, however it went.
    fn finished(&self, report: CommandReport);
}

impl<F: Fn(CommandReport) + Send + Sync> CommandListener for F {
    fn finished(&self, report: CommandReport) {
        self(report);
    }
}

/// A program of the system as the worker of a hustle.
///
/// Each try starts it anew, without a shell: the input on stdin, the answer on stdout, and whatever it wants to
/// say on stderr. How it exits is judged by [`exit_verdict`]. When the run ends, on Unix its whole process group
/// is killed at once and the program is reaped; elsewhere the program alone is. The same is done with what it
/// leaves behind when it exits. `docs/hustles.md` describes the protocol.
#[derive(Clone)]
pub struct CommandWorker {
    settings: CommandSettings,
    listener: Option<Arc<dyn CommandListener>>,
}

impl CommandWorker {
    /// Kills every program that a worker of this process has started and that still runs, on Unix with all that it
    /// started: for a process that ends at a signal, and so drops nothing. Runs that wait for one fail.
    pub fn kill_all() {
        process::kill_all();
    }

    /// A worker that starts this program.
    ///
    /// # Errors
    /// [`CommandError`] when it could never be started so.
    pub fn new(settings: CommandSettings) -> Result<Self, CommandError> {
        settings.check()?;
        Ok(Self { settings, listener: None })
    }

    /// With a listener that sees stderr and exit of each start.
    #[must_use]
    pub fn with_listener(self, listener: Arc<dyn CommandListener>) -> Self {
        Self { listener: Some(listener), ..self }
    }
}

#[async_trait]
impl HustleWorker for CommandWorker {
    fn traits(&self) -> WorkerTraits {
        WorkerTraits { input: InputForm::Wire, stop: StopStyle::Watches }
    }

    async fn work(&self, order: WorkOrder) -> Result<WorkAnswer, WorkFailure> {
        let WorkOrder { input, instructions, correction, output_bytes, end } = order;
        let WorkInput::Bytes(input) = input else {
            return Err(failure(WorkStage::Resolution, CauseKind::InvalidInput));
        };
        let command = self.settings.command(instructions.as_deref(), correction);
        let mut command = command.ok_or_else(|| failure(WorkStage::Inference, CauseKind::InvalidInput))?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut conversation = Conversation::start(command, input, output_bytes)
            .map_err(|_| failure(WorkStage::Resolution, CauseKind::Other))?;
        let stop = conversation.hold(end).await;
        let (result, report) = conversation.finish(stop);
        let diagnostic_bytes = report.stderr.total;
        if let Some(listener) = &self.listener {
            contained_call(|| listener.finished(report));
        }
        result.map_err(|failed| WorkFailure { diagnostic_bytes, ..failed })
    }
}

/// A program that is talked to.
struct Conversation {
    program: Program,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    input: SharedBytes,
    /// How much of the input is written.
    written: usize,
    output: Vec<u8>,
    output_limit: u64,
    diagnostics: Excerpt,
}

/// Why talking to a program stopped.
enum Stop {
    /// It exited.
    Exited(Option<ExitStatus>),
    /// Its output is over the limit.
    TooLarge,
    /// Nobody waits for it any more.
    Ended,
}

impl Conversation {
    fn start(command: Command, input: SharedBytes, output_limit: u64) -> std::io::Result<Self> {
        let mut program = Program::start(command)?;
        let child = program.child();
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        Ok(Self {
            program,
            stdin,
            stdout,
            stderr,
            input,
            written: 0,
            output: Vec::new(),
            output_limit,
            diagnostics: Excerpt::default(),
        })
    }

    /// Talks to the program until it is gone, with everything that it started.
    async fn hold(&mut self, mut end: EndSignal) -> Stop {
        let stop = self.talk(&mut end, None).await;
        self.stdin = None;
        let status = self.program.kill_and_reap().await;
        if !matches!(stop, Stop::Exited(_)) {
            return stop;
        }
        // What it wrote before it exited may still be in the pipes.
        let last = Instant::now().checked_add(PIPE_GRACE);
        match self.talk(&mut end, last).await {
            Stop::Exited(_) if self.take_what_is_there().await => Stop::Exited(status),
            Stop::Exited(_) => Stop::TooLarge,
            stop => stop,
        }
    }

    /// Takes what stands in stdout at this moment, so that no answer is cut short because time was short. Says
    /// whether it is within the limit.
    async fn take_what_is_there(&mut self) -> bool {
        let mut out = vec![0; CHUNK];
        loop {
            let read = tokio::select! {
                biased;
                // The budget of a task must not make a pipe look empty.
                read = tokio::task::unconstrained(read_some(&mut self.stdout, &mut out)) => read,
                () = std::future::ready(()) => return true,
            };
            match read {
                Some(bytes) if !self.may_take(bytes.len()) => return false,
                Some(bytes) => self.output.extend_from_slice(bytes),
                None => return true,
            }
        }
    }

    /// Whether so many bytes more are within the limit.
    fn may_take(&self, bytes: usize) -> bool {
        self.output.len().saturating_add(bytes) as u64 <= self.output_limit
    }

    /// Writes and reads what there is, until the program exits; after that (`last`) until the pipes are empty.
    async fn talk(&mut self, end: &mut EndSignal, last: Option<Instant>) -> Stop {
        let (mut out, mut err) = (vec![0; CHUNK], vec![0; CHUNK]);
        loop {
            if last.is_some() && self.stdout.is_none() && self.stderr.is_none() {
                return Stop::Exited(None);
            }
            let rest = self.input.get(self.written..).unwrap_or_default();
            let program = &mut self.program;
            let over = async {
                match last {
                    Some(last) => sleep_until(last).await,
                    None => program.exited().await,
                }
            };
            tokio::select! {
                () = end.ended() => return Stop::Ended,
                () = over => return Stop::Exited(None),
                read = read_some(&mut self.stdout, &mut out) => match read {
                    Some(bytes) if !self.may_take(bytes.len()) => return Stop::TooLarge,
                    Some(bytes) => self.output.extend_from_slice(bytes),
                    None => self.stdout = None,
                },
                read = read_some(&mut self.stderr, &mut err) => match read {
                    Some(bytes) => self.diagnostics.push(bytes),
                    None => self.stderr = None,
                },
                wrote = write_some(&mut self.stdin, rest) => match wrote {
                    Some(bytes) if self.written + bytes < self.input.len() => self.written += bytes,
                    // All is written, or the program does not want the rest, which is its business: it is judged
                    // by what it answers. Closing the pipe tells it that this was all.
                    _ => self.stdin = None,
                },
            }
        }
    }

    fn finish(self, stop: Stop) -> (Result<WorkAnswer, WorkFailure>, CommandReport) {
        let Self { output, diagnostics, .. } = self;
        let stdout_bytes = output.len() as u64;
        let (exit, failed) = match stop {
            Stop::Ended => (None, Some((WorkStage::Inference, CauseKind::Canceled))),
            Stop::TooLarge => {
                (None, Some((WorkStage::Output, CauseKind::Output(Some(OutputFault::TooLarge)))))
            }
            // Without a status nothing says that the answer is whole.
            Stop::Exited(status) => (status, status.map_or(ExitVerdict::Failed, exit_verdict).failure()),
        };
        let result = match failed {
            Some((stage, kind)) => Err(failure(stage, kind)),
            None => Ok(WorkAnswer::bare(output)),
        };
        (result, CommandReport { exit, stdout_bytes, stderr: diagnostics.finish() })
    }
}

/// Reads what is there; `None` at the end of the pipe. Waits for ever without a pipe.
async fn read_some<'a>(
    pipe: &mut Option<impl tokio::io::AsyncRead + Unpin>,
    into: &'a mut [u8],
) -> Option<&'a [u8]> {
    match pipe {
        // A pipe that fails is at its end.
        Some(pipe) => match pipe.read(into).await {
            Ok(read) if read > 0 => into.get(..read),
            _ => None,
        },
        None => std::future::pending().await,
    }
}

/// Writes what the pipe takes; `None` when it takes nothing any more. Waits for ever without a pipe.
async fn write_some(pipe: &mut Option<ChildStdin>, rest: &[u8]) -> Option<usize> {
    match pipe {
        Some(_) if rest.is_empty() => None,
        Some(pipe) => pipe.write(rest).await.ok().filter(|&written| written > 0),
        None => std::future::pending().await,
    }
}

fn failure(stage: WorkStage, kind: CauseKind) -> WorkFailure {
    WorkFailure { stage, cause: Cause::new(kind), diagnostic_bytes: 0, spent: None }
}
