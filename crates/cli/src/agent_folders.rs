//! Where coding agents keep their sessions, and which of the files there are sessions.
//!
//! Nothing here looks into a session: a home folder goes in, names, times and sizes come out.

use std::ffi::OsString;
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::ValueEnum;
use serde::Serialize;

/// A coding agent whose sessions lie in a usual folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Agent {
    /// projects/*/*.jsonl in ~/.claude or CLAUDE_CONFIG_DIR.
    ClaudeCode,
    /// sessions/Y/M/D/rollout-*.jsonl in ~/.codex or CODEX_HOME.
    Codex,
    /// sessions/*/*.jsonl in ~/.pi/agent or PI_CODING_AGENT_DIR.
    Pi,
    /// The command line: .gemini/tmp/*/chats/session-* in ~ or GEMINI_CLI_HOME.
    Gemini,
}

impl Agent {
    /// Every agent, in the order in which they are listed to people.
    pub(crate) const ALL: [Self; 4] = [Self::ClaudeCode, Self::Codex, Self::Pi, Self::Gemini];

    /// The stable name.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Pi => "pi",
            Self::Gemini => "gemini",
        }
    }
}

/// The folders under which the agents keep their sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentFolders {
    claude_code: PathBuf,
    codex: PathBuf,
    pi: PathBuf,
    gemini: PathBuf,
}

impl AgentFolders {
    /// The usual folders in a home folder.
    pub(crate) fn of_home(home: &Path) -> Self {
        Self::of_environment(home, |_| None)
    }

    /// The folders as the agents find them: in the home folder, unless a variable of the environment names
    /// another place.
    pub(crate) fn of_environment(home: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let place = |name: &str, usual: &str| {
            let named = variable(name).filter(|value| !value.is_empty());
            named.map_or_else(|| home.join(usual), PathBuf::from)
        };
        let pi = place("PI_CODING_AGENT_DIR", ".pi/agent").join("sessions");
        Self {
            claude_code: place("CLAUDE_CONFIG_DIR", ".claude").join("projects"),
            codex: place("CODEX_HOME", ".codex").join("sessions"),
            pi: match variable("PI_CODING_AGENT_SESSION_DIR").filter(|value| !value.is_empty()) {
                Some(sessions) => PathBuf::from(sessions),
                None => pi,
            },
            gemini: place("GEMINI_CLI_HOME", "").join(".gemini").join("tmp"),
        }
    }

    /// Where one agent keeps its sessions.
    pub(crate) fn of(&self, agent: Agent) -> &Path {
        match agent {
            Agent::ClaudeCode => &self.claude_code,
            Agent::Codex => &self.codex,
            Agent::Pi => &self.pi,
            Agent::Gemini => &self.gemini,
        }
    }
}

/// A file that holds a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionFile {
    pub(crate) agent: Agent,
    pub(crate) path: PathBuf,
    /// When it was written last.
    pub(crate) modified: SystemTime,
    pub(crate) bytes: u64,
    /// The folder of the project, where something beside the session says it.
    pub(crate) project: Option<String>,
}

/// What the folders hold.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The sessions, newest first. Files of sub-agents that lie apart are not among them.
    pub(crate) files: Vec<SessionFile>,
    /// Folders and files that cannot be looked at.
    pub(crate) unreadable: Vec<(PathBuf, io::ErrorKind)>,
}

/// Looks for the sessions of some agents.
///
/// Links are followed, except into the folder that is being searched, which is searched anyway; the depth is
/// that of the agent's own layout, so circles of links end.
pub(crate) fn find(folders: &AgentFolders, agents: &[Agent]) -> Found {
    let mut found = Found::default();
    for &agent in agents {
        let root = folders.of(agent);
        Walk { agent, root, found: &mut found }.folder(root, 0);
    }
    found
        .files
        .sort_by(|one, other| other.modified.cmp(&one.modified).then_with(|| one.path.cmp(&other.path)));
    found
}

/// A search through the folders of one agent.
struct Walk<'a> {
    agent: Agent,
    root: &'a Path,
    found: &'a mut Found,
}

