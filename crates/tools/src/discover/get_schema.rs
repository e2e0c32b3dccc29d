//! `get_schema`: the columns of one table, with examples when asked.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;
use tidegate_core::{Error, Handler, Job, Metadata, ReplySender, Tool};
use tidegate_query::Column;

use super::samples::{SAMPLES_MAX, samples};
use crate::arguments::{Shape, arguments};
use crate::definition::{Input, read_only};
use crate::node::NodeView;
use crate::table::{Table, text, truth};

pub(crate) fn tool(node: &Arc<NodeView>) -> Tool {
    let samples = json!({
        "type": "integer", "minimum": 0, "maximum": SAMPLES_MAX, "description": "Example values per column",
    });
    read_only(
        "get_schema",
        "Get a table's columns",
        "Columns of one table: name, type, nullable, comment. Use before query and sql; find the table with list_tables.",
        Input::new()
            .with_database()
            .requiring("table", json!({"type": "string"}))
            .with("samples", samples)
            .with_shape(),
        GetSchema(node.clone()),
    )
}

struct GetSchema(Arc<NodeView>);

#[derive(Deserialize)]
struct Arguments {
    database: Option<String>,
    table: String,
    #[serde(default)]
    samples: usize,
    #[serde(flatten)]
    shape: Shape,
}

#[async_trait]
impl Handler for GetSchema {
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
        let Arguments { database, table, samples: wanted, shape } = arguments(&job)?;
        let presentation = shape.presentation("Use extract=name for the names alone.")?;
        let database = self.0.databases.get(database.as_deref(), job.principal())?;
        let columns = database.columns(&table, job.principal()).await?;
        let mut answer = described(&columns);
        if wanted > 0 {
            answer = answer.column("samples", samples(&**database, &table, &columns, wanted, &job).await?);
        }
        self.0.executor.answer_rows(answer.rows()?, presentation, &job, &reply).await
    }
}

fn described(columns: &[Column]) -> Table {
    Table::new()
        .column("name", text(columns.iter().map(|column| Some(column.name.clone()))))
        .column("type", text(columns.iter().map(|column| Some(column.type_name.clone()))))
        .column("nullable", truth(columns.iter().map(|column| column.nullable)))
        .column("comment", text(columns.iter().map(|column| column.comment.clone())))
}
