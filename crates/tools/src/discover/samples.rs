//! Examples of what a column holds: distinct values among the first rows.
//!
//! One bounded scan instead of a `DISTINCT` per column, which would read the whole table.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListBuilder, RecordBatch, StringBuilder};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::TryStreamExt;
use tidegate_core::{Error, Job};
use tidegate_query::{Column, Database, Rows, Statement};

/// Examples per column that may be asked for.
pub(crate) const SAMPLES_MAX: usize = 20;
/// Rows among which examples are looked for.
const ROWS_READ_MAX: usize = 1_000;
/// Characters of one example; longer ones are cut and end in `…`.
const EXAMPLE_CHARACTERS_MAX: usize = 60;

/// For each of `columns` up to `wanted` distinct values, in the order in which they are met.
pub(crate) async fn samples(
    database: &dyn Database,
    table: &str,
    columns: &[Column],
    wanted: usize,
    job: &Arc<Job>,
) -> Result<ArrayRef, Error> {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for examples in examples(database, table, columns, wanted, job).await? {
        examples.into_iter().for_each(|example| lists.values().append_value(example));
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
}

/// The same as texts.
pub(crate) async fn examples(
    database: &dyn Database,
    table: &str,
    columns: &[Column],
    wanted: usize,
    job: &Arc<Job>,
) -> Result<Vec<Vec<String>>, Error> {
    let batches: Vec<RecordBatch> =
        first_rows(database, table, ROWS_READ_MAX, job).await?.batches.try_collect().await?;
    columns.iter().map(|column| distinct(&batches, &column.name, wanted.min(SAMPLES_MAX))).collect()
}

/// The first rows of `table`.
pub(crate) async fn first_rows(
    database: &dyn Database,
    table: &str,
    rows: usize,
    job: &Arc<Job>,
) -> Result<Rows, Error> {
    let dialect = database.dialect();
    let sql = format!("SELECT * FROM {} LIMIT {rows}", dialect.quote_table(table));
    let plan = database.plan(&Statement::parse(&sql, dialect)?, job.principal()).await?;
    plan.run(job).await
}

fn distinct(batches: &[RecordBatch], column: &str, wanted: usize) -> Result<Vec<String>, Error> {
    let mut examples: Vec<String> = Vec::new();
    let options = FormatOptions::default();
    for array in batches.iter().filter_map(|batch| batch.column_by_name(column)) {
        let values = ArrayFormatter::try_new(array, &options).map_err(unprintable)?;
        for row in (0..array.len()).filter(|row| array.is_valid(*row)) {
            if examples.len() >= wanted {
                return Ok(examples);
            }
            let example = shorten(values.value(row).try_to_string().map_err(unprintable)?);
            if !examples.contains(&example) {
                examples.push(example);
            }
        }
    }
    Ok(examples)
}

fn unprintable(error: arrow::error::ArrowError) -> Error {
    Error::internal(format!("a sample value cannot be shown: {error}"))
}

fn shorten(example: String) -> String {
    match example.char_indices().nth(EXAMPLE_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &example[..end]),
        None => example,
    }
}
