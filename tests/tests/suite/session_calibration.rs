//! A live session counts by what its provider reported.

use std::sync::Arc;

use epitome_loop::{
    BasisPoints, Block, ContextMeasurement, CountQuality, Message, ModelKey, Opaque, RawJson, Request,
    TokenCount, Usage,
};
use epitome_sessionruntime::{AdmitError, Admitted, Delivered, RequestFrame, Session, SessionEvent};
use epitome_tests::session_scene::{SessionScene, Treatment, WorkAct, count, turn};

async fn admit(session: &Session) -> Admitted {
    session.admit(RequestFrame::default()).await.unwrap()
}

async fn measured(session: &Session) -> u64 {
    tokens(&admit(session).await.measurement.unwrap())
}

fn tokens(measurement: &ContextMeasurement) -> u64 {
    measurement.input_tokens.get()
}

/// What the scripted counter says of a request with these messages alone.
fn counted(messages: &[Message]) -> u64 {
    let model = ModelKey::new("local", "scripted");
    let request =
        Request { model, tools: Arc::default(), messages: messages.into(), unseen_tokens: TokenCount(0) };
    count(&request).get()
}

fn usage(input: u64, output: u64) -> Usage {
    Usage { input: TokenCount(input), output: TokenCount(output), ..Usage::default() }
}

fn answer(usage: Usage) -> Message {
    Message::Assistant { blocks: [Block::text("It is done.")].into(), usage: Some(usage) }
}

fn long(at: u64, tokens: usize) -> Message {
    Message::user(format!("{at} {}", "word".repeat(tokens)))
}

/// A scene with much room.
fn wide() -> SessionScene {
    SessionScene { window: 200_000, ..SessionScene::default() }
}

#[tokio::test(start_paused = true)]
async fn the_next_request_counts_what_was_reported_and_what_came_since() {
    let session = wide().open().await.unwrap();
    let mut events = session.subscribe();
    session.append([long(0, 500)]).await.unwrap();
    let first = measured(&session).await;
    assert_eq!(session.calibration(), None);
    // A system prompt of a thousand tokens that nobody stated; part of it came from a cache.
    let reported = Usage { cache_read: TokenCount(first), cache_creation: TokenCount(100), ..usage(900, 50) };
    session.append([answer(reported)]).await.unwrap();
    // The very context that was reported, with the answer.
    assert_eq!(measured(&session).await, first + 1_050);
    let calibration = session.calibration().unwrap();
    assert_eq!(calibration.reported, TokenCount(first + 1_050));
    assert_eq!(calibration.counted, TokenCount(counted(&session.messages())));
    assert_eq!((calibration.factor, calibration.unseen), (BasisPoints(10_000), TokenCount(0)));
    assert_eq!(calibration.beside.get() + calibration.counted.get(), calibration.reported.get());
    assert_eq!(&*calibration.model.model, "scripted");
    // What comes behind is counted.
    session.append([long(1, 300)]).await.unwrap();
    let behind = counted(&session.messages()) - calibration.counted.get();
    assert_eq!(measured(&session).await, first + 1_050 + behind);
    // It was told once.
    session.shut_down().await;
    let mut told = Vec::new();
    while let Some(event) = events.next().await.unwrap() {
        if let Delivered::Event(SessionEvent::Calibrated(calibration)) = event {
            told.push(calibration);
        }
    }
    assert_eq!(told, [calibration]);
}

