//! `epitome compact`: the main job.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;

use epitome_loop::{CompactionPolicy, SharedText, TokenCount, Trigger, ValidPolicy};
use epitome_sessionruntime::{
    Demand, EarlierSummary, HustlePorts, Outcome, Ports, Refusal, SessionContext, compact_by_hustles,
    compact_once, recognize_earlier_summary,
};
use epitome_summarizers::Extractive;
use epitome_transcripts::{Replacement, Session};
use tokio::runtime::Handle;

use crate::args::CompactArgs;
use crate::compact_report::{RecordedReport, RefusalReport, Report, WrittenReport, compaction_report, show};
use crate::failure::Failure;
use crate::identity::{basis_of, fingerprint_of};
use crate::input::{Progress, read_session};
use crate::latest;
use crate::output::Destination;
use crate::pins;
use crate::profile::{for_compaction, for_session, room};
use crate::report::{VERSION, level_name};
use crate::run::run_to_end;
use crate::session_command::journal_file::JournalFile;
use crate::session_command::recording::{Beginning, record_outcome};
use crate::summarizer::Summarizing;
use crate::target::Target;
use crate::unseen::Unseen;

/// Compacts one session.
pub(crate) fn run(args: &CompactArgs) -> Result<(), Failure> {
    let session_args =
        args.session.as_ref().filter(|session| session.file.is_some()).ok_or(Failure::NoFile)?;
    let file = for_compaction(args)?;
    let summarizing = Summarizing::of(&args.summarizer, &file)?;
    let destination = match session_args.latest {
        Some(agent) => latest::destination(agent, session_args, args.out.as_deref(), args.to)?,
        None => Destination::of(session_args.file(), args.out.as_deref(), args.to)?,
    };
    if !args.dry_run {
        destination.check()?;
    }
    let progress = Progress::new(args.quiet || args.json);
    let (source, original) = read_session(session_args, &progress)?;
    let target = Target::of(session_args, &original)?;
    let (session, repairs) = epitome_transcripts::repair(&original);
    let given = for_session(&file, &target)?;
    let policy = given.clone().validate(Some(target.quality())).map_err(Failure::Policy)?;
    // A policy that cannot work for this model is the same fault here as in `measure`; what the runtime refuses is
    // about the session.
    room(&file, &target)?;
    let unseen = Unseen::of(session_args, &session, &target)?;
    let earlier = earlier_of(&session);
    let pins = pins::resolve(&args.pin, &original, &session, earlier.as_ref()).map_err(Failure::Pin)?;
    let mut context = context_of(&source, &session, &target, args, unseen.tokens);
    context.earlier = earlier;
    context.pinned = pins::messages(&pins);
    let journal = match args.journal.as_deref().filter(|_| !args.dry_run) {
        Some(path) => {
            let beginning = Beginning::of(
                session_args,
                source.clone().into(),
                &session,
                repairs.len(),
                &target,
                given.clone(),
            )?;
            let journal = JournalFile::make(path)?;
            destination.is_apart_from(path)?;
            Some((journal, beginning))
        }
        None => None,
    };
    progress.stage("compacting");
    let outcome = summarized(&context, &target, given, &policy, &summarizing)?;
    // What was done is on record before anybody can see it.
    let recorded = match &journal {
        Some((journal, beginning)) => {
            let session =
                record_outcome(journal, beginning, &outcome, context.demand, policy.trigger(), |basis| {
                    fingerprint_of(&session, &target, basis).unwrap_or_default()
                })?;
            Some(RecordedReport {
                session: session.to_string(),
                journal: journal.path().display().to_string(),
            })
        }
        None => None,
    };
    progress.done();

    let mut report = Report {
        report: VERSION,
        session: latest::chosen(session_args),
        outcome: "left_alone",
        format: session.format().as_str(),
        provider: target.model.provider.as_str().to_owned(),
        model: target.model.model.as_str().to_owned(),
        messages: original.messages().len(),
        notes: original.notes().iter().map(ToString::to_string).collect(),
        repairs: Vec::new(),
        unseen: unseen.tokens,
        unseen_source: unseen.source,
        before: None,
        error_band: target.error_band().map(Into::into),
        level: None,
        demand: match context.demand {
            Demand::Threshold => "threshold",
            Demand::Manual => "asked",
        },
        compact_at_basis_points: match policy.trigger() {
            Trigger::Automatic { compact_at, .. } => Some(compact_at.get()),
            Trigger::Manual => None,
        },
        summarizer: summarizing.report(),
        compaction: None,
        refusal: None,
        recorded,
        written: None,
    };
    let show = |report: &Report| match (&destination, args.quiet) {
        (_, true) => Ok(()),
        (Destination::Stdout, _) if !args.dry_run => show(&mut anstream::stderr().lock(), report, args.json),
        _ => show(&mut anstream::stdout().lock(), report, args.json),
    };
    match outcome {
        Outcome::LeftAlone { measurement, level } => {
            report.before = Some((&measurement).into());
            report.level = Some(level_name(level));
            // A filter passes on what needs no change; beside a file there is nothing to write.
            if !args.dry_run
                && (destination == Destination::Stdout || args.out.is_some() || args.to.is_some())
            {
                let whole: Vec<usize> = (0..original.messages().len()).collect();
                let unchanged = Replacement { summary: None, kept: &whole };
                report.written = Some(write(&original, &unchanged, args, &destination)?);
            }
            show(&report)
        }
        Outcome::Compacted(done) => {
            report.outcome = "compacted";
            report.before = Some((&done.before).into());
            report.repairs = repairs.iter().map(ToString::to_string).collect();
            let mut compaction = compaction_report(&done, session.leading_system());
            compaction.pinned_tokens = target.tokens_of(&session, &done.pinned)?;
            compaction.pins = pins;
            if args.quiet
                && let Some(reason) = &compaction.degraded
            {
                // That somebody failed is worth a line also to who wants to hear of failures alone.
                let _ = writeln!(
                    anstream::stderr(),
                    "epitome: degraded ({reason}): the fallback wrote the summary"
                );
            }
            report.compaction = Some(compaction);
            if !args.dry_run {
                let compacted = Replacement { summary: Some(done.summary.raw()), kept: &done.kept };
                report.written = Some(write(&session, &compacted, args, &destination)?);
            }
            show(&report)
        }
        Outcome::Refused(refusal) => {
            // What was spent stands with the summarizer.
            let Refusal { before, reason, usage: _ } = *refusal;
            report.outcome = "refused";
            report.before = before.as_ref().map(Into::into);
            report.refusal = Some(RefusalReport {
                reason: reason.as_str(),
                detail: reason.detail(),
                message: reason.to_string(),
            });
            if args.json {
                show(&report)?;
            }
            Err(Failure::Refused { summarizer: summarizing.advice_for(&reason), reason: reason.into() })
        }
    }
}

