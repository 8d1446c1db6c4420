//! Every path through a run ends in exactly one call of its finalizer, with the records that belong to it.

use std::future::pending;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use epitome_loop::{Cause, CauseKind, HustleReason, HustleStage};
use epitome_sessionruntime::{
    AdmissionError, HustleFault, HustleRequest, HustleValidator, HustleValue, HustleWorker, InputForm,
    StopStyle, WorkFailure, WorkStage, WorkerTraits,
};

use super::hustle_scene::*;

/// What the worker does.
#[derive(Clone, Copy, PartialEq)]
enum Worker {
    Answers,
    Fails(WorkStage),
    AnswersTooMuch,
    Hangs,
    Panics,
    PanicsBeforeItWaits,
    PanicsWhenDropped,
    /// It is told to stop, and stops a little later.
    StopsLate,
    /// It is told to stop, and does not.
    IgnoresTheEnd,
}

/// What is done from outside.
#[derive(Clone, Copy)]
enum Act {
    Nothing,
    CancelWhileItWaits,
    CancelWhileItRuns,
    DropTheRun,
    DropItsOutcome,
    Close,
    DropTheController,
}

struct Path {
    name: &'static str,
    worker: Worker,
    validator: Manner,
    records: [Manner; 3],
    desk: Manner,
    act: Act,
    /// What whoever waits is told.
    told: &'static str,
    /// What the finalizer is told; empty where that is the same.
    finalized: &'static str,
    written: &'static [&'static str],
    is_poisoned: bool,
}

const PLAIN: Path = Path {
    name: "success",
    worker: Worker::Answers,
    validator: Manner::Works,
    records: [Manner::Works; 3],
    desk: Manner::Works,
    act: Act::Nothing,
    told: "ok",
    finalized: "",
    written: &["started", "completed"],
    is_poisoned: false,
};

use Manner::{Fails, Hangs, Panics, Works};

