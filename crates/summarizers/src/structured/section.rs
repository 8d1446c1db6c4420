//! The four sections, the template that chooses among them, and a summary's content.

use epitome_loop::SharedText;

/// Most entries that a section takes from an answer.
pub const MAX_SECTION_ITEMS: usize = 50;

/// The header of both ready-made templates.
const DEFAULT_HEADER: &str = "## Earlier conversation, summarized";

/// A section of a structured summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SummarySection {
    /// What is known.
    KeyFacts,
    /// What was decided.
    Decisions,
    /// What was done and what remains.
    PendingTasks,
    /// What nobody has answered yet.
    OpenQuestions,
}

impl SummarySection {
    /// The sections in canonical order.
    pub const ALL: [Self; 4] = [Self::KeyFacts, Self::Decisions, Self::PendingTasks, Self::OpenQuestions];

    /// From the section that a summary can spare last to the one it can spare first: without its ledger, work is
    /// done twice.
    pub(super) const BY_IMPORTANCE: [Self; 4] =
        [Self::PendingTasks, Self::Decisions, Self::KeyFacts, Self::OpenQuestions];

    /// The heading's text, without its mark.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::KeyFacts => "Key facts",
            Self::Decisions => "Decisions",
            Self::PendingTasks => "Pending tasks",
            Self::OpenQuestions => "Open questions",
        }
    }

    /// The key in an answer that is JSON.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::KeyFacts => "key_facts",
            Self::Decisions => "decisions",
            Self::PendingTasks => "pending_tasks",
            Self::OpenQuestions => "open_questions",
        }
    }

    /// The short name in telemetry.
    #[must_use]
    pub fn slug(self) -> &'static str {
        match self {
            Self::KeyFacts => "facts",
            Self::Decisions => "decisions",
            Self::PendingTasks => "todos",
            Self::OpenQuestions => "questions",
        }
    }
}

/// Which sections a summary shows, in which order, under which header. It drives the prompt and the rendering alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryTemplate {
    /// The sections in order; one that is named twice is shown twice. An empty list means all four.
    pub sections: Vec<SummarySection>,
    /// What stands above them; may be empty.
    pub header: SharedText,
}

impl SummaryTemplate {
    /// All four sections.
    #[must_use]
    pub fn default_template() -> Self {
        Self { sections: SummarySection::ALL.to_vec(), header: DEFAULT_HEADER.into() }
    }

    /// Decisions and pending tasks alone.
    #[must_use]
    pub fn action_only() -> Self {
        let sections = vec![SummarySection::Decisions, SummarySection::PendingTasks];
        Self { sections, header: DEFAULT_HEADER.into() }
    }

    /// The sections that are rendered.
    #[must_use]
    pub fn rendered(&self) -> &[SummarySection] {
        if self.sections.is_empty() { &SummarySection::ALL } else { &self.sections }
    }
}

impl Default for SummaryTemplate {
    fn default() -> Self {
        Self::default_template()
    }
}

/// What a summary says, by section.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StructuredSummary {
    /// What is known.
    pub key_facts: Vec<SharedText>,
    /// What was decided.
    pub decisions: Vec<SharedText>,
    /// What was done and what remains.
    pub pending_tasks: Vec<SharedText>,
    /// What nobody has answered yet.
    pub open_questions: Vec<SharedText>,
}

impl StructuredSummary {
    /// A summary whose only entry is this text, in the first rendered section: what becomes of an answer that cannot
    /// be read.
    #[must_use]
    pub fn of_raw_text(text: impl Into<SharedText>, template: &SummaryTemplate) -> Self {
        let mut summary = Self::default();
        if let Some(&first) = template.rendered().first() {
            summary.items_mut(first).push(text.into());
        }
        summary
    }

    /// The entries of one section.
    #[must_use]
    pub fn items(&self, section: SummarySection) -> &[SharedText] {
        match section {
            SummarySection::KeyFacts => &self.key_facts,
            SummarySection::Decisions => &self.decisions,
            SummarySection::PendingTasks => &self.pending_tasks,
            SummarySection::OpenQuestions => &self.open_questions,
        }
    }

    /// The entries of one section, to change.
    pub fn items_mut(&mut self, section: SummarySection) -> &mut Vec<SharedText> {
        match section {
            SummarySection::KeyFacts => &mut self.key_facts,
            SummarySection::Decisions => &mut self.decisions,
            SummarySection::PendingTasks => &mut self.pending_tasks,
            SummarySection::OpenQuestions => &mut self.open_questions,
        }
    }

    /// Whether no section has an entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        SummarySection::ALL.iter().all(|&section| self.items(section).is_empty())
    }

    /// Whether the template shows something of it, or there is nothing to show.
    #[must_use]
    pub fn fits(&self, template: &SummaryTemplate) -> bool {
        self.is_empty() || template.sections.is_empty() || self.populated(template) > 0
    }

    /// How many places that the template names have entries.
    #[must_use]
    pub fn populated(&self, template: &SummaryTemplate) -> usize {
        template.sections.iter().filter(|&&section| !self.items(section).is_empty()).count()
    }
}
