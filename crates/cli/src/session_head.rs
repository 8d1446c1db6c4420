//! What the records of a session say about it that is no part of its messages.

use serde::Deserialize;
use serde_json::Value;

use crate::agent_folders::Agent;

/// How Codex and Gemini name what a sub-agent did.
const SUB_AGENT: &str = "subagent";

/// What a session says about itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionHead {
    /// The folder that the agent worked in.
    pub(crate) project: Option<String>,
    /// Whether it is what a sub-agent did.
    pub(crate) is_sub_agent: bool,
}

/// A record of any agent, with the fields that tell. Each may hold anything.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Record {
    cwd: Value,
    payload: Payload,
    kind: Value,
    #[serde(rename = "isSidechain")]
    is_sidechain: Value,
}

/// What Codex says at the start of a session, and at every turn.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Payload {
    cwd: Value,
    /// Who began the session: a name, or an object for a sub-agent.
    source: Value,
    thread_source: Value,
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

impl SessionHead {
    /// Reads the first records of a session, which may be damaged or none at all.
    pub(crate) fn of(bytes: &[u8], agent: Agent) -> Self {
        const MOST_RECORDS: usize = 300;
        const LONGEST: usize = 1_000_000;
        let mut head = Self::default();
        let mut sidechains = (0, 0);
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| line.len() <= LONGEST);
        let records = lines.filter_map(|line| serde_json::from_slice(line).ok()).take(MOST_RECORDS);
        // A session of Gemini may be one document, written over many lines.
        let document =
            (agent == Agent::Gemini).then(|| serde_json::from_slice::<Record>(bytes).ok()).flatten();
        for record in document.into_iter().chain(records) {
            let Record { cwd, payload, kind, is_sidechain } = record;
            let Payload { cwd: turn_cwd, source, thread_source } = payload;
            head.project = head.project.or_else(|| text(&cwd)).or_else(|| text(&turn_cwd));
            head.is_sub_agent |= match agent {
                Agent::Gemini => kind == SUB_AGENT,
                Agent::Codex => {
                    source == SUB_AGENT || thread_source == SUB_AGENT || source.get(SUB_AGENT).is_some()
                }
                _ => false,
            };
            if let Some(is_sidechain) = is_sidechain.as_bool() {
                sidechains.0 += usize::from(is_sidechain);
                sidechains.1 += 1;
            }
        }
        // Older versions of Claude Code write what sub-agents did among the rest.
        head.is_sub_agent |= sidechains.1 > 0 && sidechains.0 == sidechains.1;
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str, agent: Agent) -> (Option<String>, bool) {
        let SessionHead { project, is_sub_agent } = SessionHead::of(text.as_bytes(), agent);
        (project, is_sub_agent)
    }

    #[test]
    fn each_agent_says_where_it_works() {
        let work = || Some("/srv/api".to_owned());
        assert_eq!(
            head("{\"type\":\"session\",\"cwd\":\"/srv/api\"}\n{\"cwd\":\"/b\"}", Agent::Pi),
            (work(), false)
        );
        let meta = "{\"type\":\"session_meta\",\"payload\":{\"cwd\":\"/srv/api\",\"source\":\"cli\"}}\n";
        assert_eq!(head(meta, Agent::Codex), (work(), false));
        let claude = "{\"type\":\"summary\"}\ncut\n{\"cwd\":\"/srv/api\",\"isSidechain\":false}\n{\"isSidechain\":true}";
        assert_eq!(head(claude, Agent::ClaudeCode), (work(), false));
        assert_eq!(head("", Agent::Pi), (None, false));
        assert_eq!(head("{\"cwd\":7,\"payload\":[],\"kind\":{}}\n[]\n", Agent::Gemini), (None, false));
    }

    #[test]
    fn sub_agents_are_told_apart() {
        for source in ["{\"subagent\":{\"thread_spawn\":{}}}", "{\"subagent\":\"review\"}", "\"subagent\""] {
            let meta = format!("{{\"payload\":{{\"source\":{source}}}}}");
            assert!(head(&meta, Agent::Codex).1, "{source}");
            assert!(!head(&meta, Agent::Pi).1);
        }
        assert!(head("{\n \"sessionId\": \"s\",\n \"kind\": \"subagent\"\n}", Agent::Gemini).1);
        assert!(head("{\"sessionId\":\"s\",\"kind\":\"subagent\"}\n{\"id\":\"1\"}", Agent::Gemini).1);
        assert!(!head("{\"sessionId\":\"s\",\"kind\":\"main\"}", Agent::Gemini).1);
        assert!(head("{\"isSidechain\":true}\n{\"isSidechain\":true}", Agent::ClaudeCode).1);
    }
}
