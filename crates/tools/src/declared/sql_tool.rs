//! A declared tool: one SQL statement with typed parameters.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tidegate_core::{Access, CallLimits, Error, ErrorKind, JsonSchema};
use tidegate_query::{AnswerMode, Delivery, OutputFormat, OverflowPolicy, QueryRequest, output_schema};
use tidegate_runtime::{CacheHint, Handler, Job, Metadata, ReplySender, Tool, ToolAnnotations};
use tidegate_sql::Transaction;

use super::confirmation::Confirmation;
use super::declared_query::DeclaredQuery;
use super::elicited_parameters::ElicitedParameters;
use super::http::RESERVED_ARGUMENTS;
use super::input::{DeclaredInput, object_schema};
use super::{DeclarationProblem, TextTemplate, cache_metadata};
use crate::arguments::{OutputArguments, parse_arguments};
use crate::node_view::NodeView;
use crate::paging::PagingArguments;

/// Longer answers are text only, without structured content.
const STRUCTURED_BYTES_MAX: usize = 1024 * 1024;

/// A declared tool: one SQL statement with typed parameters.
#[derive(Debug, Clone, Default)]
pub struct DeclaredSqlTool {
    /// 1 to 128 of letters, digits, `_`, `-`, `.`.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// The description for the model.
    pub description: String,
    /// Annotations; read-only by default.
    pub annotations: ToolAnnotations,
    /// The database; optional when there is only one.
    pub database: Option<String>,
    /// The statement, with `:name` parameters.
    pub sql: String,
    /// The parameters.
    pub inputs: Vec<DeclaredInput>,
    /// The question that the person confirms before the statement runs; `{{name}}` is a parameter.
    pub confirm: Option<TextTemplate>,
    /// What a caller must hold.
    pub access: Access,
    /// Limits of its calls.
    pub limits: CallLimits,
    /// The transaction, for databases that have them.
    pub transaction: Arc<Transaction>,
    /// How long clients may cache an answer.
    pub cache: Option<CacheHint>,
}

impl DeclaredSqlTool {
    /// Builds the tool and prepares its statement. If the database is unavailable, the tool has no output schema, and
    /// the second value is the error.
    ///
    /// # Errors
    /// All errors of the declaration.
    pub async fn prepare(
        self,
        node: &Arc<NodeView>,
        limits: CallLimits,
    ) -> Result<(Tool, Option<Error>), Vec<DeclarationProblem>> {
        let taken = check_reserved_names(&self.inputs, &[&RESERVED_ARGUMENTS[..], &PAGING_ARGUMENTS].concat());
        if !taken.is_empty() {
            return Err(taken);
        }
        let (elicited_parameters, confirmation) = parse_elicitation(&self.inputs, self.confirm)?;
        let query = DeclaredQuery::parse(node, self.database.as_deref(), &self.sql, self.inputs.clone())?
            .in_transaction(self.transaction.clone())?;
        let (columns, unreachable) = match query.prepare(&node.statements).await {
            Ok(columns) => (columns, None),
            Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::TimedOut) => (None, Some(error)),
            Err(error) => return Err(vec![DeclarationProblem::new("sql", error)]),
        };
        let inline = self.limits.inline.or(limits.inline).unwrap_or_default();
        let columns = columns.filter(|_| inline.bytes.is_some_and(|max| max <= STRUCTURED_BYTES_MAX));
        let access = node.databases.tenancy().restrict(query.database.name(), self.access);
        let handler = Arc::new(SqlToolHandler {
            node: node.clone(),
            query,
            elicited: elicited_parameters,
            confirmation,
            columns: columns.clone(),
        });
        let mut tool = Tool::new(self.name, self.description, handler)
            .with_annotations(complete_annotations(self.annotations, self.transaction.writes))
            .with_access(access)
            .with_limits(self.limits);
        tool.title = self.title;
        tool.meta.extend(self.cache.map(cache_metadata));
        let wrong = |at: &'static str| {
            move |error: tidegate_core::JsonSchemaError| {
                vec![DeclarationProblem::new(at, Error::new(ErrorKind::InvalidArguments, error.to_string()))]
            }
        };
        tool = tool
            .with_input_schema(object_schema(
                &self.inputs,
                if self.transaction.writes { output_properties() } else { with_paging(output_properties()) },
            ))
            .map_err(wrong("input"))?;
        if let Some(columns) = columns {
            tool.output_schema = Some(Arc::new(JsonSchema::new(output_schema(&columns)).map_err(wrong("sql"))?));
        }
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

