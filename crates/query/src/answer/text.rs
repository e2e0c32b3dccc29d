//! An answer of text: rows are written one by one, text leaves in pieces.

use std::ops::ControlFlow;
use std::time::Instant;

use arrow::array::RecordBatch;
use tidegate_core::{Error, Metadata};

use super::bound::{Bound, Cut, Hints, Next};
use super::outlet::{Outlet, PIECE_BYTES_MAX};
use crate::format::{Facts, Writer, cells};
use crate::structured::Structured;

/// A piece this long leaves; it may be a row longer than that, and is then split.
const PIECE_BYTES: usize = 60 * 1024;
/// The first piece is small, so that the first rows leave early.
const FIRST_PIECE_BYTES: usize = 4 * 1024;
/// Text that an answer in batch mode holds back at most. A longer answer streams from there on.
const HELD_BYTES_MAX: usize = 1024 * 1024;

/// Rows on their way into text.
pub(crate) struct TextAnswer<'a> {
    pub(super) outlet: Outlet<'a>,
    writer: Box<dyn Writer>,
    pub(super) structured: Option<Structured>,
    pub(super) bound: Bound,
    /// Whether text waits until all of it is there.
    holding: bool,
    began: bool,
    /// Text that has not left, and the rows in it.
    piece: String,
    piece_rows: u64,
    rows: u64,
    cut: Option<Cut>,
    started: Instant,
}

impl<'a> TextAnswer<'a> {
    /// An answer of nothing yet, into `outlet` and within `bound`.
    pub(super) fn new(
        writer: Box<dyn Writer>,
        holding: bool,
        bound: Bound,
        outlet: Outlet<'a>,
        started: Instant,
    ) -> Self {
        Self {
            outlet,
            writer,
            structured: None,
            bound,
            holding,
            began: false,
            piece: String::new(),
            piece_rows: 0,
            rows: 0,
            cut: None,
            started,
        }
    }

    pub(super) fn lookahead_rows(&self) -> usize {
        let wanted = self.bound.rows_max.and_then(|rows| usize::try_from(rows).ok()).unwrap_or(usize::MAX);
        self.writer.lookahead_rows().min(wanted)
    }

    pub(super) fn look_at(&mut self, batches: &[RecordBatch]) {
        let mut left = self.lookahead_rows();
        for batch in batches {
            let rows = batch.num_rows().min(left);
            self.writer.look_at(&cells(batch), rows);
            left -= rows;
        }
    }

    pub(super) async fn push(&mut self, batch: &RecordBatch) -> Result<ControlFlow<()>, Error> {
        let cells = cells(batch);
        for row in 0..batch.num_rows() {
            if self.bound.rows_max.is_some_and(|max| self.rows >= max) {
                self.cut = Some(self.bound.rows_cut);
                return Ok(ControlFlow::Break(()));
            }
            self.begin();
            let before = self.piece.len();
            self.writer.row(&cells, row, self.rows, &mut self.piece);
            // What was written so far must stay within the budget when it is closed.
            let closed = self.outlet.sent_bytes + self.piece.len() + self.writer.closing_bytes_max();
            if !self.bound.fits(closed) {
                self.cut = Some(Cut::Bytes { next: self.piece.len() - before });
                self.piece.truncate(before);
                return Ok(ControlFlow::Break(()));
            }
            if let Some(structured) = &mut self.structured {
                structured.row(&cells, row);
            }
            self.rows += 1;
            self.piece_rows += 1;
            if self.piece.len() >= self.piece_bytes() {
                self.leave().await?;
            }
        }
        self.report().await?;
        Ok(ControlFlow::Continue(()))
    }

    pub(super) async fn pause(&mut self) -> Result<(), Error> {
        if self.holding || self.piece.is_empty() { Ok(()) } else { self.leave().await }
    }

    async fn report(&mut self) -> Result<(), Error> {
        self.outlet.report(self.rows).await
    }

    fn begin(&mut self) {
        if !self.began {
            self.began = true;
            self.writer.open(&mut self.piece);
        }
    }

    /// How long the text gets before it leaves.
    fn piece_bytes(&self) -> usize {
        if self.holding {
            HELD_BYTES_MAX
        } else if self.outlet.sent_bytes == 0 {
            FIRST_PIECE_BYTES
        } else {
            PIECE_BYTES
        }
    }

    async fn leave(&mut self) -> Result<(), Error> {
        self.holding = false;
        self.seal();
        let text = std::mem::replace(&mut self.piece, String::with_capacity(PIECE_BYTES_MAX));
        self.outlet.text(text, std::mem::take(&mut self.piece_rows)).await?;
        self.report().await
    }

    fn seal(&mut self) {
        self.writer.seal(self.rows - self.piece_rows, self.piece_rows, &mut self.piece);
    }

    pub(super) async fn finish(mut self, hints: &Hints, next: Option<&Next>) -> Result<Metadata, Error> {
        let held = self.holding;
        let line = self.cut.map(|cut| self.bound.line(cut, self.rows, hints));
        let is_cut = line.is_some();
        self.begin();
        self.seal();
        self.writer.close(self.facts(is_cut), &mut self.piece);
        if let (Some(line), true) = (&line, self.outlet.is_body()) {
            self.writer.note(line, &mut self.piece);
        }
        self.last().await?;
        if let (Some(line), false) = (line, self.outlet.is_body()) {
            self.outlet.block(line).await?;
            if let Some(uri) = next.and_then(|next| next.uri.as_ref()) {
                self.outlet.link(uri).await?;
            }
        }
        if let Some(structured) = self.structured.take() {
            self.outlet.structured(structured.close(is_cut)).await?;
        }
        Ok(self.outlet.metadata(held, self.rows, is_cut))
    }

    pub(super) async fn abandon(mut self, error: &Error) -> Result<(), Error> {
        if self.outlet.sent_bytes == 0 {
            return Ok(());
        }
        self.begin();
        self.seal();
        let facts = self.facts(true);
        if self.outlet.is_body() {
            self.writer.fail(facts, &error.to_string(), &mut self.piece);
            return self.last().await;
        }
        self.writer.close(facts, &mut self.piece);
        self.last().await?;
        self.outlet.end_text().await
    }

    pub(super) fn cut(&self) -> Option<(Cut, u64)> {
        self.cut.map(|cut| (cut, self.rows))
    }

    fn facts(&self, truncated: bool) -> Facts {
        Facts { rows: self.rows, elapsed: self.started.elapsed(), truncated }
    }

    /// Sends what is left.
    async fn last(&mut self) -> Result<(), Error> {
        let text = std::mem::take(&mut self.piece);
        self.outlet.text(text, std::mem::take(&mut self.piece_rows)).await
    }
}
