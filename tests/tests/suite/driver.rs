//! A loop that runs: order, deadlines, failures of everything around it, and its end.

use std::time::Duration;

use epitome_loop::RejectionReason;
use epitome_loopruntime::decision::{Boundary, ChangeKind, Record, Refused, Reply, Rewind};
use epitome_loopruntime::driver::DriverClosed;
use epitome_tests::driven::{Act, Driven, Script};

const LONG: Act = Act::Well(Duration::from_secs(30));

fn run(test: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(test);
}

/// A loop whose context is 90 % full.
async fn full(script: Script) -> Driven {
    let driven = Driven::start(script);
    for _ in 0..9 {
        assert_eq!(driven.append(1_000).await, Ok(Ok(())));
    }
    driven
}

#[test]
fn a_full_context_is_compacted_once_and_then_sent() {
    run(async {
        let driven = full(Script::default()).await;
        assert!(matches!(driven.admit().await, Ok(Reply::Committed(_))));
        assert_eq!(driven.admit().await, Ok(Reply::Send));
        let seen = driven.around.seen();
        assert_eq!((seen.tokens, seen.applied.len(), seen.forgotten.len()), (2_250, 1, 1));
        let trace = driven.handle.decision_trace().await.unwrap();
        assert_eq!(trace.len(), 2);
    });
}

#[test]
fn a_clock_that_panics_stands_still() {
    run(async {
        let driven = full(Script::default()).await;
        driven.around.play(Script { clock: Act::Panics, ..Script::default() });
        assert!(matches!(driven.admit().await, Ok(Reply::Committed(_))));
        assert_eq!(driven.append(10).await, Ok(Ok(())));
    });
}

#[test]
fn input_waits_while_an_attempt_runs_and_comes_in_order() {
    run(async {
        let driven = full(Script { summarize: LONG, ..Script::default() }).await;
        let (reply, first, second) = tokio::join!(driven.admit(), driven.append(10), driven.append(20));
        assert!(matches!(reply, Ok(Reply::Committed(_))));
        assert_eq!((first, second), (Ok(Ok(())), Ok(Ok(()))));
        let seen = driven.around.seen();
        assert_eq!(seen.tokens, 2_280);
        let is_change = |record: &&Record| matches!(record, Record::Changed(_));
        let commit =
            seen.records.iter().position(|record| matches!(record, Record::Committed { .. })).unwrap();
        assert_eq!(seen.records[commit..].iter().filter(is_change).count(), 2);
    });
}

#[test]
fn an_interrupt_and_a_shutdown_are_heard_in_the_middle_of_a_summary() {
    run(async {
        let driven = full(Script { summarize: Act::Hangs, ..Script::default() }).await;
        let interrupted = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            driven.handle.interrupt().unwrap();
        };
        let (reply, ()) = tokio::join!(driven.admit(), interrupted);
        assert!(matches!(reply, Ok(Reply::Rejected(_, RejectionReason::Interrupted))), "{reply:?}");
        assert_eq!(driven.around.seen().tokens, 9_000);

        driven.append(1).await.unwrap().unwrap();
        let ended = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            driven.handle.shut_down().unwrap();
        };
        let (reply, ()) = tokio::join!(driven.compact(), ended);
        assert!(matches!(reply, Ok(Reply::Rejected(_, RejectionReason::ShuttingDown))), "{reply:?}");
        let Driven { handle, task, .. } = driven;
        assert!(!task.await.unwrap().blocks_input());
        assert!(handle.interrupt().is_err());
    });
}

#[test]
fn what_fails_around_a_loop_becomes_a_reason() {
    for (script, reason) in [
        (Script { summarize: Act::Fails, ..Script::default() }, RejectionReason::ExecutionFailed),
        (Script { summarize: Act::Panics, ..Script::default() }, RejectionReason::Internal),
        (Script { summarize: Act::Hangs, ..Script::default() }, RejectionReason::Canceled),
        (Script { count: Act::Fails, ..Script::default() }, RejectionReason::ExecutionFailed),
        (Script { count: Act::Panics, ..Script::default() }, RejectionReason::Internal),
        (Script { count: Act::Hangs, ..Script::default() }, RejectionReason::Canceled),
    ] {
        run(async move {
            let driven = full(script).await;
            let reply = driven.admit().await;
            assert!(
                matches!(reply, Ok(Reply::Rejected(_, given)) if given == reason),
                "{script:?}: {reply:?}"
            );
            let seen = driven.around.seen();
            assert_eq!((seen.tokens, seen.forgotten.len()), (9_000, 1));
            // The loop goes on.
            driven.around.play(Script::default());
            assert!(matches!(driven.compact().await, Ok(Reply::Committed(_))));
        });
    }
}

