//! The choice of the tail that stays verbatim, and the cut that makes room when there is no choice.

use std::ops::Range;

use epitome_loop::{Block, KeepRecent, Message, tail_estimate, validate_depth};
use thiserror::Error;

use crate::history::{HistoryError, OpenCalls};

/// Where the head ends and the kept tail begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TailChoice {
    /// How many messages, from the first, are to be summarized; the rest is kept.
    pub head: usize,
    /// Estimated tokens of each message: a quarter of its core JSON.
    pub message_tokens: Vec<u64>,
}

/// The tail cannot be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TailError {
    /// `keep_recent.segments` is zero.
    #[error("the kept tail must hold at least one segment")]
    MaxSegments,
    /// `keep_recent.tokens` is zero.
    #[error("the kept tail must hold at least one token")]
    MaxTokens,
    /// The derived prefix is longer than the transcript.
    #[error("the derived prefix is longer than the transcript")]
    DerivedPrefix,
    /// There is no message.
    #[error("the transcript is empty")]
    Transcript,
    /// Tool results nest too deep.
    #[error("message {message}: tool results nest too deep")]
    BlockDepth {
        /// Index of the message.
        message: usize,
    },
    /// The first message after the derived prefix is not the user's.
    #[error("message {message}: a segment begins with the user")]
    SegmentAnchor {
        /// Index of the message.
        message: usize,
    },
    /// A call has no id, or the id of a call that is still open.
    #[error("message {message}: a tool call has no id of its own")]
    ToolCall {
        /// Index of the message.
        message: usize,
    },
    /// A result answers no open call.
    #[error("message {message}: a tool result answers no open call")]
    ToolResult {
        /// Index of the message.
        message: usize,
    },
    /// A call is never answered.
    #[error("message {message}: a tool call is never answered")]
    OrphanToolCall {
        /// Index of the message that holds the call.
        message: usize,
    },
    /// A call in the derived prefix is answered after it.
    #[error("message {message}: a tool result answers a call in the derived prefix")]
    DerivedToolPair {
        /// Index of the result.
        message: usize,
    },
}

impl TailError {
    /// The stable name of the fault, as the reference vectors spell it.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::MaxSegments => "max_segments",
            Self::MaxTokens => "max_tokens",
            Self::DerivedPrefix => "derived_prefix",
            Self::Transcript => "transcript",
            Self::BlockDepth { .. } => "block_depth",
            Self::SegmentAnchor { .. } => "segment_anchor",
            Self::ToolCall { .. } => "tool_call",
            Self::ToolResult { .. } => "tool_result",
            Self::OrphanToolCall { .. } => "orphan_tool_call",
            Self::DerivedToolPair { .. } => "derived_tool_pair",
        }
    }
}

/// Chooses the tail that stays verbatim (spec: runtime, choosing the tail).
///
/// Segments start at user messages after the derived prefix, which holds what stems from an earlier summary.
/// The newest segment is always kept; older ones are added while segments and estimated tokens stay within
/// `keep`; then the cut moves to earlier segments until no call is parted from its result. Linear.
///
/// # Errors
/// [`TailError`] for limits of zero, an empty transcript, and transcripts whose order or pairing is damaged.
pub fn select_tail(
    transcript: &[Message],
    derived_prefix: usize,
    keep: KeepRecent,
) -> Result<TailChoice, TailError> {
    if keep.segments == 0 {
        return Err(TailError::MaxSegments);
    }
    if keep.tokens.get() == 0 {
        return Err(TailError::MaxTokens);
    }
    let outline = SegmentOutline::of(transcript, derived_prefix)?;
    let message_tokens: Vec<u64> = transcript.iter().map(tail_estimate).collect();
    let head = outline.between_segments_by(keep, |at| message_tokens.get(at).copied().unwrap_or(0));
    Ok(TailChoice { head, message_tokens })
}

/// A cut inside the newest segment: what it keeps is the segment's user message and its newest exchanges.
///
/// The commonest agent session is one user message followed by hundreds of tool exchanges; between segments
/// there is nothing to cut there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InsideSegment {
    /// Index of the user message that opens the newest segment; it is kept verbatim. `None` when that message
    /// is an earlier summary: the new one takes its place.
    pub anchor: Option<usize>,
    /// Index of the first exchange that is kept. Everything before it but the anchor is to be summarized.
    pub tail: usize,
}

/// How a compaction divided a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailCut {
    /// Between two segments: the first messages up to this count are summarized.
    BetweenSegments {
        /// How many messages are summarized.
        head: usize,
    },
    /// Inside the newest segment.
    InsideSegment(InsideSegment),
}

