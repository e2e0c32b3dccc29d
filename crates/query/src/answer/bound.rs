//! Where an answer ends before its rows do, and what is said of that.

use tidegate_core::Budget;

/// Kept free in the budget for the line that says what was not shown.
const NOTICE_BYTES: usize = 300;
/// Smaller budgets keep nothing free for the line.
const NOTICE_BUDGET_MIN_BYTES: usize = 10 * NOTICE_BYTES;

/// Why an answer ended before its rows did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TruncationReason {
    /// As many rows as were wanted.
    RowLimit,
    /// As many rows as an answer may have.
    RowBudget,
    /// The next row, of so many bytes, does not fit.
    ByteBudget { next: usize },
}

/// The words of the line about what is not shown.
#[derive(Debug, Clone)]
pub(crate) struct TruncationHints {
    /// What is answered: `row` or `value`.
    pub(crate) noun: &'static str,
    /// How to ask for the rest when as many were shown as were wanted.
    pub(crate) limit: String,
    /// How to ask for the rest when no more are allowed or fit.
    pub(crate) budget: String,
    /// Rows of the whole that stand before those of this answer.
    pub(crate) rows_before: u64,
}

/// Where an answer goes on that did not fit.
#[derive(Debug, Clone)]
pub(crate) struct NextPage {
    /// What the next call gives to get the next rows.
    pub(crate) cursor: String,
    /// The URI of the stored result, for those who may read it.
    pub(crate) uri: Option<String>,
}

impl NextPage {
    /// How to ask for the rest.
    pub(crate) fn hint(&self) -> String {
        let whole = self.uri.as_ref().map(|uri| format!(" The full result is stored at {uri}.")).unwrap_or_default();
        format!("To continue, repeat the call with \"cursor\": \"{}\".{whole}", self.cursor)
    }
}

/// Where an answer ends at the latest.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerBound {
    pub(super) rows_max: Option<u64>,
    /// Why the answer ends at `rows_max`.
    pub(super) row_truncation: TruncationReason,
    pub(super) bytes_max: Option<usize>,
}

impl AnswerBound {
    /// The bound of as many rows as are `wanted`, within `budget`.
    pub(super) fn new(expected: Option<u64>, budget: Budget) -> Self {
        let (rows_max, row_truncation) = match (expected, budget.rows) {
            (Some(expected), Some(allowed)) if allowed < expected => (Some(allowed), TruncationReason::RowBudget),
            (Some(expected), _) => (Some(expected), TruncationReason::RowLimit),
            (None, allowed) => (allowed, TruncationReason::RowBudget),
        };
        Self { rows_max, row_truncation, bytes_max: budget.bytes }
    }

    /// Whether an answer of that many bytes leaves room for the line.
    pub(super) fn fits(&self, bytes: usize) -> bool {
        self.bytes_max.is_none_or(|max| {
            let line = if max >= NOTICE_BUDGET_MIN_BYTES { NOTICE_BYTES } else { 0 };
            bytes + line <= max
        })
    }

    /// The one line that says what was not shown after `rows` rows, and how to ask for it.
    pub(super) fn truncation_notice(&self, cut: TruncationReason, rows: u64, hints: &TruncationHints) -> String {
        let noun = hints.noun;
        let bytes_max = self.bytes_max.unwrap_or_default();
        let before = hints.rows_before;
        let visible = match rows {
            0 => format!("no {noun}s"),
            1 if before > 0 => format!("{noun} {}", before + 1),
            _ if before > 0 => format!("{noun}s {} to {}", before + 1, before + rows),
            1 => format!("the first {noun}"),
            _ => format!("the first {rows} {noun}s"),
        };
        match cut {
            TruncationReason::RowLimit => format!("Showing {visible}; more exist. {}", hints.limit),
            TruncationReason::RowBudget => {
                format!("Showing {visible}, the maximum of an answer; more exist. {}", hints.budget)
            }
            TruncationReason::ByteBudget { next } if rows == 0 => format!(
                "Showing {visible}: the first has {next} characters, and the limit is {bytes_max}. \
                 Select fewer columns, or shorten long ones with left(column, 100)."
            ),
            TruncationReason::ByteBudget { .. } => {
                format!("Showing {visible}, as many as fit into {bytes_max} characters; more exist. {}", hints.budget)
            }
        }
    }
}
