//! Tables, batches, writes, and the rows that a view has.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef, TimeUnit};
use tidegate_core::Error;
use tidegate_ingest::delta::read_file;
use tidegate_ingest::{IngestFolder, IngestOptions, IngestTableView};
use tidegate_query::{RowWriter, TableWrite, WriteMode, WriteReceipt, WriteRequest, WriteStart, WriteTarget};

/// The interval at which a condition is checked.
pub(super) const POLL: Duration = Duration::from_millis(5);

/// Nothing happens by age, so that a test decides when it does.
pub(super) fn options() -> IngestOptions {
    let never = Duration::from_secs(24 * 60 * 60);
    IngestOptions { flush_age: never, maintenance_interval: never, ..IngestOptions::default() }
}

pub(super) async fn open(path: &Path) -> Arc<IngestFolder> {
    open_with(path, options()).await
}

pub(super) async fn open_with(path: &Path, options: IngestOptions) -> Arc<IngestFolder> {
    IngestFolder::open("plant", path.to_owned(), options).await.unwrap()
}

/// Opens a folder whose handle was dropped a moment ago, as after a crash of the process.
pub(super) async fn reopen(path: &Path, folder: Arc<IngestFolder>, options: IngestOptions) -> Arc<IngestFolder> {
    drop(folder);
    loop {
        match IngestFolder::open("plant", path.to_owned(), options.clone()).await {
            Err(error) if error.to_string().contains("in use") || error.to_string().contains("open already") => {
                tokio::time::sleep(POLL).await;
            }
            opened => return opened.unwrap(),
        }
    }
}

pub(super) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("time", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), false),
        Field::new("device", DataType::Utf8, true),
        Field::new("value", DataType::Int64, false),
    ]))
}

/// Rows whose values are `first`, `first + 1`, and so on.
pub(super) fn rows(first: i64, count: i64) -> RecordBatch {
    let values = first..first + count;
    let times = TimestampMicrosecondArray::from_iter_values(values.clone().map(|value| value * 1_000_000));
    let devices = StringArray::from_iter_values(values.clone().map(|value| format!("device {}", value % 7)));
    let columns: Vec<ArrayRef> =
        vec![Arc::new(times.with_timezone("UTC")), Arc::new(devices), Arc::new(Int64Array::from_iter_values(values))];
    RecordBatch::try_new(schema(), columns).unwrap()
}

pub(super) fn request(table: &str, schema: SchemaRef) -> WriteRequest {
    WriteRequest { tables: vec![TableWrite { table: table.to_owned(), schema }], mode: WriteMode::Append, key: None }
}

pub(super) async fn writer(folder: &IngestFolder, request: WriteRequest) -> Box<dyn RowWriter> {
    match folder.begin(request).await.unwrap() {
        WriteStart::Writer(writer) => writer,
        WriteStart::Repeated(receipt) => panic!("stored before: {receipt:?}"),
    }
}

pub(super) async fn write(
    folder: &IngestFolder,
    request: WriteRequest,
    batches: Vec<RecordBatch>,
) -> Result<WriteReceipt, Error> {
    match folder.begin(request).await? {
        WriteStart::Repeated(receipt) => Ok(receipt),
        WriteStart::Writer(mut writer) => {
            for batch in batches {
                writer.write(0, batch).await?;
            }
            writer.commit().await
        }
    }
}

pub(super) async fn append(folder: &IngestFolder, table: &str, first: i64, count: i64) -> WriteReceipt {
    write(folder, request(table, schema()), vec![rows(first, count)]).await.unwrap()
}

pub(super) async fn replace(folder: &IngestFolder, table: &str, first: i64, count: i64) -> WriteReceipt {
    let request = WriteRequest { mode: WriteMode::Replace, ..request(table, schema()) };
    write(folder, request, vec![rows(first, count)]).await.unwrap()
}

/// All batches of a view: of its files, and of its memory.
pub(super) fn batches(view: &IngestTableView) -> Vec<RecordBatch> {
    let mut batches = view.batches().to_vec();
    for file in view.files() {
        let snapshot = view.snapshot().expect("files have a version that describes them");
        batches.extend(read_file(view.folder(), snapshot, file, 1000).unwrap().map(Result::unwrap));
    }
    batches
}

/// The values of a view, sorted.
pub(super) fn values_of(view: &IngestTableView) -> Vec<i64> {
    let batches = batches(view);
    let values = batches.iter().flat_map(|batch| {
        let column = batch.column_by_name("value").unwrap().as_primitive::<Int64Type>();
        assert_eq!(column.null_count(), 0);
        column.values().to_vec()
    });
    let mut values: Vec<i64> = values.collect();
    values.sort_unstable();
    assert_eq!(values.len() as u64, view.rows());
    values
}

pub(super) fn values(folder: &IngestFolder, table: &str) -> Vec<i64> {
    values_of(&folder.view(table).unwrap())
}

pub(super) fn range(first: i64, end: i64) -> Vec<i64> {
    (first..end).collect()
}
