//! What fits a table, and what its columns become.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use async_trait::async_trait;
use tempfile::TempDir;
use tidegate_core::{Error, ErrorKind};
use tidegate_ingest::{IngestFolder, IngestOptions, SchemaEvolution, TableDeclaration};
use tidegate_query::{RowTransform, WriteTarget};

use super::fixture::{append, batches, open, open_with, options, range, reopen, request, rows, schema, values, write};

fn declared(declaration: TableDeclaration) -> IngestOptions {
    IngestOptions { tables: [("readings".to_owned(), declaration)].into(), ..options() }
}

fn extended(name: &str, data_type: DataType) -> SchemaRef {
    let base = schema();
    let fields = base.fields().iter().cloned().chain([Arc::new(Field::new(name, data_type, true))]);
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn extended_rows(first: i64, name: &str) -> RecordBatch {
    let base = rows(first, 3);
    let notes: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + 3));
    let columns = base.columns().iter().cloned().chain([notes]).collect();
    RecordBatch::try_new(extended(name, DataType::Int64), columns).unwrap()
}

#[tokio::test]
async fn a_strict_table_names_each_column_that_does_not_fit() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    append(&folder, "readings", 0, 3).await;
    let other = Arc::new(Schema::new(vec![
        Field::new("device", DataType::Int64, true),
        Field::new("value", DataType::Int64, false),
        Field::new("note", DataType::Utf8, true),
    ]));
    let error = folder.begin(request("readings", other)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    let paths: Vec<&str> = error.violations().iter().map(|violation| violation.path.as_str()).collect();
    assert_eq!(paths, ["device", "note", "time"]);
    let text = error.to_string();
    assert!(text.contains("has type Int64; the table has type Utf8"), "{text}");
    assert!(text.contains("\"evolve\" is \"strict\"") && text.contains("is missing"), "{text}");
}

#[tokio::test]
async fn columns_are_added_as_nullable_and_older_rows_have_nulls() {
    let path = TempDir::new().unwrap();
    let options = declared(TableDeclaration { evolve: SchemaEvolution::AddColumns, ..TableDeclaration::default() });
    let mut folder = open_with(path.path(), options.clone()).await;
    append(&folder, "readings", 0, 3).await;
    folder.flush("readings").await.unwrap();
    append(&folder, "readings", 3, 3).await;
    write(&folder, request("readings", extended("a", DataType::Int64)), vec![extended_rows(6, "a")]).await.unwrap();
    write(&folder, request("readings", extended("b", DataType::Int64)), vec![extended_rows(9, "b")]).await.unwrap();
    for step in 0..4 {
        let view = folder.view("readings").unwrap();
        let names: Vec<&str> = view.schema().fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, ["time", "device", "value", "a", "b"], "{step}");
        assert_eq!(values(&folder, "readings"), range(0, 12), "{step}");
        let sum = |name: &str| -> i64 {
            let columns = batches(&view).into_iter().filter_map(|batch| batch.column_by_name(name).cloned());
            columns.map(|column| column.as_primitive::<Int64Type>().iter().flatten().sum::<i64>()).sum()
        };
        assert_eq!((sum("a"), sum("b")), (6 + 7 + 8, 9 + 10 + 11), "{step}");
        match step {
            0 => folder = reopen(path.path(), folder, options.clone()).await,
            1 => folder.flush("readings").await.unwrap(),
            _ => folder = reopen(path.path(), folder, options.clone()).await,
        }
    }
    let conflicting = request("readings", extended("a", DataType::Utf8));
    assert!(folder.begin(conflicting).await.unwrap_err().to_string().contains("has type Utf8"));
    // Rows without the new columns still fit.
    append(&folder, "readings", 12, 1).await;
    assert_eq!(values(&folder, "readings"), range(0, 13));
}

#[tokio::test]
async fn two_writes_that_add_a_column_with_two_types_do_not_both_succeed() {
    let path = TempDir::new().unwrap();
    let options = declared(TableDeclaration { evolve: SchemaEvolution::AddColumns, ..TableDeclaration::default() });
    let folder = open_with(path.path(), options).await;
    append(&folder, "readings", 0, 3).await;
    let mut first = super::fixture::writer(&folder, request("readings", extended("a", DataType::Int64))).await;
    let mut second = super::fixture::writer(&folder, request("readings", extended("a", DataType::Utf8))).await;
    first.write(0, extended_rows(3, "a")).await.unwrap();
    let base = rows(6, 1);
    let note: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    let columns = base.columns().iter().cloned().chain([note]).collect();
    second.write(0, RecordBatch::try_new(extended("a", DataType::Utf8), columns).unwrap()).await.unwrap();
    first.commit().await.unwrap();
    let error = second.commit().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    assert_eq!(values(&folder, "readings"), range(0, 6));
}