impl TailCut {
    /// Index of the first message of the kept tail; an anchor that is kept as well lies before it.
    #[must_use]
    pub fn tail_start(self) -> usize {
        match self {
            Self::BetweenSegments { head } => head,
            Self::InsideSegment(InsideSegment { tail, .. }) => tail,
        }
    }

    /// Indices of the messages that stay, ascending.
    pub fn kept(self, len: usize) -> impl Iterator<Item = usize> {
        let (anchor, tail) = match self {
            Self::BetweenSegments { head } => (None, head),
            Self::InsideSegment(InsideSegment { anchor, tail }) => (anchor, tail),
        };
        anchor.into_iter().chain(tail..len)
    }

    /// Indices of the messages that are summarized, ascending.
    pub fn summarized(self) -> impl Iterator<Item = usize> {
        let (anchor, tail) = match self {
            Self::BetweenSegments { head } => (None, head),
            Self::InsideSegment(InsideSegment { anchor, tail }) => (anchor, tail),
        };
        (0..tail).filter(move |&at| Some(at) != anchor)
    }
}

/// Where the exchange starts whose calls still wait for results at the very end of a transcript: an
/// obligation of the newest turn, which stays whatever is cut. `None` when nothing is open, or when an open
/// call is followed by more than results, which only a repair can mend.
#[must_use]
pub fn open_exchange(transcript: &[Message]) -> Option<usize> {
    let start = transcript.iter().rposition(|message| !matches!(message, Message::ToolResult { .. }))?;
    let calls = transcript.get(start)?.tool_calls().count();
    let results = transcript.len() - start - 1;
    (calls > results).then_some(start)
}

/// Some providers answer a server-side call at the front of the next assistant message; such a message
/// belongs to the one before it.
pub(crate) fn continues_previous(message: &Message) -> bool {
    let first = message.blocks().iter().find(|block| !matches!(block, Block::Thinking(_)));
    matches!(first, Some(Block::Opaque(opaque)) if opaque.kind.ends_with("_result"))
}

/// Whether a tail of this size and a summary of the largest size leave room below the limit.
#[must_use]
pub fn retained_tail_fits(tail_tokens: u64, max_summary_tokens: u64, input_limit: u64) -> bool {
    tail_tokens.checked_add(max_summary_tokens).is_some_and(|needed| needed < input_limit)
}

/// What one walk over a transcript learns: its segments and its pairs. Cuts of any size can be asked for without
/// walking again; each looks at the size of the messages that it keeps, not at what lies before them.
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
}

impl<'a> SegmentOutline<'a> {
    /// Walks over a transcript whose first `derived_prefix` messages stem from an earlier summary.
    ///
    /// # Errors
    /// [`TailError`] for an empty transcript and for damaged order or pairing, and when the message after the
    /// derived prefix is not the user's.
    pub fn of(transcript: &'a [Message], derived_prefix: usize) -> Result<Self, TailError> {
        Self::walk(transcript, derived_prefix, false)
    }

    /// As [`SegmentOutline::of`], but the conversation may go on with the model behind an earlier summary, as
    /// other tools leave it: the user's message that carries the summary then opens the first segment.
    ///
    /// # Errors
    /// [`TailError`] as for [`SegmentOutline::of`], when the last message of the prefix is not the user's.
    pub fn behind_summary(transcript: &'a [Message], derived_prefix: usize) -> Result<Self, TailError> {
        Self::walk(transcript, derived_prefix, true)
    }

