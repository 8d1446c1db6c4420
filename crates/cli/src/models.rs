//! `epitome models`.

use std::io;

use epitome_counters::{Exactness, known_models};
use serde::Serialize;

use crate::args::ModelsArgs;
use crate::failure::Failure;
use crate::model_servers::{self, ServerReport};
use crate::report::{VERSION, emphasis, print_json, tokens};

/// So many models of each server are shown; all of them where one server is looked at.
const SHOWN: usize = 10;

#[derive(Serialize)]
struct Report {
    report: u32,
    /// `listed`; `not_reached` where one server was looked at and did not answer.
    outcome: &'static str,
    /// The table; nothing where one server is looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    models: Option<Vec<KnownReport>>,
    servers: Vec<ServerReport>,
}

#[derive(Serialize)]
struct KnownReport {
    model: String,
    provider: String,
    window: u64,
    max_output: u64,
    /// `exact` or `estimated`.
    counts: &'static str,
    as_of: &'static str,
}

/// Lists the models of the table and the servers, or looks at one server.
pub(crate) fn run(args: &ModelsArgs) -> Result<(), Failure> {
    let standard_output = || Failure::io("standard output");
    if let Some(endpoint) = &args.model_endpoint {
        let (server, error) = model_servers::one(endpoint, args.model_key.as_deref())?;
        let outcome = if error.is_some() { "not_reached" } else { "listed" };
        match args.json {
            true => print_json(&Report { report: VERSION, outcome, models: None, servers: vec![server] })?,
            false => server.show(&mut anstream::stdout().lock(), usize::MAX).map_err(standard_output())?,
        }
        return match error {
            Some(error) => Err(Failure::NotReached { endpoint: endpoint.name().to_owned(), error }),
            None => Ok(()),
        };
    }
    let models: Vec<KnownReport> = known().collect();
    if args.json {
        let servers = model_servers::known(args.check)?;
        return print_json(&Report { report: VERSION, outcome: "listed", models: Some(models), servers });
    }
    // The table is there at once; the servers may take a moment.
    show_table(&models).map_err(standard_output())?;
    let servers = model_servers::known(args.check)?;
    show_servers(&servers).map_err(standard_output())
}

fn known() -> impl Iterator<Item = KnownReport> {
    known_models().map(|model| KnownReport {
        model: model.key.model.as_str().to_owned(),
        provider: model.key.provider.as_str().to_owned(),
        window: model.limits.window.get(),
        max_output: model.limits.max_output.get(),
        counts: match model.exactness {
            Exactness::Published => "exact",
            _ => "estimated",
        },
        as_of: model.as_of,
    })
}

fn show_table(models: &[KnownReport]) -> io::Result<()> {
    use io::Write as _;
    let mut out = anstream::stdout().lock();
    let head =
        format!("{:<32} {:<12} {:>10} {:>10}  counts     as of", "model", "provider", "window", "output");
    writeln!(out, "{}", emphasis(head))?;
    for KnownReport { model, provider, window, max_output, counts, as_of } in models {
        let (window, output) = (tokens(*window), tokens(*max_output));
        writeln!(out, "{model:<32} {provider:<12} {window:>10} {output:>10}  {counts:<9}  {as_of}")?;
    }
    writeln!(out, "\nAny other model: give --window TOKENS.")
}

fn show_servers(servers: &[ServerReport]) -> io::Result<()> {
    use io::Write as _;
    let mut out = anstream::stdout().lock();
    let head = format!("{:<12} {:<50} {:<28} state", "server", "address", "key");
    writeln!(out, "\n{}", emphasis(head))?;
    servers.iter().try_for_each(|server| server.show(&mut out, SHOWN))?;
    writeln!(
        out,
        "\nA server writes summaries with --summarizer model --model-endpoint SERVER. Servers elsewhere are asked with \
         --check alone."
    )
}
