//! `--latest AGENT`: the newest session of an agent, instead of a file.

use std::path::Path;

use epitome_transcripts::{Format, ReadOptions, read};

use crate::agent_folders::{Agent, SessionFile, find};
use crate::args::SessionArgs;
use crate::failure::Failure;
use crate::output::Destination;
use crate::session_head::SessionHead;
use crate::sessions::folders;
use crate::survey::{LONGEST, read_as_long_as_it_is};

/// Puts the newest session of an agent in the place of the file, if one was asked for.
pub(crate) fn resolve(args: &mut SessionArgs) -> Result<(), Failure> {
    let Some(agent) = args.latest else { return Ok(()) };
    let folders = folders(args.home.as_deref())?;
    let files = find(&folders, &[agent]).files;
    match files.into_iter().find(is_worth_it) {
        Some(file) => {
            args.file = Some(file.path);
            Ok(())
        }
        None => Err(Failure::NoSession { agent, folder: folders.of(agent).to_owned() }),
    }
}

/// Whether a file is a session that somebody could want: it says something, and it is not what a sub-agent did.
/// One that cannot be read is taken all the same, since passing over it silently would give an older one.
fn is_worth_it(file: &SessionFile) -> bool {
    if file.bytes == 0 {
        return false;
    }
    if file.bytes > LONGEST {
        return true;
    }
    let Ok(bytes) = read_as_long_as_it_is(file) else { return true };
    if SessionHead::of(&bytes, file.agent).is_sub_agent {
        return false;
    }
    match read(&bytes, &ReadOptions::default(), &mut |_| {}) {
        Ok(session) => !session.messages().is_empty(),
        Err(epitome_transcripts::ReadError::Empty) => false,
        Err(_) => true,
    }
}

/// The session that was chosen, for the report; nothing when the user named the file.
pub(crate) fn chosen(args: &SessionArgs) -> Option<String> {
    args.latest.map(|_| args.file().display().to_string())
}

/// Where the compacted session goes: where the user says, else into the current folder. An agent would take a
/// file among its own for a session, so nothing is written there unasked.
pub(crate) fn destination(
    agent: Agent,
    args: &SessionArgs,
    out: Option<&Path>,
    to: Option<Format>,
) -> Result<Destination, Failure> {
    if out.is_none() {
        let root = std::fs::canonicalize(folders(args.home.as_deref())?.of(agent));
        let here = std::fs::canonicalize(".").map_err(Failure::io("."))?;
        if root.is_ok_and(|root| here.starts_with(root)) {
            return Err(Failure::AgentsFolder { agent });
        }
    }
    Destination::in_folder(Path::new("."), args.file(), out, to)
}
