//! The segments, exchanges and pairs of a conversation, and the cuts that they allow.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::OnceLock;

use epitome_loop::{Block, KeepRecent, Message, tail_estimate, validate_depth};

use crate::history::{HistoryError, OpenCalls};
use crate::pairing::Pairing;
use crate::tail::{InsideSegment, TailError};

/// What one walk over a transcript learns: its segments and its pairs. Cuts of any size can be asked for without
/// walking again; each looks at the size of the messages that it keeps, not at what lies before them, and no message
/// is sized twice.
#[derive(Clone, Debug)]
pub struct SegmentOutline<'a> {
    transcript: &'a [Message],
    derived_prefix: usize,
    /// Where segments start, ascending.
    segments: Vec<usize>,
    /// Where an exchange starts and no pair would be parted, ascending.
    exchanges: Vec<usize>,
    /// For each result, the message that holds its call.
    answered: Vec<Option<usize>>,
    /// No tail begins before this message: up to it the transcript is damaged. 0 when it is not.
    legal_from: usize,
    /// The first segment from there on whose start parts no pair.
    first_legal: Option<usize>,
    /// Estimated tokens of each message that was looked at.
    sizes: Vec<OnceLock<u64>>,
}

impl<'a> SegmentOutline<'a> {
    /// Walks over a transcript whose first `derived_prefix` messages stem from an earlier summary.
    ///
    /// # Errors
    /// [`TailError`] for an empty transcript and for damaged order or pairing, and when the message after the
    /// derived prefix is not the user's.
    pub fn of(transcript: &'a [Message], derived_prefix: usize) -> Result<Self, TailError> {
        let mut outline = Self::begun(transcript, derived_prefix)?;
        let mut open = OpenCalls::default();
        for (at, message) in transcript.iter().enumerate() {
            let is_users = matches!(message, Message::User { .. });
            if at == derived_prefix && !is_users {
                return Err(TailError::SegmentAnchor { message: at });
            }
            outline.note(at, message, !open.is_empty());
            outline.answered.push(open.follow(at, message).map_err(pairing_error)?);
        }
        if let Some(message) = open.first() {
            return Err(TailError::OrphanToolCall { message });
        }
        let parted = |(at, call): (usize, &Option<usize>)| {
            let call = (*call)?;
            (call < derived_prefix && at >= derived_prefix).then_some(at)
        };
        match outline.answered.iter().enumerate().find_map(parted) {
            Some(message) => Err(TailError::DerivedToolPair { message }),
            None => Ok(outline),
        }
    }

    /// As [`SegmentOutline::of`], for a transcript of any order and pairing. What is damaged (a call that was
    /// abandoned, a result without a call, an id that is doubled, a message of the model or the system between a call
    /// and its result) may be summarized, but not kept: no tail begins before the last of it. The first segment
    /// need not open with a message of the user; behind an earlier summary, the message that carries it opens it.
    ///
    /// `left_out` are system messages that are kept in no tail, so that they interrupt nothing.
    ///
    /// # Errors
    /// [`TailError`] for an empty transcript, a derived prefix that is longer, and results that nest too deep.
    pub fn of_any(
        transcript: &'a [Message],
        derived_prefix: usize,
        left_out: &BTreeSet<usize>,
    ) -> Result<Self, TailError> {
        let mut outline = Self::begun(transcript, derived_prefix)?;
        let pairing = Pairing::of(transcript, |at| left_out.contains(&at));
        outline.legal_from = pairing.legal_from(derived_prefix).unwrap_or(0);
        let is_users = |at: usize| matches!(transcript.get(at), Some(Message::User { .. }));
        if derived_prefix < transcript.len() && !is_users(derived_prefix) {
            let summary = derived_prefix.checked_sub(1).filter(|&summary| is_users(summary));
            outline.segments.push(summary.unwrap_or(derived_prefix));
        }
        for (at, message) in transcript.iter().enumerate() {
            outline.note(at, message, pairing.parts(at));
        }
        let is_legal = |start: &&usize| **start >= outline.legal_from && !pairing.parts(**start);
        outline.first_legal = outline.segments.iter().find(is_legal).copied();
        outline.answered = pairing.into_answered();
        Ok(outline)
    }

