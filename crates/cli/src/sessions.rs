//! `epitome sessions`: what the coding agents on this machine have been told, and how full it is.

use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::SystemTime;

use serde::Serialize;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::agent_folders::{Agent, AgentFolders, Found, SessionFile, find};
use crate::args::SessionsArgs;
use crate::failure::Failure;
use crate::input::Progress;
use crate::profile::built_in;
use crate::report::{
    MeasurementReport, VERSION, emphasis, harmless, listed, pressure_bar, print_json, printable, tokens,
};
use crate::survey::{Measured, Pressure, Survey, survey};
use crate::utc_time::{ago, utc};

#[derive(Serialize)]
struct Report {
    report: u32,
    sessions: Vec<Row>,
    /// Sessions that were not looked at because enough are shown.
    not_shown: usize,
    /// Files that are shown nowhere, by the reason.
    left_out: LeftOut,
    /// Folders and files that cannot be looked at.
    unreadable: Vec<Unreadable>,
}

#[derive(Serialize)]
struct Row {
    agent: Agent,
    file: String,
    modified: String,
    bytes: u64,
    project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<SessionRow>,
    /// Why the session could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip)]
    time: SystemTime,
}

#[derive(Serialize)]
struct SessionRow {
    format: &'static str,
    provider: Option<String>,
    model: Option<String>,
    messages: usize,
    tokens: u64,
    quality: &'static str,
    /// Nothing when the model's window is not known.
    pressure: Option<Pressure>,
}

#[derive(Clone, Copy, Default, Serialize)]
struct LeftOut {
    empty: usize,
    sub_agents: usize,
}

#[derive(Serialize)]
struct Unreadable {
    path: String,
    reason: String,
}

/// Lists sessions.
pub(crate) fn run(args: &SessionsArgs) -> Result<(), Failure> {
    let folders = folders(args.home.as_deref())?;
    let agents = if args.agent.is_empty() { &Agent::ALL[..] } else { &args.agent };
    let Found { files, unreadable } = find(&folders, agents);
    let most = if args.all { usize::MAX } else { args.limit };
    let progress = Progress::new(args.json);
    let (sessions, looked_at, left_out) = look(&files, most, &progress)?;
    progress.done();
    let unreadable = unreadable
        .into_iter()
        .map(|(path, kind)| Unreadable { path: path.display().to_string(), reason: kind.to_string() });
    let report = Report {
        report: VERSION,
        sessions,
        not_shown: files.len() - looked_at,
        left_out,
        unreadable: unreadable.collect(),
    };
    if args.json {
        return print_json(&report);
    }
    let mut out = anstream::stdout().lock();
    let named = args.home.as_ref().and_then(|home| std::path::absolute(home).ok());
    let home = named.or_else(std::env::home_dir);
    let page = Page { now: SystemTime::now(), home, with_bars: io::stdout().is_terminal() };
    show(&mut out, &report, &page, &folders, agents).map_err(Failure::io("standard output"))
}

/// The folders of a home folder that was named, else those that the agents of this user find.
pub(crate) fn folders(home: Option<&Path>) -> Result<AgentFolders, Failure> {
    match home {
        Some(home) => {
            let whole = std::path::absolute(home).map_err(Failure::io(home))?;
            Ok(AgentFolders::of_home(&whole))
        }
        None => {
            let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
            Ok(AgentFolders::of_environment(&home.ok_or(Failure::NoHome)?, |name| std::env::var_os(name)))
        }
    }
}