#[tokio::test(start_paused = true)]
async fn a_report_is_about_the_frame_in_which_its_request_went_out() {
    let session = wide().open().await.unwrap();
    session.append([long(0, 100)]).await.unwrap();
    let framed = |tail: usize, unseen: u64| RequestFrame {
        system: Some("Be brief.".into()),
        runtime_tail: Some(long(9, tail)),
        unseen_tokens: TokenCount(unseen),
        ..RequestFrame::default()
    };
    let sent = tokens(&session.admit(framed(400, 70)).await.unwrap().measurement.unwrap());
    session.append([answer(usage(sent + 30, 5))]).await.unwrap();
    let bare = tokens(&session.admit(RequestFrame::default()).await.unwrap().measurement.unwrap());
    let calibration = session.calibration().unwrap();
    assert_eq!(calibration.unseen, TokenCount(70));
    // The system prompt, the tail and what was stated are not in this one; what nobody stated is.
    let same = tokens(&session.admit(framed(400, 70)).await.unwrap().measurement.unwrap());
    assert_eq!(same, sent + 35);
    assert_eq!(same - bare, calibration.counted.get() + 70 - counted(&session.messages()));
    let larger = tokens(&session.admit(framed(600, 90)).await.unwrap().measurement.unwrap());
    assert_eq!(larger, same + 200 + 20);
}

