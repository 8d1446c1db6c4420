//! `epitome sessions` and `--latest` on a prepared home folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::terminal::{self, command, stderr, stdout};

/// A home folder with sessions of every agent, one hour apart.
struct Home {
    folder: tempfile::TempDir,
    hours: u32,
}

impl Home {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), hours: 0 }
    }

    /// A home with one session of each agent; the one of `newest` is the newest.
    fn of_all() -> Self {
        let mut home = Self::new();
        home.add(CLAUDE, &claude(3));
        home.add(CODEX, &codex(3));
        home.add(PI, &pi(3));
        home.add(GEMINI, &gemini(3));
        home
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file that is an hour older than the one before.
    fn add(&mut self, path: &str, text: &str) -> PathBuf {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        self.hours += 1;
        let age = Duration::from_secs(3_600) * self.hours;
        File::options().append(true).open(&path).unwrap().set_modified(SystemTime::now() - age).unwrap();
        path
    }

    fn run(&self, args: &[&str]) -> Output {
        let here = self.path().join("here");
        fs::create_dir_all(&here).unwrap();
        command(&here).args(args).env("HOME", self.path()).output().unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        terminal::json(&output)
    }
}

const CLAUDE: &str = ".claude/projects/-srv-api/0c7e1f52.jsonl";
const CODEX: &str = ".codex/sessions/2026/01/05/rollout-2026-01-05T10-00-00-77.jsonl";
const PI: &str = ".pi/agent/sessions/--srv-api--/2026-01-05_1.jsonl";
const GEMINI: &str = ".gemini/tmp/api/chats/session-2026-01-05T10-00-3bacc8a0.jsonl";

/// Words of a turn, so that a compaction has something to summarize.
fn words(turn: usize) -> String {
    format!("Step {turn}: the migration of table {turn} is done and the tests of part {turn} pass again. ")
        .repeat(6)
}

fn claude(turns: usize) -> String {
    let mut text = String::new();
    for turn in 0..turns {
        let (user, model) = (format!("u{turn}"), format!("a{turn}"));
        let parent = if turn == 0 { "null".to_owned() } else { format!("\"a{}\"", turn - 1) };
        text += &format!(
            "{{\"type\":\"user\",\"sessionId\":\"s\",\"uuid\":\"{user}\",\"parentUuid\":{parent},\"isSidechain\":false,\"cwd\":\"/srv/api\",\"timestamp\":\"2026-01-05T10:{turn:02}:00.000Z\",\"message\":{{\"role\":\"user\",\"content\":\"Go on with step {turn}.\"}}}}\n"
        );
        text += &format!(
            "{{\"type\":\"assistant\",\"sessionId\":\"s\",\"uuid\":\"{model}\",\"parentUuid\":\"{user}\",\"isSidechain\":false,\"cwd\":\"/srv/api\",\"timestamp\":\"2026-01-05T10:{turn:02}:30.000Z\",\"message\":{{\"id\":\"m{turn}\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5\",\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}]}}}}\n",
            words(turn)
        );
    }
    text
}

fn codex(turns: usize) -> String {
    let mut text = "{\"timestamp\":\"2026-01-05T10:00:00.000Z\",\"type\":\"session_meta\",\"payload\":{\"id\":\"77\",\"cwd\":\"/srv/api\",\"source\":\"cli\"}}\n{\"timestamp\":\"2026-01-05T10:00:00.000Z\",\"type\":\"turn_context\",\"payload\":{\"cwd\":\"/srv/api\",\"model\":\"gpt-5.1-codex\"}}\n".to_owned();
    for turn in 0..turns {
        text += &format!(
            "{{\"timestamp\":\"2026-01-05T10:{turn:02}:00.000Z\",\"type\":\"response_item\",\"payload\":{{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":\"Go on with step {turn}.\"}}]}}}}\n"
        );
        text += &format!(
            "{{\"timestamp\":\"2026-01-05T10:{turn:02}:30.000Z\",\"type\":\"response_item\",\"payload\":{{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{{\"type\":\"output_text\",\"text\":\"{}\"}}]}}}}\n",
            words(turn)
        );
    }
    text
}

