//! The limits of an answer, and the notice when rows are missing.

use tidegate_core::Budget;

use super::AnswerWriter;

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
    fn hint(&self) -> String {
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
}

impl AnswerWriter<'_> {
    /// The notice at the end: how many rows are included, and how to get the rest. `None` if the answer has all rows that
    /// the caller asked for.
    pub(super) fn truncation_notice(&self, next: Option<&NextPage>) -> Option<String> {
        let (reason, rows, before) = (self.truncation?, self.rows, self.rows_before);
        let next_hint = next.map(NextPage::hint);
        let limit_hint = next_hint.as_deref().or(self.output.limit_hint);
        let budget_hint = next_hint.as_deref().unwrap_or(self.output.overflow_hint);
        let noun = if self.output.extract.is_some() { "value" } else { "row" };
        let bytes_max = self.bound.bytes_max.unwrap_or_default();
        let visible = match rows {
            0 => format!("no {noun}s"),
            1 if before > 0 => format!("{noun} {}", before + 1),
            _ if before > 0 => format!("{noun}s {} to {}", before + 1, before + rows),
            1 => format!("the first {noun}"),
            _ => format!("the first {rows} {noun}s"),
        };
        Some(match reason {
            TruncationReason::RowLimit => format!("Showing {visible}; more exist. {}", limit_hint?),
            TruncationReason::RowBudget => {
                format!("Showing {visible}, the maximum of an answer; more exist. {budget_hint}")
            }
            TruncationReason::ByteBudget { next } if rows == 0 => format!(
                "Showing {visible}: the first has {next} bytes, and the limit is {bytes_max}. \
                 Select fewer columns, or shorten long ones with left(column, 100)."
            ),
            TruncationReason::ByteBudget { .. } => {
                format!("Showing {visible}, as many as fit into {bytes_max} bytes; more exist. {budget_hint}")
            }
        })
    }
}
