//! The result of a run, as a table by area and a list of what failed.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::JudgedStatement;
use super::compare::Outcome;

/// The outcomes in the order of the table's columns.
const OUTCOMES: [&str; 9] =
    ["equal", "named", "both fail", "wider", "looser", "refused", "mute", "different", "internal"];

fn place_of(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Equal => 0,
        Outcome::EqualExceptNames => 1,
        Outcome::BothFail => 2,
        Outcome::Wider => 3,
        Outcome::OnlyEngineAnswers => 4,
        Outcome::Refused => 5,
        Outcome::RefusedWithoutHint => 6,
        Outcome::Different(_) => 7,
        Outcome::Internal => 8,
    }
}

/// Counts of outcomes.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    counts: [usize; OUTCOMES.len()],
}

impl Tally {
    fn add(&mut self, outcome: &Outcome) {
        self.counts[place_of(outcome)] += 1;
    }

    fn statements(&self) -> usize {
        self.counts.iter().sum()
    }

    /// Statements with an answer that PostgreSQL gives too, or one that is right where it overflows.
    fn answered(&self) -> usize {
        self.counts[..4].iter().sum()
    }
}

/// What a run found.
pub(crate) struct Report {
    pub(crate) text: String,
    /// What fails the test.
    pub(crate) failures: Vec<String>,
    pub(crate) total: Tally,
}

impl Report {
    pub(crate) fn new(judged: &[JudgedStatement]) -> Self {
        let mut areas: BTreeMap<&str, Tally> = BTreeMap::new();
        let mut total = Tally::default();
        for statement in judged {
            areas.entry(&statement.statement.area).or_default().add(&statement.outcome);
            total.add(&statement.outcome);
        }
        let mut text = format!("{:<24}", "area");
        OUTCOMES.iter().chain(&["statements"]).for_each(|name| write!(text, "{name:>11}").unwrap());
        for (area, tally) in areas.iter().map(|(area, tally)| (*area, tally)).chain([("all", &total)]) {
            write!(text, "\n{area:<24}").unwrap();
            tally.counts.iter().chain([&tally.statements()]).for_each(|count| write!(text, "{count:>11}").unwrap());
        }
        writeln!(text, "\n\n{:.1} % answered as PostgreSQL answers", total.share() * 100.0).unwrap();
        let failures: Vec<String> =
            judged.iter().filter(|judged| judged.fails()).map(JudgedStatement::describe).collect();
        let others = |outcome: &Outcome| {
            matches!(outcome, Outcome::RefusedWithoutHint | Outcome::OnlyEngineAnswers | Outcome::Refused)
        };
        let others = judged.iter().filter(|judged| !judged.fails() && others(&judged.outcome));
        let others: Vec<String> = others.map(JudgedStatement::describe).collect();
        writeln!(text, "\n==== {} failures ====\n\n{}", failures.len(), failures.join("\n")).unwrap();
        writeln!(
            text,
            "\n==== {} refused or answered where PostgreSQL fails ====\n\n{}",
            others.len(),
            others.join("\n")
        )
        .unwrap();
        let named: Vec<String> = judged.iter().filter_map(JudgedStatement::names).collect();
        writeln!(text, "\n==== {} with other names of columns ====\n\n{}", named.len(), named.join("\n")).unwrap();
        Self { text, failures, total }
    }
}

impl Tally {
    /// The share of statements that are answered.
    pub(crate) fn share(&self) -> f64 {
        self.answered() as f64 / self.statements().max(1) as f64
    }
}
