//! The tables, as they are printed and as they stand in the documentation.

use std::fs;
use std::path::Path;

use super::records::file_of;
use super::requests::LeftOut;
use super::row::{Row, Subject, Summary};
use super::texts::ClassSummary;
use crate::evidence::EvidenceError;

/// What holds the tables.
pub(super) const PAGE: &str = "docs/counting.md";
/// What the tables of counting stand between marks of.
pub(super) const MARK: &str = "counting";

/// Set to anything, the page is written anew.
pub(in crate::evidence) const WRITE: &str = "EPITOME_WRITE";

/// The tables in Markdown.
pub(super) fn tables(
    requests: &[Row],
    summaries: &[Summary],
    texts: &[ClassSummary],
    left_out: &LeftOut,
) -> String {
    let mut out = String::from("**Single requests**\n\n");
    out.push_str("| request | model | about | ours | provider's | off |\n|---|---|---|--:|--:|--:|\n");
    for row in requests.iter().filter(|row| row.is_judged) {
        let Row { place, model, subject, ours, theirs, .. } = row;
        out.push_str(&format!(
            "| {place} | {model} | {} | {ours} | {theirs} | {:+.1} % |\n",
            subject.as_str(),
            row.percent()
        ));
    }
    out.push_str("\n**By provider and content**, ours against the provider's\n\n");
    out.push_str(
        "| provider | about | figures | median | 5th to 95th in a hundred | worst | in the stated band |\n",
    );
    out.push_str("|---|---|--:|--:|--:|--:|--:|\n");
    for summary in summaries {
        let note = if summary.is_judged { "" } else { " (not judged)" };
        out.push_str(&format!(
            "| {}{note} | {} | {} | {:+.1} % | {:+.1} .. {:+.1} % | {:+.1} % | {} |\n",
            summary.provider,
            summary.subject.as_str(),
            summary.count,
            summary.median,
            summary.fifth,
            summary.ninety_fifth,
            summary.worst,
            match summary.subject {
                Subject::Exact => "exact".to_owned(),
                _ => format!("{} %", 100 * summary.in_band / summary.count.max(1)),
            }
        ));
    }
    out.push_str("\n**Estimate without a tokenizer**, `o200k_base` against it\n\n");
    out.push_str(
        "| class | texts | median | 5th to 95th in a hundred | in the stated band |\n|---|--:|--:|--:|--:|\n",
    );
    for text in texts {
        out.push_str(&format!(
            "| {} | {} | {:+.1} % | {:+.1} .. {:+.1} % | {} % |\n",
            text.class,
            text.count,
            text.median,
            text.fifth,
            text.ninety_fifth,
            100 * text.in_band / text.count.max(1)
        ));
    }
    out.push_str("\n**Figures left out, by rule**\n\n| figures | why | where |\n|--:|---|---|\n");
    for (reason, places) in left_out {
        let mut names: Vec<&str> = places.iter().map(|place| file_of(place)).collect();
        names.dedup();
        out.push_str(&format!("| {} | {reason} | {} |\n", places.len(), names.join(", ")));
    }
    out
}

/// The page with other tables between its marks.
pub(super) fn with_tables(page: &str, mark: &str, tables: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {mark}: begin -->\n"), format!("<!-- {mark}: end -->"));
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}{tables}{end}{after}"))
}

/// Writes tables into the page of a workspace, between the marks of this name.
pub(in crate::evidence) fn write(workspace: &Path, mark: &str, tables: &str) -> Result<(), EvidenceError> {
    let path = workspace.join(PAGE);
    let page = fs::read_to_string(&path)?;
    let page = with_tables(&page, mark, tables)
        .ok_or_else(|| EvidenceError::Data { what: format!("{PAGE} has no place for the tables") })?;
    fs::write(&path, page)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page names the command and the variable, and its tables have the shape that the command writes.
    #[test]
    fn the_page_holds_tables_of_the_shape_that_is_written() {
        let page = include_str!("../../../../docs/counting.md");
        assert!(page.contains("cargo xtask evidence counting"));
        assert!(page.contains(WRITE));
        let (_, rest) = page.split_once("<!-- counting: begin -->\n").unwrap();
        let (held, _) = rest.split_once("<!-- counting: end -->").unwrap();
        let empty = tables(&[], &[], &[], &LeftOut::new());
        let heads = |text: &str| {
            let is_head = |line: &&str| {
                line.starts_with("**") || line.starts_with("|--") || line.starts_with("| request")
            };
            text.lines().filter(is_head).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(heads(held), heads(&empty));
        assert!(held.lines().count() > empty.lines().count() + 10, "no figures");
        assert_eq!(with_tables(page, MARK, held).as_deref(), Some(page));
        assert_eq!(with_tables("no marks", MARK, ""), None);
    }
}