impl Walk<'_> {
    /// How many folders lie between the root and a session.
    fn depth(&self) -> usize {
        match self.agent {
            Agent::ClaudeCode | Agent::Pi => 1,
            Agent::Gemini => 2,
            Agent::Codex => 3,
        }
    }

    fn folder(&mut self, folder: &Path, depth: usize) {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            // An agent that was never used has no folder.
            Err(fault) if depth == 0 && fault.kind() == io::ErrorKind::NotFound => return,
            Err(fault) => return self.found.unreadable.push((folder.to_owned(), fault.kind())),
        };
        for entry in entries {
            match entry {
                Ok(entry) => self.entry(&entry, depth),
                Err(fault) => self.found.unreadable.push((folder.to_owned(), fault.kind())),
            }
        }
    }

    fn entry(&mut self, entry: &DirEntry, depth: usize) {
        let name = entry.file_name();
        // A name that is no text is looked at all the same; an agent's marks in it are.
        let name = &*name.to_string_lossy();
        let is_session = depth == self.depth() && self.is_session(name);
        let is_folder = depth < self.depth() && self.is_folder(name, depth);
        if !is_session && !is_folder {
            return;
        }
        let path = entry.path();
        match self.looked_up(entry, &path) {
            Ok(Some(meta)) if is_folder && meta.is_dir() => self.folder(&path, depth + 1),
            Ok(Some(meta)) if is_session && meta.is_file() => self.session(path, &meta),
            Ok(_) => {}
            Err(fault) => self.found.unreadable.push((path, fault.kind())),
        }
    }

    /// What an entry is, through links; nothing for a link that leads nowhere, or to what is found without it.
    fn looked_up(&self, entry: &DirEntry, path: &Path) -> io::Result<Option<Metadata>> {
        if !entry.file_type()?.is_symlink() {
            return entry.metadata().map(Some);
        }
        let Ok(target) = fs::canonicalize(path) else { return Ok(None) };
        let is_inside = fs::canonicalize(self.root).is_ok_and(|root| target.starts_with(root));
        if is_inside { Ok(None) } else { fs::metadata(target).map(Some) }
    }

    fn is_folder(&self, name: &str, depth: usize) -> bool {
        let number = |digits: usize| name.len() == digits && name.bytes().all(|byte| byte.is_ascii_digit());
        match (self.agent, depth) {
            (Agent::Codex, 0) => number(4),
            (Agent::Codex, _) => number(2),
            (Agent::Gemini, 1) => name == "chats",
            _ => true,
        }
    }

    fn is_session(&self, name: &str) -> bool {
        let is_lines = name.ends_with(".jsonl");
        match self.agent {
            // Older versions keep what sub-agents did beside the sessions.
            Agent::ClaudeCode => is_lines && !name.starts_with("agent-"),
            Agent::Codex => is_lines && name.starts_with("rollout-"),
            Agent::Pi => is_lines,
            Agent::Gemini => name.starts_with("session-") && (is_lines || name.ends_with(".json")),
        }
    }

    fn session(&mut self, path: PathBuf, meta: &Metadata) {
        // A session of the old form that was resumed goes on in a file of lines beside it.
        if self.agent == Agent::Gemini && path.extension().is_some_and(|extension| extension == "json") {
            let mut lines = path.clone().into_os_string();
            lines.push("l");
            if fs::metadata(lines).is_ok_and(|meta| meta.is_file()) {
                return;
            }
        }
        let project = match self.agent {
            Agent::Gemini => gemini_project(&path),
            _ => None,
        };
        self.found.files.push(SessionFile {
            agent: self.agent,
            path,
            modified: meta.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            bytes: meta.len(),
            project,
        });
    }
}

