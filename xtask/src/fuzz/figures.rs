//! The figures that libFuzzer prints.

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Figures {
    /// Inputs tried.
    pub(super) executions: u64,
    /// Inputs a second, over the whole run.
    per_second: u64,
    /// Edges of the code that were reached.
    coverage: u64,
    /// Inputs that are kept, because each reaches something else.
    corpus: u64,
    /// Largest size of the process in MB.
    memory: u64,
}

impl Figures {
    pub(super) const HEADING: &'static str =
        "target                      executions   exec/s  coverage   corpus    MB   finds";

    /// Takes what one line says: a pulse (`#1024 NEW cov: 9 ft: 10 corp: 3/20b exec/s: 512 rss: 40Mb`), or
    /// one of the statistics at the end.
    pub(super) fn take(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { return };
        if let Some(count) = first.strip_prefix('#').and_then(|count| count.parse().ok()) {
            self.executions = self.executions.max(count);
            let mut key = "";
            for word in words {
                let digits = word.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
                if let Ok(value) = digits.parse() {
                    match key {
                        "cov:" => self.coverage = value,
                        "corp:" => self.corpus = value,
                        "exec/s:" => self.per_second = value,
                        "rss:" => self.memory = self.memory.max(value),
                        _ => {}
                    }
                }
                key = word;
            }
            return;
        }
        let value = words.next().and_then(|value| value.parse().ok());
        match (first, value) {
            ("stat::number_of_executed_units:", Some(count)) => self.executions = count,
            ("stat::average_exec_per_sec:", Some(rate)) => self.per_second = rate,
            ("stat::peak_rss_mb:", Some(memory)) => self.memory = memory,
            _ => {}
        }
    }

    pub(super) fn row(&self, name: &str, finds: usize) -> String {
        let Self { executions, per_second, coverage, corpus, memory } = self;
        format!("{name:26} {executions:>11} {per_second:>8} {coverage:>9} {corpus:>8} {memory:>5} {finds:>7}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pulses_and_statistics_are_read() {
        let mut figures = Figures::default();
        for line in [
            "INFO: Seed: 1",
            "#2\tINITED cov: 7 ft: 8 corp: 1/1b exec/s: 0 rss: 39Mb",
            "#4096\tDONE   cov: 120 ft: 300 corp: 31/1200b lim: 64 exec/s: 2048 rss: 55Mb",
            "Done 4096 runs in 2 second(s)",
            "stat::number_of_executed_units: 4100",
            "stat::average_exec_per_sec:     2050",
            "stat::peak_rss_mb:              57",
            "",
        ] {
            figures.take(line);
        }
        let expected =
            Figures { executions: 4_100, per_second: 2_050, coverage: 120, corpus: 31, memory: 57 };
        assert_eq!(figures, expected);
        let row = figures.row("x", 0);
        assert_eq!(row.len(), Figures::HEADING.len());
    }
}