    fn begun(transcript: &'a [Message], derived_prefix: usize) -> Result<Self, TailError> {
        if transcript.is_empty() {
            return Err(TailError::Transcript);
        }
        if derived_prefix > transcript.len() {
            return Err(TailError::DerivedPrefix);
        }
        if let Err(epitome_loop::TranscriptError::Depth { message }) = validate_depth(transcript) {
            return Err(TailError::BlockDepth { message });
        }
        Ok(Self {
            transcript,
            derived_prefix,
            segments: Vec::new(),
            exchanges: Vec::new(),
            answered: Vec::with_capacity(transcript.len()),
            legal_from: 0,
            first_legal: None,
            sizes: vec![OnceLock::new(); transcript.len()],
        })
    }

    /// Takes down what a message opens.
    fn note(&mut self, at: usize, message: &Message, is_inside_pair: bool) {
        match message {
            Message::User { .. } if at >= self.derived_prefix => self.segments.push(at),
            Message::Assistant { .. }
                if !is_inside_pair && at >= self.legal_from && !continues_previous(message) =>
            {
                self.exchanges.push(at);
            }
            _ => {}
        }
    }

    /// Estimated tokens from this message on; or, when they are more than `most`, some number above that.
    #[must_use]
    pub fn tokens_from(&self, from: usize, most: u64) -> u64 {
        self.tokens_between(from..self.transcript.len(), most)
    }

    /// Estimated tokens of a message: a quarter of its core JSON. Worked out once. 0 for one that is not there.
    #[must_use]
    pub fn tokens_of(&self, at: usize) -> u64 {
        match (self.transcript.get(at), self.sizes.get(at)) {
            (Some(message), Some(size)) => *size.get_or_init(|| tail_estimate(message)),
            _ => 0,
        }
    }

    /// How many messages are to be summarized when the cut lies between segments: after the choice by size,
    /// moved earlier until no pair is parted. Damage is not minded; see [`SegmentOutline::legal_head`].
    #[must_use]
    pub fn between_segments(&self, keep: KeepRecent) -> usize {
        let Some((&newest, older)) = self.segments.split_last() else { return self.transcript.len() };
        let most = keep.tokens.get();
        let mut cut = newest;
        let mut kept = self.tokens_between(newest..self.transcript.len(), most);
        let mut segments = 1;
        for &start in older.iter().rev() {
            kept = kept.saturating_add(self.tokens_between(start..cut, most.saturating_sub(kept)));
            segments += 1;
            if segments > keep.segments || kept > most {
                break;
            }
            cut = start;
        }
        self.move_to_whole_pairs(cut)
    }

    /// The head of a cut between segments, made larger where its tail would hold damage. `None` when no segment
    /// begins behind that.
    #[must_use]
    pub fn legal_head(&self, head: usize) -> Option<usize> {
        if head >= self.legal_from { Some(head) } else { self.first_legal }
    }

    /// A cut inside the newest segment, between whole exchanges (an assistant message with its calls and all
    /// their results): kept are the user message that opens the segment and as many newest exchanges as
    /// `budget` estimated tokens hold. The newest exchange is kept even if it alone is over the budget. Where all
    /// exchanges are damaged, the user message is kept alone.
    ///
    /// Returns `None` when nothing would be left to summarize.
    #[must_use]
    pub fn inside_segment(&self, budget: u64) -> Option<InsideSegment> {
        let opening = self.newest_opening()?;
        let anchor = self.anchor_of(opening);
        let mut kept = anchor.map_or(0, |anchor| self.tokens_between(anchor..anchor + 1, budget));
        let mut tail = None;
        let mut end = self.transcript.len();
        for &start in self.exchanges.iter().rev().take_while(|&&start| start > opening) {
            kept = kept.saturating_add(self.tokens_between(start..end, budget.saturating_sub(kept)));
            if kept > budget && tail.is_some() {
                break;
            }
            tail = Some(start);
            end = start;
        }
        let nothing = (self.legal_from > opening).then_some(self.transcript.len());
        self.worth_cutting(opening, InsideSegment { anchor, tail: tail.or(nothing)? })
    }

