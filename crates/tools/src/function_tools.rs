//! Live system tables as functions, for agents that think in functions: `list_functions` and `execute_function`.
//!
//! The tools exist only on a node with such tables, and only for callers that may query their database.
//!
//! `list_functions` has the functions of a node, or the parameters and columns of one. `execute_function` has rows of a
//! function, with conditions, order and limit. They are a query of its table, and a cursor continues in the same rows. If
//! they are too large, the answer is one example row, and how to get fewer. Both tools take a node of a network.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_core::{
    Access, AllowedNames, Content, Error, ErrorKind, Principal, PrincipalRule, Violation, nearest_names, shorten,
};
use tidegate_query::{ColumnFormatter, Database, FirstRows, QueryRows};
use tidegate_runtime::{Answer, AnswerMeta, CacheHint, Job, RunningCall, SnapshotBuilder, Tool};
use tidegate_system::{SystemColumn, SystemColumnType, SystemParameter, SystemTableDescription, SystemValue};

use crate::arguments::{DeliveryArguments, OutputArguments, non_empty, parse_arguments};
use crate::function_request::FunctionRequest;
use crate::node_functions::NodeFunctions;
use crate::tool_definition::{InputSchemaBuilder, add_tools, any_of, context_handler, read_only_tool, values_schema};
use crate::tool_services::ToolServices;
use crate::typed_rows::{TableBuilder, text_column};

/// The tables that are offered as functions.
pub trait TableFunctions: Send + Sync + 'static {
    /// The name of the database with the tables. Callers that may not query it have no functions.
    fn database(&self) -> &str;

    /// The descriptions of the functions that `principal` may call, by name.
    fn functions(&self, principal: &Principal) -> Vec<&SystemTableDescription>;

    /// Whether sensitive columns have their values for `principal`.
    fn grants_sensitive(&self, principal: &Principal) -> bool;

    /// The database whose table `name` is read with `parameters`, which fit it.
    ///
    /// # Errors
    /// `NotFound` with the nearest names, the same whether the function is hidden or absent; `Forbidden` if a row policy
    /// restricts the table.
    fn with_parameters(
        &self,
        name: &str,
        parameters: BTreeMap<String, SystemValue>,
        principal: &Principal,
    ) -> Result<Arc<dyn Database>, Error>;
}

/// How long clients may cache the list of functions, which changes with the configuration only. It depends on the caller.
const FUNCTION_LIST_CACHE: CacheHint = CacheHint { public: false, ..CacheHint::LISTS };

/// Adds the tools that `allowed` includes to `builder`, if `services` has functions.
pub(crate) fn register(
    builder: SnapshotBuilder,
    services: &Arc<ToolServices>,
    allowed: &AllowedNames,
) -> SnapshotBuilder {
    let Some(functions) = &services.functions else { return builder };
    let (databases, name) = (services.databases.clone(), functions.database().to_owned());
    let may_query =
        move |principal: &Principal| databases.visible_to(principal).any(|database| database.name() == name);
    let access = Access { principal_rule: Some(PrincipalRule::new(may_query)), ..Access::default() };
    let tools = [list_functions_tool(services, functions), execute_function_tool(services, functions)];
    add_tools(builder, tools, &access, allowed)
}

fn list_functions_tool(services: &Arc<ToolServices>, functions: &Arc<dyn TableFunctions>) -> Tool {
    let functions = functions.clone();
    read_only_tool(
        "list_functions",
        "List functions",
        "Live views of the machine: processes, connections, disks and more. With function: its parameters and columns.",
        InputSchemaBuilder::new()
            .with("function", json!({"type": "string"}))
            .with("node", json!({"type": "string"}))
            .with_output_arguments(),
        context_handler(services, move |services, call| handle_list_functions(services, functions.clone(), call)),
    )
    .with_cache(FUNCTION_LIST_CACHE)
}

