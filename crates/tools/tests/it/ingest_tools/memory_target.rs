//! Tables in memory that take rows.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use async_trait::async_trait;
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{
    ColumnStamp, IngestTable, RowWriter, WriteMode, WriteReceipt, WriteRequest, WriteStart, WriteTarget,
};

/// A database in memory. Tables that are not declared are created by their first rows.
#[derive(Debug, Default)]
pub(super) struct MemoryTarget {
    name: String,
    creates_tables: bool,
    declared: Vec<IngestTable>,
    state: Arc<Mutex<TargetState>>,
    /// The next write or commit fails.
    pub(super) is_full: Arc<AtomicBool>,
    /// The largest number of rows that were written at once.
    pub(super) largest_batch: Arc<AtomicUsize>,
    /// The row that commits refuse, from 0.
    pub(super) refused_row: Arc<Mutex<Option<u64>>>,
}

#[derive(Debug, Default)]
struct TargetState {
    tables: BTreeMap<String, Vec<RecordBatch>>,
    receipts: BTreeMap<String, WriteReceipt>,
    sequence: u64,
}

/// The columns of `sensors`.
pub(super) fn sensor_columns() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("time", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), false),
        Field::new("device", DataType::Utf8, true),
        Field::new("value", DataType::Float64, true),
        Field::new("price", DataType::Decimal128(20, 2), true),
    ]))
}

/// A table with these columns.
pub(super) fn table(name: &str, schema: SchemaRef) -> IngestTable {
    IngestTable { name: name.to_owned(), schema: Some(schema), adds_columns: false, stamps: Vec::new() }
}

pub(super) fn stamp(column: &str, attribute: &str) -> ColumnStamp {
    ColumnStamp { column: column.to_owned(), attribute: attribute.to_owned() }
}

impl MemoryTarget {
    /// The database `plant` with the table `sensors`.
    pub(super) fn plant() -> Arc<Self> {
        Self::with_tables("plant", vec![table("sensors", sensor_columns())])
    }

    pub(super) fn with_tables(name: &str, declared: Vec<IngestTable>) -> Arc<Self> {
        Arc::new(Self { name: name.to_owned(), declared, ..Self::default() })
    }

    /// A database whose tables are created by their first rows.
    pub(super) fn creating(name: &str) -> Arc<Self> {
        Arc::new(Self { name: name.to_owned(), creates_tables: true, ..Self::default() })
    }

    /// The number of rows of a table.
    pub(super) fn row_count(&self, table: &str) -> usize {
        let state = self.state.lock();
        state.tables.get(table).map_or(0, |batches| batches.iter().map(RecordBatch::num_rows).sum())
    }

    /// The rows of a table, one a line, after a line with the columns.
    pub(super) fn rows(&self, table: &str) -> String {
        let state = self.state.lock();
        let batches = state.tables.get(table).map(Vec::as_slice).unwrap_or_default();
        let Some(first) = batches.first() else { return "no rows".to_owned() };
        let column = |field: &Arc<Field>| format!("{} {}", field.name(), field.data_type());
        let mut text = first.schema().fields().iter().map(column).collect::<Vec<_>>().join(", ");
        let options = FormatOptions::default().with_null("null");
        for batch in batches {
            let columns: Vec<ArrayFormatter<'_>> =
                batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
            for row in 0..batch.num_rows() {
                let cells: Vec<String> = columns.iter().map(|column| column.value(row).to_string()).collect();
                write!(text, "\n{}", cells.join(" | ")).unwrap();
            }
        }
        text
    }
}

#[async_trait]
impl WriteTarget for MemoryTarget {
    fn database(&self) -> &str {
        &self.name
    }

    fn tables(&self) -> Vec<String> {
        let state = self.state.lock();
        let stored = state.tables.keys().filter(|name| !name.ends_with("__rejects")).cloned();
        let mut names: Vec<String> = self.declared.iter().map(|table| table.name.clone()).chain(stored).collect();
        names.sort();
        names.dedup();
        names
    }