    /// A cut that keeps the newest exchange and nothing else, not even the user message that opens its segment:
    /// for an exchange whose results the model has not seen, when both together are too large.
    ///
    /// Returns `None` when nothing would be left to summarize.
    #[must_use]
    pub fn newest_exchange_alone(&self) -> Option<InsideSegment> {
        let opening = self.newest_opening()?;
        let tail = self.exchanges.last().copied().filter(|&start| start > opening)?;
        self.worth_cutting(opening, InsideSegment { anchor: None, tail })
    }

    /// The last resort when even the newest exchange is too large: only the user message that opens the
    /// newest segment is kept.
    #[must_use]
    pub fn anchor_alone(&self) -> Option<InsideSegment> {
        let opening = self.newest_opening()?;
        let anchor = self.anchor_of(opening);
        self.worth_cutting(opening, InsideSegment { anchor, tail: self.transcript.len() })
    }

    /// Where the newest segment opens that does not open between a call and its result.
    fn newest_opening(&self) -> Option<usize> {
        self.segments.last().map(|&newest| self.move_to_whole_pairs(newest))
    }

    /// The user message that opens a segment. What stems from an earlier summary is not kept again.
    fn anchor_of(&self, opening: usize) -> Option<usize> {
        let is_users = matches!(self.transcript.get(opening), Some(Message::User { .. }));
        (is_users && opening >= self.derived_prefix).then_some(opening)
    }

    /// Something must be summarized besides what an earlier summary already says.
    fn worth_cutting(&self, opening: usize, cut: InsideSegment) -> Option<InsideSegment> {
        let anchored = self.anchor_of(opening).map_or(0, |anchor| anchor + 1);
        let between = cut.tail > self.derived_prefix.max(anchored);
        (between || opening > self.derived_prefix).then_some(cut)
    }

    /// Each result is looked at once, so however often the cut moves, the walk is linear.
    fn move_to_whole_pairs(&self, mut cut: usize) -> usize {
        let mut checked_from = self.answered.len();
        loop {
            let newly_kept = self.answered.get(cut..checked_from).unwrap_or_default();
            let earliest = newly_kept.iter().flatten().copied().min().unwrap_or(cut);
            if earliest >= cut {
                return cut;
            }
            checked_from = cut;
            let segment = self.segments.partition_point(|&start| start <= earliest);
            cut = segment.checked_sub(1).and_then(|at| self.segments.get(at)).copied().unwrap_or(0);
        }
    }

    /// Adds up the tokens of messages, the newest first, and none more once `most` is passed.
    fn tokens_between(&self, messages: Range<usize>, most: u64) -> u64 {
        let mut sum = 0_u64;
        for at in messages.rev() {
            if sum > most {
                break;
            }
            sum = sum.saturating_add(self.tokens_of(at));
        }
        sum
    }
}

/// Some providers answer a server-side call at the front of the next assistant message; such a message
/// belongs to the one before it.
pub(crate) fn continues_previous(message: &Message) -> bool {
    let first = message.blocks().iter().find(|block| !matches!(block, Block::Thinking(_)));
    matches!(first, Some(Block::Opaque(opaque)) if opaque.kind.ends_with("_result"))
}

fn pairing_error(fault: HistoryError) -> TailError {
    match fault {
        HistoryError::ToolCall { message } => TailError::ToolCall { message },
        HistoryError::Anchor { message } => TailError::SegmentAnchor { message },
        HistoryError::OrphanToolCall { message } => TailError::OrphanToolCall { message },
        HistoryError::ToolResult { message } | HistoryError::Interrupted { message } => {
            TailError::ToolResult { message }
        }
    }
}
