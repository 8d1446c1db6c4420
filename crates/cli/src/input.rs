//! Reading a session or a summary from a file or from standard input, with progress when it takes long.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::Path;
use std::time::Duration;

use epitome_rig::MAX_FILE_BYTES;
use epitome_transcripts::{ReadOptions, Session};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::SessionArgs;
use crate::failure::Failure;

/// Whether the path means standard input or output.
pub(crate) fn is_stdio(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The bytes of a file or of standard input.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    if is_stdio(path) {
        io::stdin().lock().read_to_end(&mut bytes).map_err(Failure::io("standard input"))?;
    } else {
        let file = File::open(path).map_err(Failure::io(path))?;
        read_once(file, &mut bytes).map_err(Failure::io(path))?;
    }
    Ok(bytes)
}

/// The bytes of a definition: not more than it takes to see that it is too large.
pub(crate) fn read_definition(path: &Path) -> io::Result<Vec<u8>> {
    let most = MAX_FILE_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    if is_stdio(path) {
        io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Reads a file as long as it is now: an agent that is at work may go on writing it, faster than it can be read.
fn read_once(file: File, bytes: &mut Vec<u8>) -> io::Result<()> {
    let found = file.metadata()?;
    // A pipe or a device does not know how much will come.
    let end = if found.is_file() { found.len() } else { u64::MAX };
    file.take(end).read_to_end(bytes).map(drop)
}

/// Reads and understands a session.
pub(crate) fn read_session(args: &SessionArgs, progress: &Progress) -> Result<(Vec<u8>, Session), Failure> {
    let bytes = read_bytes(args.file())?;
    progress.start("reading", bytes.len() as u64);
    let options = ReadOptions { format: args.from, conversation: args.conversation };
    let session = epitome_transcripts::read(&bytes, &options, &mut |at| progress.at(at))
        .map_err(|reason| Failure::Read { path: args.file().to_owned(), reason })?;
    progress.stage("counting");
    Ok((bytes, session))
}

/// A progress display on standard error: only for long input, only at a terminal.
pub(crate) struct Progress(ProgressBar);

/// Shorter input is done before anybody could read a display.
const WORTH_SHOWING: u64 = 4_000_000;

impl Progress {
    pub(crate) fn new(quiet: bool) -> Self {
        let shown = !quiet && io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Self(ProgressBar::with_draw_target(None, target))
    }

    pub(crate) fn start(&self, what: &'static str, bytes: u64) {
        if bytes < WORTH_SHOWING {
            self.0.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template("{msg} {bytes}/{total_bytes} {wide_bar}") {
            self.0.set_style(style);
        }
        self.0.set_length(bytes);
        self.0.set_message(what);
    }

    pub(crate) fn at(&self, bytes: u64) {
        self.0.set_position(bytes);
    }

    /// A stage whose length is not known beforehand.
    pub(crate) fn stage(&self, what: &'static str) {
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            self.0.set_style(style);
        }
        self.0.set_message(what);
        self.0.enable_steady_tick(Duration::from_millis(100));
    }

    pub(crate) fn done(&self) {
        self.0.finish_and_clear();
    }
}