/// The project of a Gemini session: what `.project_root` beside the folder of the chats says, else the name of
/// that folder, which is a short name or a hash.
fn gemini_project(path: &Path) -> Option<String> {
    const LONGEST: u64 = 4_096;
    let folder = path.parent()?.parent()?;
    let marker = folder.join(".project_root");
    let said = fs::metadata(&marker)
        .is_ok_and(|meta| meta.is_file() && meta.len() <= LONGEST)
        .then(|| fs::read_to_string(&marker).ok())
        .flatten();
    match said.as_deref().map(str::trim).filter(|said| !said.is_empty()) {
        Some(said) => Some(said.to_owned()),
        None => Some(folder.file_name()?.to_string_lossy().into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home_with(files: &[&str]) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        for file in files {
            let path = home.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{}\n").unwrap();
        }
        home
    }

    fn found(home: &Path, agents: &[Agent]) -> Vec<String> {
        let found = find(&AgentFolders::of_home(home), agents);
        assert!(found.unreadable.is_empty(), "{:?}", found.unreadable);
        let mut paths: Vec<String> = found
            .files
            .iter()
            .map(|file| file.path.strip_prefix(home).unwrap().to_str().unwrap().to_owned())
            .collect();
        paths.sort();
        paths
    }

    const SESSIONS: [&str; 6] = [
        ".claude/projects/-srv-api/0c7e.jsonl",
        ".codex/sessions/2026/01/05/rollout-2026-01-05T10-00-00-1.jsonl",
        ".gemini/tmp/5eb97e/chats/session-2026-01-05T10-00-3bacc8a0.json",
        ".gemini/tmp/api/chats/session-2026-02-05T10-00-4bacc8a0.jsonl",
        ".pi/agent/sessions/--srv-api--/2026_1.jsonl",
        ".pi/agent/sessions/--srv-web--/2026_2.jsonl",
    ];

    #[test]
    fn sessions_are_found_and_other_files_are_not() {
        let home = home_with(&SESSIONS);
        for other in [
            ".claude/projects/-srv-api/agent-a1.jsonl",
            ".claude/projects/-srv-api/0c7e/subagents/agent-b2.jsonl",
            ".claude/projects/-srv-api/notes.md",
            ".claude/projects/loose.jsonl",
            ".codex/sessions/2026/01/05/history.jsonl",
            ".codex/sessions/old/01/05/rollout-1.jsonl",
            ".codex/history.jsonl",
            ".gemini/tmp/api/chats/3bacc8a0/deep.jsonl",
            ".gemini/tmp/api/chats/session-2026-02-05T10-00-4bacc8a0.json",
            ".gemini/tmp/api/logs.json",
            ".pi/agent/sessions/flat.jsonl",
        ] {
            let path = home.path().join(other);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{}").unwrap();
        }
        assert_eq!(found(home.path(), &Agent::ALL), SESSIONS);
        assert_eq!(found(home.path(), &[Agent::Pi]), SESSIONS[4..]);
        assert_eq!(found(&home.path().join("nobody"), &Agent::ALL), [""; 0]);
    }

    #[test]
    fn the_newest_comes_first() {
        let home = home_with(&SESSIONS);
        for (age, file) in SESSIONS.iter().enumerate() {
            let file = fs::File::options().append(true).open(home.path().join(file)).unwrap();
            let hour = std::time::Duration::from_secs(3_600);
            file.set_modified(SystemTime::UNIX_EPOCH + hour * u32::try_from(age).unwrap()).unwrap();
        }
        let files = find(&AgentFolders::of_home(home.path()), &Agent::ALL).files;
        let ages: Vec<Agent> = files.iter().map(|file| file.agent).collect();
        assert_eq!(ages[..3], [Agent::Pi, Agent::Pi, Agent::Gemini]);
    }

    #[test]
    fn gemini_says_the_project_beside_the_chats() {
        let home = home_with(&SESSIONS);
        fs::write(home.path().join(".gemini/tmp/api/.project_root"), "/srv/api\n").unwrap();
        let files = find(&AgentFolders::of_home(home.path()), &[Agent::Gemini]).files;
        let mut projects: Vec<&str> = files.iter().map(|file| file.project.as_deref().unwrap()).collect();
        projects.sort_unstable();
        assert_eq!(projects, ["/srv/api", "5eb97e"]);
    }

    #[test]
    fn the_environment_moves_folders() {
        let named = |name: &str| match name {
            "CODEX_HOME" => Some("/else/codex".into()),
            "PI_CODING_AGENT_DIR" => Some("".into()),
            "GEMINI_CLI_HOME" => Some("/else".into()),
            _ => None,
        };
        let folders = AgentFolders::of_environment(Path::new("/home/ada"), named);
        assert_eq!(folders.of(Agent::ClaudeCode), Path::new("/home/ada/.claude/projects"));
        assert_eq!(folders.of(Agent::Codex), Path::new("/else/codex/sessions"));
        assert_eq!(folders.of(Agent::Pi), Path::new("/home/ada/.pi/agent/sessions"));
        assert_eq!(folders.of(Agent::Gemini), Path::new("/else/.gemini/tmp"));
    }

    #[cfg(unix)]
    #[test]
    fn links_in_circles_end_and_nothing_is_found_twice() {
        use std::os::unix::fs::symlink;
        let home = home_with(&SESSIONS);
        let projects = home.path().join(".claude/projects");
        symlink(&projects, projects.join("again")).unwrap();
        symlink(projects.join("-srv-api"), projects.join("same")).unwrap();
        symlink("nowhere", projects.join("dangling")).unwrap();
        symlink("self.jsonl", projects.join("-srv-api/self.jsonl")).unwrap();
        symlink("0c7e.jsonl", projects.join("-srv-api/copy.jsonl")).unwrap();
        assert_eq!(found(home.path(), &[Agent::ClaudeCode]), SESSIONS[..1]);
        // What lies elsewhere is found through its link.
        let elsewhere = home_with(&["moved/1.jsonl"]);
        symlink(elsewhere.path().join("moved"), projects.join("moved")).unwrap();
        assert_eq!(found(home.path(), &[Agent::ClaudeCode]).len(), 2);
    }
}
