//! An answer as a stream of Arrow's IPC format: batches are handed on as they come.
//!
//! [Arrow IPC Streaming Format](https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format)

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{can_cast_types, cast};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use tidegate_core::{Error, Metadata};

use super::bound::{Bound, Cut, Hints};
use super::outlet::Outlet;
use crate::format::unique_names;

/// The message that ends a stream.
const END_BYTES: usize = 8;

/// Batches on their way into a stream of Arrow.
pub(crate) struct ArrowAnswer<'a> {
    pub(super) outlet: Outlet<'a>,
    bound: Bound,
    schema: SchemaRef,
    /// Holds what has not left.
    writer: StreamWriter<Vec<u8>>,
    rows: u64,
    cut: Option<Cut>,
}

impl<'a> ArrowAnswer<'a> {
    /// An answer of nothing yet with the columns of `schema`.
    ///
    /// # Errors
    /// For a type that the format has no form of.
    pub(super) fn new(schema: &SchemaRef, bound: Bound, outlet: Outlet<'a>) -> Result<Self, Error> {
        let schema = portable_schema(schema);
        let writer = StreamWriter::try_new(Vec::new(), &schema).map_err(fault)?;
        Ok(Self { outlet, bound, schema, writer, rows: 0, cut: None })
    }

    pub(super) async fn push(&mut self, batch: &RecordBatch) -> Result<ControlFlow<()>, Error> {
        let room = self.bound.rows_max.map_or(u64::MAX, |max| max - self.rows);
        let wanted = batch.num_rows().min(usize::try_from(room).unwrap_or(usize::MAX));
        if wanted < batch.num_rows() {
            self.cut = Some(self.bound.rows_cut);
        }
        let batch = self.fitting(portable_batch(&batch.slice(0, wanted), &self.schema).map_err(fault)?)?;
        let rows = batch.num_rows() as u64;
        if rows > 0 {
            self.writer.write(&batch).map_err(fault)?;
            self.rows += rows;
            let bytes = std::mem::take(self.writer.get_mut());
            self.outlet.bytes(bytes.into(), rows).await?;
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
            next = self.bytes_of(&batch.slice(0, rows)).map_err(fault)?;
            if self.bound.fits(self.outlet.sent_bytes + next + END_BYTES) {
                break;
            }
            rows /= 2;
        }
        if rows < batch.num_rows() {
            self.cut = Some(Cut::Bytes { next });
        }
        Ok(batch.slice(0, rows))
    }

    /// How long a stream of `batch` alone is: dictionaries that were sent before are counted again.
    fn bytes_of(&self, batch: &RecordBatch) -> Result<usize, ArrowError> {
        let mut writer = StreamWriter::try_new(Vec::new(), &self.schema)?;
        writer.write(batch)?;
        Ok(writer.get_ref().len())
    }

    pub(super) fn cut(&self) -> Option<(Cut, u64)> {
        self.cut.map(|cut| (cut, self.rows))
    }

    pub(super) async fn finish(mut self, _hints: &Hints) -> Result<Metadata, Error> {
        self.writer.finish().map_err(fault)?;
        let bytes = std::mem::take(self.writer.get_mut());
        self.outlet.bytes(bytes.into(), 0).await?;
        Ok(self.outlet.metadata(false, self.rows, self.cut.is_some()))
    }
}

fn fault(error: ArrowError) -> Error {
    Error::internal(format!("an answer cannot be written as Arrow: {error}"))
}

/// The columns of `schema` under names of their own, and as types that every reader knows.
pub(crate) fn portable_schema(schema: &SchemaRef) -> SchemaRef {
    let names = unique_names(schema).into_iter();
    let fields = names.zip(schema.fields()).map(|(name, field)| portable_field(field).with_name(name));
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<Field>>(), schema.metadata().clone()))
}

fn portable_field(field: &FieldRef) -> Field {
    let data_type = portable(field.data_type());
    let is_castable = can_cast_types(field.data_type(), &data_type);
    field.as_ref().clone().with_data_type(if is_castable { data_type } else { field.data_type().clone() })
}

/// Views are new to the format, and a part of a batch would bring the values of the whole along.
fn portable(data_type: &DataType) -> DataType {
    let inner = |item: &FieldRef| Arc::new(portable_field(item));
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(item) => DataType::List(inner(item)),
        DataType::LargeList(item) => DataType::LargeList(inner(item)),
        DataType::Struct(members) => DataType::Struct(members.iter().map(inner).collect()),
        other => other.clone(),
    }
}

/// `batch` with the columns of `schema`, which is that of its own made portable.
pub(crate) fn portable_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| -> Result<ArrayRef, ArrowError> {
        if column.data_type() == field.data_type() { Ok(column.clone()) } else { cast(column, field.data_type()) }
    });
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns.collect::<Result<_, _>>()?, &options)
}
