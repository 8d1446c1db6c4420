//! Our counts beside every figure that providers gave.

mod page;
mod records;
mod reported;
mod requests;
mod row;
mod sessions;
mod texts;

use std::env;
use std::fs;
use std::io::Write;

use super::transcripts::transcripts;
use super::{EvidenceError, Places, Verdict};
use requests::LeftOut;
use row::{Row, Subject, Summary};
use texts::ClassSummary;

pub(super) use page::{WRITE, write as write_tables};
pub(super) use requests::{figures as request_figures, request_of, unknown as unknown_counter};
pub(super) use row::quantile;
pub(super) use sessions::states;

/// Where every row is listed, also those of sessions.
const ROWS: &str = "counting.tsv";

pub(super) fn run(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let folder = places.shared.join("transcripts");
    let mut files = transcripts(&folder)?;
    // Subfolders hold shapes of formats, written by hand; their figures are invented.
    files.retain(|file| file.parent() == Some(&folder));
    let mut left_out = LeftOut::new();
    let single = requests::rows(&records::exchanges(&files)?, &mut left_out);
    let steps = sessions::rows(&files, &mut left_out)?;
    let texts = texts::summaries(&files)?;
    let rows: Vec<Row> = single.iter().chain(&steps).cloned().collect();
    let summaries = Summary::of(&rows);
    let tables = page::tables(&single, &summaries, &texts, &left_out);
    out.write_all(tables.as_bytes())?;

    let listed = places.target().join(ROWS);
    fs::create_dir_all(places.target())?;
    fs::write(&listed, list(&rows))?;
    writeln!(out, "\nevery row: {}", listed.display())?;
    if env::var_os(page::WRITE).is_some() {
        page::write(&places.workspace, page::MARK, &tables)?;
        writeln!(out, "written: {}", page::PAGE)?;
    }
    let faults: Vec<String> = summaries
        .iter()
        .filter_map(Summary::fault)
        .chain(texts.iter().filter_map(ClassSummary::fault))
        .collect();
    for fault in &faults {
        writeln!(out, "FAULT: {fault}")?;
    }
    let judged = rows.iter().filter(|row| row.is_judged).count();
    let exact: Vec<&Row> = rows.iter().filter(|row| row.subject == Subject::Exact).collect();
    let line = format!(
        "{} figures ({judged} judged, {} left out by rule): {} exact counts, {} of them off; {} kinds, {} outside \
         of their limits",
        rows.len(),
        left_out.values().map(Vec::len).sum::<usize>(),
        exact.len(),
        exact.iter().filter(|row| row.ours != row.theirs).count(),
        summaries.len() + texts.len(),
        faults.len(),
    );
    Ok(Verdict { holds: faults.is_empty() && judged > 0, line })
}

/// Every row, one a line.
fn list(rows: &[Row]) -> String {
    let mut lines = String::from("place\tprovider\tmodel\tabout\tours\ttheirs\tpercent\tband\n");
    for row in rows {
        let Row { place, provider, model, subject, ours, theirs, band, is_judged: _ } = row;
        let percent = row.percent();
        let about = subject.as_str();
        lines.push_str(&format!(
            "{place}\t{provider}\t{model}\t{about}\t{ours}\t{theirs}\t{percent:+.1}\t{band}\n"
        ));
    }
    lines
}
