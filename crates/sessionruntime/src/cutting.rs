//! Where to cut a session: the tail yields to the room there is, step by step.

use std::borrow::Cow;
use std::collections::BTreeSet;

use epitome_loop::{Block, KeepRecent, Message, TokenCount};
use epitome_loopruntime::{
    HistoryError, OpenExchange, SegmentOutline, TailCut, Unavailable, check_retained_history, open_exchange,
};

/// The possible cuts of one conversation, its leading system messages left aside.
///
/// A conversation may hold what no provider takes: a call that was abandoned, a result without a call, an id that is
/// doubled. Refused for that, it could never be compacted again. So all of that counts as head, however much the
/// policy keeps: it is summarized, and the tail begins behind the last of it.
pub(crate) struct Cutting<'a> {
    body: &'a [Message],
    derived_prefix: usize,
    /// From here on the newest turn waits for results; it stays whatever is cut.
    open_from: usize,
    /// Results in it that answer none of its calls. They stay nowhere.
    astray: Vec<usize>,
    /// Without it nothing is kept but what is open.
    tail: Option<(KeepRecent, SegmentOutline<'a>)>,
}

impl<'a> Cutting<'a> {
    /// `superseded` are messages of the body that are kept nowhere.
    pub(crate) fn new(
        body: &'a [Message],
        derived_prefix: usize,
        keep: Option<KeepRecent>,
        superseded: &BTreeSet<usize>,
    ) -> Result<Self, Unavailable> {
        let open = open_exchange(body);
        let OpenExchange { start: open_from, astray } =
            open.unwrap_or(OpenExchange { start: body.len(), astray: Vec::new() });
        let closed = body.get(..open_from).unwrap_or_default();
        if closed.len() <= derived_prefix {
            return Err(Unavailable::NothingToCompact);
        }
        let derived_prefix = anchored_prefix(closed, derived_prefix);
        let tail = match keep {
            Some(keep) => {
                let outline = SegmentOutline::of_any(closed, derived_prefix, superseded);
                Some((keep, outline.map_err(Unavailable::Tail)?))
            }
            None => None,
        };
        Ok(Self { body, derived_prefix, open_from, astray, tail })
    }

    /// Results behind the tail's start that are summarized all the same, by index.
    pub(crate) fn astray(&self) -> &[usize] {
        &self.astray
    }

    /// The most that the policy keeps, in estimated tokens.
    pub(crate) fn most(&self) -> u64 {
        self.tail.as_ref().map_or(0, |(keep, _)| keep.tokens.get())
    }

    /// Estimated tokens of each message, the newest first. Taking one sizes it.
    pub(crate) fn tokens_of_newest(&self) -> impl Iterator<Item = u64> {
        let outline = self.tail.as_ref().map(|(_, outline)| outline);
        outline.into_iter().flat_map(|outline| (0..self.open_from).rev().map(|at| outline.tokens_of(at)))
    }

    /// The cut that keeps at most `budget` estimated tokens: between segments if that leaves a head and the
    /// tail keeps the budget, else inside the newest segment. `None` when nothing would be summarized.
    pub(crate) fn cut(&self, budget: u64) -> Option<TailCut> {
        let Some((keep, outline)) = &self.tail else {
            return Some(TailCut::BetweenSegments { head: self.open_from });
        };
        let keep = KeepRecent { tokens: TokenCount(budget.max(1)), ..*keep };
        let holds_all = outline.tokens_from(self.derived_prefix, budget) <= budget;
        let by_size = outline.between_segments(keep);
        // A tail that would hold everything, or all but what is damaged, is not worth a cut; a smaller one is asked for
        // next.
        if holds_all && by_size <= self.derived_prefix {
            return None;
        }
        let head = outline.legal_head(by_size).filter(|&head| head > self.derived_prefix);
        let between = head.map(|head| TailCut::BetweenSegments { head });
        if head.is_some_and(|head| outline.tokens_from(head, budget) <= budget) {
            return between;
        }
        outline.inside_segment(budget).map(TailCut::InsideSegment).or(between)
    }

    /// The cut that keeps nothing but the newest exchange, when the conversation ends with results that the
    /// model has not seen. Summarized, an answer that was waited for would be lost.
    pub(crate) fn newest_results(&self) -> Option<TailCut> {
        let (_, outline) = self.tail.as_ref()?;
        let closed = self.body.get(..self.open_from)?;
        matches!(closed.last(), Some(Message::ToolResult { .. })).then_some(())?;
        outline.newest_exchange_alone().map(TailCut::InsideSegment)
    }

    /// The last resort, when even the newest exchange is too large to keep.
    pub(crate) fn smallest(&self) -> Option<TailCut> {
        let (_, outline) = self.tail.as_ref()?;
        outline.anchor_alone().map(TailCut::InsideSegment)
    }

    /// Checks that what is kept, by index, is a legal history behind the summary, which is the user's message;
    /// the open exchange is left aside.
    pub(crate) fn check_kept(&self, kept: impl Iterator<Item = usize>) -> Result<(), HistoryError> {
        let kept = kept.filter(|&at| at < self.open_from).filter_map(|at| self.body.get(at)).cloned();
        check_retained_history(&[Message::user("")].into_iter().chain(kept).collect::<Vec<_>>())
    }
}

/// The message with each opaque item replaced by a mark: such an item may be kept, but never summarized.
pub(crate) fn without_opaque(message: &Message) -> Message {
    let blocks = message.blocks();
    if !blocks.iter().any(|block| matches!(mark_opaque(block), Cow::Owned(_))) {
        return message.clone();
    }
    let blocks = blocks.iter().map(|block| mark_opaque(block).into_owned()).collect();
    match message {
        Message::User { .. } => Message::User { blocks },
        Message::Assistant { usage, .. } => Message::Assistant { blocks, usage: *usage },
        Message::System { .. } => Message::System { blocks },
        Message::ToolResult { tool_use_id, is_error, .. } => {
            Message::ToolResult { blocks, tool_use_id: tool_use_id.clone(), is_error: *is_error }
        }
    }
}

/// Recursion is bounded: the depth of the transcript was checked when it was outlined or read.
fn mark_opaque(block: &Block) -> Cow<'_, Block> {
    match block {
        Block::Opaque(_) => Cow::Owned(Block::text("[provider item omitted]")),
        Block::ToolResult(result) => {
            let marked: Vec<Cow<'_, Block>> = result.content.iter().map(mark_opaque).collect();
            if marked.iter().any(|block| matches!(block, Cow::Owned(_))) {
                let content = marked.into_iter().map(Cow::into_owned).collect();
                Cow::Owned(Block::ToolResult(epitome_loop::ToolResult { content, ..result.clone() }))
            } else {
                Cow::Borrowed(block)
            }
        }
        _ => Cow::Borrowed(block),
    }
}

/// An earlier summary up to its last message of the user, when the model goes on right behind it: a segment begins with
/// the user, and what the model acknowledged the summary with goes along with its next words.
fn anchored_prefix(messages: &[Message], derived_prefix: usize) -> usize {
    let is_users = |message: &Message| matches!(message, Message::User { .. });
    let goes_on = messages.get(derived_prefix).is_some_and(|next| !is_users(next));
    let prefix = messages.get(..derived_prefix).unwrap_or_default();
    match prefix.iter().rposition(is_users) {
        Some(last) if goes_on => last + 1,
        _ => derived_prefix,
    }
}
