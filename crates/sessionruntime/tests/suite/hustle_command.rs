//! The kind `command`, with small scripts for `/bin/sh`. Deadlines are generous and nothing waits for a time to
//! pass: where a run is to be out of time, the test moves the clock.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use epitome_loop::{
    ByteLimits, HustleSettings, IdentityBinding, MAX_PAYLOAD_BYTES, Message, RetryPolicy, retry_class,
};
use epitome_sessionruntime::{
    CommandError, CommandReport, CommandSettings, CommandWorker, HustleController, HustleOutcome,
    HustleRequest, HustleValue, SummaryTask, decode_input, translate_failure,
};
use tempfile::TempDir;

use super::hustle_scene::*;

/// Answers on stdout with the identity that stands in the input, by the tools that every system has.
const ECHO: &str = r#"
input=$(cat)
identity=${input%%,\"transcript\":*}
printf '%s,"summary":"%s"}' "$identity" "<conversation_summary><goal>g</goal><constraints/><decisions/><state>s</state><open_items/></conversation_summary>"
"#;

/// A generous deadline: a run reaches it when a test moves the clock, and else never.
const LONG: Duration = Duration::from_secs(120);

struct Stage {
    folder: TempDir,
    reports: Arc<Mutex<Vec<CommandReport>>>,
    settings: HustleSettings,
}

impl Stage {
    fn new() -> Self {
        let settings = HustleSettings {
            timeout: LONG,
            limits: ByteLimits { input: MAX_PAYLOAD_BYTES, output: 4_000 },
            identity: IdentityBinding::Echo,
            ..settings("h")
        };
        Self { folder: tempfile::tempdir().unwrap(), reports: Arc::default(), settings }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The controller of a script, in the runtime that this is called in.
    fn controller(&self, script: &str) -> HustleController {
        let file = self.path("summarize.sh");
        fs::File::create(&file).unwrap().write_all(script.as_bytes()).unwrap();
        let reports = self.reports.clone();
        let worker = CommandWorker::new(CommandSettings {
            program: "/bin/sh".into(),
            arguments: vec![file.into()],
            variables: vec![("PATH".into(), "/usr/bin:/bin".into()), ("STATED".into(), "canary-7291".into())],
            working_directory: self.folder.path().to_owned(),
        })
        .unwrap()
        .with_listener(Arc::new(move |report| reports.lock().unwrap().push(report)));
        let records = Arc::new(Records::working());
        controller(limits((1, 0), (1, 0)), [hustle(self.settings.clone(), Arc::new(worker))], &records)
    }

    fn run(&self, script: &str, task: SummaryTask) -> HustleOutcome {
        runtime().block_on(async {
            let (controller, desk) = (self.controller(script), Desk::new(Manner::Works));
            let outcome = controller.submit(compaction("h", task, &desk)).unwrap().outcome().await;
            assert_eq!((desk.runs().len(), controller.fault()), (1, None));
            outcome
        })
    }

    fn report(&self) -> CommandReport {
        let mut reports = self.reports.lock().unwrap();
        assert_eq!(reports.len(), 1);
        reports.remove(0)
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn asked() -> SummaryTask {
    task(input(7, [Message::user("hello")]))
}

/// An input of about ten megabytes.
fn large() -> SummaryTask {
    task(input(7, [Message::user("u".repeat(10_000_000))]))
}

fn reason(outcome: &HustleOutcome) -> &'static str {
    let cause = outcome.result.as_ref().unwrap_err().cause.as_ref().unwrap();
    translate_failure(cause).map_or("none", |refused| refused.reason.as_str())
}

/// Whether a process is there and not merely waiting to be reaped.
fn lives(id: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(id).join("stat"));
    stat.is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'))
}

/// Whether a process is gone. Its death sentence is with the system when a run is over; carrying it out may take
/// another moment, and a process that was not sentenced here would live for ever.
fn is_dead(id: &str) -> bool {
    (0..30_000).any(|_| {
        let is_dead = !lives(id);
        if !is_dead {
            std::thread::sleep(Duration::from_millis(1));
        }
        is_dead
    })
}

fn wait_for(path: &Path) -> String {
    loop {
        match fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => std::thread::yield_now(),
        }
    }
}

#[test]
fn a_program_that_answers_in_wire_v1_gives_a_summary() {
    let stage = Stage::new();
    let outcome = stage.run(ECHO, asked());
    let HustleValue::Summary(summary) = outcome.result.unwrap() else { panic!("a summary") };
    assert_eq!(summary.proven.output.summary(), &XML);
    let report = stage.report();
    assert_eq!((report.exit.unwrap().code(), report.stderr.total), (Some(0), 0));
}

#[test]
fn a_program_may_answer_with_the_bare_summary_where_the_host_binds_it() {
    let host = |output: &str| {
        let mut stage = Stage::new();
        stage.settings.identity = IdentityBinding::Host;
        stage.run(output, asked())
    };
    assert!(host(&format!("cat >/dev/null; printf '{XML}'")).result.is_ok());
    assert_eq!(reason(&host("cat >/dev/null")), "output_shape");
}

#[test]
fn it_reads_wire_v1_in_its_own_folder_with_the_stated_environment_alone() {
    let stage = Stage::new();
    let script = format!("{}\nprintf '%s' \"$input\" > input.json\nenv > environment\n", ECHO.trim());
    let asked = SummaryTask { instructions: Some("mind\nthe 'tests'".into()), ..asked() };
    assert!(stage.run(&script, asked.clone()).result.is_ok());
    let wire = fs::read(stage.path("input.json")).unwrap();
    assert_eq!(decode_input(&wire), Ok(asked.input));
    let environment = fs::read_to_string(stage.path("environment")).unwrap();
    assert!(environment.contains("STATED=canary-7291\n"));
    assert!(environment.contains("EPITOME_INSTRUCTIONS=mind\nthe 'tests'\n"));
    // A shell adds a few of its own; nothing of this process is there.
    assert!(!environment.contains("CARGO") && !environment.contains("EPITOME_CORRECTION"));
}

#[test]
fn a_wrong_identity_is_refused() {
    let stage = Stage::new();
    let script = ECHO
        .replace("identity=${input", "input=$(printf '%s' \"$input\" | sed s/:7,/:8,/)\nidentity=${input");
    assert_eq!(reason(&stage.run(&script, asked())), "identity");
    assert_eq!(reason(&stage.run("cat >/dev/null; echo '{}'", asked())), "wire");
}

#[test]
fn exit_codes_have_meanings() {
    for (code, told, is_passing) in [
        (1, "inference inference", false),
        (65, "inference inference", false),
        (75, "inference inference", true),
        (77, "output invalid_output", false),
    ] {
        let stage = Stage::new();
        let outcome = stage.run(&format!("cat >/dev/null; printf '{XML}'; exit {code}"), asked());
        assert_eq!(words(&outcome.result), told, "{code}");
        let cause = outcome.result.unwrap_err().cause;
        assert_eq!(retry_class(cause.as_ref()) != epitome_loop::RetryClass::None, is_passing, "{code}");
        assert_eq!(stage.report().exit.unwrap().code(), Some(code));
    }
    let killed = Stage::new();
    assert_eq!(words(&killed.run("kill -9 $$", asked()).result), "inference inference");
    assert_eq!(killed.report().exit.unwrap().code(), None);
}

#[test]
fn a_second_try_starts_the_program_anew_and_tells_it_what_was_wrong() {
    let mut stage = Stage::new();
    stage.settings.retry = RetryPolicy::ClassifiedOnce;
    let script = format!(
        "if [ ! -e tried ]; then touch tried; cat >/dev/null; echo canary-7291; exit 0; fi\n\
         printf '%s' \"$EPITOME_CORRECTION\" > correction\n{ECHO}"
    );
    let outcome = stage.run(&script, asked());
    assert_eq!((words(&outcome.result).as_str(), outcome.tries), ("ok", 2));
    let correction = fs::read_to_string(stage.path("correction")).unwrap();
    assert_eq!(correction, "Your previous answer was not the JSON object that was asked for.");

    let mut passing = Stage::new();
    passing.settings.retry = RetryPolicy::ClassifiedOnce;
    let script = format!("if [ ! -e tried ]; then touch tried; exit 75; fi\n{ECHO}");
    assert_eq!(passing.run(&script, asked()).tries, 2);
}

#[test]
fn too_much_output_ends_the_program_at_once() {
    let stage = Stage::new();
    // It would write for ever.
    let outcome =
        stage.run("echo $$ > id; while :; do echo canary-7291-canary-7291-canary-7291; done", asked());
    assert_eq!((words(&outcome.result).as_str(), reason(&outcome)), ("output invalid_output", "byte_limit"));
    assert!(is_dead(&wait_for(&stage.path("id"))));
    let report = stage.report();
    assert!(report.exit.is_none() && report.stdout_bytes <= 4_000);
    assert!(!format!("{outcome:?} {report:?}").contains("canary"));
}

#[test]
fn an_output_of_exactly_the_limit_is_taken() {
    let pad = 4_000 - XML.len();
    for (pad, told) in [(pad, "ok"), (pad + 1, "output invalid_output")] {
        let mut stage = Stage::new();
        stage.settings.identity = IdentityBinding::Host;
        let padded = XML.replace("<state>s", &format!("<state>s{}", "x".repeat(pad)));
        let outcome = stage.run(&format!("cat >/dev/null; printf '{padded}'"), asked());
        assert_eq!(words(&outcome.result), told);
    }
}

#[test]
fn a_flood_on_stderr_is_kept_at_both_ends_and_shown_to_the_host_alone() {
    let stage = Stage::new();
    let flood = "echo first-canary >&2\nawk 'BEGIN { for (i = 0; i < 500000; i++) print \"canary-7291\" }' >&2\n\
                 echo last-canary >&2\n";
    let outcome = stage.run(&format!("{flood}{ECHO}"), asked());
    assert!(outcome.result.is_ok());
    let report = stage.report();
    assert_eq!(report.stderr.total, 13 + 500_000 * 12 + 12);
    assert!(
        report.stderr.first.starts_with(b"first-canary\n") && report.stderr.last.ends_with(b"last-canary\n")
    );
    assert_eq!((report.stderr.first.len(), report.stderr.last.len()), (4_096, 4_096));

    let failing = Stage::new();
    let outcome = failing.run(&format!("{flood}exit 3"), asked());
    let report = failing.report();
    assert!(!format!("{outcome:?} {report:?}").contains("canary"));
    assert!(format!("{report:?}").contains("<6000025 bytes of stderr>"));
}

/// A script that waits for ever, and notes who must be dead afterwards.
const STUBBORN: &str = "trap '' TERM HUP INT\n\
    (trap '' TERM HUP INT; echo $$ >/dev/null; sh -c 'trap \"\" TERM HUP; echo $$ > grandchild; while :; do sleep 60; done') &\n\
    echo $$ > child\n\
    while :; do sleep 60; done\n";

/// Runs a script until it has written these files, and then lets the time of the run be over. Time stands still
/// but for that, because somebody does blocking work all along.
fn timed_out(stage: &Stage, script: &str, files: &[&str], task: SummaryTask) -> HustleOutcome {
    paused().block_on(async {
        let (release, held) = mpsc::channel::<()>();
        let blocking = tokio::task::spawn_blocking(move || held.recv());
        let (controller, desk) = (stage.controller(script), Desk::new(Manner::Works));
        let run = controller.submit(compaction("h", task, &desk)).unwrap();
        let paths: Vec<PathBuf> = files.iter().map(|name| stage.path(name)).collect();
        let written = move || paths.iter().for_each(|path| drop(wait_for(path)));
        tokio::task::spawn_blocking(written).await.unwrap();
        tokio::time::advance(LONG).await;
        let outcome = run.outcome().await;
        assert_eq!((desk.runs().len(), controller.fault()), (1, None));
        drop(release);
        assert!(blocking.await.unwrap().is_err());
        outcome
    })
}

#[test]
fn at_the_timeout_the_program_and_what_it_started_are_dead_and_reaped() {
    let stage = Stage::new();
    let outcome = timed_out(&stage, STUBBORN, &["child", "grandchild"], asked());
    assert_eq!(words(&outcome.result), "inference timeout");
    let child = wait_for(&stage.path("child"));
    assert!(!Path::new("/proc").join(child).exists(), "the program itself is reaped");
    assert!(is_dead(&wait_for(&stage.path("grandchild"))));
    assert!(stage.report().exit.is_none());
}

#[test]
fn on_a_cancellation_the_program_and_what_it_started_are_dead_and_reaped() {
    let stage = Stage::new();
    runtime().block_on(async {
        let (controller, desk) = (stage.controller(STUBBORN), Desk::new(Manner::Works));
        let run = controller.submit(compaction("h", large(), &desk)).unwrap();
        let folder = stage.folder.path().to_owned();
        let ids = tokio::task::spawn_blocking(move || {
            ["child", "grandchild"].map(|name| wait_for(&folder.join(name)))
        });
        let [child, grandchild] = ids.await.unwrap();
        assert!(lives(&child) && lives(&grandchild));
        run.cancel();
        assert_eq!(words(&run.outcome().await.result), "inference canceled");
        assert!(!Path::new("/proc").join(&child).exists());
        assert!(is_dead(&grandchild));
        assert_eq!(controller.fault(), None);
    });
}

#[test]
fn what_a_program_leaves_behind_holds_nothing_up_and_is_killed_too() {
    let stage = Stage::new();
    // It inherits stdout and stderr, so the pipes stay open for as long as it lives.
    let script = format!("(echo > begun; while :; do sleep 60; done) &\necho $! > left\n{ECHO}");
    let outcome = stage.run(&script, asked());
    assert!(outcome.result.is_ok());
    assert!(is_dead(&wait_for(&stage.path("left"))));
}

/// The whole answer is in the pipe when the program exits, and a process that left the group keeps the pipe open.
#[test]
fn who_leaves_the_group_keeps_no_answer_back() {
    let mut stage = Stage::new();
    stage.settings.limits.output = 60_000;
    let script = "setsid sh -c 'echo $$ > left; while :; do sleep 60; done' &\n\
                  while [ ! -s left ]; do :; done\n\
                  awk 'BEGIN { for (i = 0; i < 5000; i++) printf \"0123456789\" }'\n";
    let outcome = runtime().block_on(async {
        let (controller, desk) = (stage.controller(script), Desk::new(Manner::Works));
        controller.submit(request(1, "h", b"x", &desk)).unwrap().outcome().await
    });
    let left = wait_for(&stage.path("left"));
    let is_alive = lives(&left);
    // It leads a group of its own, which nobody else will end.
    let group = format!("-{left}");
    assert!(std::process::Command::new("kill").args(["-9", "--", &group]).status().unwrap().success());
    let HustleValue::Bytes(output) = outcome.result.unwrap() else { panic!("bytes") };
    assert_eq!((output.len(), is_alive), (50_000, true));
}

#[test]
fn a_program_need_not_read_its_input() {
    let mut stage = Stage::new();
    stage.settings.identity = IdentityBinding::Host;
    let answer = format!("printf '{XML}'");
    assert!(stage.run(&answer, large()).result.is_ok(), "never reads");
    let early = format!("head -c 100 >/dev/null; exec <&-\n{answer}\n");
    assert!(stage.run(&early, large()).result.is_ok(), "closes early");
    let slowly = format!("wc -c > size; {answer}");
    assert!(stage.run(&slowly, large()).result.is_ok(), "reads all");
    let size: u64 = wait_for(&stage.path("size")).parse().unwrap();
    assert!(size > 10_000_000);
}

#[test]
fn a_program_that_neither_reads_nor_answers_ends_with_its_time() {
    let stage = Stage::new();
    let script = "echo > begun; while :; do sleep 60; done";
    assert_eq!(words(&timed_out(&stage, script, &["begun"], large()).result), "inference timeout");
}

#[test]
fn what_cannot_be_started_is_not_found() {
    runtime().block_on(async {
        let (desk, records) = (Desk::new(Manner::Works), Arc::new(Records::working()));
        let folder = tempfile::tempdir().unwrap();
        let command = CommandSettings {
            program: folder.path().join("canary-7291"),
            arguments: Vec::new(),
            variables: Vec::new(),
            working_directory: folder.path().to_owned(),
        };
        let worker = Arc::new(CommandWorker::new(command.clone()).unwrap());
        let controller = controller(limits((1, 0), (1, 0)), [hustle(settings("h"), worker)], &records);
        let outcome = controller.submit(compaction("h", asked(), &desk)).unwrap().outcome().await;
        assert_eq!(words(&outcome.result), "model_resolution model_resolution");
        assert!(!format!("{outcome:?}").contains("canary"));
        let relative = CommandSettings { program: "canary-7291".into(), ..command };
        assert_eq!(CommandWorker::new(relative).err(), Some(CommandError::Program));
    });
}

#[test]
fn instructions_that_cannot_be_handed_over_are_not_dropped_silently() {
    let stage = Stage::new();
    for instructions in ["x".repeat(200_000), "a\0b".to_owned()] {
        let asked = SummaryTask { instructions: Some(instructions.into()), ..asked() };
        assert_eq!(words(&stage.run(ECHO, asked).result), "inference inference");
    }
    assert!(stage.reports.lock().unwrap().is_empty(), "it was not started");
}

#[test]
fn a_listener_that_panics_spoils_no_answer() {
    runtime().block_on(async {
        let (stage, desk, records) = (Stage::new(), Desk::new(Manner::Works), Arc::new(Records::working()));
        fs::write(stage.path("summarize.sh"), ECHO).unwrap();
        let worker = CommandWorker::new(CommandSettings {
            program: "/bin/sh".into(),
            arguments: vec![stage.path("summarize.sh").into()],
            variables: vec![("PATH".into(), "/usr/bin:/bin".into())],
            working_directory: stage.folder.path().to_owned(),
        })
        .unwrap()
        .with_listener(Arc::new(|_: CommandReport| panic!("canary")));
        let hustles = [hustle(stage.settings.clone(), Arc::new(worker))];
        let controller = controller(limits((1, 0), (1, 0)), hustles, &records);
        let request: HustleRequest = compaction("h", asked(), &desk);
        assert!(controller.submit(request).unwrap().outcome().await.result.is_ok());
    });
}

#[test]
fn the_program_in_the_documentation_works() {
    let page = include_str!("../../../../docs/hustles.md");
    let script = page.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let mut stage = Stage::new();
    let messages = [Message::user("one, \"role\": none"), Message::assistant("two"), Message::user("three")];
    let outcome = stage.run(script, task(input(7, messages)));
    let HustleValue::Summary(summary) = outcome.result.unwrap() else { panic!("a summary") };
    assert!(summary.proven.output.summary().contains("<state>3 messages were left out.</state>"));
    assert!(stage.report().stderr.first.starts_with(b"read "));
    // Without an input that it can read it says so.
    stage.settings.identity = IdentityBinding::Host;
    runtime().block_on(async {
        let (controller, desk) = (stage.controller(script), Desk::new(Manner::Works));
        let run = controller.submit(request(1, "h", b"no wire", &desk)).unwrap();
        assert_eq!(words(&run.outcome().await.result), "inference inference");
    });
    assert_eq!(stage.report().exit.unwrap().code(), Some(65));
}