#[tokio::test]
async fn a_declared_table_exists_before_its_first_row_and_must_fit_the_stored_one() {
    let path = TempDir::new().unwrap();
    let columns = Some(schema());
    let folder = open_with(path.path(), declared(TableDeclaration { columns, ..TableDeclaration::default() })).await;
    assert_eq!(folder.tables(), ["readings"]);
    assert_eq!(folder.view("readings").unwrap().rows(), 0);
    assert_eq!(folder.table("readings").await.unwrap().schema, Some(schema()));
    append(&folder, "readings", 0, 3).await;
    folder.close().await.unwrap();
    let columns = Some(Arc::new(Schema::new(vec![Field::new("value", DataType::Utf8, false)])));
    let wrong = declared(TableDeclaration { columns, ..TableDeclaration::default() });
    let error = IngestFolder::open("plant", path.path().to_owned(), wrong).await.unwrap_err();
    assert!(error.to_string().contains("has type Utf8; the table has type Int64"), "{error}");
}

#[tokio::test]
async fn a_null_in_a_column_that_takes_none_and_an_unknown_type_are_refused() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    append(&folder, "readings", 0, 3).await;
    let fields: Vec<_> = schema().fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    let nullable = Arc::new(Schema::new(fields));
    let base = rows(3, 1);
    let null: ArrayRef = Arc::new(Int64Array::from(vec![None]));
    let columns = vec![base.column(0).clone(), base.column(1).clone(), null];
    let batch = RecordBatch::try_new(nullable.clone(), columns).unwrap();
    let error = write(&folder, request("readings", nullable), vec![batch]).await.unwrap_err();
    assert!(error.to_string().contains("value: has a null"), "{error}");
    let interval = DataType::Interval(arrow::datatypes::IntervalUnit::MonthDayNano);
    let unknown = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true), Field::new("x", interval, true)]));
    let error = folder.begin(request("other", unknown)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    assert!(error.to_string().contains("\"x\""), "{error}");
    assert_eq!(values(&folder, "readings"), range(0, 3));
}

/// Doubles each value, and leaves the other columns out.
#[derive(Debug)]
struct Doubling;

#[async_trait]
impl RowTransform for Doubling {
    async fn transform(&self, rows: RecordBatch) -> Result<Vec<RecordBatch>, Error> {
        let values = rows.column_by_name("value").unwrap().as_primitive::<Int64Type>();
        let doubled: ArrayRef = Arc::new(values.unary::<_, Int64Type>(|value| value * 2));
        Ok(vec![RecordBatch::try_from_iter([("value", doubled)]).unwrap()])
    }
}

#[tokio::test]
async fn a_transform_computes_the_rows_and_the_columns() {
    let path = TempDir::new().unwrap();
    let transform: Option<Arc<dyn RowTransform>> = Some(Arc::new(Doubling));
    let options = declared(TableDeclaration { transform, ..TableDeclaration::default() });
    let folder = open_with(path.path(), options.clone()).await;
    assert_eq!(folder.table("readings").await.unwrap().schema, None);
    append(&folder, "readings", 5, 3).await;
    let folder = reopen(path.path(), folder, options).await;
    append(&folder, "readings", 1, 1).await;
    assert_eq!(values(&folder, "readings"), [2, 10, 12, 14]);
    assert_eq!(folder.view("readings").unwrap().schema().fields().len(), 1);
}

#[tokio::test]
async fn a_batch_adds_a_column_to_the_write_that_has_begun() {
    // With one byte, each batch goes to data files at once; with many, all stay in the log.
    for inline_bytes_max in [1, 1 << 20] {
        let path = TempDir::new().unwrap();
        let declaration = TableDeclaration { evolve: SchemaEvolution::AddColumns, ..TableDeclaration::default() };
        let options = IngestOptions { inline_bytes_max, ..declared(declaration) };
        let folder = open_with(path.path(), options.clone()).await;
        let batches = vec![rows(0, 3), extended_rows(3, "a"), rows(6, 3), extended_rows(9, "a")];
        write(&folder, request("readings", schema()), batches).await.unwrap();
        assert_eq!(values(&folder, "readings"), range(0, 12));
        let folder = reopen(path.path(), folder, options).await;
        folder.flush("readings").await.unwrap();
        assert_eq!(values(&folder, "readings"), range(0, 12));
        let view = folder.view("readings").unwrap();
        let added: i64 = super::fixture::batches(&view)
            .iter()
            .filter_map(|batch| batch.column_by_name("a"))
            .map(|column| column.as_primitive::<Int64Type>().iter().flatten().sum::<i64>())
            .sum();
        assert_eq!(added, (3..6).chain(9..12).sum::<i64>());
    }
}

#[tokio::test]
async fn computed_rows_get_the_types_of_the_table_where_no_value_changes() {
    let path = TempDir::new().unwrap();
    let columns = Some(Arc::new(Schema::new(vec![Field::new("value", DataType::Int8, true)])));
    let transform: Option<Arc<dyn RowTransform>> = Some(Arc::new(Doubling));
    let options = declared(TableDeclaration { columns, transform, ..TableDeclaration::default() });
    let folder = open_with(path.path(), options).await;
    append(&folder, "readings", 1, 63).await;
    let error = write(&folder, request("readings", schema()), vec![rows(63, 2)]).await.unwrap_err();
    assert!(error.to_string().contains("some values have no equal Int8"), "{error}");
    assert_eq!(folder.view("readings").unwrap().rows(), 63);
}
