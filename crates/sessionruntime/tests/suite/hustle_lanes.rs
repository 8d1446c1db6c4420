//! Lanes: order, capacity, what is refused, and what closing and dropping do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use epitome_loop::{
    ByteLimits, HustleSettings, MAX_QUEUED, Message, Participation, SummaryDraft, SummaryRequest,
    SummarySections,
};
use epitome_sessionruntime::{
    AdmissionError, HustleController, HustleRun, HustleSetupError, SummarizerWorker, WorkInput,
};
use tokio::sync::Semaphore;

use super::hustle_scene::*;

/// Workers that note who begins, and go on only when a test lets them.
struct Gate {
    begun: Mutex<Vec<u8>>,
    passes: BTreeMap<u8, Semaphore>,
}

impl Gate {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            begun: Mutex::default(),
            passes: (0..=u8::MAX).map(|number| (number, Semaphore::new(0))).collect(),
        })
    }

    fn worker(self: &Arc<Self>) -> Arc<dyn epitome_sessionruntime::HustleWorker> {
        let gate = self.clone();
        scripted(move |order| {
            let gate = gate.clone();
            Box::pin(async move {
                let WorkInput::Bytes(input) = order.input else { panic!("bytes were given") };
                gate.begun.lock().unwrap().push(input[0]);
                let _pass = gate.passes[&input[0]].acquire().await.unwrap();
                answers(*b"done")
            })
        })
    }

    fn open(&self, number: u8) {
        self.passes[&number].add_permits(1);
    }

    fn begun(&self) -> Vec<u8> {
        self.begun.lock().unwrap().clone()
    }
}

/// Lets every task go as far as it can: the clock stands still until then.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

fn submit(controller: &HustleController, number: u8, desk: &Desk) -> Result<HustleRun, AdmissionError> {
    controller.submit(request(number, "h", &[number], desk))
}

#[test]
fn runs_begin_in_the_order_of_their_admission() {
    paused().block_on(async {
        let (gate, desk, records) = (Gate::new(), Desk::new(Manner::Works), Arc::new(Records::working()));
        let controller =
            controller(limits((2, 100), (1, 0)), [hustle(settings("h"), gate.worker())], &records);
        let runs: Vec<HustleRun> =
            (0..50).map(|number| submit(&controller, number, &desk).unwrap()).collect();
        settle().await;
        assert_eq!(gate.begun(), [0, 1]);
        // Whoever finishes, the next in line begins.
        for (finished, begun) in [(1, 2), (0, 3), (3, 4)] {
            gate.open(finished);
            settle().await;
            assert_eq!(gate.begun().last(), Some(&begun));
        }
        (0..50).for_each(|number| gate.open(number));
        for run in runs {
            assert!(run.outcome().await.result.is_ok());
        }
        assert_eq!(gate.begun(), (0..50).collect::<Vec<_>>());
        assert_eq!(desk.runs().len(), 50);
        assert_eq!(controller.owned(), 0);
    });
}

#[test]
fn a_lane_is_full_at_its_edge_and_has_room_again_when_a_run_is_over() {
    for (concurrent, queued) in [(1, 0), (1, 1), (3, 2)] {
        paused().block_on(async {
            let (gate, desk, records) = (Gate::new(), Desk::new(Manner::Works), Arc::new(Records::working()));
            let limits = limits((concurrent, queued), (1, 0));
            let controller = controller(limits, [hustle(settings("h"), gate.worker())], &records);
            let room = u8::try_from(concurrent + queued).unwrap();
            let mut runs: Vec<_> =
                (0..room).map(|number| submit(&controller, number, &desk).unwrap()).collect();
            assert_eq!(submit(&controller, 99, &desk).unwrap_err(), AdmissionError::Full);
            settle().await;
            assert_eq!(submit(&controller, 99, &desk).unwrap_err(), AdmissionError::Full);
            gate.open(0);
            assert!(runs.remove(0).outcome().await.result.is_ok());
            let last = submit(&controller, 100, &desk).unwrap();
            assert_eq!(submit(&controller, 99, &desk).unwrap_err(), AdmissionError::Full);
            (0..=100).for_each(|number| gate.open(number));
            assert!(last.outcome().await.result.is_ok());
            for run in runs {
                assert!(run.outcome().await.result.is_ok());
            }
            // What was refused was never owned: no finalizer, no record, no work.
            assert!(!desk.runs().contains(&99) && !gate.begun().contains(&99));
            assert_eq!(records.words().len(), 2 * (usize::from(room) + 1));
        });
    }
}

