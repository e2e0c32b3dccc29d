//! Declared tools: their parts that do not depend on what they run, with the output options that a declaration fixes,
//! for which callers have no arguments; tools with one SQL statement and typed parameters, or other rows of a
//! [`StatementProvider`]; and tools that add one row to a table that takes rows.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use serde_json::{Map, Value};
use tidegate_core::{
    Access, CallLimits, Error, ErrorKind, Format, JsonSchema, Principal, PrincipalRule, nearest_names,
};
use tidegate_query::{
    AnswerMode, Delivery, IngestTable, OutputOptions, QueryRequest, WriteTarget, check_extract, output_schema,
};
use tidegate_runtime::{Answer, CacheHint, Handler, Job, RunningCall, Tool, ToolAnnotations};
use tidegate_sql::{CommitRule, Statement, Transaction};

use super::declared_query::DeclaredQuery;
use super::elicitation::{Confirmation, ElicitedParameters};
use super::input::{DeclaredInput, object_schema};
use super::{DeclarationProblem, TextTemplate};
use crate::arguments::{
    DELIVERY_ARGUMENTS, DeliveryArguments, OUTPUT_ARGUMENTS, OutputArguments, UNLISTED_OF_DECLARED, output_properties,
    parse_arguments, with_paging,
};
use crate::ingest_tools::{IngestContext, IngestToolOptions, insert_row};
use crate::tool_services::ToolServices;

/// A declared tool. `A` is what it runs: a statement ([`DeclaredSql`](super::DeclaredSql)), a row that is
/// added ([`DeclaredInsert`](super::DeclaredInsert)), a request ([`HttpDefinition`](super::HttpDefinition)), or a
/// built-in tool ([`DeclaredPreset`](super::DeclaredPreset)).
#[derive(Debug, Clone, Default)]
pub struct DeclaredTool<A> {
    /// 1 to 128 of letters, digits, `_`, `-`, `.`.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// The description for the model.
    pub description: String,
    /// Annotations; the defaults follow from the action.
    pub annotations: ToolAnnotations,
    /// What the tool runs.
    pub action: A,
    /// The parameters.
    pub inputs: Vec<DeclaredInput>,
    /// The output options that callers cannot choose.
    pub output: FixedOutput,
    /// The question that the person confirms before the tool runs; `{{name}}` is a parameter, and
    /// `{{changed_rows}}` is the number of rows that the tool would change.
    pub confirm: Option<TextTemplate>,
    /// What a caller must hold.
    pub access: Access,
    /// Limits of its calls.
    pub limits: CallLimits,
    /// How long clients may cache an answer.
    pub cache: Option<CacheHint>,
}

