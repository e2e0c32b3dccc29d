//! Rows as the body of an answer: batches go in, bytes that are ready to leave come out.
//!
//! Calls write their answers with what is here, within their budgets (`answer`). [`BodyWriter`] is the same for rows
//! that are answered outside of any call.

mod arrow;
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

pub(crate) use self::portable::PortableSchema;
pub(crate) use self::text::TextBody;

/// Batches on their way into a body that is no text.
pub(crate) trait BatchBody: Send {
    /// Writes the rows of `batch`, of which there is one at least, and gives the bytes that are ready to leave.
    fn write(&mut self, batch: &RecordBatch) -> Result<Bytes, Error>;

    /// Gives the bytes of all rows that were written, whether or not the form would rather wait for more of them.
    fn flush(&mut self) -> Result<Bytes, Error>;

    /// How long a body of `batch` alone is, in bytes. A body of several batches, flushed after each, is no longer than
    /// these bodies together.
    fn standalone_bytes(&self, batch: &RecordBatch) -> Result<usize, Error>;

    /// Ends the body and gives the bytes that are left of it.
    fn finish(self: Box<Self>) -> Result<Bytes, Error>;
}

/// A body of nothing yet with the columns of `schema`.
///
/// # Errors
/// For columns that the format has no form of.
pub(crate) fn new_batch_body(format: BatchFormat, schema: &SchemaRef) -> Result<Box<dyn BatchBody>, Error> {
    Ok(match format {
        BatchFormat::Arrow => Box::new(ArrowBody::new(schema)?),
        BatchFormat::Parquet => Box::new(ParquetBody::new(schema)?),
    })
}

/// Renders rows in one form.
///
/// It holds little: of text, nothing between two batches; of Parquet, the rows of the group that is open. A form that
/// looks ahead (`table`) looks at the first batch that has rows.
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
    /// A body of nothing yet in `format`, with the columns of `schema`.
    ///
    /// # Errors
    /// For columns that the format has no form of: a Parquet file has one column at least.
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

    /// Writes the rows of `batch` and gives the bytes that are ready to leave, perhaps none.
    ///
    /// # Errors
    /// When the batch has other columns than the schema, or a value has no place in the form's type.
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

    /// Says that there are more rows than were written; forms with a place for that say it at their end.
    pub fn mark_truncated(&mut self) {
        if let BodyEncoder::Text { truncated, .. } = &mut self.encoder {
            *truncated = true;
        }
    }

    /// Ends the body and gives the bytes that are left of it.
    ///
    /// # Errors
    /// Only by a fault of ours.
    pub fn finish(self) -> Result<Bytes, Error> {
        match self.encoder {
            BodyEncoder::Batches(body) => body.finish(),
            BodyEncoder::Text { mut body, truncated } => {
                body.write_end(truncated);
                Ok(body.take_rest().0.into())
            }
        }
    }

    /// Ends the body after a failure and gives the bytes that say so. Only forms of text can say it: of the others the
    /// end is missing.
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
