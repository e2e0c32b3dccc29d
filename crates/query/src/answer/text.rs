//! An answer of text: rows are written one by one within the budget, text leaves in pieces.

use std::ops::ControlFlow;
use std::time::Instant;

use arrow::array::RecordBatch;
use tidegate_core::{Error, Metadata};

use super::bound::{Bound, Cut, Hints, Next};
use super::outlet::Outlet;
use crate::body::TextBody;
use crate::format::{Writer, cells};
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
    body: TextBody,
    pub(super) structured: Option<Structured>,
    pub(super) bound: Bound,
    /// Whether text waits until all of it is there.
    holding: bool,
    cut: Option<Cut>,
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
        Self { outlet, body: TextBody::new(writer, started), structured: None, bound, holding, cut: None }
    }

    pub(super) fn lookahead_rows(&self) -> usize {
        let wanted = self.bound.rows_max.and_then(|rows| usize::try_from(rows).ok()).unwrap_or(usize::MAX);
        self.body.lookahead_rows().min(wanted)
    }

    pub(super) fn look_at(&mut self, batches: &[RecordBatch]) {
        let mut left = self.lookahead_rows();
        for batch in batches {
            let rows = batch.num_rows().min(left);
            self.body.look_at(batch, rows);
            left -= rows;
        }
    }

    pub(super) async fn push(&mut self, batch: &RecordBatch) -> Result<ControlFlow<()>, Error> {
        let cells = cells(batch);
        for row in 0..batch.num_rows() {
            if self.bound.rows_max.is_some_and(|max| self.body.rows() >= max) {
                self.cut = Some(self.bound.rows_cut);
                return Ok(ControlFlow::Break(()));
            }
            let bytes = self.body.row(&cells, row);
            // What was written so far must stay within the budget when it is closed.
            let further = self.outlet.further_bytes() + self.body.closed_bytes_max();
            if !self.bound.fits(self.outlet.sent_bytes + further) {
                self.cut = Some(Cut::Bytes { next: bytes });
                self.body.take_back(bytes);
                return Ok(ControlFlow::Break(()));
            }
            if let Some(structured) = &mut self.structured {
                structured.row(&cells, row);
            }
            if self.body.piece_bytes() >= self.piece_bytes() {
                self.leave().await?;
            }
        }
        self.report().await?;
        Ok(ControlFlow::Continue(()))
    }

    pub(super) async fn pause(&mut self) -> Result<(), Error> {
        if self.holding || self.body.piece_bytes() == 0 { Ok(()) } else { self.leave().await }
    }

    async fn report(&mut self) -> Result<(), Error> {
        self.outlet.report(self.body.rows()).await
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
        let (text, rows) = self.body.leave();
        self.outlet.text(text, rows).await?;
        self.report().await
    }

    pub(super) async fn finish(mut self, hints: &Hints, next: Option<&Next>) -> Result<Metadata, Error> {
        let held = self.holding;
        let line = self.cut.map(|cut| self.bound.line(cut, self.body.rows(), hints));
        let is_cut = line.is_some();
        self.body.close(is_cut);
        if let (Some(line), true) = (&line, self.outlet.is_body()) {
            self.body.note(line);
        }
        self.last().await?;
        self.outlet.end_fence().await?;
        if let (Some(line), false) = (line, self.outlet.is_body()) {
            self.outlet.block(line).await?;
            if let Some(uri) = next.and_then(|next| next.uri.as_ref()) {
                self.outlet.link(uri).await?;
            }
        }
        if let Some(structured) = self.structured.take() {
            self.outlet.structured(structured.close(is_cut)).await?;
        }
        Ok(self.outlet.metadata(held, self.body.rows(), is_cut))
    }

    pub(super) async fn abandon(mut self, error: &Error) -> Result<(), Error> {
        if self.outlet.sent_bytes == 0 {
            return Ok(());
        }
        if self.outlet.is_body() {
            self.body.fail(&error.to_string());
            return self.last().await;
        }
        self.body.close(true);
        self.last().await?;
        self.outlet.end_fence().await?;
        self.outlet.end_text().await
    }

    pub(super) fn cut(&self) -> Option<(Cut, u64)> {
        self.cut.map(|cut| (cut, self.body.rows()))
    }

    /// Sends what is left.
    async fn last(&mut self) -> Result<(), Error> {
        let (text, rows) = self.body.last();
        self.outlet.text(text, rows).await
    }
}
