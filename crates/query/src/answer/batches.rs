//! An answer of batches: whole batches are written, and leave when their form lets them.

use std::ops::ControlFlow;

use arrow::array::RecordBatch;
use tidegate_core::{Error, Metadata};

use super::bound::{Bound, Cut};
use super::outlet::Outlet;
use crate::body::BatchBody;

/// Batches on their way into a body.
pub(crate) struct BatchAnswer<'a> {
    outlet: Outlet<'a>,
    bound: Bound,
    body: Box<dyn BatchBody>,
    rows: u64,
    /// Rows that were written and have not left.
    held_rows: u64,
    /// No more bytes than these are in the body; counted where bytes are bounded.
    body_bytes_max: usize,
    cut: Option<Cut>,
}

impl<'a> BatchAnswer<'a> {
    /// An answer of nothing yet, into `outlet` and within `bound`.
    pub(super) fn new(body: Box<dyn BatchBody>, bound: Bound, outlet: Outlet<'a>) -> Self {
        Self { outlet, bound, body, rows: 0, held_rows: 0, body_bytes_max: 0, cut: None }
    }

    pub(super) async fn push(&mut self, batch: &RecordBatch) -> Result<ControlFlow<()>, Error> {
        let room = self.bound.rows_max.map_or(u64::MAX, |max| max - self.rows);
        let wanted = batch.num_rows().min(usize::try_from(room).unwrap_or(usize::MAX));
        if wanted < batch.num_rows() {
            self.cut = Some(self.bound.rows_cut);
        }
        let batch = self.fitting(batch.slice(0, wanted))?;
        if batch.num_rows() > 0 {
            self.rows += batch.num_rows() as u64;
            self.held_rows += batch.num_rows() as u64;
            let bytes = self.body.write(&batch)?;
            self.leave(bytes).await?;
            if self.bound.bytes_max.is_some() {
                // How long a part is, is known when it has left.
                let bytes = self.body.flush()?;
                self.leave(bytes).await?;
            }
        }
        self.outlet.report(self.rows).await?;
        Ok(if self.cut.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// As many of the first rows of `batch` as the budget has room for, or half of them and so on.
    fn fitting(&mut self, batch: RecordBatch) -> Result<RecordBatch, Error> {
        if self.bound.bytes_max.is_none() {
            return Ok(batch);
        }
        let mut rows = batch.num_rows();
        let mut next = 0;
        while rows > 0 {
            next = self.body.alone_bytes(&batch.slice(0, rows))?;
            if self.bound.fits(self.body_bytes_max + next) {
                self.body_bytes_max += next;
                break;
            }
            rows /= 2;
        }
        if rows < batch.num_rows() {
            self.cut = Some(Cut::Bytes { next });
        }
        Ok(batch.slice(0, rows))
    }

    async fn leave(&mut self, bytes: bytes::Bytes) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.outlet.bytes(bytes, std::mem::take(&mut self.held_rows)).await
    }

    pub(super) fn cut(&self) -> Option<(Cut, u64)> {
        self.cut.map(|cut| (cut, self.rows))
    }

    pub(super) async fn finish(mut self) -> Result<Metadata, Error> {
        let bytes = self.body.finish()?;
        self.outlet.bytes(bytes, self.held_rows).await?;
        Ok(self.outlet.metadata(false, self.rows, self.cut.is_some()))
    }
}
