//! Everything at once, on several threads: whatever happens to a run, it is finalized exactly once, and its
//! records are those of one run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use epitome_loop::{AttemptId, Cause, CauseKind, HustleSettings, HustleStage, Participation, RetryPolicy};
use epitome_sessionruntime::{
    AuditFailed, FinalizationFailed, HustleAudit, HustleController, HustleEvent, HustleOutcome, HustleRecord,
    HustleRequest, HustleValue, WorkFailure, WorkInput, WorkStage,
};
use tokio::runtime::{Builder, Handle};

use super::hustle_scene::*;

/// Numbers without order, from a seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// Keeps every record, and fails or panics by what the run's number says.
#[derive(Default)]
struct Log(Mutex<Vec<HustleRecord>>);

#[async_trait]
impl HustleAudit for Log {
    async fn record(&self, record: HustleRecord) -> Result<(), AuditFailed> {
        let mood = record.run.as_bytes()[14];
        self.0.lock().unwrap().push(record);
        match mood {
            0 => Err(AuditFailed),
            1 => panic!("a record that panics"),
            2 => {
                tokio::task::yield_now().await;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// The worker does what the first byte of its input says.
fn worker() -> Arc<dyn epitome_sessionruntime::HustleWorker> {
    scripted(|mut order| {
        Box::pin(async move {
            let WorkInput::Bytes(input) = order.input else { panic!("bytes were given") };
            match input[0] {
                0 => panic!("a worker that panics"),
                1 => std::future::pending().await,
                2 => {
                    order.end.ended().await;
                    answers(*b"late")
                }
                3 => {
                    let cause = Cause::new(CauseKind::Network);
                    Err(WorkFailure { stage: WorkStage::Inference, cause, diagnostic_bytes: 0, spent: None })
                }
                4 => {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    answers(*b"slow")
                }
                _ => answers(*b"fine"),
            }
        })
    })
}

/// How often the finalizer of each run was called.
type Calls = Arc<Mutex<BTreeMap<AttemptId, u64>>>;

fn ask(dice: &mut Dice, number: u64, calls: &Calls) -> HustleRequest {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&number.to_be_bytes());
    id[14] = u8::try_from(dice.below(12)).unwrap();
    id[15] = 1;
    let run = AttemptId::from_bytes(id);
    let name = if dice.below(2) == 0 { "blocking" } else { "background" };
    let calls = calls.clone();
    let (finish, check) = (dice.below(10), dice.below(10));
    let validator = move |_: &HustleValue| match check {
        0 => panic!("a validator that panics"),
        1 => Err(Cause::new(CauseKind::Other)),
        _ => Ok(()),
    };
    HustleRequest {
        run,
        validator: Some(Arc::new(validator)),
        finalizer: Box::new(move |outcome: HustleOutcome| {
            assert_eq!(outcome.run, run);
            *calls.lock().unwrap().entry(run).or_default() += 1;
            match finish {
                0 => panic!("a finalizer that panics"),
                1 => Err(FinalizationFailed),
                _ => Ok(()),
            }
        }),
        ..request(1, name, &[u8::try_from(dice.below(12)).unwrap()], &Desk::new(Manner::Works))
    }
}

async fn storm(seed: u64) {
    let mut dice = Dice(seed);
    let (log, calls) = (Arc::new(Log::default()), Calls::default());
    let define = |name, participation| HustleSettings {
        participation,
        // The shortest there is: some runs reach it before they begin.
        timeout: Duration::from_millis(3),
        retry: RetryPolicy::ClassifiedOnce,
        ..settings(name)
    };
    let hustles = [
        hustle(define("blocking", Participation::Blocking), worker()),
        hustle(define("background", Participation::Background), worker()),
    ];
    let controller =
        HustleController::new(Handle::current(), limits((2, 20), (3, 20)), hustles, log.clone()).unwrap();
    let (mut held, mut admitted, mut told) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..300 {
        let request = ask(&mut dice, number, &calls);
        let id = request.run;
        if let Ok(run) = controller.submit(request) {
            admitted.push(id);
            held.push(run);
        }
        if held.is_empty() {
            continue;
        }
        let at = usize::try_from(dice.below(held.len() as u64)).unwrap();
        match dice.below(8) {
            0 => held[at].cancel(),
            1 => drop(held.swap_remove(at)),
            2 | 3 => told.push(tokio::spawn(held.swap_remove(at).outcome())),
            4 => tokio::task::yield_now().await,
            5 => {
                let told = tokio::spawn(held.swap_remove(at).outcome());
                told.abort();
            }
            6 => drop(held.swap_remove(at).outcome().await),
            _ => {}
        }
    }
    controller.close().await;
    for told in told {
        told.await.unwrap();
    }
    assert_eq!((controller.owned(), controller.fault()), (0, None));
    assert!(admitted.len() > 45, "more than the lanes hold at once, so runs have followed one another");

    let calls = calls.lock().unwrap();
    assert_eq!(calls.keys().copied().collect::<Vec<_>>(), admitted, "seed {seed}");
    assert!(calls.values().all(|&calls| calls == 1), "seed {seed}");
    let mut events: BTreeMap<AttemptId, Vec<HustleEvent>> = BTreeMap::new();
    for record in log.0.lock().unwrap().drain(..) {
        events.entry(record.run).or_default().push(record.event);
    }
    assert!(events.keys().eq(&admitted), "seed {seed}: every run is recorded, and no other");
    for events in events.values() {
        check_records(events);
    }
}

/// A start at most, then what closes the run, then at most that it was not handed over.
fn check_records(events: &[HustleEvent]) {
    let mut rest = events.iter().peekable();
    rest.next_if(|event| matches!(event, HustleEvent::Started));
    if rest.next_if(|event| matches!(event, HustleEvent::Completed { .. })).is_some() {
        // Asked for after the completion was certainly not written.
        rest.next_if(|event| is_failed(event, |stage| stage == HustleStage::Terminal));
    } else {
        let closing = rest.next_if(|event| is_failed(event, |stage| stage < HustleStage::Terminal));
        assert!(closing.is_some(), "{events:?}");
    }
    rest.next_if(|event| is_failed(event, |stage| stage == HustleStage::Finalization));
    assert_eq!(rest.next(), None, "{events:?}");
}

fn is_failed(event: &HustleEvent, stage: impl Fn(HustleStage) -> bool) -> bool {
    matches!(event, HustleEvent::Failed(failed) if stage(failed.stage()))
}

#[test]
fn whatever_happens_every_run_is_finalized_exactly_once() {
    let runtime = Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap();
    for seed in 0..20 {
        runtime.block_on(storm(seed));
    }
}
