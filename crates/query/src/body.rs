//! Encodes rows as the body of an answer: batches in, bytes out.
//!
//! Calls use these encoders within their budgets (`answer`). [`BodyWriter`] does the same for rows outside of calls.

mod arrow;
mod batch_body;
mod parquet;
mod portable;
mod text;

use std::time::Instant;

use ::arrow::array::RecordBatch;
use ::arrow::datatypes::SchemaRef;
use bytes::Bytes;
use tidegate_core::{AnswerFormat, Error};

use self::arrow::ArrowBody;
use self::parquet::ParquetBody;
use crate::format::{AnswerForm, BatchFormat, new_row_writer};

pub(crate) use self::batch_body::BatchBody;
pub use self::portable::stored_columns;
pub(crate) use self::text::TextBody;

pub(crate) fn new_batch_body(format: BatchFormat, schema: &SchemaRef) -> Result<Box<dyn BatchBody>, Error> {
    Ok(match format {
        BatchFormat::Arrow => Box::new(ArrowBody::new(schema)?),
        BatchFormat::Parquet => Box::new(ParquetBody::new(schema)?),
    })
}

/// Encodes rows in one format.
///
/// It buffers little: for text, nothing between two batches; for Parquet, the rows of the open row group. A format that
/// needs lookahead (`table`) inspects the first batch with rows.
pub struct BodyWriter {
    media_type: &'static str,
    columns: usize,
    encoder: BodyEncoder,
}

enum BodyEncoder {
    Text { body: Box<TextBody>, truncated: bool },
    Batches(Box<dyn BatchBody>),
}

impl BodyWriter {
    /// An empty body in `format`, with the columns of `schema`.
    ///
    /// # Errors
    /// For columns that the format cannot represent: a Parquet file needs at least one column.
    pub fn new(format: AnswerFormat, schema: &SchemaRef) -> Result<Self, Error> {
        let form = AnswerForm::from_answer_format(format);
        let way = match form {
            AnswerForm::Batches(format) => BodyEncoder::Batches(new_batch_body(format, schema)?),
            AnswerForm::Content(format) | AnswerForm::Body(format) => {
                let body = Box::new(TextBody::new(new_row_writer(format, schema), Instant::now()));
                BodyEncoder::Text { body, truncated: false }
            }
        };
        let media_type = form.media_type(false).unwrap_or(format.media_type());
        Ok(Self { media_type, columns: schema.fields().len(), encoder: way })
    }

    /// The media type of the body, with its parameters.
    pub fn media_type(&self) -> &'static str {
        self.media_type
    }

    /// Writes the rows of `batch` and returns the bytes that can be sent, possibly none.
    ///
    /// # Errors
    /// When the batch has other columns than the schema, or a value cannot be represented in the type of the format.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<Bytes, Error> {
        if batch.num_columns() != self.columns {
            let detail = format!("a batch has {} columns, and the answer {}", batch.num_columns(), self.columns);
            return Err(Error::internal(detail));
        }
        if batch.num_rows() == 0 {
            return Ok(Bytes::new());
        }
        match &mut self.encoder {
            BodyEncoder::Batches(body) => body.write(batch),
            BodyEncoder::Text { body, .. } => {
                body.write(batch);
                Ok(body.take_piece().0.into())
            }
        }
    }

    /// Declares that rows are missing; formats with a place for that state it at their end.
    pub fn mark_truncated(&mut self) {
        if let BodyEncoder::Text { truncated, .. } = &mut self.encoder {
            *truncated = true;
        }
    }

    /// Ends the body and returns the remaining bytes.
    ///
    /// # Errors
    /// Only because of an internal error.
    pub fn finish(self) -> Result<Bytes, Error> {
        match self.encoder {
            BodyEncoder::Batches(body) => body.finish(),
            BodyEncoder::Text { mut body, truncated } => {
                body.write_end(truncated);
                Ok(body.take_rest().0.into())
            }
        }
    }

    /// Ends the body after a failure and returns the bytes that state the error. Only text formats can do so: binary
    /// formats lack their end.
    pub fn fail(self, error: &Error) -> Bytes {
        match self.encoder {
            BodyEncoder::Batches(_) => Bytes::new(),
            BodyEncoder::Text { mut body, .. } => {
                body.write_failure(&error.to_string());
                body.take_rest().0.into()
            }
        }
    }
}

impl std::fmt::Debug for BodyWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BodyWriter").field("media_type", &self.media_type).finish_non_exhaustive()
    }
}