/// Looks at the newest files until `most` of them are sessions: the rows, how many files were looked at, and
/// what was left out.
fn look(
    files: &[SessionFile],
    most: usize,
    progress: &Progress,
) -> Result<(Vec<Row>, usize, LeftOut), Failure> {
    let mut rows = Vec::new();
    let mut left_out = LeftOut::default();
    let mut looked_at = 0;
    while rows.len() < most {
        let rest = files.get(looked_at..).unwrap_or_default();
        let (next, _) = rest.split_at(rest.len().min(most - rows.len()));
        if next.is_empty() {
            break;
        }
        looked_at += next.len();
        for (file, survey) in next.iter().zip(surveys(next, progress)?) {
            let (project, session, reason) = match survey {
                Survey::Empty => {
                    left_out.empty += 1;
                    continue;
                }
                Survey::SubAgent => {
                    left_out.sub_agents += 1;
                    continue;
                }
                Survey::Unreadable { project, reason } => (project, None, Some(reason)),
                Survey::Measured(measured) => {
                    let Measured { project, format, provider, model, messages, tokens, quality, pressure } =
                        *measured;
                    let row = SessionRow { format, provider, model, messages, tokens, quality, pressure };
                    (project, Some(row), None)
                }
            };
            rows.push(Row {
                agent: file.agent,
                file: file.path.display().to_string(),
                modified: utc(file.modified),
                bytes: file.bytes,
                project,
                session,
                reason,
                time: file.modified,
            });
        }
    }
    Ok((rows, looked_at, left_out))
}