#[test]
fn a_journal_that_fails_halts_the_loop_and_everybody_is_told() {
    for how in [Act::Fails, Act::Hangs, Act::Panics] {
        // Nine changes are written; then comes, in turn, each further record of a compaction.
        for from in 9..16 {
            run(async move {
                let driven = full(Script::default()).await;
                driven.around.play(Script { record: (from, how), summarize: LONG, ..Script::default() });
                let (reply, change) = tokio::join!(driven.admit(), driven.append(1));
                let is_told = matches!(reply, Ok(Reply::Halted | Reply::Committed(_)));
                assert!(is_told, "{how:?} {from}: {reply:?}");
                assert!(matches!(change, Ok(Ok(()) | Err(Refused::Halted))), "{how:?} {from}: {change:?}");
                if reply == Ok(Reply::Halted) {
                    assert!(driven.admit().await.map_or(true, |reply| reply == Reply::Halted));
                    assert!(driven.task.await.unwrap().is_halted());
                }
            });
        }
    }
}

#[test]
fn a_context_that_cannot_be_put_in_place_halts_the_loop() {
    run(async {
        let driven = full(Script { apply: Act::Panics, ..Script::default() }).await;
        let reply = driven.admit().await;
        assert!(matches!(reply, Ok(Reply::Committed(_) | Reply::Halted)), "{reply:?}");
        assert!(driven.admit().await.map_or(true, |reply| reply == Reply::Halted));
        assert!(driven.task.await.unwrap().is_halted());
    });
}

#[test]
fn a_loop_goes_on_when_nobody_waits_any_more() {
    run(async {
        let driven = full(Script { summarize: LONG, ..Script::default() }).await;
        let given_up = tokio::time::timeout(Duration::from_secs(1), driven.admit()).await;
        assert!(given_up.is_err());
        driven.append(5).await.unwrap().unwrap();
        assert_eq!(driven.around.seen().applied.len(), 1);
        assert_eq!(driven.admit().await, Ok(Reply::Send));
        let Driven { handle, task, around, .. } = driven;
        drop(handle);
        assert!(!task.await.unwrap().blocks_input());
        assert_eq!(around.seen().tokens, 2_255);
    });
}

#[test]
fn a_rewind_is_judged_behind_the_attempt_that_it_waited_for() {
    run(async {
        let driven = full(Script { summarize: LONG, ..Script::default() }).await;
        let back = |by| driven.rewind(Rewind::Back(by), 9_000);
        assert_eq!(back(1).await, Ok(Err(Refused::NoSuchCommit)));
        let (reply, far, near, again) = tokio::join!(driven.admit(), back(2), back(1), back(1));
        assert!(matches!(reply, Ok(Reply::Committed(_))), "{reply:?}");
        assert_eq!(far, Ok(Err(Refused::NoSuchCommit)));
        assert_eq!((near, again), (Ok(Ok(())), Ok(Err(Refused::NoSuchCommit))));
        let seen = driven.around.seen();
        let rewound =
            seen.records.iter().filter(|record| matches!(record, Record::Rewound { in_force: 0, .. }));
        assert_eq!((rewound.count(), seen.commits.in_force, seen.commits.known), (1, 0, 1));
        assert_eq!(driven.rewind(Rewind::Forward(1), 2_250).await, Ok(Ok(())));
        assert_eq!(driven.rewind(Rewind::To(1), 2_250).await, Ok(Err(Refused::NoSuchCommit)));
        assert_eq!(driven.around.seen().refusals.len(), 4);
    });
}