/// Compacts by whom the policy asks: the embedded summarizer at once, anybody else within the bounds of a hustle.
fn summarized(
    context: &SessionContext,
    target: &Target,
    given: CompactionPolicy,
    policy: &ValidPolicy,
    summarizing: &Summarizing,
) -> Result<Outcome, Failure> {
    let (counter, estimator) = (target.counter.clone(), target.counter.clone());
    if summarizing.is_embedded_alone() {
        let ports = Ports { counter, estimator, summarizer: Arc::new(Extractive::new()) };
        return run_to_end(compact_once(context, policy, &ports));
    }
    // What the rig finds wrong is wrong before anybody is asked.
    let bound = summarizing.bound(target, given)?;
    run_to_end(async {
        let lanes = summarizing.controller(&bound, Handle::current())?;
        let ports = HustlePorts { counter, estimator, lanes: lanes.clone() };
        let outcome = compact_by_hustles(context, policy, &ports).await;
        lanes.close().await;
        Ok(outcome)
    })?
}

/// What an earlier compaction left at the head.
fn earlier_of(session: &Session) -> Option<EarlierSummary> {
    match session.derived_prefix() {
        0 => recognize_earlier_summary(session.messages()),
        messages => {
            // Marked as a summary by its format; ours is also read back, another tool's is folded in as text.
            let ours = recognize_earlier_summary(session.messages()).and_then(|earlier| earlier.sections);
            Some(EarlierSummary { messages, sections: ours.filter(|_| messages == 1) })
        }
    }
}

/// The session as the runtime sees it, nothing pinned.
fn context_of(
    source: &[u8],
    session: &Session,
    target: &Target,
    args: &CompactArgs,
    unseen: u64,
) -> SessionContext {
    let basis = basis_of(source);
    let instructions =
        args.instructions.as_deref().filter(|text| !text.trim().is_empty()).map(SharedText::from);
    SessionContext {
        model: target.model.clone(),
        limits: target.limits,
        tools: session.tools().clone(),
        messages: session.messages().clone(),
        unseen_tokens: TokenCount(unseen),
        earlier: None,
        basis,
        // What cannot be identified stays without a fingerprint, and the runtime refuses to compact it.
        request_fingerprint: fingerprint_of(session, target, basis).unwrap_or_default(),
        demand: if args.force { Demand::Manual } else { Demand::Threshold },
        instructions,
        pinned: BTreeSet::new(),
    }
}

fn write(
    session: &Session,
    replacement: &Replacement<'_>,
    args: &CompactArgs,
    destination: &Destination,
) -> Result<WrittenReport, Failure> {
    let format = args.to.unwrap_or(session.format());
    let (bytes, report) = epitome_transcripts::write(session, replacement, format).map_err(Failure::Write)?;
    destination.write(&bytes)?;
    let file = match destination {
        Destination::Stdout => None,
        Destination::File { path, .. } => Some(path.display().to_string()),
    };
    let left_out = report.losses.iter().map(|loss| format!("{} {}", loss.count, loss.kind)).collect();
    Ok(WrittenReport { file, format: format.as_str(), bytes: bytes.len(), left_out })
}
