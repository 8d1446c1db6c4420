//! Servers that could write summaries: how each is configured, whether it is there, and what it serves.

use std::io;

use epitome_loop::{ModelCallError, TokenCount};
use epitome_models::{NetworkModel, PROFILES, ServedModel};
use serde::Serialize;

use crate::failure::Failure;
use crate::model_endpoint::{LOOK, ModelEndpoint, is_local, reason_name, server_advice};
use crate::report::{emphasis, harmless, printable, tokens};
use crate::run::run_to_end;

/// One server.
#[derive(Serialize)]
pub(crate) struct ServerReport {
    name: String,
    address: String,
    /// `none_needed`, `set` or `not_set`.
    key: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_variable: Option<String>,
    /// Whether it was asked.
    asked: bool,
    /// Whether it answered; `None`: it was not asked.
    reachable: Option<bool>,
    /// Why it did not.
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// What it serves, when it said so.
    models: Vec<ServedReport>,
}

#[derive(Serialize)]
struct ServedReport {
    name: String,
    /// `None`: the server does not say.
    window: Option<u64>,
}

/// A server that may be asked.
struct Candidate {
    report: ServerReport,
    client: NetworkModel,
}

/// Every server that is known by name. Those on this machine are asked; others only with `elsewhere`, and where there is
/// a key for them.
pub(crate) fn known(elsewhere: bool) -> Result<Vec<ServerReport>, Failure> {
    let mut candidates = Vec::with_capacity(PROFILES.len());
    for profile in PROFILES {
        let mut candidate = Candidate::of(&profile.into(), None)?;
        let is_asked = is_local(&candidate.client) || elsewhere;
        candidate.report.asked = is_asked && candidate.client.has_key();
        candidates.push(candidate);
    }
    look_at(candidates)
}

/// One server, which is asked, and what it failed with.
pub(crate) fn one(
    endpoint: &ModelEndpoint,
    key: Option<&str>,
) -> Result<(ServerReport, Option<ModelCallError>), Failure> {
    let Candidate { mut report, client } = Candidate::of(endpoint, key)?;
    report.asked = true;
    let answered = run_to_end(client.served_models())?;
    let error = answered.as_ref().err().copied();
    report.fill(answered);
    Ok((report, error))
}

/// Asks all that are to be asked, at the same time.
fn look_at(candidates: Vec<Candidate>) -> Result<Vec<ServerReport>, Failure> {
    run_to_end(async {
        let asked = candidates.into_iter().map(|Candidate { report, client }| {
            let asking = report.asked.then(|| tokio::spawn(async move { client.served_models().await }));
            (report, asking)
        });
        let mut reports = Vec::new();
        for (mut report, asking) in asked.collect::<Vec<_>>() {
            if let Some(asking) = asking
                && let Ok(answered) = asking.await
            {
                report.fill(answered);
            }
            reports.push(report);
        }
        reports
    })
}

impl Candidate {
    fn of(endpoint: &ModelEndpoint, key: Option<&str>) -> Result<Self, Failure> {
        let client = endpoint.client(key, LOOK)?;
        let key_variable = key.or(endpoint.key_variable());
        let report = ServerReport {
            name: endpoint.name().to_owned(),
            address: endpoint.address().to_owned(),
            key: match key_variable {
                None => "none_needed",
                Some(_) if client.has_key() => "set",
                Some(_) => "not_set",
            },
            key_variable: key_variable.map(str::to_owned),
            asked: false,
            reachable: None,
            reason: None,
            message: None,
            models: Vec::new(),
        };
        Ok(Self { report, client })
    }
}

impl ServerReport {
    fn fill(&mut self, answered: Result<Vec<ServedModel>, ModelCallError>) {
        self.reachable = Some(answered.is_ok());
        match answered {
            Ok(models) => {
                let served = |ServedModel { name, window }: ServedModel| ServedReport {
                    name: name.to_string(),
                    window: window.map(TokenCount::get),
                };
                self.models = models.into_iter().map(served).collect();
            }
            Err(error) => {
                self.reason = Some(reason_name(error.kind));
                self.message = Some(format!("{}{}", error.kind, server_advice(error)));
            }
        }
    }

    /// What is to be said of it, the first so many models included.
    pub(crate) fn show(&self, out: &mut impl io::Write, most: usize) -> io::Result<()> {
        let Self { name, address, key_variable, models, .. } = self;
        let key = match (self.key, key_variable) {
            ("set", Some(variable)) => format!("key in {}", printable(variable)),
            ("not_set", Some(variable)) => format!("no key in {}", printable(variable)),
            _ => "no key needed".to_owned(),
        };
        let state = match (self.reachable, self.reason) {
            (Some(true), _) if models.len() == 1 => "serves 1 model".to_owned(),
            (Some(true), _) => format!("serves {} models", tokens(models.len() as u64)),
            (Some(false), Some("network")) => "not reached".to_owned(),
            (Some(false), reason) => format!("no answer ({})", reason.unwrap_or("other")),
            (None, _) if self.key == "not_set" => "not configured".to_owned(),
            (None, _) => "not asked".to_owned(),
        };
        // Where the name is the address, it is said once.
        let (name, address) = if name == address { ("", address) } else { (name.as_str(), address) };
        writeln!(
            out,
            "{:<12} {:<50} {:<28} {state}",
            emphasis(format!("{name:<12}")),
            harmless(address),
            key
        )?;
        for ServedReport { name, window } in models.iter().take(most) {
            let window =
                window.map_or("window not told".to_owned(), |window| format!("window {}", tokens(window)));
            writeln!(out, "  {:<62} {window}", printable(name))?;
        }
        match models.len().saturating_sub(most) {
            0 => Ok(()),
            more => writeln!(out, "  and {} more", tokens(more as u64)),
        }
    }
}