const PATHS: &[Path] = &[
    PLAIN,
    Path {
        name: "worker finds nothing to ask",
        worker: Worker::Fails(WorkStage::Resolution),
        told: "model_resolution model_resolution",
        written: &["started", "model_resolution model_resolution"],
        ..PLAIN
    },
    Path {
        name: "worker error",
        worker: Worker::Fails(WorkStage::Inference),
        told: "inference inference",
        written: &["started", "inference inference"],
        ..PLAIN
    },
    Path {
        name: "invalid output, says the worker",
        worker: Worker::Fails(WorkStage::Output),
        told: "output invalid_output",
        written: &["started", "output invalid_output"],
        ..PLAIN
    },
    Path {
        name: "too much output",
        worker: Worker::AnswersTooMuch,
        told: "output invalid_output",
        written: &["started", "output invalid_output"],
        ..PLAIN
    },
    Path {
        name: "invalid output, says the validator",
        validator: Fails,
        told: "output invalid_output",
        written: &["started", "output invalid_output"],
        ..PLAIN
    },
    Path {
        name: "timeout",
        worker: Worker::Hangs,
        told: "inference timeout",
        written: &["started", "inference timeout"],
        ..PLAIN
    },
    Path {
        name: "timeout, and the worker stops within the drain time",
        worker: Worker::StopsLate,
        told: "inference timeout",
        written: &["started", "inference timeout"],
        ..PLAIN
    },
    Path {
        name: "timeout, and the drain time is over",
        worker: Worker::IgnoresTheEnd,
        told: "inference timeout",
        written: &["started", "inference timeout"],
        is_poisoned: true,
        ..PLAIN
    },
    Path {
        name: "cancel before start",
        act: Act::CancelWhileItWaits,
        told: "queue canceled",
        written: &["queue canceled"],
        ..PLAIN
    },
    Path {
        name: "cancel in run",
        worker: Worker::Hangs,
        act: Act::CancelWhileItRuns,
        told: "inference canceled",
        written: &["started", "inference canceled"],
        ..PLAIN
    },
    Path {
        name: "cancel in run, and the drain time is over",
        worker: Worker::IgnoresTheEnd,
        act: Act::CancelWhileItRuns,
        told: "inference canceled",
        written: &["started", "inference canceled"],
        is_poisoned: true,
        ..PLAIN
    },
    Path {
        name: "the run is dropped",
        worker: Worker::Hangs,
        act: Act::DropTheRun,
        told: "inference canceled",
        written: &["started", "inference canceled"],
        ..PLAIN
    },
    Path {
        name: "the future of the caller is dropped",
        worker: Worker::Hangs,
        act: Act::DropItsOutcome,
        told: "inference canceled",
        written: &["started", "inference canceled"],
        ..PLAIN
    },
    Path {
        name: "close",
        worker: Worker::Hangs,
        act: Act::Close,
        told: "inference canceled",
        written: &["started", "inference canceled"],
        ..PLAIN
    },
    Path {
        name: "the controller is dropped",
        worker: Worker::Hangs,
        act: Act::DropTheController,
        told: "inference canceled",
        written: &["started", "inference canceled"],
        ..PLAIN
    },
    Path {
        name: "panic in the worker",
        worker: Worker::Panics,
        told: "inference internal",
        written: &["started", "inference internal"],
        ..PLAIN
    },
    Path {
        name: "panic in the worker before its first wait",
        worker: Worker::PanicsBeforeItWaits,
        told: "inference internal",
        written: &["started", "inference internal"],
        ..PLAIN
    },
    Path {
        name: "panic in the worker when it is dropped",
        worker: Worker::PanicsWhenDropped,
        act: Act::CancelWhileItRuns,
        told: "inference canceled",
        written: &["started", "inference canceled"],
        ..PLAIN
    },
    Path {
        name: "panic in the validator",
        validator: Panics,
        told: "output internal",
        written: &["started", "output internal"],
        ..PLAIN
    },
    Path {
        name: "finalizer fails",
        desk: Fails,
        told: "finalization finalization",
        finalized: "ok",
        written: &["started", "completed", "finalization finalization"],
        ..PLAIN
    },
    Path {
        name: "panic in the finalizer",
        desk: Panics,
        told: "finalization internal",
        finalized: "ok",
        written: &["started", "completed", "finalization internal"],
        ..PLAIN
    },
    Path {
        name: "finalizer hangs",
        desk: Hangs,
        told: "finalization timeout",
        finalized: "ok",
        written: &["started", "completed", "finalization timeout"],
        ..PLAIN
    },
    Path {
        name: "a failed run stays failed for its first reason when the finalizer fails too",
        worker: Worker::Panics,
        desk: Fails,
        told: "inference internal",
        written: &["started", "inference internal", "finalization finalization"],
        ..PLAIN
    },
    Path {
        name: "the start is not recorded",
        records: [Fails, Works, Works],
        told: "queue internal",
        written: &["started", "queue internal"],
        ..PLAIN
    },
    Path {
        name: "panic while the start is recorded",
        records: [Panics, Works, Works],
        told: "queue internal",
        written: &["started", "queue internal"],
        ..PLAIN
    },
    Path {
        name: "recording the start hangs",
        records: [Hangs, Works, Works],
        told: "queue timeout",
        written: &["started", "queue timeout"],
        ..PLAIN
    },
    Path {
        name: "the completion is not recorded",
        records: [Works, Fails, Works],
        told: "terminal terminal",
        written: &["started", "completed", "terminal terminal"],
        ..PLAIN
    },
    Path {
        name: "panic while the completion is recorded",
        records: [Works, Panics, Works],
        told: "terminal internal",
        written: &["started", "completed"],
        ..PLAIN
    },
    Path {
        name: "recording the completion hangs, so it may have been written",
        records: [Works, Hangs, Works],
        told: "terminal timeout",
        written: &["started", "completed"],
        ..PLAIN
    },
    Path {
        name: "nothing can be recorded",
        records: [Hangs, Hangs, Hangs],
        told: "queue timeout",
        written: &["started", "queue timeout"],
        ..PLAIN
    },
    Path {
        name: "the failure is not recorded",
        worker: Worker::Fails(WorkStage::Inference),
        records: [Works, Works, Panics],
        told: "inference inference",
        written: &["started", "inference inference"],
        ..PLAIN
    },
    Path {
        name: "everything that can fail at the end fails",
        records: [Works, Fails, Hangs],
        desk: Panics,
        told: "terminal terminal",
        written: &["started", "completed", "terminal terminal", "finalization internal"],
        ..PLAIN
    },
];

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("canary-7291");
    }
}