#[test]
fn lanes_do_not_take_each_others_places() {
    paused().block_on(async {
        let (gate, desk, records) = (Gate::new(), Desk::new(Manner::Works), Arc::new(Records::working()));
        let beside = HustleSettings { participation: Participation::Background, ..settings("beside") };
        let hustles = [hustle(settings("h"), gate.worker()), hustle(beside, gate.worker())];
        let controller = controller(limits((1, 0), (1, 0)), hustles, &records);
        let first = submit(&controller, 1, &desk).unwrap();
        let second = controller.submit(request(2, "beside", &[2], &desk)).unwrap();
        settle().await;
        assert_eq!(gate.begun(), [1, 2]);
        assert_eq!(submit(&controller, 3, &desk).unwrap_err(), AdmissionError::Full);
        // Nobody waits for a blocking run that is dropped; a background run goes on.
        drop((first, second));
        settle().await;
        assert_eq!((desk.runs(), controller.owned()), (vec![1], 1));
        gate.open(2);
        idle(&controller).await;
        assert_eq!(desk.runs(), [1, 2]);
        assert_eq!(records.words(), ["started", "started", "inference canceled", "completed"]);
    });
}

#[test]
fn who_gives_up_waiting_leaves_the_line_to_the_others() {
    paused().block_on(async {
        let (gate, desk, records) = (Gate::new(), Desk::new(Manner::Works), Arc::new(Records::working()));
        let controller = controller(limits((1, 3), (1, 0)), [hustle(settings("h"), gate.worker())], &records);
        let mut runs: Vec<_> = (0..4).map(|number| submit(&controller, number, &desk).unwrap()).collect();
        settle().await;
        let given_up = runs.remove(2);
        given_up.cancel();
        assert_eq!(words(&given_up.outcome().await.result), "queue canceled");
        assert!(submit(&controller, 9, &desk).is_ok(), "its place is free");
        (0..4).for_each(|number| gate.open(number));
        for run in runs {
            run.outcome().await;
        }
        assert_eq!(gate.begun(), [0, 1, 3], "the run with the number 9 was dropped while it waited");
    });
}

#[test]
fn refusals_are_typed_come_in_order_and_own_nothing() {
    paused().block_on(async {
        let (gate, desk, records) = (Gate::new(), Desk::new(Manner::Works), Arc::new(Records::working()));
        let small =
            |name| HustleSettings { limits: ByteLimits { input: 700, output: 700 }, ..settings(name) };
        let summarizer = SummarizerWorker::new(Arc::new(|_: &SummaryRequest| {
            Ok(SummaryDraft::from(SummarySections::default()))
        }));
        let hustles = [hustle(small("h"), gate.worker()), hustle(small("summaries"), Arc::new(summarizer))];
        let controller = controller(limits((1, 0), (1, 0)), hustles, &records);
        let refused = |request| controller.submit(request).unwrap_err();
        assert_eq!(refused(request(1, "other", b"x", &desk)), AdmissionError::UnknownDefinition);
        assert_eq!(refused(request(1, "h", b"", &desk)), AdmissionError::InvalidInput);
        assert_eq!(refused(request(1, "summaries", b"x", &desk)), AdmissionError::InvalidInput);
        let too_large = AdmissionError::InputTooLarge { limit: 700, size: 701 };
        assert_eq!(refused(request(1, "h", &[b'x'; 701], &desk)), too_large);
        let large = task(input(1, [Message::user("u".repeat(1_000))]));
        let AdmissionError::InputTooLarge { limit: 700, size } = refused(compaction("h", large, &desk))
        else {
            panic!("too large")
        };
        assert!(size > 1_000);
        // A tool result can be left out, so this one fits.
        let foldable =
            task(input(1, [Message::user("u"), Message::tool_result("c", "r".repeat(1_000), false)]));
        let run = controller.submit(compaction("h", foldable.clone(), &desk)).unwrap();
        assert_eq!(refused(compaction("h", foldable, &desk)), AdmissionError::Full);
        settle().await;
        run.cancel();
        run.outcome().await;
        assert_eq!(desk.runs(), [1]);
        let at_the_edge = controller.submit(request(1, "h", &[1; 700], &desk)).unwrap();
        at_the_edge.cancel();
        at_the_edge.outcome().await;
        controller.close().await;
        assert_eq!(refused(request(1, "h", b"x", &desk)), AdmissionError::Closed);
        assert_eq!(refused(request(1, "other", b"x", &desk)), AdmissionError::Closed);
        assert_eq!(desk.runs(), [1, 1]);
        assert_eq!(records.words(), ["started", "inference canceled", "queue canceled"]);
    });
}

