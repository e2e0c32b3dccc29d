//! The limits of an answer, and the notice when rows are missing.

use tidegate_core::Budget;

/// Bytes of the budget that are reserved for the notice about missing rows.
const NOTICE_BYTES: usize = 400;
/// Smaller budgets reserve nothing.
const NOTICE_BUDGET_MIN_BYTES: usize = 10 * NOTICE_BYTES;

/// Why an answer ended before its rows did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TruncationReason {
    RowLimit,
    RowBudget,
    /// The next row, of `next` bytes, does not fit.
    ByteBudget {
        next: usize,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct TruncationHints {
    pub(crate) is_list: bool,
    /// How to get more when the row limit was reached; `None` if the caller asked for exactly that.
    pub(crate) limit: Option<String>,
    /// How to get more when the budget was reached.
    pub(crate) budget: String,
    pub(crate) rows_before: u64,
}

/// Where an answer continues that did not fit.
#[derive(Debug, Clone)]
pub(crate) struct NextPage {
    pub(crate) cursor: String,
    /// The maximum number of stored rows, if the query may have more.
    pub(crate) rows_max: Option<u64>,
    /// The URI of the stored result, for callers that may read it.
    pub(crate) uri: Option<String>,
}

impl NextPage {
    pub(crate) fn hint(&self) -> String {
        let place = self.uri.as_ref().map(|uri| format!(" at {uri}")).unwrap_or_default();
        let stored = match self.rows_max {
            Some(max) => format!(
                " At most the first {max} rows (limit, max_rows) are stored{place}; raise the limit to store more."
            ),
            None if place.is_empty() => place,
            None => format!(" The rows are stored{place}."),
        };
        format!("To continue, repeat the call with \"cursor\": \"{}\".{stored}", self.cursor)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerBound {
    pub(super) rows_max: Option<u64>,
    /// The reason when the answer ends at `rows_max`.
    pub(super) row_truncation: TruncationReason,
    pub(super) bytes_max: Option<usize>,
    /// Bytes that are reserved for the note about missing nodes.
    pub(super) note_bytes: usize,
}

impl AnswerBound {
    pub(super) fn new(expected: Option<u64>, budget: Budget) -> Self {
        let (rows_max, row_truncation) = match (expected, budget.rows) {
            (Some(expected), Some(allowed)) if allowed < expected => (Some(allowed), TruncationReason::RowBudget),
            (Some(expected), _) => (Some(expected), TruncationReason::RowLimit),
            (None, allowed) => (allowed, TruncationReason::RowBudget),
        };
        Self { rows_max, row_truncation, bytes_max: budget.bytes, note_bytes: 0 }
    }

    /// Whether an answer of `bytes` bytes leaves space for the notice.
    pub(super) fn fits(&self, bytes: usize) -> bool {
        self.bytes_max.is_none_or(|max| {
            let line = if max >= NOTICE_BUDGET_MIN_BYTES { NOTICE_BYTES + self.note_bytes.min(max / 2) } else { 0 };
            bytes + line <= max
        })
    }

    /// The notice after `rows` rows: how many rows are included and how to get the rest. `None` if the answer has all
    /// rows that the caller asked for.
    pub(super) fn truncation_notice(
        &self,
        cut: TruncationReason,
        rows: u64,
        hints: &TruncationHints,
    ) -> Option<String> {
        let noun = if hints.is_list { "value" } else { "row" };
        let bytes_max = self.bytes_max.unwrap_or_default();
        let before = hints.rows_before;
        let visible = match rows {
            0 => format!("no {noun}s"),
            1 if before > 0 => format!("{noun} {}", before + 1),
            _ if before > 0 => format!("{noun}s {} to {}", before + 1, before + rows),
            1 => format!("the first {noun}"),
            _ => format!("the first {rows} {noun}s"),
        };
        Some(match cut {
            TruncationReason::RowLimit => format!("Showing {visible}; more exist. {}", hints.limit.as_ref()?),
            TruncationReason::RowBudget => {
                format!("Showing {visible}, the maximum of an answer; more exist. {}", hints.budget)
            }
            TruncationReason::ByteBudget { next } if rows == 0 => format!(
                "Showing {visible}: the first has {next} bytes, and the limit is {bytes_max}. \
                 Select fewer columns, or shorten long ones with left(column, 100)."
            ),
            TruncationReason::ByteBudget { .. } => {
                format!("Showing {visible}, as many as fit into {bytes_max} bytes; more exist. {}", hints.budget)
            }
        })
    }
}
