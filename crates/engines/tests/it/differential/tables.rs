//! The tables of the test, in PostgreSQL and as files, from `tests/differential/tables.sql` and the demo's data.
//!
//! PostgreSQL runs the statements, and its rows become the Parquet files. Both are kept for the next run: the database
//! as long as its server, the files in Cargo's folder for tests, both under a name that has a hash of their definition.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use bytes::Bytes;
use futures::SinkExt;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::columns::{array_of, expression_of, integers};
use super::corpus;
use super::server::connect;
use crate::support::write_parquet;

/// To be changed when the same statements make other files than before.
const FORM: u32 = 2;
const GROUP_ROWS: usize = 2_048;
/// The role of Tidegate's PostgreSQL engine.
const READER: &str = "differential_reader";
const READER_PASSWORD: &str = "reads";
const DEMO: &[&str] = &["airlines", "airports", "flights", "planes", "weather"];

/// The names of the database and the folder of the files.
pub(crate) struct Tables {
    pub(crate) database: String,
    pub(crate) folder: PathBuf,
}

impl Tables {
    /// Makes them, where they are not there.
    pub(crate) async fn prepare() -> Self {
        let definition = fs::read_to_string(corpus::folder().join("tables.sql")).unwrap();
        let mut hasher = DefaultHasher::new();
        (FORM, &definition).hash(&mut hasher);
        let hash = hasher.finish();
        let database = format!("differential_{hash:016x}");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&database);
        // Tests run in processes of their own.
        let lock = File::create(folder.with_extension("lock")).unwrap();
        lock.lock().unwrap();
        let admin = connect("postgres").await;
        admin.execute("SELECT pg_advisory_lock($1)", &[&hash.cast_signed()]).await.unwrap();
        prepare_database(&admin, &database, &definition).await;
        if !folder.exists() {
            write_files(&connect(&database).await, &folder).await;
        }
        Self { database, folder }
    }
}

/// The connection string of the role that reads `database` over the network.
pub(crate) fn reader_of(database: &str) -> String {
    let host = std::env::var("TIDEGATE_TEST_POSTGRES_TCP").unwrap();
    format!("{host} dbname={database} user={READER} password={READER_PASSWORD} sslmode=disable")
}

/// Makes the database unless a comment on it says that it is complete.
async fn prepare_database(admin: &Client, name: &str, definition: &str) {
    let complete = "SELECT shobj_description(oid, 'pg_database') = 'complete' FROM pg_database WHERE datname = $1";
    let row = admin.query_opt(complete, &[&name]).await.unwrap();
    if row.is_some_and(|row| row.get::<_, Option<bool>>(0) == Some(true)) {
        return;
    }
    admin.batch_execute(&format!("DROP DATABASE IF EXISTS {name}")).await.unwrap();
    admin.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    admin.batch_execute(&format!("ALTER DATABASE {name} SET timezone = 'UTC'")).await.unwrap();
    let client = connect(name).await;
    client.batch_execute(definition).await.unwrap_or_else(|error| panic!("tables.sql: {error:?}"));
    for table in DEMO {
        copy_demo(&client, table).await;
    }
    let reader = format!(
        "DO $$ BEGIN CREATE ROLE {READER} LOGIN PASSWORD '{READER_PASSWORD}'; EXCEPTION WHEN duplicate_object THEN END $$;
         GRANT SELECT ON ALL TABLES IN SCHEMA public TO {READER}; ANALYZE"
    );
    client.batch_execute(&reader).await.unwrap();
    admin.batch_execute(&format!("COMMENT ON DATABASE {name} IS 'complete'")).await.unwrap();
}

/// Copies the rows of a file of the demo, fewer of the long ones.
async fn copy_demo(client: &Client, table: &str) {
    let path = super::workspace().join(format!("data/demo/{table}.parquet"));
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap().build().unwrap();
    let mut csv = arrow::csv::WriterBuilder::new().with_header(false).build(Vec::new());
    for batch in reader {
        csv.write(&shortened(table, &batch.unwrap())).unwrap();
    }
    let sink = client.copy_in(&format!("COPY {table} FROM STDIN WITH (FORMAT csv)")).await.unwrap();
    let mut sink = std::pin::pin!(sink);
    sink.send(Bytes::from(csv.into_inner())).await.unwrap();
    sink.finish().await.unwrap();
}

fn shortened(table: &str, batch: &RecordBatch) -> RecordBatch {
    let numbers = |name: &str| integers(batch.column_by_name(name).unwrap());
    let mask: Vec<bool> = match table {
        "flights" => {
            let (flight, month, day) = (numbers("flight"), numbers("month"), numbers("day"));
            (0..batch.num_rows()).map(|row| (flight[row] * 7 + month[row] * 31 + day[row]) % 40 == 0).collect()
        }
        "weather" => numbers("day").iter().map(|day| day % 5 == 1).collect(),
        _ => return batch.clone(),
    };
    filter_record_batch(batch, &BooleanArray::from(mask)).unwrap()
}

/// Writes each table as a Parquet file and each view as a CSV file.
async fn write_files(client: &Client, folder: &Path) {
    let partial = folder.with_extension("partial");
    let _ = fs::remove_dir_all(&partial);
    fs::create_dir_all(&partial).unwrap();
    let relations = "SELECT relname, relkind = 'v' FROM pg_class WHERE relnamespace = 'public'::regnamespace \
                     AND relkind IN ('r', 'v')";
    for row in client.query(relations, &[]).await.unwrap() {
        let (name, is_view): (String, bool) = (row.get(0), row.get(1));
        let batch = read_table(client, &name).await;
        if is_view {
            let file = File::create(partial.join(format!("{name}.csv"))).unwrap();
            arrow::csv::Writer::new(file).write(&batch).unwrap();
        } else {
            write_parquet(&partial.join(format!("{name}.parquet")), &batch, GROUP_ROWS);
        }
    }
    fs::rename(&partial, folder).unwrap();
}

async fn read_table(client: &Client, table: &str) -> RecordBatch {
    let columns = "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute \
                   WHERE attrelid = ($1::text)::regclass AND attnum > 0 ORDER BY attnum";
    let columns: Vec<(String, String)> =
        client.query(columns, &[&table]).await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect();
    let expressions: Vec<String> = columns.iter().map(|(name, of)| expression_of(name, of)).collect();
    let sql = format!("SELECT {} FROM {table}", expressions.join(", "));
    let mut texts: Vec<Vec<Option<String>>> = vec![Vec::new(); columns.len()];
    for message in client.simple_query(&sql).await.unwrap() {
        if let SimpleQueryMessage::Row(row) = message {
            texts.iter_mut().enumerate().for_each(|(index, texts)| texts.push(row.get(index).map(str::to_owned)));
        }
    }
    let arrays = columns.iter().zip(&texts).map(|((name, of), texts)| (name.clone(), array_of(texts, of), true));
    RecordBatch::try_from_iter_with_nullable(arrays.collect::<Vec<(String, ArrayRef, bool)>>()).unwrap()
}
