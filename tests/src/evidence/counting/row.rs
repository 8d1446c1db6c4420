//! One figure of a provider beside ours, and what many of them come to.

use std::collections::BTreeMap;

use epitome_counters::ErrorBand;

/// What a figure is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Subject {
    /// A request of text alone, by a counter that calls itself exact.
    Exact,
    /// A request of text alone.
    Text,
    /// A request with tools or calls.
    Tools,
    /// What a few steps of a session added: mostly prose, and so on.
    Prose,
    Code,
    Json,
    Log,
    Sealed,
    OtherLanguage,
    Blank,
    /// Several kinds of text, none above seven tenths.
    Mixed,
    /// What a whole stretch of a session added, between two changes of what is not in its file.
    Stretch,
    /// A whole context: the last figure, and our count of what came behind it.
    Anchored,
    Image,
    Audio,
    Document,
    Video,
    /// A request with an item that only the provider can read.
    Opaque,
}

/// How far a figure of ours may be off, in percent of the provider's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limits {
    /// The median of its kind.
    pub(super) median: f64,
    /// Nine figures in ten, where there are ten.
    pub(super) most: f64,
    /// The worst.
    pub(super) worst: f64,
}

impl Subject {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "text, exact",
            Self::Text => "text",
            Self::Tools => "text and tools",
            Self::Prose => "growth: prose",
            Self::Code => "growth: code",
            Self::Json => "growth: json",
            Self::Log => "growth: log",
            Self::Sealed => "growth: sealed",
            Self::OtherLanguage => "growth: other language",
            Self::Blank => "growth: blank",
            Self::Mixed => "growth: mixed",
            Self::Stretch => "stretch of a session",
            Self::Anchored => "context at a compaction",
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Document => "document",
            Self::Video => "video",
            Self::Opaque => "opaque item",
        }
    }

    /// The limits of the promise. Text: the stated bands of the fits are about 12 % either way for a text, and a
    /// small request or step scatters further; a stretch, in which errors cancel, must come out nearer. Media:
    /// what the published rules leave open. Opaque items: nobody outside knows what is in them.
    pub(super) fn limits(self) -> Limits {
        let (median, most, worst) = match self {
            Self::Exact => (0.0, 0.0, 0.0),
            Self::Text | Self::Tools => (10.0, 20.0, 35.0),
            Self::Prose | Self::Code | Self::Json | Self::Log | Self::Mixed => (10.0, 20.0, 50.0),
            Self::Sealed | Self::OtherLanguage | Self::Blank => (25.0, 40.0, 60.0),
            Self::Stretch | Self::Anchored => (10.0, 12.0, 20.0),
            Self::Image => (15.0, 30.0, 40.0),
            Self::Audio | Self::Video => (25.0, 40.0, 50.0),
            Self::Document => (40.0, 60.0, 80.0),
            Self::Opaque => (40.0, 60.0, 80.0),
        };
        Limits { median, most, worst }
    }
}

/// One figure of a provider beside ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The file, and which figure of it.
    pub(super) place: String,
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) subject: Subject,
    pub(super) ours: u64,
    pub(super) theirs: u64,
    /// What our counter states for this figure.
    pub(super) band: ErrorBand,
    /// Whether it decides about the promise. A figure that a client worked out by itself does not.
    pub(super) is_judged: bool,
}

impl Row {
    /// How far ours is off, in percent of theirs.
    pub(super) fn percent(&self) -> f64 {
        100.0 * (self.ours as f64 - self.theirs as f64) / (self.theirs.max(1) as f64)
    }

    /// Whether theirs lies in the band around ours.
    pub(super) fn is_in_band(&self) -> bool {
        let (ours, theirs) = (self.ours as f64, self.theirs as f64);
        let share = |percent: u8| f64::from(percent) / 100.0;
        theirs >= ours * (1.0 - share(self.band.below_percent))
            && theirs <= ours * (1.0 + share(self.band.above_percent))
    }
}

/// What the figures of one kind come to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Summary {
    pub(super) provider: String,
    pub(super) subject: Subject,
    pub(super) is_judged: bool,
    pub(super) count: usize,
    /// Ours against theirs in percent: the median, the fifth and ninety-fifth percentile, the worst.
    pub(super) median: f64,
    pub(super) fifth: f64,
    pub(super) ninety_fifth: f64,
    pub(super) worst: f64,
    /// The size of error that nine in ten stay within.
    pub(super) most: f64,
    pub(super) worst_place: String,
    /// How many lie in the band that our counter states.
    pub(super) in_band: usize,
}

