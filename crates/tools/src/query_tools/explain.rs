//! `explain`: the plan and estimated cost of a query.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::{Error, ErrorKind, JsonSchema, Violation};
use tidegate_query::{Database, Plan, QuerySpec};
use tidegate_runtime::{Answer, Handler, Job, RunningCall, Tool};
use tidegate_sql::Statement;

use crate::arguments::parse_arguments;
use crate::tool_context::ToolContext;
use crate::tool_definition::{InputSchemaBuilder, built_in_schema, read_only_tool, values_schema};

pub(crate) fn tool(node: &Arc<ToolContext>) -> Tool {
    read_only_tool(
        "explain",
        "Explain a query",
        "Plan and estimated cost of a query, without running it. Give sql or query.",
        InputSchemaBuilder::new()
            .with_database()
            .with("sql", json!({"type": "string"}))
            .with("parameters", values_schema())
            .with("query", json!({"type": "object", "description": "The arguments of query"})),
        Arc::new(Explain { node: node.clone(), spec: Arc::new(built_in_schema(QuerySpec::schema())) }),
    )
}

struct Explain {
    node: Arc<ToolContext>,
    spec: Arc<JsonSchema>,
}

#[derive(Deserialize)]
struct Arguments {
    database: Option<String>,
    sql: Option<String>,
    #[serde(default)]
    parameters: Vec<Value>,
    query: Option<Map<String, Value>>,
}

#[async_trait]
impl Handler for Explain {
    async fn handle(&self, call: RunningCall) -> Result<Answer, Error> {
        let (database, statement) = self.resolve_query(parse_arguments(&call)?, &call).await?;
        let plan = database.plan(&statement, call.principal()).await?;
        Ok(Answer::text(describe_plan(&statement, &*plan).await?))
    }
}

impl Explain {
    async fn resolve_query(&self, arguments: Arguments, job: &Job) -> Result<(Arc<dyn Database>, Statement), Error> {
        match arguments {
            Arguments { sql: Some(sql), query: None, database, parameters } => {
                let (database, statement) =
                    self.node.resolve_statement(database.as_deref(), &sql, &parameters, job.principal()).await?;
                job.record_database(database.name());
                Ok((database, statement))
            }
            Arguments { sql: None, query: Some(query), database, parameters } if parameters.is_empty() => {
                let mut spec = self.parse_spec(query)?;
                let named = spec.database.take().or(database);
                let database = self.node.resolve_tables(named.as_deref(), spec.tables_mut(), job.principal()).await?;
                job.record_database(database.name());
                let statement = spec.render(&*database, job.principal()).await?;
                Ok((database, statement))
            }
            _ => {
                Err(Error::new(ErrorKind::InvalidArguments, "give either sql (with its parameters) or query, not both")
                    .with_hint("Example: {\"query\": {\"table\": \"orders\"}}"))
            }
        }
    }

    fn parse_spec(&self, query: Map<String, Value>) -> Result<QuerySpec, Error> {
        let mut query = Value::Object(query);
        self.spec.coerce_and_check(&mut query).map_err(|violations| {
            let inside = |violation: Violation| Violation {
                path: format!("query.{}", violation.path).trim_end_matches('.').to_owned(),
                ..violation
            };
            let violations = violations.into_iter().map(inside).collect();
            Error::invalid_arguments("the arguments of tool \"explain\" are wrong:", violations)
        })?;
        QuerySpec::from_json(query.as_object().unwrap_or(&Map::new()))
    }
}

/// A plan as text, its estimates first.
pub(crate) async fn describe_plan(statement: &Statement, plan: &dyn Plan) -> Result<String, Error> {
    // Some databases have estimates only after `explain`.
    let explained = plan.explain().await?;
    let render = |estimate: Option<u64>| estimate.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
    let first_row = match plan.is_pipeline_breaking() {
        Some(true) => "after all input is read",
        Some(false) => "at once",
        None => "unknown",
    };
    Ok(format!(
        "Statement: {}\nEstimated rows: {}\nEstimated bytes read: {}\nFirst row: {first_row}\n\n{}",
        statement.text(),
        render(plan.estimated_rows()),
        render(plan.estimated_bytes()),
        explained.trim_end(),
    ))
}
