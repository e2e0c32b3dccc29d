//! An answer in a binary format: whole batches are encoded, and sent when the encoder has output.

use std::ops::ControlFlow;

use arrow::array::RecordBatch;
use bytes::Bytes;
use tidegate_core::Error;

use super::AnswerWriter;
use super::bound::TruncationReason;

impl AnswerWriter<'_> {
    pub(super) async fn push_batch(&mut self, batch: &RecordBatch) -> Result<ControlFlow<()>, Error> {
        let room = self.bound.rows_max.map_or(u64::MAX, |max| max - self.rows);
        let expected = batch.num_rows().min(usize::try_from(room).unwrap_or(usize::MAX));
        if expected < batch.num_rows() {
            self.truncation = Some(self.bound.row_truncation);
        }
        let batch = self.truncate_to_budget(batch.slice(0, expected))?;
        if batch.num_rows() > 0 {
            self.rows += batch.num_rows() as u64;
            self.unsent_rows += batch.num_rows() as u64;
            let bytes = self.encoder.write(&batch)?;
            self.send_encoded(bytes).await?;
            if self.bound.bytes_max.is_some() {
                // The size of a part is known only after the flush.
                let bytes = self.encoder.flush()?;
                self.send_encoded(bytes).await?;
            }
        }
        self.report_progress().await?;
        Ok(if self.truncation.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    pub(super) async fn finish_batches(&mut self) -> Result<(), Error> {
        let bytes = self.encoder.write_end(false)?;
        self.send_bytes(bytes, self.unsent_rows).await
    }

    /// The first rows of `batch` that fit into the budget; the number is halved until they fit.
    fn truncate_to_budget(&mut self, batch: RecordBatch) -> Result<RecordBatch, Error> {
        if self.bound.bytes_max.is_none() {
            return Ok(batch);
        }
        let mut rows = batch.num_rows();
        let mut next = 0;
        while rows > 0 {
            next = self.encoder.standalone_bytes(&batch.slice(0, rows))?;
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

    async fn send_encoded(&mut self, bytes: Bytes) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.unsent_rows);
        self.send_bytes(bytes, rows).await
    }
}
