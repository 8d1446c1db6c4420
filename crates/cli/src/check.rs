//! `epitome check`.

use std::io::Write as _;
use std::path::Path;

use epitome_loop::Section;
use epitome_loopruntime::parse_summary;
use serde::Serialize;

use crate::failure::Failure;
use crate::input::read_bytes;
use crate::report::{emphasis, print_json};

#[derive(Serialize)]
struct SummaryReport {
    report: u32,
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    bytes: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sections: Vec<SectionReport>,
}

#[derive(Serialize)]
struct SectionReport {
    section: &'static str,
    items: usize,
    bytes: usize,
}

/// Judges a summary under the strict grammar.
pub(crate) fn summary(file: &Path, json: bool) -> Result<(), Failure> {
    let bytes = read_bytes(file)?;
    let parsed = parse_summary(&bytes);
    let sections = parsed.as_ref().map(|summary| {
        let items = summary.sections();
        let report = |section: Section| SectionReport {
            section: section.as_str(),
            items: items.items(section).len(),
            bytes: summary.text(section).len(),
        };
        Section::ALL.map(report).into()
    });
    let report = SummaryReport {
        report: crate::report::VERSION,
        valid: parsed.is_ok(),
        reason: parsed.as_ref().err().map(|fault| fault.reason.as_str()),
        bytes: bytes.len(),
        sections: sections.unwrap_or_default(),
    };
    if json {
        print_json(&report)?;
    } else if report.valid {
        let mut out = anstream::stdout().lock();
        let mut write = || {
            writeln!(out, "{}: {} bytes", emphasis("valid summary"), report.bytes)?;
            report.sections.iter().try_for_each(|SectionReport { section, items, bytes }| {
                writeln!(out, "  {section:<12} {items:>4} items {bytes:>8} bytes")
            })
        };
        write().map_err(Failure::io("standard output"))?;
    }
    match parsed {
        Ok(_) => Ok(()),
        Err(reason) => Err(Failure::Summary { path: file.to_owned(), reason }),
    }
}
