//! `epitome session import`.

use std::collections::BTreeMap;
use std::io::Write as _;

use epitome_loop::{ContextCounter as _, Request, SessionId, SharedBytes, TokenCount, occupancy};
use epitome_sessionruntime::journal::{
    BlobDigest, Journal as _, JournalError, PageLimit, RecordBody, decode_record,
};
use epitome_transcripts::Session;
use serde::Serialize;

use super::journal_file::JournalFile;
use super::recording::{Beginning, record_import};
use crate::failure::Failure;
use crate::input::{Progress, is_stdio, read_session};
use crate::latest;
use crate::profile::{built_in, for_kept, room};
use crate::report::{
    BandReport, MeasurementReport, VERSION, emphasis, harmless, listed, print_json, printable, tokens,
};
use crate::run::run_to_end;
use crate::session_args::ImportArgs;
use crate::target::Target;
use crate::unseen::Unseen;

#[derive(Serialize)]
struct Report {
    report: u32,
    /// `imported` or `already_there`.
    outcome: &'static str,
    session: String,
    journal: String,
    file: String,
    format: &'static str,
    provider: String,
    model: String,
    messages: usize,
    bytes: usize,
    measurement: MeasurementReport,
    /// `None` for an exact count.
    error_band: Option<BandReport>,
    notes: Vec<String>,
    repairs: Vec<String>,
}

pub(super) fn run(mut args: ImportArgs) -> Result<(), Failure> {
    latest::resolve(&mut args.source)?;
    if args.source.file.is_none() {
        return Err(Failure::NoFile);
    }
    let progress = Progress::new(args.json);
    let (source, original) = read_session(&args.source, &progress)?;
    let source = SharedBytes::from(source);
    let target = Target::of(&args.source, &original)?;
    let (session, repairs) = epitome_transcripts::repair(&original);
    let policy = built_in()?;
    let measurement = measured(&args, &session, &target)?;
    let policy = for_kept(&policy, &target)?;
    let beginning = Beginning::of(&args.source, source.clone(), &session, repairs.len(), &target, policy)?;
    progress.stage("writing");
    let journal = JournalFile::make(&args.journal.file)?;
    let there = if args.again { None } else { session_from(&journal, &source, args.source.conversation)? };
    let (outcome, id) = match there {
        Some(id) => ("already_there", id),
        None => ("imported", record_import(&journal, &beginning)?),
    };
    progress.done();
    let report = Report {
        report: VERSION,
        outcome,
        session: id.to_string(),
        journal: journal.path().display().to_string(),
        file: match is_stdio(args.source.file()) {
            true => "standard input".to_owned(),
            false => args.source.file().display().to_string(),
        },
        format: session.format().as_str(),
        provider: target.model.provider.as_str().to_owned(),
        model: target.model.model.as_str().to_owned(),
        messages: session.messages().len(),
        bytes: source.len(),
        measurement,
        error_band: target.error_band().map(Into::into),
        notes: original.notes().iter().map(ToString::to_string).collect(),
        repairs: repairs.iter().map(ToString::to_string).collect(),
    };
    if args.json {
        return print_json(&report);
    }
    show(&report).map_err(Failure::io("standard output"))
}

/// The size of the whole request, under the built-in policy.
fn measured(args: &ImportArgs, session: &Session, target: &Target) -> Result<MeasurementReport, Failure> {
    let limit = room(&built_in()?, target)?.input_limit;
    let unseen = Unseen::of(&args.source, session, target)?;
    let request = Request {
        model: target.model.clone(),
        tools: session.tools().clone(),
        messages: session.messages().clone(),
        unseen_tokens: TokenCount(unseen.tokens),
    };
    let count = run_to_end(target.counter.count(&request))?.map_err(Failure::Count)?;
    Ok(MeasurementReport {
        tokens: count.input_tokens.get(),
        limit: limit.get(),
        occupancy_basis_points: occupancy(count.input_tokens, limit).map_or(0, |share| share.get()),
        quality: count.quality.as_str(),
    })
}

/// The newest session that came from these bytes, and from this conversation in them.
fn session_from(
    journal: &JournalFile,
    source: &SharedBytes,
    conversation: Option<usize>,
) -> Result<Option<SessionId>, Failure> {
    let at_hand: BTreeMap<_, _> = [(BlobDigest::of(source), source.clone())].into();
    let conversation = conversation.map(|number| number as u64);
    let beginning = PageLimit { records: 2, ..PageLimit::default() };
    for entry in journal.sessions()?.into_iter().rev() {
        let page = match journal.wait(journal.journal().read(entry.session, 1, beginning)) {
            Ok(page) => page,
            // Somebody purged it meanwhile.
            Err(JournalError::UnknownSession) => continue,
            Err(error) => return Err(journal.failed(error)),
        };
        // With no other file at hand, a record of another import cannot be read.
        let is_it = page.records.iter().any(|stored| {
            let record = decode_record(entry.session, stored, &at_hand);
            matches!(record.map(|record| record.body),
                Ok(RecordBody::Imported(imported)) if imported.conversation == conversation)
        });
        if is_it {
            return Ok(Some(entry.session));
        }
    }
    Ok(None)
}

fn show(report: &Report) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    let Report { outcome, session, journal, file, format, model, provider, bytes, .. } = report;
    match *outcome {
        "imported" => writeln!(out, "imported  {}", emphasis(session))?,
        _ => writeln!(out, "is there  {}; --again imports it once more", emphasis(session))?,
    }
    writeln!(out, "journal   {}", harmless(journal))?;
    writeln!(out, "source    {} ({format}, {} bytes)", harmless(file), tokens(*bytes as u64))?;
    let (model, provider) = (printable(model), printable(provider));
    writeln!(out, "messages  {}, for {model} ({provider})", tokens(report.messages as u64))?;
    writeln!(out, "size      {}", report.measurement)?;
    if let Some(band) = &report.error_band {
        writeln!(out, "counts    estimates; the true counts are to be expected within {band}")?;
    }
    for note in listed(&report.notes) {
        writeln!(out, "note      {note}")?;
    }
    for repair in listed(&report.repairs) {
        writeln!(out, "repaired  {repair}")?;
    }
    Ok(())
}