    async fn table(&self, name: &str) -> Result<IngestTable, Error> {
        if let Some(declared) = self.declared.iter().find(|table| table.name.eq_ignore_ascii_case(name)) {
            return Ok(declared.clone());
        }
        let stored = self.state.lock().tables.get(name).map(|batches| batches.first().map(RecordBatch::schema));
        let table = |schema| IngestTable { schema, ..table(name, sensor_columns()) };
        match stored {
            Some(schema) => Ok(table(schema)),
            None if self.creates_tables => Ok(table(None)),
            None => Err(Error::new(ErrorKind::NotFound, format!("no table {name} beside secret_table"))
                .with_choices(["secret_table".to_owned()])
                .with_hint("Declare it under tables.")),
        }
    }

    async fn begin(&self, request: WriteRequest) -> Result<WriteStart, Error> {
        let receipt = request.key.as_ref().and_then(|key| self.state.lock().receipts.get(key).cloned());
        if let Some(receipt) = receipt {
            return Ok(WriteStart::Repeated(receipt));
        }
        let batches = request.tables.iter().map(|_| Vec::new()).collect();
        let (is_full, largest_batch) = (self.is_full.clone(), self.largest_batch.clone());
        Ok(WriteStart::Writer(Box::new(MemoryWriter {
            state: self.state.clone(),
            request,
            batches,
            is_full,
            largest_batch,
            refused_row: self.refused_row.clone(),
        })))
    }

    async fn drop_table(&self, name: &str) -> Result<(), Error> {
        match self.state.lock().tables.remove(name) {
            Some(_) => Ok(()),
            None => Err(Error::new(ErrorKind::NotFound, "no such table beside secret_table")),
        }
    }
}

#[derive(Debug)]
struct MemoryWriter {
    state: Arc<Mutex<TargetState>>,
    request: WriteRequest,
    batches: Vec<Vec<RecordBatch>>,
    is_full: Arc<AtomicBool>,
    largest_batch: Arc<AtomicUsize>,
    refused_row: Arc<Mutex<Option<u64>>>,
}

impl MemoryWriter {
    fn check_room(&self) -> Result<(), Error> {
        if self.is_full.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Unavailable, "there is no room for rows; nothing was stored"));
        }
        Ok(())
    }
}

#[async_trait]
impl RowWriter for MemoryWriter {
    async fn write(&mut self, table: usize, rows: RecordBatch) -> Result<(), Error> {
        self.check_room()?;
        self.largest_batch.fetch_max(rows.num_rows(), Ordering::SeqCst);
        let expected = &self.request.tables[table].schema;
        let schema = rows.schema();
        for (index, field) in expected.fields().iter().enumerate() {
            assert_eq!(
                (field.name(), field.data_type()),
                (schema.field(index).name(), schema.field(index).data_type())
            );
        }
        assert!(schema.fields().iter().skip(expected.fields().len()).all(|field| field.is_nullable()));
        self.batches[table].push(rows);
        Ok(())
    }

    async fn commit(self: Box<Self>) -> Result<WriteReceipt, Error> {
        self.check_room()?;
        if let Some(row) = *self.refused_row.lock() {
            return Err(Error::new(ErrorKind::InvalidArguments, "the row is there already").with_refused_row(row));
        }
        let mut state = self.state.lock();
        state.sequence += 1;
        let counts = self.batches.iter().map(|batches| batches.iter().map(RecordBatch::num_rows).sum::<usize>() as u64);
        let receipt = WriteReceipt { sequence: state.sequence, rows: counts.collect() };
        for (index, (write, batches)) in self.request.tables.iter().zip(self.batches).enumerate() {
            let rows = state.tables.entry(write.table.clone()).or_default();
            if index == 0 && self.request.mode == WriteMode::Replace {
                rows.clear();
            }
            rows.extend(batches);
        }
        if let Some(key) = self.request.key {
            state.receipts.insert(key, receipt.clone());
        }
        Ok(receipt)
    }
}