fn worker(kind: Worker) -> Arc<dyn HustleWorker> {
    let stop = match kind {
        Worker::StopsLate | Worker::IgnoresTheEnd => StopStyle::Watches,
        _ => StopStyle::Dropped,
    };
    let script = move |mut order: epitome_sessionruntime::WorkOrder| -> Work {
        assert!(kind != Worker::PanicsBeforeItWaits, "canary-7291");
        Box::pin(async move {
            match kind {
                Worker::Answers => answers(*b"canary-7291"),
                Worker::AnswersTooMuch => answers(vec![b'x'; (1 << 16) + 1]),
                Worker::Fails(stage) => Err(WorkFailure {
                    stage,
                    cause: Cause::new(CauseKind::Other),
                    diagnostic_bytes: 3,
                    spent: None,
                }),
                Worker::Panics => panic!("canary-7291"),
                Worker::PanicsWhenDropped => {
                    let _bomb = Bomb;
                    pending().await
                }
                Worker::StopsLate => {
                    order.end.ended().await;
                    assert!(order.end.has_ended());
                    tokio::time::sleep(Duration::from_secs(2)).await;
                    answers(*b"too late")
                }
                _ => pending().await,
            }
        })
    };
    Arc::new(Scripted { traits: WorkerTraits { input: InputForm::Wire, stop }, script })
}

fn validator(manner: Manner) -> Arc<dyn HustleValidator> {
    Arc::new(move |_: &HustleValue| match manner {
        Manner::Works => Ok(()),
        Manner::Panics => panic!("canary-7291"),
        _ => Err(Cause::new(CauseKind::Other)),
    })
}

async fn walk(path: &Path) {
    let [on_started, on_completed, on_failed] = path.records;
    let records = Arc::new(Records { on_started, on_completed, on_failed, ..Records::working() });
    let desk = Desk::new(path.desk);
    let hustles =
        [hustle(settings("h"), worker(path.worker)), hustle(settings("before"), worker(Worker::Hangs))];
    let others = Arc::new(Records::working());
    let controller = controller(limits((1, 2), (1, 0)), hustles, &records);
    let asked = |desk: &Desk| HustleRequest {
        validator: Some(validator(path.validator)),
        ..request(1, "h", b"canary-7291", desk)
    };
    let settle = || tokio::time::sleep(Duration::from_millis(1));
    let told = match path.act {
        Act::CancelWhileItWaits => {
            let before = Desk::new(Manner::Works);
            let occupant = controller.submit(request(2, "before", b"x", &before)).unwrap();
            settle().await;
            records.kept.lock().unwrap().clear();
            let run = controller.submit(asked(&desk)).unwrap();
            settle().await;
            run.cancel();
            let told = run.outcome().await;
            assert_eq!(path.written, records.words(), "{}", path.name);
            occupant.cancel();
            occupant.outcome().await;
            records.kept.lock().unwrap().truncate(1);
            Some(told)
        }
        act => {
            let run = controller.submit(asked(&desk)).unwrap();
            settle().await;
            match act {
                Act::DropTheRun => drop(run),
                Act::DropItsOutcome => {
                    assert!(tokio::time::timeout(Duration::from_millis(1), run.outcome()).await.is_err());
                }
                Act::Close => controller.close().await,
                Act::CancelWhileItRuns => {
                    run.cancel();
                    run.cancel();
                    let told = run.outcome().await;
                    return check(path, Some(told), &desk, &records, &controller);
                }
                Act::DropTheController => {
                    let other = controller.clone();
                    drop(controller);
                    drop(other);
                    let told = run.outcome().await;
                    let fresh = super::hustle_scene::controller(limits((1, 0), (1, 0)), [], &others);
                    return check(path, Some(told), &desk, &records, &fresh);
                }
                _ => {
                    let told = run.outcome().await;
                    return check(path, Some(told), &desk, &records, &controller);
                }
            }
            None
        }
    };
    idle(&controller).await;
    check(path, told, &desk, &records, &controller);
}