impl Summary {
    /// Sums up rows by who counted and what about.
    pub(super) fn of(rows: &[Row]) -> Vec<Self> {
        let mut groups: BTreeMap<(bool, &str, Subject), Vec<&Row>> = BTreeMap::new();
        for row in rows {
            groups.entry((!row.is_judged, &row.provider, row.subject)).or_default().push(row);
        }
        groups.into_values().filter_map(|rows| Self::of_group(&rows)).collect()
    }

    fn of_group(rows: &[&Row]) -> Option<Self> {
        let first = rows.first()?;
        let mut errors: Vec<f64> = rows.iter().map(|row| row.percent()).collect();
        errors.sort_by(f64::total_cmp);
        let worst = rows.iter().max_by(|one, other| one.percent().abs().total_cmp(&other.percent().abs()))?;
        let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        Some(Self {
            provider: first.provider.clone(),
            subject: first.subject,
            is_judged: first.is_judged,
            count: rows.len(),
            median: quantile(&errors, 50),
            fifth: quantile(&errors, 5),
            ninety_fifth: quantile(&errors, 95),
            worst: worst.percent(),
            most: quantile(&sizes, 90),
            worst_place: worst.place.clone(),
            in_band: rows.iter().filter(|row| row.is_in_band()).count(),
        })
    }

    /// Why this kind breaks the promise, if it does.
    pub(super) fn fault(&self) -> Option<String> {
        let Limits { median, most, worst } = self.subject.limits();
        let kind = format!("{}, {}", self.provider, self.subject.as_str());
        if !self.is_judged {
            None
        } else if self.median.abs() > median {
            Some(format!("{kind}: the median is off by {:+.1} %, allowed are {median} %", self.median))
        } else if self.count >= 10 && self.most > most {
            Some(format!("{kind}: nine in ten are within {:.1} %, allowed are {most} %", self.most))
        } else if self.worst.abs() > worst {
            Some(format!(
                "{kind}: the worst is off by {:+.1} % ({}), allowed are {worst} %",
                self.worst, self.worst_place
            ))
        } else {
            None
        }
    }
}

/// The value below which so many percent of the sorted values lie.
pub(in crate::evidence) fn quantile(sorted: &[f64], percent: usize) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let at = (sorted.len() * percent / 100).min(last);
    sorted.get(at).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ours: u64, theirs: u64, subject: Subject) -> Row {
        Row {
            place: format!("f#{ours}"),
            provider: "p".to_owned(),
            model: "m".to_owned(),
            subject,
            ours,
            theirs,
            band: ErrorBand::EXACT,
            is_judged: true,
        }
    }

    #[test]
    fn a_kind_breaks_the_promise_by_its_median_or_its_worst() {
        let faults = |rows: &[Row]| Summary::of(rows).iter().filter_map(Summary::fault).collect::<Vec<_>>();
        assert_eq!(faults(&[row(100, 100, Subject::Text), row(109, 100, Subject::Text)]), [""; 0]);
        assert!(faults(&[row(112, 100, Subject::Text); 1])[0].contains("median is off by +12.0 %"));
        let mut rows = vec![row(100, 100, Subject::Text); 5];
        rows.push(row(50, 100, Subject::Text));
        assert!(faults(&rows)[0].contains("worst is off by -50.0 % (f#50)"));
        assert!(faults(&[row(101, 100, Subject::Exact)])[0].contains("text, exact"));
        let many: Vec<Row> =
            (0..20).map(|at| row(if at < 5 { 125 } else { 100 }, 100, Subject::Text)).collect();
        assert!(faults(&many)[0].contains("nine in ten"));
        let unjudged = Row { is_judged: false, ..row(200, 100, Subject::Text) };
        assert_eq!(faults(&[unjudged]), [""; 0]);
    }

    #[test]
    fn bands_are_around_ours() {
        let mut row = row(100, 110, Subject::Text);
        assert!(!row.is_in_band());
        row.theirs = 100;
        assert!(row.is_in_band());
        assert_eq!(row.percent(), 0.0);
    }
}
