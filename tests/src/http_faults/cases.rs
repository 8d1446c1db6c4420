//! The cases and what must come of each.

use std::io;
use std::time::Duration;

use epitome_loop::{Block, FinishReason, ModelAnswer, ModelCallError, ModelCallErrorKind, TokenCount, Usage};
use epitome_models::AnswerMode;

use super::speaker::Says;
use super::{CANARY_HEARD, MOST_BYTES, Played, Speaker, client};
use crate::loopback::{Body, Loopback, Reply, nobody};

/// A case: somebody who speaks an interface, and what goes wrong.
#[derive(Clone, Debug)]
pub struct FaultCase {
    /// What happens.
    pub name: &'static str,
    /// Who speaks.
    pub speaker: Speaker,
    /// How the answer was asked for.
    pub answers: AnswerMode,
    /// What must come of it.
    pub wanted: Wanted,
    does: Does,
}

/// What must come of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// An answer that ends so.
    Answer(FinishReason),
    /// An error.
    Error(ModelCallErrorKind),
    /// An error, and a time to wait.
    ErrorWithWait(ModelCallErrorKind, Duration),
}

#[derive(Clone, Debug)]
enum Does {
    Replies(Reply),
    /// Sends elsewhere.
    Redirects(u16),
    /// Nobody listens.
    IsAway,
}

/// So many bytes has an answer that is far too large.
const FLOOD: u64 = 50_000_000;

/// Every case for every interface, in one piece and in events.
#[must_use]
pub fn cases() -> Vec<FaultCase> {
    let modes = [AnswerMode::Whole, AnswerMode::Streamed];
    let pairs = Speaker::ALL.into_iter().flat_map(|speaker| modes.map(|mode| (speaker, mode)));
    pairs.flat_map(|(speaker, answers)| cases_of(speaker, answers)).collect()
}

