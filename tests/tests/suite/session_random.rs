//! Random lives of a session: whatever happens, what is written is what is live, and nothing is lost.

use std::sync::Arc;
use std::time::Duration;

use epitome_loop::{ContextMeasurement, Message, ModelKey, Request, SharedText, TokenCount, Usage};
use epitome_loopruntime::check_retained_history;
use epitome_loopruntime::decision::Boundary;
use epitome_sessionruntime::journal::restore;
use epitome_sessionruntime::{AdmitError, Admitted, RequestFrame, Session, SessionError};
use epitome_tests::session_scene::{SessionScene, Treatment, WorkAct, count, turn};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Append(u64),
    Late(u64),
    /// A turn whose first answer comes with what its provider reported: so many percent of our count, and so many
    /// tokens beside it.
    Reported(u64, u64, u64),
    Admit(bool),
    Compact(bool),
    CompactAside,
    Undo,
    Redo,
    To(u64),
    Interrupt,
    Boundary,
    Wait(u64),
    Reopen,
    Rebind(u64),
    Work(WorkAct),
}

fn step() -> impl Strategy<Value = Step> {
    let act = prop_oneof![
        4 => Just(WorkAct::Answers),
        2 => (0_u64..40).prop_map(|millis| WorkAct::AnswersAfter(Duration::from_millis(millis))),
        1 => Just(WorkAct::Fails),
        1 => Just(WorkAct::Hangs),
        1 => Just(WorkAct::Panics),
        1 => Just(WorkAct::Says("<conversation_summary/>".to_owned())),
    ];
    prop_oneof![
        8 => (20_u64..900).prop_map(Step::Append),
        2 => (20_u64..500).prop_map(Step::Late),
        4 => (20_u64..600, 40_u64..340, 0_u64..1_500).prop_map(|(tokens, percent, beside)| Step::Reported(tokens, percent, beside)),
        6 => any::<bool>().prop_map(Step::Admit),
        2 => any::<bool>().prop_map(Step::Compact),
        2 => Just(Step::CompactAside),
        2 => Just(Step::Undo),
        2 => Just(Step::Redo),
        1 => (0_u64..4).prop_map(Step::To),
        2 => Just(Step::Interrupt),
        1 => Just(Step::Boundary),
        3 => (1_u64..60).prop_map(Step::Wait),
        1 => Just(Step::Reopen),
        1 => prop_oneof![Just(3_000_u64), Just(4_000), Just(8_000)].prop_map(Step::Rebind),
        3 => act.prop_map(Step::Work),
    ]
}

/// A life, and what was appended in it.
struct Life {
    scene: SessionScene,
    session: Session,
    turns: u64,
    appended: Vec<Message>,
    aside: Vec<tokio::task::JoinHandle<Result<(), SessionError>>>,
}