fn pi(turns: usize) -> String {
    let mut text = "{\"type\":\"session\",\"id\":\"1\",\"timestamp\":\"2026-01-05T10:00:00.000Z\",\"cwd\":\"/srv/api\",\"provider\":\"anthropic\",\"modelId\":\"claude-opus-4-5\"}\n".to_owned();
    for turn in 0..turns {
        text += &format!(
            "{{\"type\":\"message\",\"timestamp\":\"2026-01-05T10:{turn:02}:00.000Z\",\"message\":{{\"role\":\"user\",\"content\":\"Go on with step {turn}.\"}}}}\n"
        );
        text += &format!(
            "{{\"type\":\"message\",\"timestamp\":\"2026-01-05T10:{turn:02}:30.000Z\",\"message\":{{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}],\"provider\":\"anthropic\",\"model\":\"claude-opus-4-5\"}}}}\n",
            words(turn)
        );
    }
    text
}

fn gemini(turns: usize) -> String {
    let mut text = "{\"sessionId\":\"3bacc8a0\",\"projectHash\":\"h\",\"startTime\":\"2026-01-05T10:00:00.000Z\",\"kind\":\"main\"}\n".to_owned();
    for turn in 0..turns {
        text += &format!(
            "{{\"id\":\"u{turn}\",\"timestamp\":\"2026-01-05T10:{turn:02}:00.000Z\",\"type\":\"user\",\"content\":[{{\"text\":\"Go on with step {turn}.\"}}]}}\n"
        );
        text += &format!(
            "{{\"id\":\"g{turn}\",\"timestamp\":\"2026-01-05T10:{turn:02}:30.000Z\",\"type\":\"gemini\",\"content\":[{{\"text\":\"{}\"}}],\"model\":\"gemini-2.5-pro\"}}\n",
            words(turn)
        );
    }
    text
}

#[test]
fn sessions_of_every_agent_are_listed_newest_first() {
    let home = Home::of_all();
    let report = home.json(&["sessions"]);
    let rows = report["sessions"].as_array().unwrap();
    let agents: Vec<&str> = rows.iter().map(|row| row["agent"].as_str().unwrap()).collect();
    assert_eq!(agents, ["claude-code", "codex", "pi", "gemini"]);
    for (row, (file, model)) in rows.iter().zip([
        (CLAUDE, "claude-sonnet-4-5"),
        (CODEX, "gpt-5.1-codex"),
        (PI, "claude-opus-4-5"),
        (GEMINI, "gemini-2.5-pro"),
    ]) {
        assert_eq!(row["file"], home.path().join(file).display().to_string());
        let session = &row["session"];
        assert_eq!((&session["model"], &session["messages"]), (&model.into(), &6.into()), "{row}");
        let (tokens, limit) =
            (session["tokens"].as_u64().unwrap(), session["pressure"]["limit"].as_u64().unwrap());
        assert!((100..2_000).contains(&tokens) && limit > 100_000, "{row}");
        let share = session["pressure"]["occupancy_basis_points"].as_u64().unwrap();
        assert_eq!(share, tokens * 10_000 / limit);
        // What the list says is what `measure` says.
        let measured = home.json(&["measure", row["file"].as_str().unwrap()]);
        assert_eq!(measured["measurement"]["tokens"], tokens);
    }
    assert_eq!(rows[0]["project"], "/srv/api");
    assert_eq!(rows[3]["project"], "api");
    let output = home.run(&["sessions"]);
    let lines: Vec<&str> = stdout(&output).lines().collect();
    assert!(lines[1].starts_with("1 h ago     claude-code  /srv/api"), "{lines:?}");
    assert!(lines[2].trim() == format!("~/{CLAUDE}") && lines.len() == 9, "{lines:?}");
    assert!(!stdout(&output).contains('\u{1b}'), "no colors in a file");
}