fn check(
    path: &Path,
    told: Option<epitome_sessionruntime::HustleOutcome>,
    desk: &Desk,
    records: &Records,
    controller: &epitome_sessionruntime::HustleController,
) {
    let name = path.name;
    assert_eq!(controller.owned(), 0, "{name}");
    let outcomes = desk.outcomes.lock().unwrap();
    assert_eq!(outcomes.len(), 1, "{name}: the finalizer is called exactly once");
    let finalized = if path.finalized.is_empty() { path.told } else { path.finalized };
    assert_eq!(words(&outcomes[0].result), finalized, "{name}");
    if let Some(told) = &told {
        assert_eq!(words(&told.result), path.told, "{name}");
    }
    assert_eq!(records.words(), path.written, "{name}");
    assert_eq!(controller.fault().is_some(), path.is_poisoned, "{name}");
    // Neither an input, nor an answer, nor what a panic said is in anything that is printed.
    assert!(!format!("{told:?} {:?}", outcomes[0]).contains("canary"), "{name}");
}

#[test]
fn every_path_ends_in_one_call_of_the_finalizer() {
    for path in PATHS {
        paused().block_on(walk(path));
    }
}

#[test]
fn a_poisoned_controller_admits_nothing_starts_nothing_and_lets_finish_what_runs() {
    paused().block_on(async {
        let (desk, records) = (Desk::new(Works), Arc::new(Records::working()));
        let slow = scripted(|_| {
            Box::pin(async {
                tokio::time::sleep(Duration::from_secs(10)).await;
                answers(*b"fine")
            })
        });
        let hustles =
            [hustle(settings("stuck"), worker(Worker::IgnoresTheEnd)), hustle(settings("slow"), slow)];
        let controller = controller(limits((2, 1), (1, 0)), hustles, &records);
        let stuck = controller.submit(request(1, "stuck", b"x", &desk)).unwrap();
        let slow = controller.submit(request(2, "slow", b"x", &desk)).unwrap();
        let waiting = controller.submit(request(3, "slow", b"x", &desk)).unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        stuck.cancel();
        assert_eq!(controller.fault(), None, "the drain time is not over");
        assert_eq!(words(&stuck.outcome().await.result), "inference canceled");
        assert_eq!(controller.fault(), Some(HustleFault::WorkerIgnoredTheEnd));
        let refused = controller.submit(request(4, "slow", b"x", &desk)).unwrap_err();
        assert_eq!(refused, AdmissionError::Poisoned);
        assert_eq!(words(&waiting.outcome().await.result), "queue rejected");
        assert_eq!(words(&slow.outcome().await.result), "ok");
        controller.close().await;
        let refused = controller.submit(request(4, "slow", b"x", &desk)).unwrap_err();
        assert_eq!(refused, AdmissionError::Poisoned, "the fault says more than that it is closed too");
        assert_eq!(desk.runs().len(), 3);
    });
}

/// A worker that blocks its thread cannot be dropped: it is found out by the drain time as well. The times are
/// real here, and nothing depends on how long they are.
#[test]
fn a_worker_that_blocks_its_thread_poisons_and_the_process_stays_up() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (release, held) = mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let (begun, has_begun) = mpsc::channel::<()>();
    runtime.block_on(async {
        let (desk, records) = (Desk::new(Works), Arc::new(Records::working()));
        let blocks = scripted(move |_| {
            // Heard once.
            let _ = begun.send(());
            // Returns when the test lets go of the other end.
            let _ = held.lock().unwrap().recv();
            Box::pin(async { answers(*b"late") })
        });
        let limits = drained_in(Duration::from_millis(5));
        let controller = controller(limits, [hustle(settings("h"), blocks)], &records);
        let run = controller.submit(request(1, "h", b"x", &desk)).unwrap();
        tokio::task::spawn_blocking(move || has_begun.recv().unwrap()).await.unwrap();
        run.cancel();
        assert_eq!(words(&run.outcome().await.result), "inference canceled");
        assert_eq!(controller.fault(), Some(HustleFault::WorkerIgnoredTheEnd));
        assert_eq!(desk.runs(), [1]);
        drop(release);
        recovered(&controller).await;
        assert_eq!(
            words(&controller.submit(request(2, "h", b"x", &desk)).unwrap().outcome().await.result),
            "ok"
        );
    });
}

