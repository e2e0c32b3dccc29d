//! A declared tool: one SQL statement with typed parameters.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use serde_json::{Map, Value};
use tidegate_core::{CallLimits, Error, ErrorKind, JsonSchema};
use tidegate_query::{OutputOptions, QueryRequest, output_schema};
use tidegate_runtime::{Answer, Handler, RunningCall, Tool, ToolAnnotations};
use tidegate_sql::{CommitRule, Statement, Transaction};

use super::confirmation::Confirmation;
use super::declared_query::DeclaredQuery;
use super::elicited_parameters::ElicitedParameters;
use super::{DeclarationProblem, DeclaredTool, FixedOutput};
use crate::arguments::{
    OUTPUT_ARGUMENTS, PAGING_ARGUMENTS, PagingArguments, output_properties, parse_arguments, with_paging,
};
use crate::tool_context::ToolContext;

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
        node: &Arc<ToolContext>,
        limits: CallLimits,
    ) -> Result<(Tool, Option<Error>), Vec<DeclarationProblem>> {
        self.check_reserved_names(&[&OUTPUT_ARGUMENTS[..], &PAGING_ARGUMENTS].concat())?;
        let DeclaredSql { database, sql, transaction } = &self.action;
        let (elicited_parameters, confirmation) = self.elicitation(transaction.writes)?;
        if transaction.writes {
            self.output.reject_query_options("a tool that writes")?;
        }
        let query = DeclaredQuery::parse(node, database.as_deref(), sql, self.inputs.clone())?
            .in_transaction(transaction.clone())?;
        let (columns, unreachable) = match query.prepare(&node.statements).await {
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
        let access = node.databases.tenancy().restrict(query.database.name(), self.access.clone());
        let annotations = complete_annotations(self.annotations.clone(), writes);
        let arguments = if writes { output_properties() } else { with_paging(output_properties()) };
        let (elicited, output) = (elicited_parameters, self.output.clone());
        let handler = SqlToolHandler { node: node.clone(), query, elicited, confirmation, output, columns };
        let mut tool = Self { access, ..self }.into_tool(Arc::new(handler), annotations, arguments)?;
        tool.output_schema = output_schema.map(Arc::new);
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
    node: Arc<ToolContext>,
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
        let mut paging: PagingArguments = parse_arguments(&call)?;
        self.output.apply(&mut paging.output);
        paging.delivery = self.output.delivery.map(|delivery| delivery.name().to_owned()).or(paging.delivery);
        if let Some(page) = paging.read_page(&self.node, self.columns.as_ref(), &call)? {
            return Ok(page);
        }
        let arguments = self.elicited.complete(&call).await?;
        let mut statement = self.query.bind_statement(&arguments, call.principal(), &self.node.statements)?;
        if let Some(confirmation) = &self.confirmation {
            statement = Box::pin(self.confirm(confirmation, &arguments, statement, &call)).await?;
        }
        let request = QueryRequest {
            database: self.query.database.clone(),
            statement,
            output: OutputOptions {
                mode: self.output.mode.unwrap_or_default(),
                structured: self.columns.clone(),
                ..paging.output.output_options("Request less with other arguments.")?
            },
        };
        if self.query.writes() {
            return Ok(self.node.executor.answer(request));
        }
        paging.run_query(&self.node, request, &call)
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
        let rows = self.node.executor.count_changed_rows(&self.query.database, &counted, call).await?;
        confirmation.request(arguments, Some(rows), call).await?;
        let transaction = with_rule(CommitRule::IfRowsChanged(rows));
        Ok(statement.in_transaction(transaction))
    }
}
