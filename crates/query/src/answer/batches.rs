//! An answer of batches: whole batches are encoded, and sent when the encoder has output.

use std::ops::ControlFlow;

use arrow::array::RecordBatch;
use tidegate_core::Error;
use tidegate_runtime::Metadata;

use super::bound::{AnswerBound, TruncationReason};
use super::response_sink::ResponseSink;
use crate::body::BatchBody;

pub(crate) struct BatchAnswerWriter<'a> {
    sink: ResponseSink<'a>,
    bound: AnswerBound,
    body: Box<dyn BatchBody>,
    rows: u64,
    unsent_rows: u64,
    /// An upper bound of the bytes in the body; counted only where bytes are limited.
    body_bytes_max: usize,
    truncation: Option<TruncationReason>,
}

impl<'a> BatchAnswerWriter<'a> {
    pub(super) fn new(body: Box<dyn BatchBody>, bound: AnswerBound, sink: ResponseSink<'a>) -> Self {
        Self { sink, bound, body, rows: 0, unsent_rows: 0, body_bytes_max: 0, truncation: None }
    }

    pub(super) async fn push(&mut self, batch: &RecordBatch) -> Result<ControlFlow<()>, Error> {
        let room = self.bound.rows_max.map_or(u64::MAX, |max| max - self.rows);
        let expected = batch.num_rows().min(usize::try_from(room).unwrap_or(usize::MAX));
        if expected < batch.num_rows() {
            self.truncation = Some(self.bound.row_truncation);
        }
        let batch = self.truncate_to_budget(batch.slice(0, expected))?;
        if batch.num_rows() > 0 {
            self.rows += batch.num_rows() as u64;
            self.unsent_rows += batch.num_rows() as u64;
            let bytes = self.body.write(&batch)?;
            self.send(bytes).await?;
            if self.bound.bytes_max.is_some() {
                // The size of a part is known only after the flush.
                let bytes = self.body.flush()?;
                self.send(bytes).await?;
            }
        }
        self.sink.report_progress(self.rows).await?;
        Ok(if self.truncation.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// The first rows of `batch` that fit into the budget; the number is halved until they fit.
    fn truncate_to_budget(&mut self, batch: RecordBatch) -> Result<RecordBatch, Error> {
        if self.bound.bytes_max.is_none() {
            return Ok(batch);
        }
        let mut rows = batch.num_rows();
        let mut next = 0;
        while rows > 0 {
            next = self.body.standalone_bytes(&batch.slice(0, rows))?;
            if self.bound.fits(self.body_bytes_max + next) {
                self.body_bytes_max += next;
                break;
            }
            rows /= 2;
        }
        if rows < batch.num_rows() {
            self.truncation = Some(TruncationReason::ByteBudget { next });
        }
        Ok(batch.slice(0, rows))
    }

    async fn send(&mut self, bytes: bytes::Bytes) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.sink.send_bytes(bytes, std::mem::take(&mut self.unsent_rows)).await
    }

    pub(super) fn truncation(&self) -> Option<(TruncationReason, u64)> {
        self.truncation.map(|cut| (cut, self.rows))
    }

    pub(super) async fn finish(mut self) -> Result<Metadata, Error> {
        let bytes = self.body.finish()?;
        self.sink.send_bytes(bytes, self.unsent_rows).await?;
        Ok(self.sink.metadata(false, self.rows, self.truncation.is_some()))
    }
}