impl Life {
    async fn take(&mut self, step: Step) {
        match step {
            Step::Append(tokens) => {
                let messages = self.next_turn(tokens);
                self.session.append(messages).await.unwrap();
            }
            Step::Late(tokens) => {
                let (session, messages) = (self.session.clone(), self.next_turn(tokens));
                self.aside.push(tokio::spawn(async move { session.append(messages).await.map(drop) }));
                // It is in front of whatever comes next.
                tokio::task::yield_now().await;
            }
            Step::Reported(tokens, percent, beside) => {
                let mut messages = self.next_turn(tokens);
                // Behind the question, before the answer.
                let asked: Vec<Message> =
                    self.session.messages().iter().chain(messages.first()).cloned().collect();
                let usage = Usage {
                    input: TokenCount(counted(&asked) * percent / 100 + beside),
                    output: TokenCount(20),
                    ..Usage::default()
                };
                if let Some(Message::Assistant { usage: reported, .. }) = messages.get_mut(1) {
                    *reported = Some(usage);
                }
                let from = self.appended.len() - messages.len();
                self.appended.splice(from.., messages.iter().cloned());
                self.session.append(messages).await.unwrap();
            }
            Step::Admit(with_tail) => {
                let runtime_tail = with_tail.then(|| Message::user("It is noon."));
                let frame = RequestFrame { runtime_tail, ..RequestFrame::default() };
                let before = self.session.messages();
                let commits = self.session.state().in_force();
                match self.session.admit(frame.clone()).await {
                    Ok(admitted) => {
                        if self.aside.is_empty() {
                            self.is_on_one_scale(&admitted, &before, commits, &frame).await;
                        }
                        let tail = usize::from(with_tail);
                        let conversation = &admitted.messages[..admitted.messages.len() - tail];
                        assert_eq!(check_retained_history(conversation), Ok(()));
                    }
                    Err(AdmitError::ContextLimit { measurement, .. }) => {
                        assert!(measurement.input_tokens >= measurement.input_limit);
                    }
                    Err(AdmitError::Empty) => assert!(self.session.messages().is_empty()),
                    Err(AdmitError::NotAdmitted(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            Step::Compact(instructed) => {
                let before = self.session.messages();
                let text = instructed.then(|| SharedText::from("Mind it."));
                if self.session.compact(text).await.is_err() && self.aside.is_empty() {
                    assert_eq!(self.session.messages(), before);
                }
            }
            Step::CompactAside => {
                let session = self.session.clone();
                self.aside.push(tokio::spawn(async move {
                    let _ = session.compact(None).await;
                    Ok(())
                }));
                tokio::task::yield_now().await;
            }
            Step::Undo => allowed(self.session.undo().await),
            Step::Redo => allowed(self.session.redo().await),
            Step::To(in_force) => allowed(self.session.rewind_to(in_force).await),
            Step::Interrupt => self.session.interrupt().unwrap(),
            Step::Boundary => self.session.boundary(Boundary::Step).await.unwrap(),
            Step::Wait(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
            Step::Reopen => {
                self.settle().await;
                let messages = self.session.messages();
                self.session.shut_down().await;
                self.session = self.scene.open().await.unwrap();
                assert_eq!(self.session.messages(), messages);
            }
            Step::Rebind(window) => {
                self.scene.window = window;
                self.session.rebind(&self.scene.bound(), self.scene.loop_ports()).unwrap();
            }
            Step::Work(act) => self.scene.worker.play([act]),
        }
    }

    /// A compaction is judged by two counts that are made in one way, and what was measured is measured again.
    async fn is_on_one_scale(
        &self,
        admitted: &Admitted,
        before: &[Message],
        commits: u64,
        frame: &RequestFrame,
    ) {
        let size = |measured: &ContextMeasurement| measured.input_tokens.get();
        let once = self.session.state().in_force() == commits + 1;
        if let Some(report) = admitted.compacted.as_ref().filter(|_| once) {
            let factor = self.session.calibration().map_or(10_000, |known| u64::from(known.factor.get()));
            let shrunk = counted(before) - counted(&self.session.messages());
            let told = size(&report.before) - size(&report.after);
            assert!(told.abs_diff(shrunk * factor / 10_000) <= 3, "{told} for {shrunk} at {factor}");
        }
        let (level, first) = (admitted.level, admitted.measurement.as_ref().map(size));
        if let Ok(again) = self.session.admit(frame.clone()).await
            && again.compacted.is_none()
        {
            assert_eq!((again.level, again.measurement.as_ref().map(size)), (level, first));
        }
    }

    fn next_turn(&mut self, tokens: u64) -> Vec<Message> {
        let messages = turn(self.turns, tokens);
        self.turns += 1;
        self.appended.extend(messages.iter().cloned());
        messages
    }

    /// Waits for everything that goes on.
    async fn settle(&mut self) {
        self.session.boundary(Boundary::Turn).await.unwrap();
        for aside in std::mem::take(&mut self.aside) {
            aside.await.unwrap().unwrap();
        }
    }

    async fn is_whole(&self) {
        let trigger = self.scene.bound().compaction().unwrap().policy.trigger();
        let restored = restore(&*self.scene.journal, self.scene.id, trigger).await.unwrap();
        assert_eq!(restored.messages, self.appended, "all of it, once, in order");
        assert_eq!(restored.state, self.session.state());
        assert_eq!(restored.context_messages(&restored.state.context()), self.session.messages().to_vec());
        assert_eq!(restored.state.basis(), self.session.basis());
        assert_eq!(check_retained_history(&self.session.messages()), Ok(()));
    }
}

/// What the scripted counter says of a request with these messages alone.
fn counted(messages: &[Message]) -> u64 {
    let model = ModelKey::new("local", "scripted");
    let request =
        Request { model, tools: Arc::default(), messages: messages.into(), unseen_tokens: TokenCount(0) };
    count(&request).get()
}

fn allowed(rewound: Result<u64, SessionError>) {
    assert!(matches!(rewound, Ok(_) | Err(SessionError::NoSuchCompaction)), "{rewound:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 400, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_nothing_is_lost(
        steps in prop::collection::vec(step(), 1..60),
        automatic in prop::bool::weighted(0.8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let treatment = if automatic { Treatment::Automatic } else { Treatment::Manual };
            let scene = SessionScene { treatment, ..SessionScene::default() };
            let session = scene.open().await.unwrap();
            let mut life = Life { scene, session, turns: 0, appended: Vec::new(), aside: Vec::new() };
            for step in steps {
                life.take(step).await;
            }
            life.settle().await;
            // A rebind is written down with whatever comes next.
            life.take(Step::Append(20)).await;
            life.is_whole().await;
        });
    }
}