#[derive(Deserialize)]
struct ListFunctionsArguments {
    function: Option<String>,
    #[serde(default, deserialize_with = "non_empty")]
    node: Option<String>,
    #[serde(flatten)]
    shape: OutputArguments,
}

async fn handle_list_functions(
    services: Arc<ToolServices>,
    functions: Arc<dyn TableFunctions>,
    call: RunningCall,
) -> Result<Answer, Error> {
    let ListFunctionsArguments { function, node, shape } = parse_arguments(&call)?;
    let all = match &node {
        Some(node) => NodeFunctions::load(&services, &functions, node, call.principal()).await?.functions,
        None => functions.functions(call.principal()),
    };
    let rows = match &function {
        None => function_rows(&all)?,
        Some(name) => match all.iter().find(|function| function.name == *name) {
            Some(function) => detail_rows(function)?,
            None => return Err(unknown_function(name, &all)),
        },
    };
    let output_options = shape.output_options("Name one function.")?;
    Ok(services.executor.answer_rows(rows, output_options))
}

/// The error for a function that does not exist or is hidden from the caller.
fn unknown_function(name: &str, all: &[&SystemTableDescription]) -> Error {
    let names = || all.iter().map(|function| function.name.as_ref());
    let near = nearest_names(name, names());
    let choices = if near.is_empty() { names().map(str::to_owned).collect() } else { near };
    let error = Error::new(ErrorKind::NotFound, format!("there is no function {name:?}"));
    match log_hint(name) {
        Some(hint) => error.with_hint(hint),
        None => error.with_choices(choices),
    }
}

fn function_rows(all: &[&SystemTableDescription]) -> Result<QueryRows, Error> {
    let parameters = |function: &SystemTableDescription| {
        let names: Vec<String> = function.parameters.iter().map(described_parameter).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    TableBuilder::new()
        .with_column("function", text_column(all.iter().map(|function| Some(function.name.to_string()))))
        .with_column("description", text_column(all.iter().map(|function| Some(function.description.to_string()))))
        .with_column("parameters", text_column(all.iter().map(|function| parameters(function))))
        .into_rows()
}

/// The name of a parameter, with its options.
fn described_parameter(parameter: &SystemParameter) -> String {
    let options = if parameter.options.is_empty() {
        parameter.parameter_type.name().to_owned()
    } else {
        parameter.options.join("|")
    };
    format!("{} ({options})", parameter.name)
}

struct DetailRow<'a> {
    kind: &'static str,
    name: &'a str,
    type_name: &'static str,
    unit: Option<&'a str>,
    description: Cow<'a, str>,
}

fn detail_rows(function: &SystemTableDescription) -> Result<QueryRows, Error> {
    let parameters = function.parameters.iter().map(|parameter| DetailRow {
        kind: "parameter",
        name: &parameter.name,
        type_name: parameter.parameter_type.name(),
        unit: None,
        description: match parameter.options.as_slice() {
            [] => parameter.description.clone(),
            options => format!("{} Options: {}.", parameter.description, options.join(", ")).into(),
        },
    });
    let columns = function.columns.iter().map(|column| DetailRow {
        kind: if column.is_sensitive { "sensitive column" } else { "column" },
        name: &column.name,
        type_name: column.column_type.name(),
        unit: column.unit.as_deref(),
        description: column.description.clone(),
    });
    let rows: Vec<DetailRow<'_>> = parameters.chain(columns).collect();
    TableBuilder::new()
        .with_column("kind", text_column(rows.iter().map(|row| Some(row.kind.to_owned()))))
        .with_column("name", text_column(rows.iter().map(|row| Some(row.name.to_owned()))))
        .with_column("type", text_column(rows.iter().map(|row| Some(row.type_name.to_owned()))))
        .with_column("unit", text_column(rows.iter().map(|row| row.unit.map(str::to_owned))))
        .with_column("description", text_column(rows.iter().map(|row| Some(row.description.to_string()))))
        .into_rows()
}