#[test]
fn the_list_is_cut_and_filtered() {
    let mut home = Home::of_all();
    for at in 0..3 {
        home.add(&format!(".pi/agent/sessions/--srv-web--/{at}.jsonl"), &pi(1));
    }
    let report = home.json(&["sessions", "--limit", "2"]);
    assert_eq!(report["sessions"].as_array().unwrap().len(), 2);
    assert_eq!(report["not_shown"], 5);
    let report = home.json(&["sessions", "--agent", "pi", "--agent", "gemini", "--all"]);
    assert_eq!((report["sessions"].as_array().unwrap().len(), &report["not_shown"]), (5, &0.into()));
    let words = home.run(&["sessions", "--limit", "2"]);
    assert!(stdout(&words).ends_with("not shown: 5 older (--all shows them)\n"), "{}", stdout(&words));
    let elsewhere = Home::new();
    let report = elsewhere.json(&["sessions", "--home", home.path().to_str().unwrap()]);
    assert_eq!(report["sessions"].as_array().unwrap().len(), 7);
    let nothing = elsewhere.run(&["sessions", "--agent", "codex"]);
    assert_eq!(nothing.status.code(), Some(0));
    assert!(stdout(&nothing).contains("no sessions found") && stdout(&nothing).contains("~/.codex/sessions"));
    assert_eq!(elsewhere.run(&["sessions", "--agent", "nobody"]).status.code(), Some(2));
}

#[test]
fn what_is_no_session_is_left_out_or_has_a_reason() {
    let mut home = Home::new();
    home.add(".pi/agent/sessions/--w--/damaged.jsonl", "no session at all");
    home.add(".pi/agent/sessions/--w--/nothing.jsonl", "");
    home.add(".pi/agent/sessions/--w--/unsaid.jsonl", "{\"type\":\"session\",\"id\":\"1\",\"cwd\":\"/w\"}\n");
    home.add(
        ".codex/sessions/2026/01/05/rollout-sub.jsonl",
        &codex(1).replace("\"cli\"", "{\"subagent\":\"review\"}"),
    );
    home.add(".gemini/tmp/x/chats/session-sub.jsonl", &gemini(1).replace("\"main\"", "\"subagent\""));
    home.add(".pi/agent/sessions/--w--/torn.jsonl", &format!("{}{{\"type\":\"message\",\"mess", pi(2)));
    home.add(".pi/agent/sessions/--w--/foreign.jsonl", &pi(1).replace("claude-opus-4-5", "nobody-knows-me"));
    let report = home.json(&["sessions", "--limit", "3"]);
    let rows = report["sessions"].as_array().unwrap();
    assert_eq!(rows.len(), 3, "what is left out does not count");
    assert_eq!(rows[0]["reason"], "not valid JSON at line 1, byte 1");
    assert_eq!(rows[1]["session"]["messages"], 4);
    assert_eq!(
        (&rows[2]["session"]["model"], &rows[2]["session"]["pressure"]),
        (&"nobody-knows-me".into(), &Value::Null)
    );
    assert!(rows[2]["session"]["tokens"].as_u64().unwrap() > 100);
    assert_eq!((&report["left_out"]["empty"], &report["left_out"]["sub_agents"]), (&2.into(), &2.into()));
    let words = home.run(&["sessions"]);
    assert!(stdout(&words).contains("window not known"));
    assert!(stdout(&words).contains("not shown: 2 empty, 2 of sub-agents"), "{}", stdout(&words));
}