#[test]
fn what_is_put_beside_a_loop_and_what_is_sent_are_one_step() {
    run(async {
        let driven = full(Script::default()).await;
        let given_up = driven.handle.place().await.unwrap();
        drop(given_up);
        // More places than there are cannot be had at once.
        let mut places = Vec::new();
        for _ in 0..16 {
            places.push(driven.handle.place().await.unwrap());
        }
        let none_left = tokio::time::timeout(Duration::from_secs(1), driven.handle.place()).await;
        assert!(none_left.is_err());
        let changes: Vec<_> =
            places.into_iter().map(|place| place.change(driven.planned(ChangeKind::Append, 10))).collect();
        for change in changes {
            assert_eq!(change.await, Ok(Ok(())));
        }
        assert_eq!(driven.around.seen().tokens, 9_160);
        let id = epitome_loop::AttemptId::from_bytes(driven.id());
        let asked = driven.handle.place().await.unwrap().compact(driven.waiter(), id);
        driven.handle.boundary(Boundary::Turn).await.unwrap();
        assert_eq!(asked.await, Ok(Reply::Committed(id)));
    });
}

#[test]
fn a_place_that_is_used_after_the_loop_has_ended_is_not_heard() {
    run(async {
        let driven = full(Script::default()).await;
        let handle = driven.handle.clone();
        let place = handle.place().await.unwrap();
        driven.handle.shut_down().unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(driven.handle.place().await.is_err());
        let late = place.change(driven.planned(ChangeKind::Append, 1));
        assert_eq!(late.await, Err(DriverClosed));
        assert_eq!(driven.handle.interrupt(), Err(DriverClosed));
        assert_eq!(driven.around.seen().refusals, []);
        let Driven { task, .. } = driven;
        assert!(!task.await.unwrap().is_halted());
    });
}

#[test]
fn the_outcome_of_an_attempt_is_durable_before_it_is_told_to_anybody() {
    run(async {
        let driven = full(Script { summarize: LONG, ..Script::default() }).await;
        let (first, second, third) = tokio::join!(driven.admit(), driven.compact(), driven.compact());
        assert!(matches!(first, Ok(Reply::Committed(_))), "{first:?}");
        assert_eq!((&first, &first), (&second, &third));
        let seen = driven.around.seen();
        let answered = |record: &&Record| matches!(record, Record::Answered { resolved: true, .. });
        assert_eq!(seen.records.iter().filter(answered).count(), 3);
        assert_eq!((seen.answers.len(), seen.not_durable), (3, 0));
        assert!(matches!(seen.records.last(), Some(Record::Answered { .. })));
    });
    // The commit is durable and its answers are not: nobody is told of it.
    run(async {
        let driven = full(Script::default()).await;
        driven.around.play(Script { record: (13, Act::Fails), ..Script::default() });
        assert_eq!(driven.admit().await, Ok(Reply::Halted));
        let seen = driven.around.seen();
        assert!(matches!(seen.records.last(), Some(Record::Committed { .. })), "{:?}", seen.records.last());
        assert_eq!(seen.applied.len(), 1);
    });
}

#[test]
fn everything_that_was_heard_is_answered_once_and_the_adapter_hears_of_it_first() {
    // With records that fail from each place on, and with an adapter that panics when it is told.
    for (from, listen) in
        (9..17).chain([usize::MAX]).flat_map(|from| [(from, Act::Fails), (from, Act::Panics)])
    {
        run(async move {
            let driven = full(Script::default()).await;
            driven.around.play(Script {
                record: (from, Act::Fails),
                summarize: LONG,
                listen,
                ..Script::default()
            });
            let ended = async {
                tokio::time::sleep(Duration::from_secs(70)).await;
                let _halted = driven.handle.shut_down();
            };
            let same = driven.planned(ChangeKind::Append, 1);
            let (place, again) = (driven.handle.place().await.unwrap(), driven.handle.place().await.unwrap());
            let (admitted, asked, first, second, rewound, ()) = tokio::join!(
                driven.admit(),
                driven.compact(),
                // One event, twice: a mistake of the host, and both are answered.
                place.change(same),
                again.change(same),
                driven.rewind(Rewind::Back(7), 1),
                ended,
            );
            let seen = driven.around.seen();
            let heard = [admitted, asked].iter().flatten().count();
            assert_eq!(seen.answers.len(), heard, "{from} {:?}", seen.answers);
            assert_eq!(seen.not_durable, 0);
            let refused =
                [first, second, rewound].iter().filter(|change| matches!(change, Ok(Err(_)))).count();
            assert_eq!(seen.refusals.len(), refused, "{from} {:?}", seen.refusals);
            let told = [first, second, rewound].iter().flatten().count();
            assert_eq!(told, 3, "{from}");
            assert!(rewound.is_ok_and(|change| change.is_err()));
        });
    }
}
