//! Blocks become the file, in order: each is read batch by batch, so that one batch is in memory and no block.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use tidegate_core::{AnswerFormat, Error};
use tidegate_query::BodyWriter;

use crate::destination::Unfinished;
use crate::error::FetchError;

/// A block that is here and has its hash.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) index: u64,
    pub(crate) rows: u64,
    pub(crate) path: PathBuf,
}

/// The file so far.
pub(crate) struct Writing {
    file: Unfinished,
    format: AnswerFormat,
    /// There when the first block said what the columns are.
    body: Option<(SchemaRef, Body)>,
    pub(crate) rows: u64,
}

/// Rows on their way into a format.
enum Body {
    /// As they come; every block has the same columns.
    Arrow(StreamWriter<Vec<u8>>),
    Rendered(BodyWriter),
}

impl Writing {
    pub(crate) fn new(file: Unfinished, format: AnswerFormat) -> Self {
        Self { file, format, body: None, rows: 0 }
    }

    /// Writes the rows of `held`.
    pub(crate) fn append(&mut self, held: &Held) -> Result<(), FetchError> {
        let damaged = |error: ArrowError| damaged(held, error.to_string());
        let file = File::open(&held.path).map_err(FetchError::disk(&held.path, "read"))?;
        let batches = StreamReader::try_new(BufReader::new(file), None).map_err(damaged)?;
        let (schema, body) = match self.body.take() {
            Some(body) => self.body.insert(body),
            None => self.body.insert((batches.schema(), Body::new(self.format, &batches.schema())?)),
        };
        if schema.fields() != batches.schema().fields() {
            return Err(self::damaged(held, "its columns are others than those of the first block".to_owned()));
        }
        let mut rows = 0;
        for batch in batches {
            let batch = batch.map_err(damaged)?;
            rows += batch.num_rows() as u64;
            self.file.write(&body.write(&batch)?)?;
        }
        if rows != held.rows {
            return Err(self::damaged(held, format!("it has {rows} rows instead of {}", held.rows)));
        }
        self.rows += rows;
        Ok(())
    }

    /// Ends the file, gives it its name, and tells how many bytes it has. `is_part` says that the answer had more rows;
    /// formats with a place for that say it.
    pub(crate) fn finish(mut self, is_part: bool) -> Result<u64, FetchError> {
        if let Some((_, body)) = self.body {
            self.file.write(&body.finish(is_part)?)?;
        }
        self.file.finish()
    }
}

impl Body {
    fn new(format: AnswerFormat, schema: &SchemaRef) -> Result<Self, FetchError> {
        Ok(match format {
            AnswerFormat::Arrow => Self::Arrow(StreamWriter::try_new(Vec::new(), schema).map_err(unwritable)?),
            format => Self::Rendered(BodyWriter::new(format, schema).map_err(FetchError::Format)?),
        })
    }

    /// The bytes that are ready after `batch`.
    fn write(&mut self, batch: &RecordBatch) -> Result<bytes::Bytes, FetchError> {
        match self {
            Self::Arrow(writer) => {
                writer.write(batch).map_err(unwritable)?;
                Ok(std::mem::take(writer.get_mut()).into())
            }
            Self::Rendered(writer) => writer.write(batch).map_err(FetchError::Format),
        }
    }

    /// The bytes that were not ready before.
    fn finish(self, is_part: bool) -> Result<bytes::Bytes, FetchError> {
        match self {
            Self::Arrow(writer) => Ok(writer.into_inner().map_err(unwritable)?.into()),
            Self::Rendered(mut writer) => {
                if is_part {
                    writer.mark_truncated();
                }
                writer.finish().map_err(FetchError::Format)
            }
        }
    }
}

fn damaged(held: &Held, what: String) -> FetchError {
    FetchError::Damaged { block: held.index, what }
}

fn unwritable(error: ArrowError) -> FetchError {
    FetchError::Format(Error::internal(error.to_string()))
}
