//! Where the rows of a write are in their body, for rows that a table refuses after they were decoded.

use tidegate_core::Error;
use tidegate_ingest_formats::RowPosition;

/// So many runs of successive positions are kept. Of rows after them, errors say no position.
const RUNS_MAX: usize = 65_536;

/// The positions of the rows that were written, in their order.
#[derive(Debug, Default)]
pub(super) struct RowPositions {
    /// Of each run of successive positions the number of its first row, and where that row is.
    runs: Vec<(u64, RowPosition)>,
    rows: u64,
    is_full: bool,
}

impl RowPositions {
    /// Adds the positions of the next rows.
    pub(super) fn extend(&mut self, positions: &[RowPosition]) {
        for position in positions {
            if self.is_full {
                return;
            }
            let expected = self.runs.last().map(|(first, start)| after(*start, self.rows - first));
            if expected != Some(*position) {
                self.is_full = self.runs.len() == RUNS_MAX;
                if self.is_full {
                    return;
                }
                self.runs.push((self.rows, *position));
            }
            self.rows += 1;
        }
    }

    /// The same error with the position of the row that a table refuses, if both are known.
    pub(super) fn with_position(&self, error: Error) -> Error {
        let Some(position) = error.refused_row().and_then(|row| self.find(row)) else { return error };
        let placed = Error::new(error.kind(), format!("{position}: {}", error.message()));
        let placed = match error.hint() {
            Some(hint) => placed.with_hint(hint),
            None => placed,
        };
        match error.detail() {
            Some(detail) => placed.with_detail(detail),
            None => placed,
        }
    }

    fn find(&self, row: u64) -> Option<RowPosition> {
        if row >= self.rows {
            return None;
        }
        let run = self.runs.partition_point(|(first, _)| *first <= row).checked_sub(1)?;
        self.runs.get(run).map(|(first, start)| after(*start, row - first))
    }
}

/// The position that is `rows` rows after `start`, where each row is in the next position.
fn after(start: RowPosition, rows: u64) -> RowPosition {
    match start {
        RowPosition::Line(line) => RowPosition::Line(line.saturating_add(rows)),
        RowPosition::Index(index) => RowPosition::Index(index.saturating_add(rows)),
    }
}
