//! `sql`: one read-only statement in the SQL of the database.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_core::{Error, Violation};
use tidegate_query::{AnswerMode, OutputOptions, QueryRequest};
use tidegate_runtime::{Answer, RunningCall, Tool};
use tidegate_sql::{Parameter, SqlDialect, Statement};

use crate::arguments::{PagingArguments, parse_arguments};
use crate::tool_context::ToolContext;
use crate::tool_definition::{InputSchemaBuilder, context_handler, read_only_tool, values_schema};

const MAX_ROWS_DEFAULT: u64 = 1_000;
const BUDGET_HINT: &str =
    "Narrow the statement (WHERE, GROUP BY), or request the rows after the last one (ORDER BY, WHERE).";
/// The maximum number of parameters, which is that of PostgreSQL.
const PARAMETERS_MAX: usize = 65_535;

pub(crate) fn tool(node: &Arc<ToolContext>) -> Tool {
    let mut parameters = values_schema();
    parameters["description"] = "Values of $1, $2, …".into();
    read_only_tool(
        "sql",
        "Run SQL",
        "One read-only SQL statement. Use get_schema before it; list_databases has the dialects. \
         PostgreSQL and files: date_trunc('month', t), x::int, count(*) FILTER (WHERE x > 1). \
         SQLite: strftime('%Y-%m', t), CAST(x AS INT), sum(x > 1).",
        InputSchemaBuilder::new()
            .with_database()
            .with_required("sql", json!({"type": "string"}))
            .with("parameters", parameters)
            .with("max_rows", json!({"type": "integer", "minimum": 1, "default": MAX_ROWS_DEFAULT}))
            .with_output_arguments()
            .with("mode", json!({"type": "string", "enum": AnswerMode::ALL.map(AnswerMode::name)}))
            .with_paging(),
        context_handler(node, handle),
    )
}

#[derive(Deserialize)]
struct Arguments {
    database: Option<String>,
    sql: String,
    #[serde(default)]
    parameters: Vec<Value>,
    max_rows: Option<u64>,
    mode: Option<String>,
    #[serde(flatten)]
    paging: PagingArguments,
}

async fn handle(node: Arc<ToolContext>, call: RunningCall) -> Result<Answer, Error> {
    let Arguments { database, sql, parameters, max_rows, mode, paging } = parse_arguments(&call)?;
    if let Some(page) = paging.read_page(&node, None, &call)? {
        return Ok(page);
    }
    let (database, statement) =
        node.resolve_statement(database.as_deref(), &sql, &parameters, call.principal()).await?;
    call.record_database(database.name());
    let output = OutputOptions {
        rows_max: paging.rows_max(max_rows, MAX_ROWS_DEFAULT),
        mode: mode.as_deref().map_or(Ok(AnswerMode::Auto), AnswerMode::parse)?,
        limit_hint: Some("Narrow the statement (WHERE, GROUP BY) or raise max_rows."),
        ..paging.output.output_options(BUDGET_HINT)?
    };
    paging.run_query(&node, QueryRequest { database, statement, output }, &call)
}

impl ToolContext {
    /// Parses `sql` with its parameters; all invalid parameters are reported together.
    pub(crate) fn statement(&self, sql: &str, parameters: &[Value], dialect: SqlDialect) -> Result<Statement, Error> {
        if parameters.len() > PARAMETERS_MAX {
            let message = format!("has {} values; the maximum is {PARAMETERS_MAX}", parameters.len());
            let violation = Violation { path: "parameters".to_owned(), message };
            return Err(Error::invalid_arguments("the parameters of the statement are wrong:", vec![violation]));
        }
        let mut bound = Vec::with_capacity(parameters.len());
        let mut violations = Vec::new();
        for (index, value) in parameters.iter().enumerate() {
            match Parameter::from_json(value) {
                Ok(parameter) => bound.push(parameter),
                Err(error) => {
                    let path = format!("parameters[{index}]");
                    violations.push(Violation { path, message: error.message().to_owned() });
                }
            }
        }
        if !violations.is_empty() {
            return Err(Error::invalid_arguments("the parameters of the statement are wrong:", violations));
        }
        self.statements.parse(sql, dialect)?.with_parameters(bound)
    }
}