#[test]
fn two_hustles_of_one_name_are_refused() {
    paused().block_on(async {
        let worker = || scripted(|_| Box::pin(async { answers(*b"x") }));
        let hustles = ["a", "b", "a"].map(|name| hustle(settings(name), worker()));
        let records = Arc::new(Records::working());
        let refused = HustleController::new(
            tokio::runtime::Handle::current(),
            limits((1, 0), (1, 0)),
            hustles,
            records,
        );
        assert_eq!(refused.err(), Some(HustleSetupError::DuplicateName { at: 2 }));
    });
}

#[test]
fn closing_ends_everything_in_both_lanes_and_waits_for_it() {
    paused().block_on(async {
        let (gate, desk, records) = (Gate::new(), Desk::new(Manner::Works), Arc::new(Records::working()));
        let beside = HustleSettings { participation: Participation::Background, ..settings("beside") };
        let hustles = [hustle(settings("h"), gate.worker()), hustle(beside, gate.worker())];
        let controller = controller(limits((1, 200), (1, 200)), hustles, &records);
        let runs: Vec<_> = (0..100).map(|number| submit(&controller, number, &desk).unwrap()).collect();
        for number in 100..200 {
            controller.submit(request(number, "beside", &[number], &desk)).unwrap();
        }
        settle().await;
        // Dropping the waiting does not take the closing back.
        drop(controller.close());
        assert_eq!(controller.owned(), 200);
        tokio::select! {
            biased;
            () = controller.close() => panic!("not yet"),
            () = std::future::ready(()) => {}
        }
        assert_eq!(submit(&controller, 9, &desk).unwrap_err(), AdmissionError::Closed);
        controller.close().await;
        let mut finalized = desk.runs();
        finalized.sort_unstable();
        assert_eq!(finalized, (0..200).collect::<Vec<_>>());
        for run in runs {
            assert!(run.outcome().await.result.is_err());
        }
        assert_eq!(gate.begun(), [0, 100]);
        assert_eq!(controller.fault(), None);
    });
}

#[test]
fn the_last_handle_takes_the_runs_with_it() {
    paused().block_on(async {
        let (gate, desk, records) = (Gate::new(), Desk::new(Manner::Works), Arc::new(Records::working()));
        let first = controller(limits((1, 1), (1, 0)), [hustle(settings("h"), gate.worker())], &records);
        let second = first.clone();
        let running = submit(&first, 1, &desk).unwrap();
        drop(first);
        settle().await;
        assert_eq!(gate.begun(), [1], "another handle is left");
        let waiting = submit(&second, 2, &desk).unwrap();
        drop(second);
        assert_eq!(words(&running.outcome().await.result), "inference canceled");
        assert_eq!(words(&waiting.outcome().await.result), "queue canceled");
        assert_eq!(desk.runs().len(), 2);
    });
}

#[test]
fn the_longest_queue_there_can_be_is_closed_and_nobody_is_forgotten() {
    paused().block_on(async {
        let (gate, desk, records) = (Gate::new(), Desk::new(Manner::Works), Arc::new(Records::working()));
        let hustles = [hustle(settings("h"), gate.worker())];
        let controller = controller(limits((1, MAX_QUEUED), (1, 0)), hustles, &records);
        let runs: Vec<_> = (0..=MAX_QUEUED).map(|_| submit(&controller, 7, &desk).unwrap()).collect();
        assert_eq!(submit(&controller, 7, &desk).unwrap_err(), AdmissionError::Full);
        settle().await;
        controller.close().await;
        assert_eq!(desk.runs().len(), runs.len());
        let queued = records.words().iter().filter(|word| *word == "queue canceled").count();
        assert_eq!((queued as u64, gate.begun()), (MAX_QUEUED, vec![7]));
    });
}