impl<A> DeclaredTool<A> {
    pub(super) fn check_reserved_names(&self, reserved: &[&str]) -> Result<(), Vec<DeclarationProblem>> {
        let conflicts = self.inputs.iter().filter(|input| reserved.contains(&input.name.as_str()));
        let problems: Vec<DeclarationProblem> = conflicts
            .map(|input| {
                let name = &input.name;
                let message =
                    format!("{name} is reserved: every tool with a table has this argument; choose another name");
                DeclarationProblem::new(format!("input.{name}"), Error::new(ErrorKind::InvalidArguments, message))
            })
            .collect();
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Parses the prompts to the person; all errors are reported together. If `writes_rows`, a question may contain the
    /// number of changed rows.
    pub(super) fn elicitation(
        &self,
        writes_rows: bool,
    ) -> Result<(ElicitedParameters, Option<Confirmation>), Vec<DeclarationProblem>> {
        let elicited = ElicitedParameters::from_inputs(&self.inputs);
        let confirm = |question| Confirmation::new(question, &self.inputs, writes_rows);
        let confirmation = self.confirm.clone().map(confirm).transpose();
        match (elicited, confirmation) {
            (Ok(elicited), Ok(confirmation)) => Ok((elicited, confirmation)),
            (elicited, confirmation) => {
                Err([elicited.err(), confirmation.err()].into_iter().flatten().flatten().collect())
            }
        }
    }

    pub(super) fn into_tool(
        self,
        handler: Arc<dyn Handler>,
        annotations: ToolAnnotations,
        arguments: Map<String, Value>,
    ) -> Result<Tool, Vec<DeclarationProblem>> {
        let mut tool = Tool::new(self.name, self.description, handler)
            .with_annotations(annotations)
            .with_access(self.access)
            .with_limits(self.limits);
        tool.title = self.title;
        tool.cache = self.cache;
        let arguments = self.output.remove_arguments(arguments);
        let tool = tool.with_input_schema(object_schema(&self.inputs, arguments));
        tool.and_then(|tool| tool.with_unlisted_arguments(&UNLISTED_OF_DECLARED)).map_err(|error| {
            vec![DeclarationProblem::new("input", Error::new(ErrorKind::InvalidArguments, error.to_string()))]
        })
    }
}

/// Output options that a declaration fixes; `None` leaves the option to the caller.
#[derive(Debug, Clone, Default)]
pub struct FixedOutput {
    /// The format of the answer.
    pub format: Option<Format>,
    /// The column whose distinct values are returned instead of rows.
    pub extract: Option<String>,
    /// When rows are sent.
    pub mode: Option<AnswerMode>,
    /// How the rows are delivered.
    pub delivery: Option<Delivery>,
}

impl FixedOutput {
    fn remove_arguments(&self, mut arguments: Map<String, Value>) -> Map<String, Value> {
        let fixed = [
            ("format", self.format.is_some()),
            ("extract", self.extract.is_some()),
            ("delivery", self.delivery.is_some()),
        ];
        fixed.iter().filter(|(_, is_fixed)| *is_fixed).for_each(|(name, _)| drop(arguments.shift_remove(*name)));
        arguments
    }

    pub(super) fn apply(&self, output: &mut OutputArguments) {
        if let Some(format) = self.format {
            output.format = Some(format.name().to_owned());
        }
        if let Some(extract) = &self.extract {
            output.extract = Some(extract.clone());
        }
    }

    /// Checks that the extracted column is among `columns`, if these are known.
    fn check_columns(&self, columns: Option<&SchemaRef>) -> Result<(), Vec<DeclarationProblem>> {
        let (Some(extract), Some(columns)) = (&self.extract, columns) else { return Ok(()) };
        check_extract(extract, columns).map_err(|error| vec![DeclarationProblem::new("extract", error)])
    }

    /// A problem for each option of answers of any length, which `kind` of tool does not have.
    pub(super) fn reject_query_options(&self, kind: &str) -> Result<(), Vec<DeclarationProblem>> {
        reject(&[("mode", self.mode.is_some()), ("delivery", self.delivery.is_some())], kind)
    }