/// Looks at files side by side, and gives what they bring in their order.
fn surveys(files: &[SessionFile], progress: &Progress) -> Result<Vec<Survey>, Failure> {
    /// Each look holds a whole session in memory.
    const MOST_AT_ONCE: usize = 4;
    let at_once = thread::available_parallelism().map_or(1, usize::from).clamp(1, MOST_AT_ONCE);
    let policy = built_in()?;
    progress.start("reading sessions", files.iter().map(|file| file.bytes).sum());
    let left = Mutex::new((files.iter().enumerate(), 0_u64));
    let done: Vec<(usize, Survey)> = thread::scope(|scope| {
        let work = || {
            let mut own = Vec::new();
            loop {
                let next = left.lock().ok().and_then(|mut left| left.0.next());
                let Some((at, file)) = next else { return own };
                own.push((at, survey(file, &policy)));
                if let Ok(mut left) = left.lock() {
                    left.1 += file.bytes;
                    progress.at(left.1);
                }
            }
        };
        let workers: Vec<_> = (0..at_once.min(files.len())).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    let broken_off = || Survey::Unreadable { project: None, reason: "reading it broke off".to_owned() };
    let mut surveys: Vec<Survey> = files.iter().map(|_| broken_off()).collect();
    for (at, survey) in done {
        if let Some(place) = surveys.get_mut(at) {
            *place = survey;
        }
    }
    Ok(surveys)
}

/// How the list is shown.
struct Page {
    now: SystemTime,
    home: Option<PathBuf>,
    with_bars: bool,
}

/// Widths of the columns that are cut where they are too long.
const PROJECT: usize = 28;
const MODEL: usize = 24;

fn show(
    out: &mut impl Write,
    report: &Report,
    page: &Page,
    folders: &AgentFolders,
    agents: &[Agent],
) -> io::Result<()> {
    if report.sessions.is_empty() {
        writeln!(out, "no sessions found; looked into")?;
        for agent in agents {
            writeln!(
                out,
                "  {:<12} {}",
                agent.as_str(),
                page.short(&folders.of(*agent).display().to_string())
            )?;
        }
    } else {
        let head = format!(
            "{:<11} {:<12} {:<PROJECT$} {:<MODEL$} {:>8} {:>11}  pressure",
            "time", "agent", "project", "model", "messages", "tokens"
        );
        writeln!(out, "{}", emphasis(head))?;
    }
    report.sessions.iter().try_for_each(|row| page.row(out, row))?;
    let LeftOut { empty, sub_agents } = report.left_out;
    let parts = [
        (report.not_shown, "older", "--all shows them"),
        (empty, "empty", ""),
        (sub_agents, "of sub-agents", ""),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, kind, hint)| {
            let hint = if hint.is_empty() { String::new() } else { format!(" ({hint})") };
            format!("{} {kind}{hint}", tokens(*count as u64))
        })
        .collect();
    if !parts.is_empty() {
        writeln!(out, "not shown: {}", parts.join(", "))?;
    }
    let unreadable: Vec<String> = report
        .unreadable
        .iter()
        .map(|Unreadable { path, reason }| format!("{}: {reason}", page.short(path)))
        .collect();
    listed(&unreadable).try_for_each(|line| writeln!(out, "cannot look into {line}"))
}

impl Page {
    fn row(&self, out: &mut impl Write, row: &Row) -> io::Result<()> {
        let time = ago(row.time, self.now);
        let project = self.short(row.project.as_deref().unwrap_or("-"));
        let project = padded(&cut_front(&project, PROJECT), PROJECT);
        write!(out, "{time:<11} {:<12} {project} ", row.agent.as_str())?;
        match (&row.session, &row.reason) {
            (Some(session), _) => self.session(out, session)?,
            (None, reason) => writeln!(out, "{}", printable(reason.as_deref().unwrap_or_default()))?,
        }
        writeln!(out, "            {}", faint(self.short(&row.file)))
    }

    fn session(&self, out: &mut impl Write, session: &SessionRow) -> io::Result<()> {
        let SessionRow { model, messages, tokens: taken, quality, pressure, .. } = session;
        let model = padded(&cut_back(&printable(model.as_deref().unwrap_or("-")), MODEL), MODEL);
        write!(out, "{model} {:>8} {:>11}  ", tokens(*messages as u64), tokens(*taken))?;
        let Some(Pressure { limit, occupancy_basis_points }) = *pressure else {
            return writeln!(out, "window not known");
        };
        let measured = MeasurementReport { tokens: *taken, limit, occupancy_basis_points, quality };
        let bar = if self.with_bars { format!("  {}", pressure_bar(&measured)) } else { String::new() };
        writeln!(out, "{:>6.1} %{bar}", measured.percent())
    }

    /// A path with the home folder written short, as a terminal may show it.
    fn short(&self, path: &str) -> String {
        let inside = self.home.as_ref().and_then(|home| Path::new(path).strip_prefix(home).ok());
        match inside {
            Some(inside) if !inside.as_os_str().is_empty() => harmless(&format!("~/{}", inside.display())),
            Some(_) => "~".to_owned(),
            None => harmless(path),
        }
    }
}

/// Text that steps back at a terminal.
fn faint(text: impl std::fmt::Display) -> String {
    let style = anstyle::Style::new().dimmed();
    format!("{style}{text}{style:#}")
}

/// The end of a text that is too long: of a path it tells most.
fn cut_front(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let mut room = most.saturating_sub(1);
    let fits = |at: &char| {
        let left = room.checked_sub(at.width().unwrap_or(0));
        room = left.unwrap_or(0);
        left.is_some()
    };
    let end: Vec<char> = text.chars().rev().take_while(fits).collect();
    std::iter::once('…').chain(end.into_iter().rev()).collect()
}

/// The start of a text that is too long.
fn cut_back(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let mut room = most.saturating_sub(1);
    let fits = |at: &char| {
        let left = room.checked_sub(at.width().unwrap_or(0));
        room = left.unwrap_or(0);
        left.is_some()
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// A text with blanks behind it up to a width, in columns of a terminal.
fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_where_it_tells_least() {
        assert_eq!(cut_front("~/srv/api", 10), "~/srv/api");
        assert_eq!(cut_front("/very/long/srv/api", 9), "…/srv/api");
        assert_eq!(cut_back("claude-sonnet", 8), "claude-…");
        // Each of these takes two columns.
        assert_eq!(cut_front("/srv/日本語", 8), "…/日本語");
        assert_eq!(cut_front("/srv/日本語", 7), "…日本語");
        assert_eq!(cut_back("日本語", 4), "日…");
        assert_eq!(padded("日本", 6), "日本  ");
    }

    #[test]
    fn paths_are_short_and_harmless() {
        let page = Page { now: SystemTime::UNIX_EPOCH, home: Some("/home/ada".into()), with_bars: false };
        assert_eq!(page.short("/home/ada/srv"), "~/srv");
        assert_eq!(page.short("/home/ada"), "~");
        assert_eq!(page.short("/home/adam/x"), "/home/adam/x");
        assert_eq!(page.short("/home/ada/a\u{1b}[2Jb\n"), "~/a\u{fffd}[2Jb\u{fffd}");
    }
}
