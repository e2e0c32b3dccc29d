//! Blocks become the file, in order and batch by batch.

use std::path::PathBuf;

use arrow::array::{AsArray, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::writer::StreamWriter;
use tidegate_core::{AnswerFormat, Error};
use tidegate_query::BodyWriter;

use crate::destination::Unfinished;
use crate::error::FetchError;
use crate::words::printable;

/// A block that is here and has its hash.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) index: u64,
    pub(crate) rows: u64,
    pub(crate) path: PathBuf,
}

/// What rows become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Rows in a format.
    Rows(AnswerFormat),
    /// The file whose bytes they are.
    File,
}

/// The file so far.
pub(crate) struct Writing {
    file: Unfinished,
    form: Form,
    /// There when the first block said what the columns are.
    body: Option<(SchemaRef, Body)>,
    pub(crate) rows: u64,
}

/// Rows on their way into a format.
enum Body {
    /// As they come; every block has the same columns.
    Arrow(Box<StreamWriter<Vec<u8>>>),
    Rendered(BodyWriter),
    /// The bytes themselves.
    File,
}

impl Writing {
    pub(crate) fn new(file: Unfinished, form: Form) -> Self {
        Self { file, form, body: None, rows: 0 }
    }

    /// Writes the rows of `held`.
    pub(crate) fn append(&mut self, held: &Held) -> Result<(), FetchError> {
        let bytes = std::fs::read(&held.path).map_err(FetchError::disk(&held.path, "read"))?;
        // It makes room for what is there, and not for what the stream says of itself.
        let (mut rest, mut decoder) = (Buffer::from_vec(bytes), StreamDecoder::new());
        let unreadable = |error: ArrowError| damaged(held, printable(&error.to_string()));
        let mut rows = 0;
        while let Some(batch) = decoder.decode(&mut rest).map_err(unreadable)? {
            rows += batch.num_rows() as u64;
            let ready = self.body(held, batch.schema_ref())?.write(&batch)?;
            self.file.write(&ready)?;
        }
        decoder.finish().map_err(unreadable)?;
        let schema = decoder.schema().ok_or_else(|| damaged(held, "it has no columns".to_owned()))?;
        self.body(held, &schema)?;
        if rows != held.rows {
            return Err(damaged(held, format!("it has {rows} rows instead of {}", held.rows)));
        }
        self.rows += rows;
        Ok(())
    }

    /// What takes rows with the columns of `schema`, which are those of the first block.
    fn body(&mut self, held: &Held, schema: &SchemaRef) -> Result<&mut Body, FetchError> {
        let (first, body) = match self.body.take() {
            Some(body) => self.body.insert(body),
            None => self.body.insert((schema.clone(), Body::new(self.form, schema)?)),
        };
        if first.fields() != schema.fields() {
            return Err(damaged(held, "its columns are others than those of the first block".to_owned()));
        }
        Ok(body)
    }

    /// Ends the file, gives it its name, and tells how many bytes it has. `is_part` says that the answer had more rows;
    /// formats with a place for that say it. A file that must have a `length` gets no name with another one.
    pub(crate) fn finish(mut self, is_part: bool, length: Option<u64>) -> Result<u64, FetchError> {
        if let Some((_, body)) = self.body {
            self.file.write(&body.finish(is_part)?)?;
        }
        if let Some(wanted) = length.filter(|wanted| *wanted != self.file.bytes()) {
            return Err(FetchError::OtherLength { wanted, bytes: self.file.bytes() });
        }
        self.file.finish()
    }
}

impl Body {
    fn new(form: Form, schema: &SchemaRef) -> Result<Self, FetchError> {
        Ok(match form {
            Form::File => Self::File,
            Form::Rows(AnswerFormat::Arrow) => {
                Self::Arrow(Box::new(StreamWriter::try_new(Vec::new(), schema).map_err(unwritable)?))
            }
            Form::Rows(format) => Self::Rendered(BodyWriter::new(format, schema).map_err(FetchError::Format)?),
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
            Self::File => bytes_of(batch),
        }
    }

    /// The bytes that were not ready before.
    fn finish(self, is_part: bool) -> Result<bytes::Bytes, FetchError> {
        match self {
            Self::Arrow(writer) => Ok(writer.into_inner().map_err(unwritable)?.into()),
            Self::File => Ok(bytes::Bytes::new()),
            Self::Rendered(mut writer) => {
                if is_part {
                    writer.mark_truncated();
                }
                writer.finish().map_err(FetchError::Format)
            }
        }
    }
}

/// The bytes that the rows of `batch` are.
fn bytes_of(batch: &RecordBatch) -> Result<bytes::Bytes, FetchError> {
    let column = batch.columns().first().and_then(|column| column.as_binary_opt::<i32>());
    let column = column.ok_or_else(|| FetchError::Format(Error::internal("the blocks of the file hold no bytes")))?;
    Ok(column.iter().flatten().flatten().copied().collect::<Vec<u8>>().into())
}

fn damaged(held: &Held, what: String) -> FetchError {
    FetchError::Damaged { block: held.index, what }
}

fn unwritable(error: ArrowError) -> FetchError {
    FetchError::Format(Error::internal(error.to_string()))
}
