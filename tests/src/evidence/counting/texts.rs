//! The estimate without a tokenizer beside the encoding that it was fitted to, for every text in the sessions.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::PathBuf;

use epitome_counters::{ContentClass, Encoding, HeuristicEstimator};
use epitome_loop::{Block, TextEstimator as _};
use epitome_transcripts::{ReadError, ReadOptions, Session, read};
use sha2::{Digest as _, Sha256};

use super::row::quantile;
use crate::evidence::EvidenceError;

/// A band is stated for texts of this length and more.
const SHORTEST: usize = 200;

/// What the texts of one class come to: the encoding's count against the estimate, in percent of the estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ClassSummary {
    pub(super) class: ContentClass,
    pub(super) count: usize,
    pub(super) median: f64,
    pub(super) fifth: f64,
    pub(super) ninety_fifth: f64,
    pub(super) in_band: usize,
}

/// Fewer texts than this show nothing about a band.
const FEWEST: usize = 30;

impl ClassSummary {
    /// Why the class breaks the promise, if it does: its median is off by more than 15 %, or less than seven
    /// tenths of its texts lie in the stated band. A band is to hold nine tenths of all texts there are; the texts
    /// of one folder are of few kinds, and all of a kind may lie on one side.
    pub(super) fn fault(&self) -> Option<String> {
        let share = 100 * self.in_band / self.count.max(1);
        let is_off = self.median.abs() > 15.0 || share < 70;
        (self.count >= FEWEST && is_off).then(|| {
            format!("estimate of {}: median {:+.1} %, {share} % in its band", self.class, self.median)
        })
    }
}

/// Compares every different text of the files, by class.
pub(super) fn summaries(files: &[PathBuf]) -> Result<Vec<ClassSummary>, EvidenceError> {
    let mut seen: HashSet<[u8; 32]> = HashSet::new();
    let mut errors: BTreeMap<ContentClass, (Vec<f64>, usize)> = BTreeMap::new();
    for file in files {
        let bytes = fs::read(file)?;
        let sessions = conversations(&bytes);
        let messages = sessions.iter().flat_map(|session| session.messages().iter());
        for block in messages.flat_map(|message| message.blocks().iter()) {
            let text = match block {
                Block::Text { text } => text.as_str(),
                Block::Thinking(thinking) => thinking.thinking.as_str(),
                Block::ToolUse(call) => call.input.as_ref().map_or("", |input| input.as_str()),
                _ => continue,
            };
            if text.len() < SHORTEST || !seen.insert(Sha256::digest(text).into()) {
                continue;
            }
            let class = ContentClass::of(text);
            let estimate = HeuristicEstimator.estimate(text).get() as f64;
            let percent = 100.0 * (Encoding::O200kBase.count(text) as f64 - estimate) / estimate.max(1.0);
            let band = HeuristicEstimator.error_band(class);
            let is_in = percent >= -f64::from(band.below_percent) && percent <= f64::from(band.above_percent);
            let (errors, in_band) = errors.entry(class).or_default();
            errors.push(percent);
            *in_band += usize::from(is_in);
        }
    }
    let summary = |(class, (mut errors, in_band)): (ContentClass, (Vec<f64>, usize))| {
        errors.sort_by(f64::total_cmp);
        ClassSummary {
            class,
            count: errors.len(),
            median: quantile(&errors, 50),
            fifth: quantile(&errors, 5),
            ninety_fifth: quantile(&errors, 95),
            in_band,
        }
    };
    Ok(errors.into_iter().map(summary).collect())
}

/// The session in a file, or the first of several conversations.
fn conversations(bytes: &[u8]) -> Vec<Session> {
    let conversation = |index| {
        let options = ReadOptions { conversation: index, ..ReadOptions::default() };
        read(bytes, &options, &mut |_| {})
    };
    match conversation(None) {
        Ok(session) => vec![session],
        Err(ReadError::Conversations { count }) => {
            (0..count.min(MOST_CONVERSATIONS)).filter_map(|index| conversation(Some(index)).ok()).collect()
        }
        Err(_) => Vec::new(),
    }
}

/// Reading one takes a walk over the whole file.
const MOST_CONVERSATIONS: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_counts_once_in_its_class() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("session.json");
        let prose = "The committee agreed that the proposal should be revised before the meeting. ".repeat(4);
        let message = format!(r#"{{"role":"user","content":"{prose}"}}"#);
        fs::write(&file, format!(r#"[{message},{message},{{"role":"user","content":"short"}}]"#)).unwrap();
        let found = summaries(&[file]).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].class, found[0].count), (ContentClass::Prose, 1));
        assert_eq!(found[0].fault(), None);
        let off = ClassSummary { count: FEWEST, median: 16.0, ..found[0] };
        assert!(off.fault().is_some());
        assert!(ClassSummary { in_band: 20, median: 0.0, ..off }.fault().is_some());
    }
}