/// The number of rows when a request has no limit.
const LIMIT_DEFAULT: usize = 100;
/// The largest limit, because the rows of an answer are in memory.
const LIMIT_MAX: usize = 5_000;
/// Parts of names with which agents call functions of other servers that return log entries.
const LOG_WORDS: [&str; 4] = ["log", "journal", "syslog", "events"];

fn execute_function_tool(services: &Arc<ToolServices>, functions: &Arc<dyn TableFunctions>) -> Tool {
    let functions = functions.clone();
    read_only_tool(
        "execute_function",
        "Execute a function",
        "Rows of a function. Use list_functions before it. sql on the same tables can also join and aggregate.",
        InputSchemaBuilder::new()
            .with_required("function", json!({"type": "string"}))
            .with("columns", json!({"type": "array", "items": {"type": "string"}}))
            .with(
                "conditions",
                json!({"type": "array", "items": values_schema(), "description":
                    "[column, operator, value], all of them: [[\"name\", \"match\", \"nginx*|post*\"], \
                     [\"memory_bytes\", \">\", 1000000]]"}),
            )
            .with(
                "sort",
                json!({"type": "array", "items": any_of(&["string", "object"], ""), "description":
                    "[{\"column\": \"cpu_percent\", \"direction\": \"desc\"}]"}),
            )
            .with("limit", json!({"type": "integer", "minimum": 1, "maximum": LIMIT_MAX}))
            .with("parameters", json!({"type": "object"}))
            .with("node", json!({"type": "string"}))
            .with("cursor", json!({"type": "string"}))
            .with_output_arguments(),
        context_handler(services, move |services, call| handle_execute_function(services, functions.clone(), call)),
    )
    .with_pagination()
}

#[derive(Deserialize)]
struct ExecuteFunctionArguments {
    function: String,
    limit: Option<usize>,
    #[serde(default, deserialize_with = "non_empty")]
    node: Option<String>,
    #[serde(flatten)]
    delivery: DeliveryArguments,
}

async fn handle_execute_function(
    services: Arc<ToolServices>,
    functions: Arc<dyn TableFunctions>,
    call: RunningCall,
) -> Result<Answer, Error> {
    let ExecuteFunctionArguments { function: name, limit, node, delivery } = parse_arguments(&call)?;
    let principal = call.principal();
    // Also for a page: the caller may query the network no more.
    let node = match &node {
        Some(node) => Some(NodeFunctions::load(&services, &functions, node, principal).await?),
        None => None,
    };
    if let Some(page) = delivery.read_page(&services, None, &call)? {
        return Ok(page);
    }
    let all = node.as_ref().map_or_else(|| functions.functions(principal), |node| node.functions.clone());
    let Some(function) = all.iter().find(|function| function.name == *name) else {
        return Err(unknown_function(&name, &all));
    };
    // Another node masks what the caller may not see there, so nothing sensitive may be compared here.
    let grants_sensitive = node.is_none() && functions.grants_sensitive(principal);
    let request = FunctionRequest::parse(function, call.arguments(), grants_sensitive)?;
    let output_options = delivery.output.output_options("Add conditions, select fewer columns, or lower the limit.")?;
    // The second one is the database that the caller may query, also when a page is read.
    let (database, queried): (Arc<dyn Database>, Arc<dyn Database>) = match node {
        Some(_) if !request.parameters.is_empty() => return Err(parameters_of_node()),
        Some(node) => (node.database, node.network),
        None => {
            let database = functions.with_parameters(&name, request.parameters.clone(), principal)?;
            let queried = services.databases.get_unrestricted(functions.database()).unwrap_or(&database).clone();
            (database, queried)
        }
    };
    let statement = request.spec.render_with_cache(&*database, principal, &services.statements).await?;
    let rows = services.executor.open_rows(&*database, &statement, call.job()).await?;
    let limit = limit.unwrap_or(LIMIT_DEFAULT);
    let FirstRows { batch, total, cursor } = services.executor.take_first_rows(rows, limit, &*queried, &call).await?;
    // Programs that set a format receive all rows.
    let bytes_max = call.limits().inline.bytes.filter(|_| call.format().is_none());
    if let Some(bytes_max) = bytes_max
        && let Some(oversized) = describe_oversized(function, &request, &batch, total, bytes_max)
    {
        // The example row is data, as all rows are.
        return Ok(Answer::text(call.protection().fence_data(oversized)));
    }
    let rows = batch.num_rows();
    let answer = services.executor.answer_rows(QueryRows::from_batch(batch), output_options);
    // Programs that set a format expect only rows.
    if total == rows || call.format().is_some() || !shape_is_default(&call) {
        return Ok(answer);
    }
    Ok(answer.followed_by(move |reply, meta| async move {
        reply.end_text().await?;
        let next =
            cursor.as_ref().map(|cursor| format!(" To continue, repeat the call with \"cursor\": \"{cursor}\"."));
        let text = format!("{rows} of {total} rows that match.{}", next.unwrap_or_default());
        reply.send_item(Content::text(text)).await?;
        Ok(AnswerMeta { is_truncated: Some(true), cursor: cursor.or(meta.cursor), ..meta })
    }))
}