#[test]
fn a_terminal_obeys_nothing_that_a_session_says() {
    let mut home = Home::new();
    let hostile = pi(1)
        .replace("/srv/api", "/srv\\u001b[2J\\u0007/api")
        .replace("claude-opus-4-5", "x\\u001b]0;y\\u0007");
    home.add(".pi/agent/sessions/--w--/a\u{1b}[31mb.jsonl", &hostile);
    let output = home.run(&["sessions"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(!stdout(&output).chars().any(|character| character.is_control() && character != '\n'));
    assert!(stdout(&output).contains("a\u{fffd}[31mb.jsonl"), "{}", stdout(&output));
}

#[cfg(unix)]
#[test]
fn folders_that_cannot_be_read_stop_nothing() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let mut home = Home::of_all();
    let closed = home.add(".pi/agent/sessions/--closed--/1.jsonl", &pi(1));
    let folder = closed.parent().unwrap();
    symlink(home.path().join(".pi"), home.path().join(".pi/agent/sessions/round")).unwrap();
    symlink("gone", home.path().join(".claude/projects/gone")).unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o000)).unwrap();
    // Who may read everything reads this too.
    let is_closed = fs::read_dir(folder).is_err();
    let report = home.json(&["sessions"]);
    let words = home.run(&["sessions"]);
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(report["sessions"].as_array().unwrap().len(), if is_closed { 4 } else { 5 });
    assert_eq!(report["unreadable"].as_array().unwrap().len(), usize::from(is_closed));
    assert_eq!(stdout(&words).contains("cannot look into ~/.pi/agent/sessions/--closed--"), is_closed);
}

#[test]
fn the_newest_session_is_compacted_into_the_current_folder() {
    for (agent, file, session) in [
        ("claude-code", CLAUDE, claude(60)),
        ("codex", CODEX, codex(60)),
        ("pi", PI, pi(60)),
        ("gemini", GEMINI, gemini(60)),
    ] {
        let mut home = Home::new();
        // An empty file is newer, and other sessions are older.
        home.add(&file.replace("2026-01-05", "2026-01-06").replace("0c7e1f52", "newer"), "");
        let newest = home.add(file, &session);
        home.add(&file.replace("2026-01-05", "2026-01-04").replace("0c7e1f52", "older"), &session);
        let before: Vec<PathBuf> = files(home.path());
        let report = home.json(&["compact", "--latest", agent, "--force", "--window", "8000"]);
        assert_eq!(report["outcome"], "compacted", "{report}");
        assert_eq!(report["session"], newest.display().to_string());
        let name = newest.file_stem().unwrap().to_str().unwrap();
        let expected = format!("./{name}.compacted.jsonl");
        assert_eq!(report["written"]["file"], expected);
        let written = home.path().join("here").join(&expected);
        assert!(fs::metadata(&written).unwrap().len() < session.len() as u64);
        assert_eq!(fs::read_to_string(&newest).unwrap(), session, "the session itself is not touched");
        let after: Vec<PathBuf> = files(home.path());
        assert_eq!(after.len(), before.len() + 1, "nothing else is written");
        let measured = home.json(&["measure", "--latest", agent]);
        assert_eq!((&measured["session"], &measured["messages"]), (&report["session"], &120.into()));
        let dry = home.run(&["compact", "--latest", agent, "--force", "--window", "8000", "--dry-run"]);
        assert!(stdout(&dry).contains(&format!("session   {}", newest.display())), "{}", stdout(&dry));
    }
}

#[test]
fn the_newest_session_is_asked_for_alone() {
    let home = Home::of_all();
    for args in [
        &["compact", "--latest", "pi", "x.jsonl"][..],
        &["measure", "--home", ".", "x.jsonl"],
        &["measure", "--latest", "nobody"],
        &["measure"],
    ] {
        assert_eq!(home.run(args).status.code(), Some(2), "{args:?}");
    }
    let elsewhere = Home::new();
    let none = elsewhere.run(&["measure", "--latest", "codex"]);
    assert_eq!(none.status.code(), Some(3));
    assert!(stderr(&none).contains("no session of codex under"), "{}", stderr(&none));
    let report = elsewhere.json(&["measure", "--latest", "pi", "--home", home.path().to_str().unwrap()]);
    assert_eq!(report["messages"], 6);
}

#[test]
fn nothing_is_written_into_the_folder_of_the_agent() {
    let home = Home::of_all();
    let sessions = home.path().join(".pi/agent/sessions/--srv-api--");
    let mut command = command(&sessions);
    command.args(["compact", "--latest", "pi", "--force"]).env("HOME", home.path());
    let refused = command.output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--out FILE"), "{}", stderr(&refused));
    assert_eq!(files(&sessions).len(), 1);
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut left = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { left.push(path) } else { files.push(path) }
        }
    }
    files
}

