//! What is said about one file, and how it is printed.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::Judgment;

/// Differences that are listed by id; the rest are only counted.
const MOST_LISTED: usize = 8;

/// The judgments of one file, counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReport {
    /// The file's name without its ending.
    pub name: String,
    /// How many cases there are.
    pub cases: usize,
    /// How many answers are equal.
    pub equal: usize,
    /// How many we refuse and the reference does not, by named class.
    pub stricter: BTreeMap<&'static str, usize>,
    /// How many the reference refuses and we do not, by named rule of ours.
    pub looser: BTreeMap<&'static str, usize>,
    /// How many we answer better, by named class.
    pub better: BTreeMap<&'static str, usize>,
    /// How many our types cannot hold, by what they cannot hold.
    pub skipped: BTreeMap<String, usize>,
    /// Every answer that differs: id and the two kinds of answer.
    pub different: Vec<(String, String)>,
}

impl FileReport {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            better: BTreeMap::new(),
            cases: 0,
            equal: 0,
            stricter: BTreeMap::new(),
            looser: BTreeMap::new(),
            skipped: BTreeMap::new(),
            different: Vec::new(),
        }
    }

    pub(crate) fn count(&mut self, id: &str, judgment: Judgment) {
        self.cases += 1;
        match judgment {
            Judgment::Equal => self.equal += 1,
            Judgment::Stricter(class) => *self.stricter.entry(class).or_default() += 1,
            Judgment::Looser(class) => *self.looser.entry(class).or_default() += 1,
            Judgment::Better(class) => *self.better.entry(class).or_default() += 1,
            Judgment::Skipped(error) => *self.skipped.entry(error.to_string()).or_default() += 1,
            Judgment::Different { expected, got } => {
                self.different.push((id.to_owned(), format!("expected {expected}, got {got}")));
            }
        }
    }
}

/// Prints one row a file, and the first differences under it.
///
/// # Errors
/// The error of writing.
pub fn print_reports(out: &mut impl Write, reports: &[FileReport]) -> io::Result<()> {
    writeln!(
        out,
        "{:20} {:>6} {:>6} {:>9}  stricter / looser / skipped / better",
        "file", "cases", "equal", "different"
    )?;
    for report in reports {
        let FileReport { name, cases, equal, stricter, looser, better, skipped, different } = report;
        let better = listed(better.iter().map(|(class, count)| (*class, *count)));
        let stricter = listed(stricter.iter().map(|(class, count)| (*class, *count)));
        let looser = listed(looser.iter().map(|(class, count)| (*class, *count)));
        let skipped = listed(skipped.iter().map(|(what, count)| (what.as_str(), *count)));
        let differences = different.len();
        writeln!(
            out,
            "{name:20} {cases:>6} {equal:>6} {differences:>9}  {stricter} / {looser} / {skipped} / {better}"
        )?;
        for (id, what) in different.iter().take(MOST_LISTED) {
            writeln!(out, "    {id}: {what}")?;
        }
        if differences > MOST_LISTED {
            writeln!(out, "    and {} more", differences - MOST_LISTED)?;
        }
    }
    Ok(())
}

fn listed<'a>(counts: impl Iterator<Item = (&'a str, usize)>) -> String {
    let listed = counts.map(|(what, count)| format!("{what} {count}")).collect::<Vec<_>>().join(", ");
    if listed.is_empty() { "-".to_owned() } else { listed }
}