/// The error for parameters of a function of another node, which is read as a table.
fn parameters_of_node() -> Error {
    let message = "is not supported for functions of other nodes; leave it out, or call that node itself".to_owned();
    let violation = Violation { path: "parameters".to_owned(), message };
    Error::invalid_arguments("the arguments of execute_function do not fit together:", vec![violation])
}

fn shape_is_default(job: &Job) -> bool {
    job.arguments().get("extract").is_none_or(Value::is_null)
}

/// The hint for a name of log entries, which have tools of their own.
fn log_hint(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    LOG_WORDS.iter().any(|word| name.contains(word)).then_some(
        "Log entries are no function. Where the server has log sources, list_logs_sources and query_logs read them.",
    )
}

/// Filters that are named at most.
const FILTERS_MAX: usize = 5;
/// Frequent values of a filter that are named at most.
const FREQUENT_VALUES_MAX: usize = 3;
/// Distinct values of a column that are counted at most.
const DISTINCT_VALUES_MAX: usize = 1_000;
/// Characters of a text in the example row at most.
const EXAMPLE_CHARACTERS_MAX: usize = 120;

/// The text in place of the rows `batch`, if they have more than `bytes_max` bytes as lists in JSON. `matched` rows meet
/// the conditions.
fn describe_oversized(
    function: &SystemTableDescription,
    request: &FunctionRequest,
    batch: &RecordBatch,
    matched: usize,
    bytes_max: usize,
) -> Option<String> {
    let columns: Vec<AnswerColumn<'_>> =
        (0..batch.num_columns()).map(|index| AnswerColumn::new(batch, index)).collect();
    let rows = batch.num_rows();
    // A comma after each value, brackets and a comma for each row.
    let row_bytes = |row: usize| 3 + columns.iter().map(|column| column.json_bytes(row) + 1).sum::<usize>();
    let bytes: usize = (0..rows).map(row_bytes).sum();
    if rows == 0 || bytes <= bytes_max {
        return None;
    }
    let example: Vec<String> = columns.iter().map(|column| format!("{:?}: {}", column.name, column.json(0))).collect();
    let suggested_limit = (bytes_max / (bytes / rows).max(1)).clamp(1, rows);
    let mut text = format!(
        "The answer has {rows} rows ({matched} match) and about {bytes} bytes; at most {bytes_max} fit.\n\
         One row as an example:\n{{{}}}\n\
         Add conditions, select fewer columns, or use a limit of {suggested_limit}. ",
        example.join(", ")
    );
    let filters = filters(function, request, &columns, rows);
    if filters.is_empty() {
        text.push_str("The conditions already use all columns that are good filters.");
    } else {
        text.push_str("Good filters:");
        text.extend(filters);
    }
    Some(text)
}

