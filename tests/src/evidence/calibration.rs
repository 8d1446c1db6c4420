//! prototype
use std::collections::HashSet;
use std::fs;
use std::io::Write;

use epitome_counters::{LocalCounter, model_info};
use epitome_loop::{Message, Request, TokenCount, core_json_len};
use epitome_sessionruntime::{Calibration, CountedReport};

use super::counting::{family_of, states};
use super::transcripts::transcripts;
use super::{EvidenceError, Places, Verdict};

pub(super) fn run(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let folder = places.shared.join("transcripts");
    let mut files = transcripts(&folder)?;
    files.retain(|file| file.parent() == Some(&folder));
    for crude in [false, true] {
        for stated in [false, true] {
            let mut err: Vec<(&str, Vec<f64>)> =
                vec![("raw", vec![]), ("mult", vec![]), ("add", vec![]), ("A", vec![]), ("B", vec![])];
            let mut after: Vec<(&str, Vec<f64>)> = err.clone();
            for file in &files {
                let bytes = fs::read(file)?;
                let name = file.file_name().unwrap().to_string_lossy().into_owned();
                let mut seen: HashSet<[u64; 4]> = HashSet::new();
                let mut cal_a = Calibration::new();
                let mut cal_b = Calibration::new();
                let mut last: Option<(u64, u64)> = None;
                let mut last_b: Option<(u64, u64)> = None;
                let mut frame: Option<u64> = None;
                for (nth, session) in states(&bytes).iter().enumerate() {
                    let Some(named) = session.model() else { continue };
                    let info = model_info(&named.model);
                    let counter = info.as_ref().and_then(|info| LocalCounter::new(info, true).ok());
                    let counter = counter
                        .unwrap_or_else(|| LocalCounter::for_unknown_model(family_of(session.format())));
                    let count = |upto: usize| {
                        if crude {
                            session.messages().iter().take(upto).map(core_json_len).sum::<u64>() / 4
                                + session.tools().iter().map(|t| t.as_str().len() as u64).sum::<u64>() / 4
                        } else {
                            counter
                                .range(&Request {
                                    model: named.clone(),
                                    tools: session.tools().clone(),
                                    messages: session.messages().iter().take(upto).cloned().collect(),
                                    unseen_tokens: TokenCount::ZERO,
                                })
                                .map_or(0, |r| r.tokens.get())
                        }
                    };
                    if nth > 0 {
                        cal_a.context_changed();
                        cal_b.context_changed();
                    }
                    let mut first = nth > 0;
                    let mut n = 0;
                    for (at, message) in session.messages().iter().enumerate() {
                        let Message::Assistant { usage: Some(usage), .. } = message else { continue };
                        let Ok(theirs) = usage.context_tokens() else { continue };
                        if theirs.get() == 0
                            || !seen.insert([
                                usage.input.get(),
                                usage.output.get(),
                                usage.cache_read.get(),
                                usage.cache_creation.get(),
                            ])
                        {
                            continue;
                        }
                        let (raw, theirs) = (count(at), theirs.get());
                        let offset =
                            if stated { *frame.get_or_insert(theirs.saturating_sub(raw)) } else { 0 };
                        let raw = raw + offset;
                        let b = count(at + 1) + offset;
                        if let Some((c, r)) = last {
                            let t = |c: u64| TokenCount(c);
                            let (cb, rb) = last_b.unwrap();
                            let preds = [
                                raw as f64,
                                raw as f64 * r as f64 / c as f64,
                                (rb as f64 + raw as f64 - cb as f64),
                                cal_a.scale().map_or(raw, |s| s.apply(t(raw), t(0)).get()) as f64,
                                cal_b.scale().map_or(raw, |s| s.apply(t(raw), t(0)).get()) as f64,
                            ];
                            let list = if first { &mut after } else { &mut err };
                            if first {
                                writeln!(out, "after commit {name} theirs {theirs} {preds:?}")?;
                            }
                            for ((_, l), p) in list.iter_mut().zip(preds) {
                                l.push((p - theirs as f64).abs() / theirs as f64 * 100.0);
                            }
                            n += 1;
                        }
                        first = false;
                        last = Some((raw, theirs));
                        last_b = Some((b, theirs + usage.output.get()));
                        let va = cal_a.take(
                            CountedReport {
                                counted: TokenCount(raw),
                                unseen: TokenCount(0),
                                reported: TokenCount(theirs),
                            },
                            None,
                        );
                        let vb = cal_b.take(
                            CountedReport {
                                counted: TokenCount(b),
                                unseen: TokenCount(0),
                                reported: TokenCount(theirs + usage.output.get()),
                            },
                            None,
                        );
                        if format!("{va:?}{vb:?}") != "TakenTaken" {
                            writeln!(out, "{name} {va:?} {vb:?} {theirs} {raw}")?;
                        }
                    }
                    if n > 0 {
                        writeln!(
                            out,
                            "{name} {nth} {n} {:?} {:?}",
                            cal_a.scale().map(|s| (s.factor(), s.beside())),
                            cal_b.scale().map(|s| (s.factor(), s.beside()))
                        )?;
                    }
                }
            }
            for (what, list) in [("steps", err), ("after", after)] {
                for (name, mut l) in list {
                    l.sort_by(f64::total_cmp);
                    if l.is_empty() {
                        continue;
                    }
                    let q = |p: usize| l[(l.len() - 1) * p / 100];
                    writeln!(
                        out,
                        "crude {crude} stated {stated} {what} {name}: n {} median {:.3} p90 {:.3} p99 {:.2} worst {:.2} mean {:.3}",
                        l.len(),
                        q(50),
                        q(90),
                        q(99),
                        q(100),
                        l.iter().sum::<f64>() / l.len() as f64
                    )?;
                }
            }
        }
    }
    Ok(Verdict { holds: true, line: String::new() })
}