fn cases_of(speaker: Speaker, answers: AnswerMode) -> Vec<FaultCase> {
    use ModelCallErrorKind::{Malformed, Network, OtherModel, Status, Timeout, TooLarge};
    let mut cases = Vec::new();
    let mut push = |name, wanted, does| cases.push(FaultCase { name, speaker, answers, wanted, does });
    let streamed = answers == AnswerMode::Streamed;
    let kind = if streamed { "text/event-stream; charset=utf-8" } else { "application/json" };
    let ok = |body: Body| {
        Does::Replies(Reply { status: 200, headers: vec![("content-type", kind.to_owned())], body })
    };
    let said = |says: Says| {
        if streamed { speaker.events(says) } else { speaker.whole(says).to_string().into_bytes() }
    };
    let answer = |finish| Wanted::Answer(finish);

    push("success", answer(FinishReason::Stop), ok(Body::Whole(said(Says::Text))));
    push(
        "success, length not announced",
        answer(FinishReason::Stop),
        ok(Body::Unannounced(said(Says::Text))),
    );
    push("snapshot of the model", answer(FinishReason::Stop), ok(Body::Whole(said(Says::Snapshot))));
    push("wrong model", Wanted::Error(OtherModel), ok(Body::Whole(said(Says::OtherModel))));
    push("refusal", answer(FinishReason::Refused), ok(Body::Whole(said(Says::Refusal))));
    push(
        "refusal without words",
        answer(FinishReason::Refused),
        ok(Body::Whole(said(Says::WordlessRefusal))),
    );
    push("length cut", answer(FinishReason::Length), ok(Body::Whole(said(Says::CutText))));
    push("tool call as answer", answer(FinishReason::ToolCalls), ok(Body::Whole(said(Says::Call))));

    push("failed at its end", Wanted::Error(Status(200)), ok(Body::Whole(said(Says::Failed))));

    let error = speaker.error().to_string().into_bytes();
    let fails = |status, headers: Vec<(&'static str, String)>| {
        Does::Replies(Reply { status, headers, body: Body::Whole(error.clone()) })
    };
    for (name, status) in [("400", 400), ("401", 401), ("408", 408), ("429", 429), ("500", 500), ("529", 529)]
    {
        push(name, Wanted::Error(Status(status)), fails(status, Vec::new()));
    }
    let wait = |seconds| Wanted::ErrorWithWait(Status(429), Duration::from_secs(seconds));
    push("429 with seconds", wait(7), fails(429, vec![("retry-after", "7".to_owned())]));
    let dates = vec![
        ("date", "Sun, 06 Nov 1994 08:49:30 GMT".to_owned()),
        ("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT".to_owned()),
    ];
    push("429 with a date", wait(67), fails(429, dates));

    let in_event = format!("event: error\ndata: {}\n\n", speaker.error()).into_bytes();
    let in_success = if streamed { in_event } else { error.clone() };
    push("error in a success", Wanted::Error(Status(500)), ok(Body::Whole(in_success)));
    // Asked for events, it answers in one piece, and the other way round.
    let json = vec![("content-type", "application/json".to_owned())];
    let other_way =
        Reply { status: 200, headers: json, body: Body::Whole(speaker.whole(Says::Text).to_string().into()) };
    push("not in events", answer(FinishReason::Stop), Does::Replies(other_way));
    let events = vec![("content-type", "text/event-stream".to_owned())];
    let other_way = Reply { status: 200, headers: events, body: Body::Whole(speaker.events(Says::Text)) };
    push("in events", answer(FinishReason::Stop), Does::Replies(other_way));

    let pause = Duration::from_millis(50);
    push("slow body", Wanted::Error(Timeout), ok(Body::Slow { body: said(Says::Text), pause }));
    push("no answer", Wanted::Error(Timeout), ok(Body::Silence));
    push("hangs up", Wanted::Error(Network), ok(Body::Hangup));
    push("cut body", Wanted::Error(Network), ok(Body::Cut(said(Says::Text))));
    let half = |bytes: Vec<u8>| bytes.get(..bytes.len() / 2).unwrap_or_default().to_vec();
    // Where no length is told, JSON that is cut cannot be told from JSON that is wrong; an end mark that lacks can.
    let cut = if streamed { Network } else { Malformed };
    push("cut body, length not announced", Wanted::Error(cut), ok(Body::Unannounced(half(said(Says::Text)))));
    push("empty body", Wanted::Error(cut), ok(Body::Whole(Vec::new())));
    let malformed = format!("{{\"{CANARY_HEARD}\": {CANARY_HEARD}");
    let malformed = if streamed { format!("data: {malformed}\n\n") } else { malformed };
    push("malformed JSON", Wanted::Error(Malformed), ok(Body::Whole(malformed.into_bytes())));
    let deep = "[".repeat(200_000);
    let deep = if streamed { format!("data: {deep}\n\n") } else { deep };
    push("deep JSON", Wanted::Error(Malformed), ok(Body::Whole(deep.into_bytes())));
    let stranger = format!("{{\"hello\":\"{CANARY_HEARD}\"}}");
    if !streamed {
        push("another object", Wanted::Error(Malformed), ok(Body::Whole(stranger.into_bytes())));
    }
    let coded = vec![("content-type", kind.to_owned()), ("content-encoding", "gzip".to_owned())];
    let packed = Reply { status: 200, headers: coded, body: Body::Whole(vec![0x1f, 0x8b, 8, 0]) };
    push("compressed body", Wanted::Error(Malformed), Does::Replies(packed));

    let too_large = Wanted::Error(TooLarge { limit: MOST_BYTES });
    let flood = |piece: Vec<u8>, announced| ok(Body::Flood { piece, bytes: FLOOD, announced });
    push("50 MB answer, announced", too_large, flood(vec![b'x'; 65_536], true));
    push("50 MB answer", too_large, flood(vec![b' '; 65_536], false));
    if streamed {
        push("50 MB answer of good events", too_large, flood(speaker.endless_piece().repeat(500), false));
        push("50 MB answer in one line", too_large, flood(b"x".repeat(65_536), false));
    }

    push("302 to another host", Wanted::Error(Status(302)), Does::Redirects(302));
    push("307 to another host", Wanted::Error(Status(307)), Does::Redirects(307));
    push("connection refused", Wanted::Error(Network), Does::IsAway);
    cases
}