#[tokio::test(start_paused = true)]
async fn what_says_nothing_about_the_size_changes_nothing() {
    let provider_ran_tools = Message::Assistant {
        blocks: [
            Block::Opaque(Opaque { kind: "server_tool_use".into(), raw: RawJson::parse_or_quote("{}") }),
            Block::text("Found."),
        ]
        .into(),
        usage: Some(usage(90_000, 5)),
    };
    let overflowing = Usage { cache_read: TokenCount(u64::MAX), ..usage(9, 9) };
    for said in [
        provider_ran_tools,
        answer(Usage::default()),
        // An aborted turn, and a window that no model has.
        answer(usage(0, 900)),
        answer(usage(u64::MAX, 1)),
        answer(usage(200_001, 1)),
        answer(usage(9, u64::MAX)),
        answer(overflowing),
        // A figure without what came from the cache.
        answer(usage(5, 5)),
        Message::assistant("No figure at all."),
    ] {
        let session = wide().open().await.unwrap();
        session.append([long(0, 5_000)]).await.unwrap();
        admit(&session).await;
        session.append([said.clone()]).await.unwrap();
        assert_eq!(measured(&session).await, counted(&session.messages()), "{said:?}");
        assert_eq!(session.calibration(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn reasoning_that_is_not_in_the_answer_does_not_go_out_again() {
    let session = wide().open().await.unwrap();
    session.append([long(0, 500)]).await.unwrap();
    let sent = measured(&session).await;
    let reported = Usage { reasoning: TokenCount(400), ..usage(sent, 420) };
    session.append([answer(reported)]).await.unwrap();
    assert_eq!(measured(&session).await, sent + 20);
}

#[tokio::test(start_paused = true)]
async fn exact_counts_are_left_as_they_are() {
    for quality in [CountQuality::ExactLocal, CountQuality::ExactProvider] {
        let session = SessionScene { quality, ..wide() }.open().await.unwrap();
        session.append([long(0, 500)]).await.unwrap();
        let sent = measured(&session).await;
        session.append([answer(usage(sent + 1_000, 50))]).await.unwrap();
        assert_eq!(measured(&session).await, counted(&session.messages()));
        assert_eq!(session.calibration(), None);
    }
    // A context that is watched is counted by reports too; one that is left alone has no count.
    let session = SessionScene { treatment: Treatment::Observed, ..wide() }.open().await.unwrap();
    session.append([long(0, 500)]).await.unwrap();
    let sent = measured(&session).await;
    session.append([answer(usage(sent + 1_000, 50))]).await.unwrap();
    assert_eq!(measured(&session).await, sent + 1_050);
    let session = SessionScene { treatment: Treatment::Alone, ..wide() }.open().await.unwrap();
    session.append([long(0, 500), answer(usage(9_000, 5))]).await.unwrap();
    assert_eq!(admit(&session).await.measurement, None);
    assert_eq!(session.calibration(), None);
}

#[tokio::test(start_paused = true)]
async fn a_report_for_a_request_that_is_not_the_context_any_more_is_void() {
    // Somebody said something before the answer came.
    let session = wide().open().await.unwrap();
    session.append([long(0, 500)]).await.unwrap();
    let sent = measured(&session).await;
    session.append([long(1, 2_000)]).await.unwrap();
    session.append([answer(usage(sent + 9_000, 5))]).await.unwrap();
    assert_eq!(measured(&session).await, counted(&session.messages()));

    // A compaction came before it.
    let scene = SessionScene { treatment: Treatment::Manual, ..wide() };
    let session = scene.open().await.unwrap();
    for at in 0..8 {
        session.append(turn(at, 400)).await.unwrap();
    }
    let sent = measured(&session).await;
    session.boundary(epitome_loopruntime::decision::Boundary::Step).await.unwrap();
    session.compact(None).await.unwrap();
    session.append([answer(usage(sent + 9_000, 5))]).await.unwrap();
    assert_eq!(measured(&session).await, counted(&session.messages()));
    // The next one is about the context that is there now.
    session.append([long(9, 10)]).await.unwrap();
    let sent = measured(&session).await;
    session.append([answer(usage(sent + 700, 5))]).await.unwrap();
    assert_eq!(measured(&session).await, sent + 705);
}

#[tokio::test(start_paused = true)]
async fn a_compaction_is_counted_in_one_way_from_its_beginning_to_its_end() {
    let scene = SessionScene { window: 8_000, ..SessionScene::default() };
    let session = scene.open().await.unwrap();
    session.append(turn(0, 400)).await.unwrap();
    let sent = measured(&session).await;
    // Two thousand tokens beside the conversation.
    session.append([answer(usage(sent + 2_000, 12))]).await.unwrap();
    for at in 1..11 {
        session.append(turn(at, 400)).await.unwrap();
    }
    let before = session.messages();
    let admitted = admit(&session).await;
    // By our count alone there would be room.
    assert!(counted(&before) * 10_000 / (8_000 - 110) < 6_000);
    let report = admitted.compacted.unwrap();
    let calibration = session.calibration().unwrap();
    let beside = calibration.beside.get();
    assert!(beside >= 1_900, "{beside}");
    assert_eq!(tokens(&report.before), beside + counted(&before));
    assert_eq!(tokens(&report.after), beside + counted(&session.messages()));
    // The factor and what stands beside outlive the commit; the request that was counted counts the same again.
    assert_eq!(admitted.measurement.as_ref().map(tokens), Some(tokens(&report.after)));
    assert_eq!(measured(&session).await, tokens(&report.after));
    // Taken back, it is the context that it was.
    session.undo().await.unwrap();
    assert!(matches!(
        session.admit(RequestFrame::default()).await,
        Ok(Admitted { measurement: Some(measured), .. }) if tokens(&measured) == tokens(&report.before)
    ));
}

#[tokio::test(start_paused = true)]
async fn opened_again_a_session_counts_as_before() {
    let scene = wide();
    let session = scene.open().await.unwrap();
    session.append([long(0, 500)]).await.unwrap();
    let mut sent = measured(&session).await;
    for at in 1..12 {
        // Our count is a third too low, and 3,000 tokens are not seen.
        let truth = 3_000 + counted(&session.messages()) * 3 / 2;
        session.append([answer(usage(truth, 0)), long(at, 2_000)]).await.unwrap();
        sent = measured(&session).await;
    }
    let calibration = session.calibration().unwrap();
    assert!(calibration.factor > BasisPoints(12_000), "{:?}", calibration.factor);
    session.shut_down().await;

    let session = scene.open().await.unwrap();
    assert_eq!(session.calibration(), None, "nothing was counted yet");
    assert_eq!(measured(&session).await, sent);
    assert_eq!(session.calibration(), Some(calibration));

    // Behind a compaction there is no report yet.
    session.compact(None).await.unwrap();
    let known = session.calibration();
    session.shut_down().await;
    let session = scene.open().await.unwrap();
    assert_eq!(measured(&session).await, counted(&session.messages()));
    assert!(known.is_some() && session.calibration().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_came_whole_counts_by_its_first_and_its_newest_report() {
    let session = wide().open().await.unwrap();
    let mut messages = Vec::new();
    for at in 0..20 {
        messages.push(long(at, 1_000));
        let truth = 5_000 + counted(&messages) * 6 / 5;
        messages.push(answer(usage(truth, 0)));
    }
    session.append(messages.clone()).await.unwrap();
    let newest = 5_000 + counted(&messages[..messages.len() - 1]) * 6 / 5;
    assert_eq!(measured(&session).await, newest);
    let calibration = session.calibration().unwrap();
    assert!((11_000..12_000).contains(&calibration.factor.get()), "{:?}", calibration.factor);
}

#[tokio::test(start_paused = true)]
async fn each_model_has_its_own_reports() {
    let scene = wide();
    let other = SessionScene { model: "another", ..wide() };
    let session = scene.open().await.unwrap();
    session.append([long(0, 500)]).await.unwrap();
    let sent = measured(&session).await;
    session.append([answer(usage(sent + 1_000, 50))]).await.unwrap();
    let first = measured(&session).await;
    let known = session.calibration();

    session.rebind(&other.bound(), other.loop_ports()).unwrap();
    assert_eq!(session.calibration(), None);
    let sent = measured(&session).await;
    assert_eq!(sent, counted(&session.messages()));
    session.append([answer(usage(sent + 4_000, 50))]).await.unwrap();
    assert_eq!(measured(&session).await, sent + 4_050);

    session.rebind(&scene.bound(), scene.loop_ports()).unwrap();
    assert_eq!(session.calibration(), known);
    let since = counted(&session.messages()) - known.unwrap().counted.get();
    assert_eq!(measured(&session).await, first + since);

    // An answer of the model before is none of this one's.
    session.rebind(&other.bound(), other.loop_ports()).unwrap();
    let before = session.calibration();
    session.append([answer(usage(sent + 9_000, 50))]).await.unwrap();
    admit(&session).await;
    assert_eq!(session.calibration(), before);
}

#[tokio::test(start_paused = true)]
async fn a_sum_over_requests_does_not_hold_a_session_back() {
    let scene = SessionScene { window: 100_000, ..SessionScene::default() };
    scene.worker.play([WorkAct::Fails]);
    let session = scene.open().await.unwrap();
    session.append([long(0, 30_000)]).await.unwrap();
    let sent = measured(&session).await;
    session.append([answer(usage(sent + 1_000, 9)), long(1, 10)]).await.unwrap();
    let believed = measured(&session).await;
    // The sum of three requests of one answer.
    session.append([answer(usage(3 * believed, 40)), long(2, 10)]).await.unwrap();
    match session.admit(RequestFrame::default()).await {
        Ok(admitted) => assert!(tokens(&admitted.measurement.unwrap()) < believed + 200),
        Err(AdmitError::ContextLimit { .. }) => panic!("a sum is no size"),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(start_paused = true)]
async fn reports_by_which_nothing_would_fit_do_not_lock_a_session() {
    let lies: [fn(u64) -> Usage; 4] = [
        // Reasoning that is told as output, or a sum over a loop.
        |sent| usage(sent, 9_900),
        |_| usage(9_900, 5),
        |_| Usage { cache_read: TokenCount(9_900), ..usage(1, 1) },
        |sent| usage((sent + 1_500) * 4, 5),
    ];
    for lie in lies {
        let scene = SessionScene { window: 10_000, ..SessionScene::default() };
        let session = scene.open().await.unwrap();
        for at in 0..60 {
            session.append([long(at, 20)]).await.unwrap();
            let admitted = admit(&session).await;
            let sent = counted(&admitted.messages);
            assert!(sent < 10_000, "{at}: {sent}");
            session.append([answer(lie(sent))]).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn output_that_is_not_in_the_answer_does_not_go_out_again() {
    let session = wide().open().await.unwrap();
    session.append([long(0, 100)]).await.unwrap();
    let first = measured(&session).await;
    session.append([answer(usage(first, 12_000))]).await.unwrap();
    assert!(measured(&session).await < first + 100);
}
