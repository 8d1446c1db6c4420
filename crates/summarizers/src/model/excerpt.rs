//! The transcript within the room that the summarizing model has for it.
//!
//! First results of tools and other long things are shown shorter, in steps; then the middle is left out. Both ends stay:
//! the first messages say what the work is, the last ones how far it is. What one end does not need goes to the other, and
//! a message that is longer than its part is cut in its middle, so that none takes the room of all others.

use std::fmt::Write;

use super::entries::{Entries, Limits};
use super::middle::{Middle, digest_of};
use super::planning::Judge;

/// Code points of results, arguments, files and reasoning that are shown, from the first step to the last.
const TOOL_STEPS: [usize; 4] = [2000, 1000, 500, 200];
/// Bytes a token takes before anything was measured.
const FIRST_GUESS: usize = 4;
/// Excerpts that are tried at most. Each takes one estimate of about a window of text.
const MOST_TRIALS: usize = 8;
/// An excerpt that uses this part of the room, in percent, is good enough.
const GOOD_ENOUGH: u64 = 92;
/// A smaller room holds no excerpt.
const LEAST_TOKENS: u64 = 64;
/// No excerpt is larger; so sizes can be multiplied without thought, on 32 bits as well.
const MOST_BYTES: usize = 64 << 20;
/// What the middle's digest gets of the room, in hundredths.
const DIGEST_SHARE: u64 = 15;
/// In a smaller room there is no digest: it would say nothing.
const LEAST_FOR_DIGEST: u64 = 600;

/// What the excerpt is made for.
pub(super) struct Room<'r> {
    /// Tokens by `judge`.
    pub(super) tokens: u64,
    pub(super) judge: &'r Judge,
    /// What the host wants the summary to pay attention to.
    pub(super) instructions: Option<&'r epitome_loop::SharedText>,
}

/// Writes the messages within the room; `None` if not even a few fit.
pub(super) fn excerpt(entries: &Entries<'_>, room: &Room<'_>) -> Option<String> {
    let mut high = entries.about_bytes(Limits { tool: TOOL_STEPS[0], message: usize::MAX }).min(MOST_BYTES);
    // References for `<` and `&` make it longer.
    high = high.saturating_add(high / 2).saturating_add(64);
    let room_bytes = usize::try_from(room.tokens).unwrap_or(MOST_BYTES).min(MOST_BYTES);
    let mut bytes = room_bytes.saturating_mul(FIRST_GUESS).min(high);
    let mut low = 0;
    let mut best: Option<Draft> = None;
    for _ in 0..MOST_TRIALS {
        let draft = Draft::of(entries, bytes, room);
        let tokens = room.judge.tokens(&draft.text).max(1);
        let allowed =
            if draft.gap.is_some() { room.tokens - digest_tokens(room.tokens) } else { room.tokens };
        let scaled = bytes as u128 * u128::from(allowed) * 98 / 100 / u128::from(tokens);
        let scaled = usize::try_from(scaled).unwrap_or(usize::MAX);
        if tokens <= allowed {
            let is_enough = draft.is_whole || bytes >= high || tokens * 100 >= allowed * GOOD_ENOUGH;
            low = bytes;
            best = Some(draft);
            if is_enough {
                break;
            }
            bytes = scaled.max(bytes.saturating_add(bytes / 4)).min(high);
        } else {
            high = bytes.saturating_sub(1);
            bytes = if scaled > low && scaled < high { scaled } else { low.midpoint(high) };
        }
        if bytes <= low {
            break;
        }
    }
    let best = best?;
    if !best.is_whole && room.tokens < LEAST_TOKENS {
        return None;
    }
    Some(best.with_digest(entries, room))
}

fn digest_tokens(room: u64) -> u64 {
    if room < LEAST_FOR_DIGEST { 0 } else { room / 100 * DIGEST_SHARE }
}

/// An excerpt without its digest.
struct Draft {
    text: String,
    /// Whether every message is there as the first step shows it.
    is_whole: bool,
    /// Where in the text messages are left out, and which.
    gap: Option<(usize, Middle)>,
}

impl Draft {
    /// About so many bytes.
    fn of(entries: &Entries<'_>, bytes: usize, room: &Room<'_>) -> Self {
        // One message may take a quarter of the room, so that a few always fit.
        let part = (bytes / 4).max(LONGEST_AT_LEAST.min(bytes / 2));
        for message in [usize::MAX, part] {
            for tool in TOOL_STEPS {
                let limits = Limits { tool, message };
                if entries.about_bytes(limits) <= bytes {
                    let mut text = String::new();
                    (0..entries.count()).for_each(|at| entries.push(&mut text, at, limits));
                    let is_whole = tool == TOOL_STEPS[0] && message == usize::MAX;
                    return Self { text, is_whole, gap: None };
                }
            }
        }
        let tool = TOOL_STEPS[TOOL_STEPS.len() - 1].min(part);
        let shown = bytes - bytes / 100 * usize::try_from(digest_share(room.tokens)).unwrap_or(0);
        sampled(entries, shown, Limits { tool, message: part })
    }

    /// Puts the digest of what is left out in its place.
    fn with_digest(self, entries: &Entries<'_>, room: &Room<'_>) -> String {
        let Self { mut text, gap, .. } = self;
        let Some((at, middle)) = gap else { return text };
        let most = digest_tokens(room.tokens);
        let Some(digest) = digest_of(entries.messages(), middle, most, room) else { return text };
        let before = text.len();
        text.insert_str(at, &digest);
        // The digest was made for its share; should it still be too much, the mark alone stays.
        if room.judge.tokens(&text) > room.tokens && text.is_char_boundary(at) {
            text.replace_range(at..at + (text.len() - before), "");
        }
        text
    }
}

fn digest_share(room: u64) -> u64 {
    if digest_tokens(room) == 0 { 0 } else { DIGEST_SHARE }
}

/// Bytes that one message may always take.
const LONGEST_AT_LEAST: usize = 240;

/// The first and the last messages. The beginning gets three tenths; what it leaves goes to the end, and what the end leaves
/// goes to the beginning again.
fn sampled(entries: &Entries<'_>, bytes: usize, limits: Limits) -> Draft {
    const HEAD_TENTHS: usize = 3;
    let count = entries.count();
    let mut head = String::new();
    let mut first = push_while(entries, &mut head, 0, count, limits, bytes / 10 * HEAD_TENTHS);
    let mut tail: Vec<String> = Vec::new();
    let mut used = head.len();
    let mut last = count;
    while last > first {
        let mut one = String::new();
        entries.push(&mut one, last - 1, limits);
        if used + one.len() > bytes {
            break;
        }
        used += one.len();
        tail.push(one);
        last -= 1;
    }
    let room = bytes.saturating_sub(used) + head.len();
    first = push_while(entries, &mut head, first, last, limits, room);
    let mut text = head;
    let left_out = last - first;
    let mut gap = None;
    if left_out > 0 {
        let _ = writeln!(text, "<left-out messages {left_out}>");
        gap = Some((text.len(), Middle { first, last }));
    }
    text.extend(tail.into_iter().rev());
    Draft { text, is_whole: false, gap }
}

/// Appends messages from `first` on while the text stays within `bytes`; gives the first one that is not in it.
fn push_while(
    entries: &Entries<'_>,
    text: &mut String,
    first: usize,
    end: usize,
    limits: Limits,
    bytes: usize,
) -> usize {
    let mut at = first;
    while at < end {
        let before = text.len();
        entries.push(text, at, limits);
        if text.len() > bytes {
            text.truncate(before);
            break;
        }
        at += 1;
    }
    at
}
