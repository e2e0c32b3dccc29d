//! Tables that take rows: what helps the tests of writes.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Schema, SchemaRef};
use tidegate_core::Error;
use tidegate_postgres::connect::{ConnectEnvironment, ConnectTarget};
use tidegate_postgres::{PostgresIngest, PostgresIngestOptions, PostgresOptions};
use tidegate_query::{
    DeclaredTable, RowWriter, TableWrite, WriteMode, WriteReceipt, WriteRequest, WriteStart, WriteTarget as _,
};

use crate::test_database::{TestDatabase, wait_until};

mod keys; // A repeated write stores nothing.
mod types; // Each type, with its extremes, and what is refused.
mod writes; // All rows or none.

pub(super) struct Target {
    pub(super) ingest: PostgresIngest,
}

pub(super) fn open(scene: &TestDatabase, tables: &[&str]) -> Target {
    let text = format!("{} dbname={} user={} password=right sslmode=disable", scene.host, scene.name, scene.login());
    let target = ConnectTarget::parse(&text, &ConnectEnvironment::from_process()).unwrap();
    let options = PostgresOptions { is_behind_pooler: scene.pooler, ..PostgresOptions::default() };
    let tables = tables.iter().map(|name| DeclaredTable { name: (*name).to_owned(), stamps: Vec::new() });
    let ingest = PostgresIngestOptions { tables: tables.collect(), ..PostgresIngestOptions::default() };
    Target { ingest: PostgresIngest::open("shop", target, options, ingest).unwrap() }
}

impl Target {
    /// The schema of a body, with only the columns `names` unless there are none.
    pub(super) async fn schema(&self, table: &str, names: &[&str]) -> SchemaRef {
        let schema = self.ingest.table(table).await.unwrap().schema.unwrap();
        if names.is_empty() {
            return schema;
        }
        let fields = names.iter().map(|name| schema.field_with_name(name).unwrap().clone());
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    pub(super) async fn begin(&self, request: WriteRequest) -> Result<Box<dyn RowWriter>, Error> {
        match self.ingest.begin(request).await? {
            WriteStart::Writer(writer) => Ok(writer),
            WriteStart::Repeated(receipt) => panic!("repeated: {receipt:?}"),
        }
    }

    pub(super) async fn append(&self, table: &str, rows: Vec<RecordBatch>) -> Result<WriteReceipt, Error> {
        let mut writer = self.begin(request(table, &rows[0].schema(), None)).await?;
        for batch in rows {
            writer.write(0, batch).await?;
        }
        writer.commit().await
    }

    pub(super) async fn wait_until_idle(&self) {
        wait_until("the return of all connections", || async { self.ingest.connections_in_use() == 0 }).await;
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
    RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(Int64Array::from(ids)) as _, true),
        ("note", Arc::new(StringArray::from(notes)) as _, true),
    ])
    .unwrap()
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
