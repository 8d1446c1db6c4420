//! A look at one session: what it takes and how full its model's window is.

use std::fs::File;
use std::io::Read as _;

use epitome_loop::{Request, TokenCount, occupancy};
use epitome_rig::PolicyFile;
use epitome_transcripts::{ReadOptions, Session, read};
use serde::Serialize;

use crate::agent_folders::SessionFile;
use crate::args::SessionArgs;
use crate::failure::Failure;
use crate::profile::room;
use crate::session_head::SessionHead;
use crate::target::Target;
use crate::unseen::Unseen;

/// Longer files are not read for a list.
pub(crate) const LONGEST: u64 = 512 * 1024 * 1024;

/// What a look at a session brings.
#[derive(Debug)]
pub(crate) enum Survey {
    /// Nothing was said in it yet.
    Empty,
    /// It is what a sub-agent did.
    SubAgent,
    /// It cannot be read, and why.
    Unreadable { project: Option<String>, reason: String },
    /// What it takes.
    Measured(Box<Measured>),
}

/// What a session takes.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) project: Option<String>,
    pub(crate) format: &'static str,
    pub(crate) provider: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) messages: usize,
    pub(crate) tokens: u64,
    pub(crate) quality: &'static str,
    pub(crate) pressure: Option<Pressure>,
}

/// How full the window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Pressure {
    /// Tokens that the profile leaves for input.
    pub(crate) limit: u64,
    pub(crate) occupancy_basis_points: u16,
}

/// Looks at a session, by the same rules as `epitome measure`.
pub(crate) fn survey(file: &SessionFile, policy: &PolicyFile) -> Survey {
    let unreadable = |project: Option<String>, reason: String| Survey::Unreadable { project, reason };
    if file.bytes == 0 {
        return Survey::Empty;
    }
    if file.bytes > LONGEST {
        let reason = format!("larger than {} MB; `epitome measure FILE` reads it", LONGEST / 1_048_576);
        return unreadable(file.project.clone(), reason);
    }
    let bytes = match read_as_long_as_it_is(file) {
        Ok(bytes) => bytes,
        Err(fault) => return unreadable(file.project.clone(), fault.kind().to_string()),
    };
    let read = read(&bytes, &ReadOptions::default(), &mut |_| {});
    let head = SessionHead::of(&bytes, file.agent);
    drop(bytes);
    let project = file.project.clone().or(head.project);
    match read {
        _ if head.is_sub_agent => Survey::SubAgent,
        Err(epitome_transcripts::ReadError::Empty) => Survey::Empty,
        Err(reason) => unreadable(project, reason.to_string()),
        Ok(session) if session.messages().is_empty() => Survey::Empty,
        Ok(session) => match measured(&session, policy, project.clone()) {
            Ok(measured) => Survey::Measured(Box::new(measured)),
            Err(failure) => unreadable(project, failure.to_string()),
        },
    }
}

/// An agent that is at work may go on writing; what it had written when the file was found is enough.
pub(crate) fn read_as_long_as_it_is(file: &SessionFile) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(&file.path)?.take(file.bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn measured(session: &Session, policy: &PolicyFile, project: Option<String>) -> Result<Measured, Failure> {
    let mut args = SessionArgs::default();
    let (target, limit) = match Target::of(&args, session) {
        Ok(target) => {
            let room = room(policy, &target)?;
            (target, Some(room.input_limit))
        }
        Err(Failure::NoWindow) => {
            // Any window will do to count with.
            args.window = Some(u64::MAX);
            (Target::of(&args, session)?, None)
        }
        Err(other) => return Err(other),
    };
    let unseen = Unseen::of(&args, session, &target)?;
    let request = Request {
        model: target.model.clone(),
        tools: session.tools().clone(),
        messages: session.messages().clone(),
        unseen_tokens: TokenCount(unseen.tokens),
    };
    let tokens = target.counter.measure_parts(&request).map_err(Failure::Count)?.total;
    let pressure = limit.map(|limit| Pressure {
        limit: limit.get(),
        occupancy_basis_points: occupancy(TokenCount(tokens), limit).map_or(0, |share| share.get()),
    });
    Ok(Measured {
        project,
        format: session.format().as_str(),
        provider: session.model().map(|model| model.provider.as_str().to_owned()),
        model: session.model().map(|model| model.model.as_str().to_owned()),
        messages: session.messages().len(),
        tokens,
        quality: target.quality().as_str(),
        pressure,
    })
}