/// A column of the answer.
struct AnswerColumn<'a> {
    name: &'a str,
    has_quotes: bool,
    values: ColumnFormatter<'a>,
}

impl<'a> AnswerColumn<'a> {
    fn new(batch: &'a RecordBatch, index: usize) -> Self {
        let field = batch.schema_ref().field(index);
        let has_quotes = !field.data_type().is_numeric() && *field.data_type() != DataType::Boolean;
        let values = ColumnFormatter::new(field, batch.column(index).as_ref());
        Self { name: field.name(), has_quotes, values }
    }

    fn json_bytes(&self, row: usize) -> usize {
        let quotes = if self.has_quotes { 2 } else { 0 };
        self.values.format_value(row).map_or("null".len(), |text| text.len() + quotes)
    }

    /// The value in JSON. Long texts are cut.
    fn json(&self, row: usize) -> String {
        match self.values.format_value(row) {
            None => Value::Null.to_string(),
            Some(number) if !self.has_quotes => number,
            Some(text) => Value::from(shorten(text, EXAMPLE_CHARACTERS_MAX)).to_string(),
        }
    }

    /// The most frequent values with their number of rows; none if most rows have different values.
    fn frequent_values(&self, rows: usize) -> Vec<(String, usize)> {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for value in (0..rows).filter(|row| self.values.format_value(*row).is_some()).map(|row| self.json(row)) {
            if counts.len() < DISTINCT_VALUES_MAX || counts.contains_key(&value) {
                *counts.entry(value).or_default() += 1;
            }
        }
        // One value for all rows filters nothing; a value for each row names nothing.
        if counts.len() < 2 || counts.len() > rows / 2 {
            return Vec::new();
        }
        let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
        counts.sort_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
        counts.truncate(FREQUENT_VALUES_MAX);
        counts
    }
}

/// The good filters that the request does not use yet, the best first: a line each. Values of sensitive columns are not
/// counted.
fn filters(
    function: &SystemTableDescription,
    request: &FunctionRequest,
    columns: &[AnswerColumn<'_>],
    rows: usize,
) -> Vec<String> {
    let is_offered = |column: &&SystemColumn| {
        column.is_good_filter && !column.is_sensitive && !request.compared.contains(column.name.as_ref())
    };
    let advice = function.columns.iter().filter(is_offered).map(|column| {
        let has_few_values = matches!(column.column_type, SystemColumnType::Text | SystemColumnType::Boolean);
        let answered = columns.iter().find(|answered| answered.name == column.name).filter(|_| has_few_values);
        let frequent = answered.map(|answered| answered.frequent_values(rows)).unwrap_or_default();
        let mut line = format!("\n- {} ({})", column.name, operators(column.column_type));
        for (index, (value, count)) in frequent.iter().enumerate() {
            let separator = if index == 0 { ": frequent values " } else { ", " };
            // Writing to a text never fails.
            let _ = write!(line, "{separator}{value} ({count} rows)");
        }
        (frequent.is_empty(), line)
    });
    let mut advice: Vec<(bool, String)> = advice.collect();
    // Columns whose values divide the rows are the best ones. The sort is stable.
    advice.sort_by_key(|(has_no_values, _)| *has_no_values);
    advice.truncate(FILTERS_MAX);
    advice.into_iter().map(|(_, line)| line).collect()
}

/// The operators for a column of this type.
fn operators(column_type: SystemColumnType) -> &'static str {
    match column_type {
        SystemColumnType::Text => "=, !=, match, not match",
        SystemColumnType::Boolean => "=, !=",
        _ => "=, !=, <, <=, >, >=",
    }
}