/// Each worker that went on counts, and one that panics at last has come back as well.
#[test]
fn a_controller_admits_again_when_the_last_worker_has_come_back() {
    paused().block_on(async {
        let (desk, records) = (Desk::new(Works), Arc::new(Records::working()));
        let goes_on = |seconds, panics: bool| {
            let traits = WorkerTraits { input: InputForm::Wire, stop: StopStyle::Watches };
            let script = move |_| -> Work {
                Box::pin(async move {
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    assert!(!panics, "canary-7291");
                    answers(*b"late")
                })
            };
            Arc::new(Scripted { traits, script })
        };
        let hustles =
            [hustle(settings("ten"), goes_on(10, true)), hustle(settings("twenty"), goes_on(20, false))];
        let controller = controller(limits((2, 4), (1, 0)), hustles, &records);
        let begun = tokio::time::Instant::now();
        let runs = [(1, "ten"), (2, "twenty")]
            .map(|(number, name)| controller.submit(request(number, name, b"x", &desk)).unwrap());
        let waiting = controller.submit(request(3, "ten", b"x", &desk)).unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        runs.iter().for_each(epitome_sessionruntime::HustleRun::cancel);
        for run in runs {
            assert_eq!(words(&run.outcome().await.result), "inference canceled");
        }
        assert_eq!(words(&waiting.outcome().await.result), "queue rejected");
        tokio::time::sleep_until(begun + Duration::from_secs(15)).await;
        let refused = controller.submit(request(4, "ten", b"x", &desk)).unwrap_err();
        assert_eq!(refused, AdmissionError::Poisoned, "one has come back, and the other one has not");
        tokio::time::sleep_until(begun + Duration::from_secs(21)).await;
        assert_eq!(controller.fault(), None);
        assert_eq!(controller.last_fault(), Some(HustleFault::WorkerIgnoredTheEnd));
        let again = controller.submit(request(5, "twenty", b"x", &desk)).unwrap();
        assert_eq!(words(&again.outcome().await.result), "ok");
        assert_eq!(desk.runs().len(), 4, "each run was finalized once");
        let mut faults = records.faults.lock().unwrap().clone();
        assert_eq!(faults.split_off(2), [(1, false), (2, false)]);
        faults.sort_unstable();
        assert_eq!(faults, [(1, true), (2, true)]);
    });
}

/// A worker that waits for ever is let go when the controller closes, whichever comes first.
#[test]
fn closing_leaves_no_worker_behind() {
    for closes_first in [true, false] {
        paused().block_on(async {
            let (desk, records) = (Desk::new(Works), Arc::new(Records::working()));
            let alive = Arc::new(());
            let held = Arc::clone(&alive);
            let traits = WorkerTraits { input: InputForm::Wire, stop: StopStyle::Watches };
            let script = move |_| -> Work {
                let held = Arc::clone(&held);
                Box::pin(async move {
                    let _held = held;
                    std::future::pending().await
                })
            };
            let hustles = [hustle(settings("h"), Arc::new(Scripted { traits, script }))];
            let controller = controller(limits((1, 0), (1, 0)), hustles, &records);
            let run = controller.submit(request(1, "h", b"x", &desk)).unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
            if !closes_first {
                run.cancel();
                tokio::time::sleep(Duration::from_secs(10)).await;
                assert_eq!(controller.fault(), Some(HustleFault::WorkerIgnoredTheEnd));
                assert_eq!(Arc::strong_count(&alive), 3, "it may still have something to put in order");
            }
            controller.close().await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(Arc::strong_count(&alive), 2);
            assert_eq!(controller.fault(), Some(HustleFault::WorkerIgnoredTheEnd));
            assert_eq!(words(&run.outcome().await.result), "inference canceled");
        });
    }
}

#[test]
fn a_cancellation_that_comes_while_an_output_is_judged_counts() {
    paused().block_on(async {
        let (desk, records) = (Desk::new(Works), Arc::new(Records::working()));
        let controller =
            controller(limits((1, 0), (1, 0)), [hustle(settings("h"), worker(Worker::Answers))], &records);
        let cancel: Arc<std::sync::OnceLock<epitome_sessionruntime::HustleController>> = Arc::default();
        let by_validator = cancel.clone();
        let request = HustleRequest {
            validator: Some(Arc::new(move |_: &HustleValue| {
                drop(by_validator.get().unwrap().close());
                Ok(())
            })),
            ..request(1, "h", b"x", &desk)
        };
        assert!(cancel.set(controller.clone()).is_ok());
        let outcome = controller.submit(request).unwrap().outcome().await;
        let failure = outcome.result.unwrap_err();
        assert_eq!((failure.stage, failure.reason), (HustleStage::Output, HustleReason::Canceled));
        assert_eq!(records.words(), ["started", "output canceled"]);
    });
}
