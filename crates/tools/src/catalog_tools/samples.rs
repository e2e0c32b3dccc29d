//! Example values of a column: distinct values among the first rows.
//!
//! One bounded scan replaces a `DISTINCT` for each column, which would read the whole table.

use std::sync::Arc;

use arrow::array::{ArrayRef, ListBuilder, RecordBatch, StringBuilder};
use futures::TryStreamExt;
use tidegate_core::{Error, shorten};
use tidegate_query::{ColumnEntry, ColumnFormatter, Database, QueryRows};
use tidegate_runtime::Job;
use tidegate_sql::Statement;

pub(crate) const SAMPLES_MAX: usize = 20;
const ROWS_READ_MAX: usize = 1_000;
/// Characters of an example; longer ones are cut and end with `…`.
const EXAMPLE_CHARACTERS_MAX: usize = 60;

/// Lists of example values, one for each column.
#[derive(Default)]
pub(crate) struct SampleLists(ListBuilder<StringBuilder>);

impl SampleLists {
    /// Adds up to `expected` distinct values of each of `columns`, in the order of appearance.
    pub(crate) async fn add(
        &mut self,
        database: &dyn Database,
        table: &str,
        columns: &[ColumnEntry],
        expected: usize,
        job: &Arc<Job>,
    ) -> Result<(), Error> {
        for examples in fetch_examples(database, table, columns, expected, job).await? {
            examples.into_iter().for_each(|example| self.0.values().append_value(example));
            self.0.append(true);
        }
        Ok(())
    }

    pub(crate) fn into_column(mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

pub(crate) async fn fetch_examples(
    database: &dyn Database,
    table: &str,
    columns: &[ColumnEntry],
    expected: usize,
    job: &Arc<Job>,
) -> Result<Vec<Vec<String>>, Error> {
    let batches: Vec<RecordBatch> =
        read_first_rows(database, table, ROWS_READ_MAX, job).await?.batches.try_collect().await?;
    Ok(columns.iter().map(|column| distinct_examples(&batches, &column.name, expected.min(SAMPLES_MAX))).collect())
}

pub(crate) async fn read_first_rows(
    database: &dyn Database,
    table: &str,
    rows: usize,
    job: &Arc<Job>,
) -> Result<QueryRows, Error> {
    let dialect = database.dialect();
    let sql = format!("SELECT * FROM {} LIMIT {rows}", dialect.quote_table(table));
    let plan = database.plan(&Statement::parse(&sql, dialect)?, job.principal()).await?;
    let rows = plan.run(job).await?;
    rows.record_missing(job)?;
    Ok(rows)
}

fn distinct_examples(batches: &[RecordBatch], column: &str, expected: usize) -> Vec<String> {
    let mut examples: Vec<String> = Vec::new();
    for batch in batches {
        let Ok(position) = batch.schema_ref().index_of(column) else { continue };
        let texts = ColumnFormatter::new(batch.schema_ref().field(position), batch.column(position).as_ref());
        for value in (0..batch.num_rows()).filter_map(|row| texts.format_value(row)) {
            if examples.len() >= expected {
                return examples;
            }
            let example = shorten(value, EXAMPLE_CHARACTERS_MAX);
            if !examples.contains(&example) {
                examples.push(example);
            }
        }
    }
    examples
}
