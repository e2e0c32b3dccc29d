//! The server of the tests, which `TIDEGATE_TEST_POSTGRES` names.

use arrow::array::RecordBatch;
use futures::TryStreamExt;
use tidegate_core::Error;
use tidegate_postgres::values::{BatchBuilder, BoundParameter, ColumnDecoder};
use tokio_postgres::{Client, NoTls, Statement};

/// A connection of its own to the server.
pub(crate) async fn connect() -> Client {
    let Ok(settings) = std::env::var("TIDEGATE_TEST_POSTGRES") else {
        panic!(
            "these tests need a server: set TIDEGATE_TEST_POSTGRES to the settings of a superuser, such as \
             \"host=/tmp/x port=5433 user=postgres dbname=postgres\""
        );
    };
    let (client, connection) = tokio_postgres::connect(&settings, NoTls).await.unwrap();
    // It ends when the client is dropped.
    tokio::spawn(connection);
    client.batch_execute("SET timezone = 'UTC'; SET intervalstyle = iso_8601").await.unwrap();
    client
}

/// The columns of `statement`, and which of them must be selected as text.
pub(crate) fn decoders_for(statement: &Statement) -> Vec<Option<ColumnDecoder>> {
    let column = |column: &tokio_postgres::Column| {
        ColumnDecoder::for_type(column.name(), column.type_(), column.type_modifier())
    };
    statement.columns().iter().map(column).collect()
}

/// The rows of `sql`, in batches of no more than `rows_max`, or why they are none.
pub(crate) async fn batches(client: &Client, sql: &str, rows_max: usize) -> Result<Vec<RecordBatch>, Error> {
    let statement = client.prepare(sql).await.unwrap();
    let columns: Vec<ColumnDecoder> = decoders_for(&statement).into_iter().map(Option::unwrap).collect();
    let mut builder = BatchBuilder::new(&columns);
    let rows = client.query_raw(&statement, Vec::<BoundParameter<'_>>::new()).await.unwrap();
    futures::pin_mut!(rows);
    let mut batches = Vec::new();
    while let Some(row) = rows.try_next().await.unwrap() {
        builder.push(&row)?;
        if builder.rows() == rows_max {
            batches.push(builder.finish()?);
        }
    }
    batches.push(builder.finish()?);
    Ok(batches)
}