    /// A problem for each option, because `kind` of tool answers without rows.
    fn reject_row_options(&self, kind: &str) -> Result<(), Vec<DeclarationProblem>> {
        reject(&[("format", self.format.is_some()), ("extract", self.extract.is_some())], kind)?;
        self.reject_query_options(kind)
    }
}

fn reject(options: &[(&str, bool)], kind: &str) -> Result<(), Vec<DeclarationProblem>> {
    let fixed = options.iter().filter(|(_, is_fixed)| *is_fixed);
    let problems: Vec<DeclarationProblem> = fixed
        .map(|(name, _)| {
            let error = Error::new(ErrorKind::InvalidArguments, format!("has no effect on {kind}; remove it"));
            DeclarationProblem::new(*name, error)
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Longer answers are text only, without structured content.
const STRUCTURED_BYTES_MAX: usize = 1024 * 1024;

/// The statement of a declared tool.
#[derive(Debug, Clone, Default)]
pub struct DeclaredSql {
    /// The database; optional when there is only one.
    pub database: Option<String>,
    /// The statement, with `:name` parameters.
    pub sql: String,
    /// The transaction, for databases that have them.
    pub transaction: Arc<Transaction>,
}

impl DeclaredTool<DeclaredSql> {
    /// Builds the tool and prepares its statement. If the database is unavailable, or a table cannot be read, the tool has no
    /// output schema, and the second value is the error. The tool is read-only by default.
    ///
    /// # Errors
    /// All errors of the declaration.
    pub async fn prepare(
        self,
        services: &Arc<ToolServices>,
        limits: CallLimits,
    ) -> Result<(Tool, Option<Error>), Vec<DeclarationProblem>> {
        self.check_reserved_names(&[&OUTPUT_ARGUMENTS[..], &DELIVERY_ARGUMENTS].concat())?;
        let DeclaredSql { database, sql, transaction } = &self.action;
        let (elicited_parameters, confirmation) = self.elicitation(transaction.writes)?;
        if transaction.writes {
            self.output.reject_query_options("a tool that writes")?;
        }
        let query = DeclaredQuery::parse(services, database.as_deref(), sql, self.inputs.clone())?
            .in_transaction(transaction.clone())?;
        let (columns, unreachable) = match query.prepare(&services.statements).await {
            Ok(columns) => (columns, None),
            // A row policy that does not fit its table closes this table, and not the node.
            Err(error)
                if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::TimedOut)
                    || error.is_configuration_fault() =>
            {
                (None, Some(error))
            }
            Err(error) => return Err(vec![DeclarationProblem::new("sql", error)]),
        };
        self.output.check_columns(columns.as_ref())?;
        let inline = self.limits.inline.or(limits.inline).unwrap_or_default();
        let columns = columns.filter(|_| inline.bytes.is_some_and(|max| max <= STRUCTURED_BYTES_MAX));
        let output_schema = columns.as_ref().map(|columns| JsonSchema::new(output_schema(columns))).transpose();
        let output_schema = output_schema.map_err(|error| {
            vec![DeclarationProblem::new("sql", Error::new(ErrorKind::InvalidArguments, error.to_string()))]
        })?;
        let writes = transaction.writes;
        let access = services.databases.tenancy().restrict(query.database.name(), self.access.clone());
        let annotations = complete_annotations(self.annotations.clone(), writes);
        let arguments = if writes { output_properties() } else { with_paging(output_properties()) };
        let (elicited, output) = (elicited_parameters, self.output.clone());
        let handler = SqlToolHandler { services: services.clone(), query, elicited, confirmation, output, columns };
        let mut tool = Self { access, ..self }.into_tool(Arc::new(handler), annotations, arguments)?;
        tool.output_schema = output_schema.map(Arc::new);
        tool.supports_pagination = !writes;
        tool.supports_streaming = true;
        Ok((tool, unreachable))
    }
}

/// The configured annotations with defaults. A tool that writes is never read-only.
fn complete_annotations(tool_annotations: ToolAnnotations, writes: bool) -> ToolAnnotations {
    let open_world = tool_annotations.open_world.or(Some(false));
    if writes {
        return ToolAnnotations {
            read_only: Some(false),
            destructive: tool_annotations.destructive.or(Some(true)),
            open_world,
            ..tool_annotations
        };
    }
    ToolAnnotations { read_only: tool_annotations.read_only.or(Some(true)), open_world, ..tool_annotations }
}

struct SqlToolHandler {
    services: Arc<ToolServices>,
    query: DeclaredQuery,
    elicited: ElicitedParameters,
    confirmation: Option<Confirmation>,
    output: FixedOutput,
    /// The columns of the output schema, if there is one.
    columns: Option<SchemaRef>,
}

#[async_trait]
impl Handler for SqlToolHandler {
    async fn handle(&self, call: RunningCall) -> Result<Answer, Error> {
        let mut delivery: DeliveryArguments = parse_arguments(&call)?;
        self.output.apply(&mut delivery.output);
        delivery.delivery = self.output.delivery.map(|delivery| delivery.name().to_owned()).or(delivery.delivery);
        if let Some(page) = delivery.read_page(&self.services, self.columns.as_ref(), &call)? {
            return Ok(page);
        }
        let arguments = self.elicited.complete(&call).await?;
        let mut statement = self.query.bind_statement(&arguments, call.principal(), &self.services.statements)?;
        if let Some(confirmation) = &self.confirmation {
            statement = Box::pin(self.confirm(confirmation, &arguments, statement, &call)).await?;
        }
        let request = QueryRequest {
            database: self.query.database.clone(),
            statement,
            output: OutputOptions {
                mode: self.output.mode.unwrap_or_default(),
                structured: self.columns.clone(),
                ..delivery.output.output_options("Request less with other arguments.")?
            },
        };
        if self.query.writes() {
            return Ok(self.services.executor.answer(request));
        }
        delivery.run_query(&self.services, request, &call)
    }
}

impl SqlToolHandler {
    /// Waits until the person has agreed. If the question contains the number of changed rows, `statement` runs before
    /// it in a transaction that is rolled back, and the returned statement is committed only if the number is the same.
    async fn confirm(
        &self,
        confirmation: &Confirmation,
        arguments: &Map<String, Value>,
        statement: Statement,
        call: &RunningCall,
    ) -> Result<Statement, Error> {
        if !confirmation.needs_changed_rows {
            confirmation.request(arguments, None, call).await?;
            return Ok(statement);
        }
        confirmation.check_client(call)?;
        let with_rule = |commit| Arc::new(Transaction { commit, ..statement.transaction().as_ref().clone() });
        let counted = statement.clone().in_transaction(with_rule(CommitRule::Never));
        let rows = self.services.executor.count_changed_rows(&self.query.database, &counted, call).await?;
        confirmation.request(arguments, Some(rows), call).await?;
        let transaction = with_rule(CommitRule::IfRowsChanged(rows));
        Ok(statement.in_transaction(transaction))
    }
}

/// Supplies the statement for each call of a tool.
#[async_trait]
pub trait StatementProvider: Send + Sync + 'static {
    /// The statement that answers `job`, which was called with `arguments` of the tool's own.
    ///
    /// # Errors
    /// Any [`Error`], written for the caller.
    async fn statement(&self, job: &Job, arguments: Map<String, Value>) -> Result<Statement, Error>;

    /// Called when the call `job` with `arguments` has ended; `failure` is its error, if any.
    fn on_call_end(&self, job: &Job, arguments: Map<String, Value>, failure: Option<&Error>);
}

/// The handler of a tool that answers with the rows of `source` in `database`.
pub fn statement_tool_handler(
    services: Arc<ToolServices>,
    database: String,
    source: impl StatementProvider,
) -> Arc<dyn Handler> {
    Arc::new(StatementToolHandler { services, database, source: Arc::new(source) })
}

/// Adds the arguments of every tool with a table to `tool`: output format and delivery.
///
/// # Errors
/// When an argument of the tool has a reserved name.
pub fn with_row_arguments(mut tool: Tool) -> Result<Tool, String> {
    let mut json = tool.input_schema.json().clone();
    let schema = json.as_object_mut().ok_or("its inputSchema is not an object")?;
    let properties = schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    let properties = properties.as_object_mut().ok_or("the properties of its inputSchema are not an object")?;
    for (name, schema) in with_paging(output_properties()) {
        if properties.contains_key(&name) {
            return Err(format!("{name} is reserved: every tool with rows has this argument; choose another name"));
        }
        properties.insert(name, schema);
    }
    tool.input_schema = Arc::new(JsonSchema::object(json).map_err(|error| error.to_string())?);
    let tool = tool.with_pagination().with_streaming();
    tool.with_unlisted_arguments(&UNLISTED_OF_DECLARED).map_err(|error| error.to_string())
}

struct StatementToolHandler<S> {
    services: Arc<ToolServices>,
    database: String,
    source: Arc<S>,
}

#[async_trait]
impl<S: StatementProvider> Handler for StatementToolHandler<S> {
    async fn handle(&self, call: RunningCall) -> Result<Answer, Error> {
        let delivery: DeliveryArguments = parse_arguments(&call)?;
        if let Some(page) = delivery.read_page(&self.services, None, &call)? {
            return Ok(page);
        }
        let mut own = call.arguments().clone();
        with_paging(output_properties()).keys().for_each(|name| drop(own.remove(name)));
        let missing = || Error::internal(format!("the database {} is not a database of the server", self.database));
        let answer = async {
            let request = QueryRequest {
                database: self.services.databases.get_unrestricted(&self.database).ok_or_else(missing)?.clone(),
                statement: self.source.statement(&call, own.clone()).await?,
                output: delivery.output.output_options("Request less with other arguments.")?,
            };
            delivery.run_query(&self.services, request, &call)
        };
        let answer = answer.await;
        let source = self.source.clone();
        Ok(Answer::written(move |reply| async move {
            let outcome = async { answer?.send(&reply).await }.await;
            source.on_call_end(reply.job(), own, outcome.as_ref().err());
            outcome
        }))
    }
}

/// A declared tool that adds a row to a table. Each parameter is a column.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeclaredInsert;

impl DeclaredTool<DeclaredInsert> {
    /// Builds the tool, which writes to `table` of `target`, as far as it is `known`. Callers have it only if they may write
    /// to the table.
    ///
    /// # Errors
    /// All errors of the declaration.
    pub fn prepare(
        self,
        target: Arc<dyn WriteTarget>,
        table: &str,
        known: Option<&IngestTable>,
        options: IngestToolOptions,
    ) -> Result<Tool, Vec<DeclarationProblem>> {
        self.check(known)?;
        let (elicited, confirmation) = self.elicitation(false)?;
        let table = known.map_or(table, |known| known.name.as_str()).to_owned();
        let access = restrict(self.access.clone(), &options, target.database(), &table);
        let annotations = ToolAnnotations {
            read_only: Some(false),
            destructive: self.annotations.destructive.or(Some(false)),
            open_world: self.annotations.open_world.or(Some(false)),
            idempotent: self.annotations.idempotent.or(Some(false)),
        };
        let (database, inputs) = (target.database().to_owned(), self.inputs.clone());
        let context = Arc::new(IngestContext::new(vec![target], options));
        let handler = InsertToolHandler { context, database, table, inputs, elicited, confirmation };
        Self { access, ..self }.into_tool(Arc::new(handler), annotations, Map::new())
    }

    /// Checks the declaration for a table that is `known`, or for any.
    ///
    /// # Errors
    /// All errors of the declaration.
    pub fn check(&self, known: Option<&IngestTable>) -> Result<(), Vec<DeclarationProblem>> {
        self.elicitation(false)?;
        self.output.reject_row_options("a tool with insert_into")?;
        let Some(IngestTable { schema: Some(schema), stamps, .. }) = known else { return Ok(()) };
        let names = schema.fields().iter().map(|field| field.name().as_str());
        let columns: Vec<&str> = names.filter(|name| stamps.iter().all(|stamp| stamp.column != *name)).collect();
        let unknown = self.inputs.iter().filter(|input| !columns.contains(&input.name.as_str()));
        let problems: Vec<DeclarationProblem> = unknown
            .map(|input| {
                let near = nearest_names(&input.name, columns.iter().copied());
                let all = || columns.iter().map(|name| (*name).to_owned()).collect();
                let choices = if near.is_empty() { all() } else { near };
                let message = "is no column of the table that can be written; each parameter is a column";
                let error = Error::new(ErrorKind::InvalidArguments, message).with_choices(choices);
                DeclarationProblem::new(format!("input.{}", input.name), error)
            })
            .collect();
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

struct InsertToolHandler {
    context: Arc<IngestContext>,
    database: String,
    table: String,
    inputs: Vec<DeclaredInput>,
    elicited: ElicitedParameters,
    confirmation: Option<Confirmation>,
}

#[async_trait]
impl Handler for InsertToolHandler {
    async fn handle(&self, call: RunningCall) -> Result<Answer, Error> {
        let writable_table = self.context.writable_table(&self.database, &self.table, call.principal()).await?;
        let arguments = self.elicited.complete(&call).await?;
        if let Some(confirmation) = &self.confirmation {
            confirmation.request(&arguments, None, &call).await?;
        }
        let values = self.inputs.iter().map(|input| (input.name.clone(), input.value(&arguments).clone()));
        // A column without a value has its default, where it has one.
        let row: Map<String, Value> = values.filter(|(_, value)| !value.is_null()).collect();
        insert_row(&self.context, &writable_table, row, call.job()).await
    }
}

fn restrict(access: Access, options: &IngestToolOptions, database: &str, table: &str) -> Access {
    let (database_name, table) = (database.to_owned(), table.to_owned());
    let may_write = move |principal: &Principal| principal.grants.may_ingest(&database_name, &table);
    let access = Access { principal_rule: Some(PrincipalRule::new(may_write)), ..access };
    options.tenancy.restrict(database, access)
}
