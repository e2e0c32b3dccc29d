//! Query tools: `query`, a query built from parts; `sql`, one read-only statement in the SQL of the database; and
//! `explain`, the plan and estimated cost of either.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::{Error, ErrorKind, JsonSchema, Violation};
use tidegate_query::{AnswerMode, Database, OutputOptions, Plan, QueryRequest, QuerySpec};
use tidegate_runtime::{Answer, Handler, Job, RunningCall, Tool};
use tidegate_sql::{Parameter, SqlDialect, Statement};

use crate::arguments::{DeliveryArguments, parse_arguments};
use crate::catalog_tools::find_measure;
use crate::result_tables::ResolvedDatabase;
use crate::tool_definition::{InputSchemaBuilder, built_in_schema, context_handler, read_only_tool, values_schema};
use crate::tool_services::ToolServices;

const QUERY_BUDGET_HINT: &str =
    "Narrow the query (where, group_by, select), or request the rows after the last one (order_by, where).";

pub(crate) fn query_tool(services: &Arc<ToolServices>) -> Tool {
    read_only_tool(
        "query",
        "Query a table",
        "Rows of a table: selected, filtered, joined, grouped, ordered. Use get_schema before it.",
        QuerySpec::schema(),
        context_handler(services, handle_query),
    )
    .with_pagination()
    .with_streaming()
}

async fn handle_query(services: Arc<ToolServices>, call: RunningCall) -> Result<Answer, Error> {
    let delivery: DeliveryArguments = parse_arguments(&call)?;
    let arguments = services.resolve_measures(call.arguments(), None, &call).await?;
    let mut spec = QuerySpec::from_json(&arguments)?;
    if let Some(page) = delivery.read_page(&services, None, &call)? {
        return Ok(page);
    }
    let named = spec.database.take();
    let resolved = services.resolve_tables(named.as_deref(), spec.tables_mut(), &call).await?;
    resolved.record(&services, &call);
    let ResolvedDatabase { database, required_access, .. } = resolved;
    let rows_max = delivery.rows_max(spec.has_explicit_limit.then_some(spec.limit), spec.limit);
    spec.limit = rows_max.unwrap_or(QuerySpec::UNLIMITED);
    let rendered = spec.render_with_cache(&*database, call.principal(), &services.statements).await;
    let statement = match rendered {
        Ok(statement) => statement,
        Err(error) => {
            let requested = Value::Object(call.arguments().clone()).to_string();
            return Err(services.suggest_described(error, &*database, &requested, call.principal()).await);
        }
    };
    let limit_hint = "Narrow the query (where, group_by, select) or raise the limit.";
    let output = OutputOptions {
        rows_max,
        mode: spec.mode,
        limit_hint: (!spec.has_explicit_limit).then_some(limit_hint),
        required_access,
        ..delivery.output.output_options(QUERY_BUDGET_HINT)?
    };
    delivery.run_query(&services, QueryRequest { database, statement, output }, &call)
}

/// The key of an item of `select` that names a measure.
const MEASURE: &str = "measure";
/// Measures of one query. Each is planned for the caller.
const MEASURES_MAX: usize = 20;
const MAX_ROWS_DEFAULT: u64 = 1_000;
const SQL_BUDGET_HINT: &str =
    "Narrow the statement (WHERE, GROUP BY), or request the rows after the last one (ORDER BY, WHERE).";
/// The maximum number of parameters, which is that of PostgreSQL.
const PARAMETERS_MAX: usize = 65_535;

pub(crate) fn sql_tool(services: &Arc<ToolServices>) -> Tool {
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
        context_handler(services, handle_sql),
    )
    .with_pagination()
    .with_streaming()
}

#[derive(Deserialize)]
struct SqlArguments {
    database: Option<String>,
    sql: String,
    #[serde(default)]
    parameters: Vec<Value>,
    max_rows: Option<u64>,
    mode: Option<String>,
    #[serde(flatten)]
    delivery: DeliveryArguments,
}

async fn handle_sql(services: Arc<ToolServices>, call: RunningCall) -> Result<Answer, Error> {
    let SqlArguments { database, sql, parameters, max_rows, mode, delivery } = parse_arguments(&call)?;
    if let Some(page) = delivery.read_page(&services, None, &call)? {
        return Ok(page);
    }
    let (resolved, statement) = services.resolve_statement(database.as_deref(), &sql, &parameters, &call).await?;
    resolved.record(&services, &call);
    let ResolvedDatabase { database, required_access, .. } = resolved;
    let output = OutputOptions {
        rows_max: delivery.rows_max(max_rows, MAX_ROWS_DEFAULT),
        mode: mode.as_deref().map_or(Ok(AnswerMode::Auto), AnswerMode::parse)?,
        limit_hint: Some("Narrow the statement (WHERE, GROUP BY) or raise max_rows."),
        required_access,
        ..delivery.output.output_options(SQL_BUDGET_HINT)?
    };
    let request = QueryRequest { database: database.clone(), statement, output };
    let answer = delivery.run_query(&services, request, &call)?;
    Ok(services.with_described_names(answer, database, sql))
}