/// What a provider reported for an answer, written behind what each agent records of it.
fn with_report(agent: &str, session: &str, tokens: u64) -> String {
    match agent {
        "claude-code" => session.replace(
            "\"model\":\"claude-sonnet-4-5\",",
            &format!("\"model\":\"claude-sonnet-4-5\",\"usage\":{{\"input_tokens\":{tokens},\"output_tokens\":1}},"),
        ),
        "pi" => session.replace(
            "\"provider\":\"anthropic\",\"model\"",
            &format!(
                "\"usage\":{{\"input\":{tokens},\"output\":1,\"cacheRead\":0,\"cacheWrite\":0}},\"provider\":\"anthropic\",\"model\""
            ),
        ),
        _ => format!(
            "{session}{{\"timestamp\":\"2026-01-05T11:00:00.000Z\",\"type\":\"event_msg\",\"payload\":{{\"type\":\"token_count\",\"info\":{{\"last_token_usage\":{{\"input_tokens\":{tokens},\"output_tokens\":1}}}}}}}}\n"
        ),
    }
}

#[test]
fn a_figure_from_before_our_compaction_is_void_and_a_newer_one_counts() {
    for (agent, path, session) in
        [("claude-code", CLAUDE, claude(30)), ("pi", PI, pi(30)), ("codex", CODEX, codex(30))]
    {
        let mut home = Home::new();
        home.add(path, &with_report(agent, &session, 40_000));
        let report = home.json(&["measure", "--latest", agent]);
        assert_eq!(report["unseen_source"], "reported", "{agent}");
        let out = home.path().join("here/out.jsonl");
        let compact = ["compact", "--latest", agent, "--force", "--quiet", "--out", "out.jsonl"];
        let compacted = home.run(&compact);
        assert_eq!(compacted.status.code(), Some(0), "{agent}: {}", stderr(&compacted));
        let report = home.json(&["measure", "out.jsonl"]);
        assert_eq!(report["unseen_source"], "unknown", "{agent}");
        assert!(report["measurement"]["tokens"].as_u64().unwrap() < 20_000, "{agent}: {report}");

        let whole = with_report(agent, &session.replace("2026-01-05", "2026-01-06"), 50_000);
        let opening = whole.lines().take_while(|line| !line.contains("Go on with step 0.")).count();
        let mut further: String = whole.lines().skip(opening).map(|line| format!("{line}\n")).collect();
        for turn in 0..30 {
            for name in ["u", "a", "m"] {
                further = further.replace(&format!("\"{name}{turn}\""), &format!("\"{name}-{turn}\""));
            }
        }
        let compacted = fs::read_to_string(&out).unwrap();
        fs::write(&out, compacted + &further).unwrap();
        let report = home.json(&["measure", "out.jsonl"]);
        assert_eq!(report["unseen_source"], "reported", "{agent}");
        assert!(report["measurement"]["tokens"].as_u64().unwrap() >= 50_000, "{agent}: {report}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_with_a_name_that_is_no_text_is_listed() {
    use std::os::unix::ffi::OsStrExt as _;
    let mut home = Home::new();
    let shown = home.add(PI, &pi(3));
    let name = std::ffi::OsStr::from_bytes(b"bad\xff.jsonl");
    fs::rename(&shown, shown.with_file_name(name)).unwrap();
    let listed = home.run(&["sessions"]);
    assert!(stdout(&listed).contains("bad\u{fffd}.jsonl"), "{}", stdout(&listed));
}

#[test]
fn a_home_that_is_named_from_here_is_shown_whole() {
    let mut home = Home::new();
    home.add(PI, &pi(3));
    let report = home.json(&["sessions", "--home", ".."]);
    let file = report["sessions"][0]["file"].as_str().unwrap();
    assert!(Path::new(file).is_absolute(), "{file}");
}
