//! Tables that take rows: what helps the tests of writes. Another connection of the library reads what was stored.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use rusqlite::Connection;
use tidegate_core::Error;
use tidegate_query::{
    DeclaredTable, RowWriter, TableWrite, WriteMode, WriteReceipt, WriteRequest, WriteStart, WriteTarget as _,
};
use tidegate_sqlite::{SqliteIngest, SqliteIngestOptions};

use crate::support::Folder;

mod types;
mod writes;

pub(super) struct Target {
    pub(super) folder: Folder,
    pub(super) ingest: SqliteIngest,
    /// The other connection.
    pub(super) reader: Connection,
}

pub(super) fn options(tables: &[&str]) -> SqliteIngestOptions {
    let tables = tables.iter().map(|name| DeclaredTable { name: (*name).to_owned(), stamps: Vec::new() });
    SqliteIngestOptions { tables: tables.collect(), stores_keys: true, ..SqliteIngestOptions::default() }
}

impl Target {
    /// The file `data.db`, which `sql` creates, whose `tables` take rows.
    pub(super) fn new(sql: &str, tables: &[&str]) -> Self {
        let folder = Folder::new();
        let reader = folder.write("data.db", sql);
        let ingest = SqliteIngest::open("shop", vec![folder.join("data.db")], options(tables)).unwrap();
        Self { folder, ingest, reader }
    }

    /// The same tables, with writes that wait only for a moment.
    pub(super) fn with_short_timeout(&self, tables: &[&str]) -> SqliteIngest {
        let options = SqliteIngestOptions { busy_timeout: Duration::from_millis(10), ..options(tables) };
        SqliteIngest::open("shop", vec![self.folder.join("data.db")], options).unwrap()
    }

    pub(super) async fn schema(&self, table: &str) -> SchemaRef {
        self.ingest.table(table).await.unwrap().schema.unwrap()
    }

    pub(super) async fn begin(&self, request: WriteRequest) -> Result<Box<dyn RowWriter>, Error> {
        begin(&self.ingest, request).await
    }

    pub(super) async fn append(&self, table: &str, rows: Vec<RecordBatch>) -> Result<WriteReceipt, Error> {
        let mut writer = self.begin(request(table, &rows[0].schema(), None)).await?;
        for batch in rows {
            writer.write(0, batch).await?;
        }
        writer.commit().await
    }

    /// One value of the file, as text.
    pub(super) fn value(&self, sql: &str) -> String {
        let sql = format!("SELECT CAST(({sql}) AS TEXT)");
        self.reader.query_row(&sql, [], |row| row.get::<_, Option<String>>(0)).unwrap().unwrap_or("null".to_owned())
    }
}

pub(super) async fn begin(ingest: &SqliteIngest, request: WriteRequest) -> Result<Box<dyn RowWriter>, Error> {
    match ingest.begin(request).await? {
        WriteStart::Writer(writer) => Ok(writer),
        WriteStart::Repeated(receipt) => panic!("repeated: {receipt:?}"),
    }
}

pub(super) fn request(table: &str, schema: &SchemaRef, key: Option<&str>) -> WriteRequest {
    WriteRequest {
        tables: vec![TableWrite { table: table.to_owned(), schema: schema.clone() }],
        mode: WriteMode::Append,
        key: key.map(str::to_owned),
    }
}

/// Rows of the columns id and note.
pub(super) fn notes(rows: impl IntoIterator<Item = (i64, Option<&'static str>)>) -> RecordBatch {
    let (ids, notes): (Vec<i64>, Vec<Option<&str>>) = rows.into_iter().unzip();
    columns([("id", Arc::new(Int64Array::from(ids)) as _), ("note", Arc::new(StringArray::from(notes)) as _)])
}

pub(super) fn columns(columns: impl IntoIterator<Item = (&'static str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

/// The error of a result without a `Debug` of its success.
pub(super) fn refusal<T>(result: Result<T, Error>) -> Error {
    result.err().unwrap()
}

/// The kind, the refused row, from 0, and the text of an error.
pub(super) fn refusal_line(error: &Error) -> String {
    let row = error.refused_row().map(|row| format!("row {row}: ")).unwrap_or_default();
    format!("{}: {row}{error}", error.kind().name())
}