impl ToolServices {
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

pub(crate) fn explain_tool(services: &Arc<ToolServices>) -> Tool {
    read_only_tool(
        "explain",
        "Explain a query",
        "Plan and estimated cost of a query, without running it. Give sql or query.",
        InputSchemaBuilder::new()
            .with_database()
            .with("sql", json!({"type": "string"}))
            .with("parameters", values_schema())
            .with("query", json!({"type": "object", "description": "The arguments of query"})),
        Arc::new(Explain { services: services.clone(), spec: Arc::new(built_in_schema(QuerySpec::schema())) }),
    )
}

struct Explain {
    services: Arc<ToolServices>,
    spec: Arc<JsonSchema>,
}

#[derive(Deserialize)]
struct ExplainArguments {
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
    async fn resolve_query(
        &self,
        arguments: ExplainArguments,
        job: &Job,
    ) -> Result<(Arc<dyn Database>, Statement), Error> {
        match arguments {
            ExplainArguments { sql: Some(sql), query: None, database, parameters } => {
                let (resolved, statement) =
                    self.services.resolve_statement(database.as_deref(), &sql, &parameters, job).await?;
                resolved.record(&self.services, job);
                Ok((resolved.database, statement))
            }
            ExplainArguments { sql: None, query: Some(query), database, parameters } if parameters.is_empty() => {
                let query = self.services.resolve_measures(&query, database.as_deref(), job).await?;
                let mut spec = self.parse_spec(query.into_owned())?;
                let named = spec.database.take().or(database);
                let resolved = self.services.resolve_tables(named.as_deref(), spec.tables_mut(), job).await?;
                resolved.record(&self.services, job);
                let statement = spec.render(&*resolved.database, job.principal()).await?;
                Ok((resolved.database, statement))
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

impl ToolServices {
    /// `arguments` of a query with expressions in place of measures, which are those of its table. Without another one, the
    /// query is for `database`.
    async fn resolve_measures<'a>(
        &self,
        arguments: &'a Map<String, Value>,
        database: Option<&str>,
        job: &Job,
    ) -> Result<Cow<'a, Map<String, Value>>, Error> {
        let selected = match arguments.get("select") {
            Some(Value::Array(items)) => items.as_slice(),
            // One item may stand alone.
            other => other.map(std::slice::from_ref).unwrap_or_default(),
        };
        let named_measure = |item: &'a Value| item.get(MEASURE).and_then(Value::as_str);
        match selected.iter().filter_map(named_measure).count() {
            0 => return Ok(Cow::Borrowed(arguments)),
            1..=MEASURES_MAX => {}
            count => {
                let message = format!("select has {count} measures; the maximum is {MEASURES_MAX}");
                return Err(Error::new(ErrorKind::InvalidArguments, message));
            }
        }
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let mut table = text("table").unwrap_or_default().to_owned();
        let named = text("database").or(database);
        let database = self.resolve_tables(named, std::iter::once(&mut table), job).await?.database;
        let knowledge = self.databases.knowledge(&*database).await;
        let mut select = Vec::with_capacity(selected.len());
        for item in selected {
            let Some(name) = named_measure(item) else {
                select.push(item.clone());
                continue;
            };
            let mut keys = item.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
            if let Some(unknown) = keys.find(|key| ![MEASURE, "as"].contains(key)) {
                let path = format!("select[{}].{unknown}", select.len());
                let message = "is unknown; expected one of measure, as".to_owned();
                return Err(Error::invalid_arguments("invalid query arguments:", vec![Violation { path, message }]));
            }
            let found = find_measure(&knowledge, &*database, (name, &table), job.principal()).await;
            let measure = found.map_err(|choices| {
                let message = format!("there is no measure {name:?} of the table {table:?}");
                Error::new(ErrorKind::InvalidArguments, message).with_choices(choices)
            })?;
            let alias = item.get("as").cloned().unwrap_or_else(|| measure.name.clone().into());
            select.push(json!({"expression": measure.sql, "as": alias}));
        }
        let mut resolved = arguments.clone();
        resolved.insert("select".to_owned(), select.into());
        Ok(Cow::Owned(resolved))
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