/// Errors of inputs with reserved names.
pub(super) fn check_reserved_names(inputs: &[DeclaredInput], reserved: &[&str]) -> Vec<DeclarationProblem> {
    let taken = inputs.iter().filter(|input| reserved.contains(&input.name.as_str())).map(|input| {
        let message =
            format!("{} is reserved: every tool with a table has this argument; choose another name", input.name);
        DeclarationProblem::new(format!("input.{}", input.name), Error::new(ErrorKind::InvalidArguments, message))
    });
    taken.collect()
}

/// Parses the prompts of a tool to the person; all errors are reported together.
pub(super) fn parse_elicitation(
    inputs: &[DeclaredInput],
    confirm: Option<TextTemplate>,
) -> Result<(ElicitedParameters, Option<Confirmation>), Vec<DeclarationProblem>> {
    let requested = ElicitedParameters::from_inputs(inputs);
    let confirmation = confirm.map(|question| Confirmation::new(question, inputs)).transpose();
    match (requested, confirmation) {
        (Ok(elicited_parameters), Ok(confirmation)) => Ok((elicited_parameters, confirmation)),
        (requested, confirmation) => {
            Err([requested.err(), confirmation.err()].into_iter().flatten().flatten().collect())
        }
    }
}

/// The output arguments of every tool with a table.
pub(super) fn output_properties() -> Map<String, Value> {
    let formats = OutputFormat::ALL.map(OutputFormat::name);
    Map::from_iter([
        ("format".to_owned(), json!({"enum": formats})),
        ("extract".to_owned(), json!({"type": "string", "description": "Only the unique values of this column"})),
    ])
}

/// The paging arguments of every tool whose answers may be stored.
const PAGING_ARGUMENTS: [&str; 3] = ["delivery", "cursor", "no_cache"];

pub(super) fn with_paging(mut shape: Map<String, Value>) -> Map<String, Value> {
    let described = "The next page: the cursor of an answer, with the same arguments";
    let schemas = [
        json!({"enum": Delivery::ALL.map(Delivery::name)}),
        json!({"type": "string", "description": described}),
        json!({"type": "boolean"}),
    ];
    shape.extend(PAGING_ARGUMENTS.map(str::to_owned).into_iter().zip(schemas));
    shape
}

struct SqlToolHandler {
    node: Arc<NodeView>,
    query: DeclaredQuery,
    elicited: ElicitedParameters,
    confirmation: Option<Confirmation>,
    /// The columns of the output schema, if there is one.
    columns: Option<SchemaRef>,
}

#[async_trait]
impl Handler for SqlToolHandler {
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
        let (shape, paging): (OutputArguments, PagingArguments) = (parse_arguments(&job)?, parse_arguments(&job)?);
        if let Some(page) =
            paging.read_page(&self.node, shape.parse_format()?, self.columns.is_some(), &job, &reply).await
        {
            return page;
        }
        let format = shape.parse_format()?;
        let arguments = self.elicited.complete(&job, &reply).await?;
        let statement = self.query.bind_statement(&arguments, &self.node.statements)?;
        if let Some(confirmation) = &self.confirmation {
            confirmation.request(&arguments, &reply).await?;
        }
        let request = QueryRequest {
            database: self.query.database.clone(),
            statement,
            max_rows: None,
            format,
            extract: shape.extract,
            mode: AnswerMode::Auto,
            structured: self.columns.clone(),
            overflow_hint: Some("Request less with other arguments.".to_owned()),
            overflow: OverflowPolicy::default(),
        };
        if self.query.writes() {
            return self.node.executor.answer(request, &job, &reply).await;
        }
        paging.run_query(&self.node, request, &job, &reply).await
    }
}