impl FaultCase {
    /// Starts what the case needs.
    ///
    /// # Errors
    /// When no port can be had.
    pub fn start(&self) -> io::Result<Played> {
        let (server, elsewhere) = match &self.does {
            Does::Replies(reply) => (Some(Loopback::start(reply.clone())?), None),
            Does::IsAway => (None, None),
            Does::Redirects(status) => {
                let body = Body::Whole(Vec::new());
                let elsewhere =
                    Loopback::start(Reply { status: 200, headers: Vec::new(), body: body.clone() })?;
                // Another host, as far as names go.
                let address = elsewhere.base_url().replace("127.0.0.1", "localhost");
                let headers = vec![("location", format!("{address}/v1/{CANARY_HEARD}"))];
                (Some(Loopback::start(Reply { status: *status, headers, body })?), Some(elsewhere))
            }
        };
        let base_url = match &server {
            Some(server) => server.base_url(),
            None => nobody()?,
        };
        let model = client(self.speaker, &base_url, self.answers)?;
        Ok(Played { server, elsewhere, model })
    }

    /// The case in words.
    #[must_use]
    pub fn title(&self) -> String {
        let mode = if self.answers == AnswerMode::Streamed { "events" } else { "one piece" };
        format!("{}, {mode}: {}", self.speaker.name(), self.name)
    }

    /// Whether its point is the size of an answer.
    #[must_use]
    pub fn is_flood(&self) -> bool {
        matches!(&self.does, Does::Replies(Reply { body: Body::Flood { .. }, .. }))
    }
}

impl Wanted {
    /// How an outcome differs; `None` when it is the wanted one.
    pub(super) fn mismatch(self, outcome: &Result<ModelAnswer, ModelCallError>) -> Option<String> {
        let (kind, retry_after) = match (self, outcome) {
            (Self::Answer(finish), Ok(answer)) => return answer_mismatch(finish, answer),
            (Self::Answer(_), Err(error)) => return Some(format!("no answer: {error}")),
            (Self::Error(_) | Self::ErrorWithWait(..), Ok(answer)) => {
                return Some(format!("an answer that ended with {:?}", answer.finish));
            }
            (Self::Error(kind), Err(_)) => (kind, None),
            (Self::ErrorWithWait(kind, wait), Err(_)) => (kind, Some(wait)),
        };
        let wanted = ModelCallError { kind, retry_after };
        let got = outcome.as_ref().err().copied();
        (got != Some(wanted)).then(|| format!("{got:?} instead of {wanted:?}"))
    }
}

/// The content is right too, and usage is told apart.
fn answer_mismatch(finish: FinishReason, answer: &ModelAnswer) -> Option<String> {
    if answer.finish != finish {
        return Some(format!("it ended with {:?} instead of {finish:?}", answer.finish));
    }
    let content_is_right = match (finish, &*answer.blocks) {
        (FinishReason::Stop | FinishReason::Length, [Block::Text { text }]) => {
            text.as_str() == format!("Hello {CANARY_HEARD}")
        }
        (FinishReason::Refused, [Block::Refusal { text }]) => !text.is_empty(),
        (FinishReason::ToolCalls, [Block::ToolUse(call)]) => {
            call.id == "call_1"
                && call.name == "run"
                && call.input.as_ref().is_some_and(|input| input.as_str() == "{\"a\":1}")
        }
        _ => false,
    };
    if !content_is_right {
        return Some("the content is not what was said".to_owned());
    }
    let told =
        Usage { input: TokenCount(7), output: TokenCount(5), cache_read: TokenCount(4), ..Usage::default() };
    // Some refusals come without figures.
    let usage_is_right = answer.usage.is_none_or(|usage| usage == told);
    let must_tell = finish == FinishReason::Stop && answer.usage.is_none();
    (!usage_is_right || must_tell).then(|| format!("usage is {:?}", answer.usage))
}