    fn walk(
        transcript: &'a [Message],
        derived_prefix: usize,
        summary_may_open: bool,
    ) -> Result<Self, TailError> {
        if transcript.is_empty() {
            return Err(TailError::Transcript);
        }
        if derived_prefix > transcript.len() {
            return Err(TailError::DerivedPrefix);
        }
        if let Err(epitome_loop::TranscriptError::Depth { message }) = validate_depth(transcript) {
            return Err(TailError::BlockDepth { message });
        }
        let mut outline = Self {
            transcript,
            derived_prefix,
            segments: Vec::new(),
            exchanges: Vec::new(),
            answered: Vec::with_capacity(transcript.len()),
        };
        let mut open = OpenCalls::default();
        for (at, message) in transcript.iter().enumerate() {
            let user = matches!(message, Message::User { .. });
            if at == derived_prefix && !user {
                let summary = at.checked_sub(1).filter(|_| summary_may_open);
                match summary.and_then(|summary| Some((summary, transcript.get(summary)?))) {
                    Some((summary, Message::User { .. })) => outline.segments.push(summary),
                    _ => return Err(TailError::SegmentAnchor { message: at }),
                }
            }
            if at >= derived_prefix && user {
                outline.segments.push(at);
            }
            if open.is_empty() && matches!(message, Message::Assistant { .. }) && !continues_previous(message)
            {
                outline.exchanges.push(at);
            }
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

    /// Estimated tokens from this message on; or, when they are more than `most`, some number above that.
    #[must_use]
    pub fn tokens_from(&self, from: usize, most: u64) -> u64 {
        self.tokens_between(from, self.transcript.len(), most)
    }

    /// How many messages are to be summarized when the cut lies between segments: after the choice by size,
    /// moved earlier until no pair is parted.
    #[must_use]
    pub fn between_segments(&self, keep: KeepRecent) -> usize {
        self.between_segments_by(keep, |at| self.tokens_of(at))
    }

    /// As [`SegmentOutline::between_segments`], with the estimated tokens of each message.
    fn between_segments_by(&self, keep: KeepRecent, tokens_of: impl Fn(usize) -> u64) -> usize {
        let Some((&newest, older)) = self.segments.split_last() else { return self.transcript.len() };
        let most = keep.tokens.get();
        let mut cut = newest;
        let mut kept = sum_of_newest(newest..self.transcript.len(), most, &tokens_of);
        let mut segments = 1;
        for &start in older.iter().rev() {
            kept = kept.saturating_add(sum_of_newest(start..cut, most.saturating_sub(kept), &tokens_of));
            segments += 1;
            if segments > keep.segments || kept > most {
                break;
            }
            cut = start;
        }
        self.move_to_whole_pairs(cut)
    }

    /// A cut inside the newest segment, between whole exchanges (an assistant message with its calls and all
    /// their results): kept are the user message that opens the segment and as many newest exchanges as
    /// `budget` estimated tokens hold. The newest exchange is kept even if it alone is over the budget.
    ///
    /// Returns `None` when nothing would be left to summarize.
    #[must_use]
    pub fn inside_segment(&self, budget: u64) -> Option<InsideSegment> {
        let opening = self.newest_opening()?;
        let anchor = self.anchor_of(opening);
        let mut kept = anchor.map_or(0, |anchor| self.tokens_between(anchor, anchor + 1, budget));
        let mut tail = None;
        let mut end = self.transcript.len();
        for &start in self.exchanges.iter().rev().take_while(|&&start| start > opening) {
            kept = kept.saturating_add(self.tokens_between(start, end, budget.saturating_sub(kept)));
            if kept > budget && tail.is_some() {
                break;
            }
            tail = Some(start);
            end = start;
        }
        self.worth_cutting(opening, InsideSegment { anchor, tail: tail? })
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

    /// What stems from an earlier summary is not kept again.
    fn anchor_of(&self, opening: usize) -> Option<usize> {
        Some(opening).filter(|&opening| opening >= self.derived_prefix)
    }

    /// Something must be summarized besides what an earlier summary already says.
    fn worth_cutting(&self, opening: usize, cut: InsideSegment) -> Option<InsideSegment> {
        let between = cut.tail > self.derived_prefix.max(opening + 1);
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

    fn tokens_between(&self, from: usize, to: usize, most: u64) -> u64 {
        sum_of_newest(from..to, most, |at| self.tokens_of(at))
    }

    fn tokens_of(&self, at: usize) -> u64 {
        self.transcript.get(at).map_or(0, tail_estimate)
    }
}

/// Adds up the tokens of messages, the newest first, and none more once `most` is passed.
fn sum_of_newest(messages: Range<usize>, most: u64, tokens_of: impl Fn(usize) -> u64) -> u64 {
    let mut sum = 0_u64;
    for at in messages.rev() {
        if sum > most {
            break;
        }
        sum = sum.saturating_add(tokens_of(at));
    }
    sum
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

#[cfg(test)]
mod tests {
    use super::*;
    use epitome_loop::{TokenCount, ToolUse};

    fn call(id: &str) -> Message {
        let call = Block::ToolUse(ToolUse::new(id, "tool", None, None));
        Message::Assistant { blocks: [call].into(), usage: None }
    }

    fn result(id: &str) -> Message {
        Message::tool_result(id, "r", false)
    }

    fn keep(segments: u64, tokens: u64) -> KeepRecent {
        KeepRecent { segments, tokens: TokenCount(tokens) }
    }

    fn one_user_session(exchanges: usize) -> Vec<Message> {
        let mut transcript = vec![Message::user("fix the build")];
        for at in 0..exchanges {
            transcript.extend([call(&format!("c{at}")), result(&format!("c{at}"))]);
        }
        transcript
    }

    fn cut_inside(transcript: &[Message], budget: u64) -> Option<InsideSegment> {
        SegmentOutline::of(transcript, 0).unwrap().inside_segment(budget)
    }

    #[test]
    fn the_newest_exchange_can_stay_alone() {
        let alone =
            |transcript: &[Message]| SegmentOutline::of(transcript, 0).unwrap().newest_exchange_alone();
        assert_eq!(alone(&one_user_session(3)), Some(InsideSegment { anchor: None, tail: 5 }));
        assert_eq!(alone(&one_user_session(1)), None);
        assert_eq!(alone(&[Message::user("u")]), None);
    }

    #[test]
    fn the_cut_moves_until_no_pair_is_parted() {
        // Each cut that would part a pair is pulled back over the next: one slide is not enough.
        let transcript = [
            Message::user("0"),
            call("a"),
            Message::user("1"),
            result("a"),
            call("b"),
            Message::user("2"),
            result("b"),
        ];
        assert_eq!(select_tail(&transcript, 0, keep(1, 1)).unwrap().head, 0);
    }

    #[test]
    fn a_session_of_one_user_message_is_cut_inside() {
        let transcript = one_user_session(10);
        assert_eq!(select_tail(&transcript, 0, keep(1, 1)).unwrap().head, 0);
        let exchange: u64 = transcript[1..3].iter().map(tail_estimate).sum();
        let anchor = tail_estimate(&transcript[0]);
        let cut = cut_inside(&transcript, anchor + 3 * exchange);
        assert_eq!(cut, Some(InsideSegment { anchor: Some(0), tail: 15 }));
        let cut = TailCut::InsideSegment(cut.unwrap());
        assert_eq!(cut.kept(21).collect::<Vec<_>>(), [0, 15, 16, 17, 18, 19, 20]);
        assert_eq!(cut.summarized().collect::<Vec<_>>(), (1..15).collect::<Vec<_>>());
    }

    #[test]
    fn the_newest_exchange_is_kept_whatever_its_size() {
        let cut = cut_inside(&one_user_session(3), 1);
        assert_eq!(cut, Some(InsideSegment { anchor: Some(0), tail: 5 }));
        assert_eq!(cut_inside(&one_user_session(1), 1), None);
        assert_eq!(cut_inside(&[Message::user("x")], 1), None);
    }

    #[test]
    fn parallel_calls_stay_with_all_their_results() {
        let calls: Vec<Block> =
            ["p", "q"].map(|id| Block::ToolUse(ToolUse::new(id, "tool", None, None))).into();
        let transcript = [
            Message::user("u"),
            call("a"),
            result("a"),
            Message::Assistant { blocks: calls.into(), usage: None },
            result("q"),
            Message::user("folded"),
            result("p"),
            Message::user("next"),
        ];
        assert_eq!(select_tail(&transcript, 0, keep(1, 1)).unwrap().head, 7);
        // "folded" stands inside a pair, so it cannot open the tail.
        let cut = cut_inside(&transcript[..7], 1);
        assert_eq!(cut, Some(InsideSegment { anchor: Some(0), tail: 3 }));
    }

    #[test]
    fn an_open_call_of_the_newest_turn_is_found() {
        let mut transcript = one_user_session(2);
        assert_eq!(open_exchange(&transcript), None);
        transcript.push(call("open"));
        assert_eq!(open_exchange(&transcript), Some(5));
        transcript.push(Message::user("are you there?"));
        assert_eq!(open_exchange(&transcript), None);
    }

    #[test]
    fn a_conversation_may_go_on_with_the_model_behind_a_summary() {
        let mut transcript = one_user_session(5);
        let fault = TailError::SegmentAnchor { message: 1 };
        assert_eq!(SegmentOutline::of(&transcript, 1).unwrap_err(), fault);
        let outline = SegmentOutline::behind_summary(&transcript, 1).unwrap();
        assert_eq!(outline.inside_segment(1), Some(InsideSegment { anchor: None, tail: 9 }));
        assert_eq!(outline.anchor_alone(), Some(InsideSegment { anchor: None, tail: 11 }));
        transcript.insert(0, Message::assistant("no summary"));
        assert!(SegmentOutline::behind_summary(&transcript, 1).is_ok());
        assert!(SegmentOutline::behind_summary(&transcript[2..], 0).is_err());
        let only_summarized = one_user_session(1);
        assert_eq!(SegmentOutline::behind_summary(&only_summarized, 1).unwrap().inside_segment(1), None);
    }

    #[test]
    fn fits_means_room_is_left() {
        assert!(retained_tail_fits(0, 0, 1));
        assert!(!retained_tail_fits(50, 50, 100));
        assert!(!retained_tail_fits(u64::MAX, 1, u64::MAX));
    }
}
