//! The choice of the tail that stays verbatim, and the cut that makes room when there is no choice.

use std::collections::HashSet;

use epitome_loop::{KeepRecent, Message};
use thiserror::Error;

use crate::outline::SegmentOutline;

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
    let head = outline.between_segments(keep);
    Ok(TailChoice { head, message_tokens: (0..transcript.len()).map(|at| outline.tokens_of(at)).collect() })
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

/// The exchange at the very end of a transcript whose calls still wait for results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenExchange {
    /// Index of the message with the calls.
    pub start: usize,
    /// Indices of the results behind it that answer none of these calls, ascending.
    pub astray: Vec<usize>,
}

/// The exchange whose calls still wait for results at the very end of a transcript: an obligation of the newest
/// turn, which stays whatever is cut. `None` when nothing is open, when an open call is followed by more than
/// results, which means that it was abandoned, and when the calls have no ids of their own, so that no result
/// could ever answer them.
#[must_use]
pub fn open_exchange(transcript: &[Message]) -> Option<OpenExchange> {
    let start = transcript.iter().rposition(|message| !matches!(message, Message::ToolResult { .. }))?;
    let mut open = HashSet::new();
    for call in transcript.get(start)?.tool_calls() {
        if call.id.is_empty() || !open.insert(call.id.as_str()) {
            return None;
        }
    }
    let mut astray = Vec::new();
    for (at, message) in transcript.iter().enumerate().skip(start + 1) {
        if let Message::ToolResult { tool_use_id, .. } = message
            && !open.remove(tool_use_id.as_str())
        {
            astray.push(at);
        }
    }
    (!open.is_empty()).then_some(OpenExchange { start, astray })
}

/// Whether a tail of this size and a summary of the largest size leave room below the limit.
#[must_use]
pub fn retained_tail_fits(tail_tokens: u64, max_summary_tokens: u64, input_limit: u64) -> bool {
    tail_tokens.checked_add(max_summary_tokens).is_some_and(|needed| needed < input_limit)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use epitome_loop::{Block, TokenCount, ToolUse, tail_estimate};

    fn calls(ids: &[&str]) -> Message {
        let calls = ids.iter().map(|id| Block::ToolUse(ToolUse::new(*id, "tool", None, None)));
        Message::Assistant { blocks: calls.collect(), usage: None }
    }

    fn call(id: &str) -> Message {
        calls(&[id])
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

    fn any(transcript: &[Message], derived_prefix: usize) -> SegmentOutline<'_> {
        SegmentOutline::of_any(transcript, derived_prefix, &BTreeSet::new()).unwrap()
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
        let transcript = [
            Message::user("u"),
            call("a"),
            result("a"),
            calls(&["p", "q"]),
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
        let found = |transcript: &[Message]| {
            open_exchange(transcript).map(|OpenExchange { start, astray }| (start, astray))
        };
        let mut transcript = one_user_session(2);
        assert_eq!(found(&transcript), None);
        transcript.push(call("open"));
        assert_eq!(found(&transcript), Some((5, vec![])));
        transcript.extend([result("c0"), result("open"), result("open")]);
        assert_eq!(found(&transcript), None);
        transcript.extend([calls(&["p", "q"]), result("p"), result("p"), result("x")]);
        assert_eq!(found(&transcript), Some((9, vec![11, 12])));
        transcript.push(Message::user("are you there?"));
        assert_eq!(found(&transcript), None);
        for ids in [["p", "p"], ["p", ""]] {
            assert_eq!(found(&[Message::user("u"), calls(&ids)]), None);
        }
    }

    #[test]
    fn a_conversation_may_go_on_with_the_model_behind_a_summary() {
        let mut transcript = one_user_session(5);
        let fault = TailError::SegmentAnchor { message: 1 };
        assert_eq!(SegmentOutline::of(&transcript, 1).unwrap_err(), fault);
        let outline = any(&transcript, 1);
        assert_eq!(outline.inside_segment(1), Some(InsideSegment { anchor: None, tail: 9 }));
        assert_eq!(outline.anchor_alone(), Some(InsideSegment { anchor: None, tail: 11 }));
        let only_summarized = one_user_session(1);
        assert_eq!(any(&only_summarized, 1).inside_segment(1), None);
        // Nobody opened it: the model's first words are all that lies before the cut.
        transcript.remove(0);
        let outline = any(&transcript, 0);
        assert_eq!(outline.between_segments(keep(9, 9_999)), 0);
        assert_eq!(outline.inside_segment(9_999), Some(InsideSegment { anchor: None, tail: 2 }));
        transcript.insert(0, Message::assistant("hello"));
        transcript.insert(1, Message::user("fix the build"));
        assert_eq!(any(&transcript, 0).between_segments(keep(9, 9_999)), 0);
        assert_eq!(any(&transcript, 0).between_segments(keep(1, 9_999)), 1);
    }

    #[test]
    fn no_tail_holds_what_is_damaged() {
        let user = || Message::user("u");
        // Abandoned in the second of four turns.
        let transcript =
            [user(), call("a"), result("a"), user(), call("b"), user(), call("c"), result("c"), user()];
        let outline = any(&transcript, 0);
        assert_eq!(outline.between_segments(keep(9, 9_999)), 0);
        assert_eq!(outline.legal_head(0), Some(5));
        assert_eq!(outline.legal_head(8), Some(8));
        // In the newest one, the cut lies behind it.
        let transcript =
            [user(), call("a"), result("a"), call("b"), call("c"), result("c"), call("d"), result("d")];
        let outline = any(&transcript, 0);
        assert_eq!(outline.legal_head(0), None);
        assert_eq!(outline.inside_segment(9_999), Some(InsideSegment { anchor: Some(0), tail: 4 }));
        assert_eq!(outline.inside_segment(1), Some(InsideSegment { anchor: Some(0), tail: 6 }));
        // Nothing behind it could stay.
        let transcript = [user(), call("a"), result("a"), result("a")];
        let outline = any(&transcript, 0);
        assert_eq!(outline.legal_head(0), None);
        assert_eq!(outline.inside_segment(9_999), Some(InsideSegment { anchor: Some(0), tail: 4 }));
        assert_eq!(outline.newest_exchange_alone(), None);
    }

    #[test]
    fn fits_means_room_is_left() {
        assert!(retained_tail_fits(0, 0, 1));
        assert!(!retained_tail_fits(50, 50, 100));
        assert!(!retained_tail_fits(u64::MAX, 1, u64::MAX));
    }
}
