//! `get_schema`: the columns of tables, optionally with example values, which are distinct values among the first rows.
//!
//! One bounded scan replaces a `DISTINCT` for each column, which would read the whole table.

use std::sync::Arc;

use arrow::array::{ArrayRef, ListBuilder, RecordBatch, StringBuilder};
use futures::TryStreamExt;
use serde::Deserialize;
use serde_json::json;
use tidegate_core::{Error, ErrorKind, Format, shorten};
use tidegate_query::{ColumnEntry, ColumnFormatter, ColumnKnowledge, Database, QueryRows, TableStorage};
use tidegate_runtime::{AdapterDetail, Answer, AnswerMeta, Job, RunningCall, Tool};
use tidegate_sql::Statement;

use super::knowledge::{KnowledgeText, list_synonyms, list_values};
use super::profile::ProfileColumns;
use crate::arguments::{OutputArguments, parse_arguments};
use crate::tool_definition::{InputSchemaBuilder, context_handler, read_only_tool};
use crate::tool_services::ToolServices;
use crate::typed_rows::{TableBuilder, boolean_column, text_column};

/// Tables of one call at most.
const TABLES_MAX: usize = 100;

pub(crate) fn tool(services: &Arc<ToolServices>) -> Tool {
    let table = json!({"anyOf": [
        {"type": "string", "description": "One or several"},
        {"type": "array", "items": {"type": "string"}},
    ]});
    let samples = json!({
        "type": "integer", "minimum": 0, "maximum": SAMPLES_MAX, "description": "Example values per column",
    });
    read_only_tool(
        "get_schema",
        "Get columns",
        "Columns of tables: name, type, nullable, comment. Use before query and sql.",
        InputSchemaBuilder::new()
            .with_database()
            .with_required("table", table)
            .with("samples", samples)
            .with("profile", json!({"type": "boolean"}))
            .with_output_arguments(),
        context_handler(services, handle),
    )
}

#[derive(Deserialize)]
struct Arguments {
    database: Option<String>,
    table: TableArgument,
    #[serde(default)]
    samples: usize,
    #[serde(default)]
    profile: bool,
    #[serde(flatten)]
    shape: OutputArguments,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TableArgument {
    One(String),
    Several(Vec<String>),
}

struct DescribedTable {
    name: String,
    columns: Vec<ColumnEntry>,
    /// What people wrote about each of the columns.
    known: Vec<ColumnKnowledge>,
}

async fn handle(services: Arc<ToolServices>, call: RunningCall) -> Result<Answer, Error> {
    let Arguments { database, table, samples: expected, profile, shape } = parse_arguments(&call)?;
    let output_options = shape.output_options("Use extract=name for the names alone.")?;
    // Programs that set a format expect only rows, with every column.
    let is_for_model = shape.is_default() && call.format().is_none();
    let (requested, is_list) = match table {
        TableArgument::One(table) => (vec![table], false),
        TableArgument::Several(tables) => (tables, true),
    };
    if requested.is_empty() || requested.len() > TABLES_MAX {
        let message = format!("table has {} names; expected 1 to {TABLES_MAX}", requested.len());
        return Err(Error::new(ErrorKind::InvalidArguments, message));
    }
    let mut names = requested.clone();
    let resolved = services.resolve_tables(database.as_deref(), names.iter_mut(), &call).await?;
    if !resolved.required_access.is_empty() {
        resolved.record(&services, &call);
    }
    let database = resolved.database;
    let knowledge = services.databases.knowledge(&*database).await;
    let (mut tables, mut samples) = (Vec::with_capacity(names.len()), SampleLists::default());
    let mut profiles = ProfileColumns::new();
    for (name, requested) in names.iter().zip(requested) {
        let mut columns = match database.columns(name, call.principal()).await {
            Ok(columns) => columns,
            Err(error) => return Err(services.suggest_described(error, &*database, name, call.principal()).await),
        };
        knowledge.describe_columns(name, &mut columns);
        if expected > 0 {
            samples.add(&*database, name, &columns, expected, call.job()).await?;
        }
        if profile {
            profiles.add(&services, &*database, name, &columns, call.job()).await?;
        }
        let known = columns.iter().map(|column| knowledge.column(name, column)).collect();
        tables.push(DescribedTable { name: requested, columns, known });
    }
    let mut answer = describe_columns(&tables, is_list);
    if expected > 0 {
        answer = answer.with_column("samples", samples.into_column());
    }
    if profile {
        answer = profiles.append_to(answer);
    }
    let rows = answer.into_rows()?;
    let rows = if is_for_model { rows.without_nulls() } else { rows };
    let answer = services.executor.answer_rows(rows, output_options);
    Ok(answer.followed_by(move |reply, meta| async move {
        let job = reply.job();
        if is_for_model {
            let text = KnowledgeText::render(&knowledge, &*database, Some(&names[..]), job.principal()).await;
            if !text.is_empty() {
                reply.end_text().await?;
                text.send(&reply).await?;
            }
        }
        // Other nodes show the size of a part of a table.
        let (Some(Format::Arrow), [name], false) = (job.format(), &names[..], is_list) else { return Ok(meta) };
        let TableStorage { bytes, indexed_columns } = database.table_storage(name, job.principal()).await?;
        Ok(AnswerMeta { adapter: Some(Box::new(AdapterDetail::Table { bytes, indexed_columns })), ..meta })
    }))
}

/// One thing that people wrote about a column, as text.
type ColumnDetail = fn(&ColumnKnowledge) -> Option<String>;

/// The columns of `tables`, with the name of each table if several may be requested.
fn describe_columns(tables: &[DescribedTable], is_list: bool) -> TableBuilder {
    let columns = || tables.iter().flat_map(|table| &table.columns);
    let mut described = TableBuilder::new();
    if is_list {
        let names = tables.iter().flat_map(|table| std::iter::repeat_n(Some(table.name.clone()), table.columns.len()));
        described = described.with_column("table", text_column(names));
    }
    described = described
        .with_column("name", text_column(columns().map(|column| Some(column.name.clone()))))
        .with_column("type", text_column(columns().map(|column| Some(column.type_name.clone()))))
        .with_column("nullable", boolean_column(columns().map(|column| column.nullable)))
        .with_column("comment", text_column(columns().map(|column| column.comment.clone())));
    let details: [(&'static str, ColumnDetail); 4] = [
        ("unit", |known| known.unit.clone()),
        ("values", list_values),
        ("synonyms", list_synonyms),
        ("example", |known| known.example.clone()),
    ];
    for (name, detail) in details {
        let texts: Vec<Option<String>> = tables.iter().flat_map(|table| &table.known).map(detail).collect();
        if texts.iter().any(Option::is_some) {
            described = described.with_column(name, text_column(texts.into_iter()));
        }
    }
    described
}

const SAMPLES_MAX: usize = 20;
const ROWS_READ_MAX: usize = 1_000;
/// Characters of an example; longer ones are cut and end with `…`.
const EXAMPLE_CHARACTERS_MAX: usize = 60;

/// Lists of example values, one for each column.
#[derive(Default)]
struct SampleLists(ListBuilder<StringBuilder>);

impl SampleLists {
    /// Adds up to `expected` distinct values of each of `columns`, in the order of appearance.
    async fn add(
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

    fn into_column(mut self) -> ArrayRef {
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
