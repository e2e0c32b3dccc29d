//! A declared tool: one SQL statement with typed parameters.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tidegate_core::{
    Access, CacheHint, CallLimits, Error, ErrorKind, Handler, Job, Metadata, ReplySender, Schema, Tool, ToolAnnotations,
};
use tidegate_query::{Delivery, Format, Mode, Question, Rest, Transaction, output_schema};

use super::asked::AskedParameters;
use super::consent::Consent;
use super::http::RESERVED_ARGUMENTS;
use super::input::{Input, object_schema};
use super::question::DeclaredQuestion;
use super::{Problem, TextTemplate, cache_note};
use crate::arguments::{Shape, arguments};
use crate::node::NodeView;
use crate::paging::Paging;

/// Answers that may be longer are text alone, without structured content.
const STRUCTURED_BYTES_MAX: usize = 1024 * 1024;

/// A declared tool: one SQL statement with typed parameters.
#[derive(Debug, Clone, Default)]
pub struct SqlTool {
    /// 1 to 128 of letters, digits, `_`, `-`, `.`.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For the model.
    pub description: String,
    /// Hints; reading nothing but data is the default.
    pub annotations: ToolAnnotations,
    /// The database; may be left out when there is only one.
    pub database: Option<String>,
    /// The statement, with `:name` parameters.
    pub sql: String,
    /// The parameters.
    pub inputs: Vec<Input>,
    /// What the person behind a call is asked before the statement is run; `{{name}}` stands for a parameter.
    pub confirm: Option<TextTemplate>,
    /// What a caller must hold.
    pub access: Access,
    /// Bounds of its calls.
    pub limits: CallLimits,
    /// How a database that has transactions runs it.
    pub transaction: Arc<Transaction>,
    /// How long clients may keep an answer.
    pub cache: Option<CacheHint>,
}

impl SqlTool {
    /// The tool, its statement prepared. A database that cannot be reached now is no problem of the declaration:
    /// the tool is there without an output schema, and the second value says why.
    ///
    /// # Errors
    /// Everything that is wrong with the declaration.
    pub async fn prepare(
        self,
        node: &Arc<NodeView>,
        limits: CallLimits,
    ) -> Result<(Tool, Option<Error>), Vec<Problem>> {
        let taken = taken_names(&self.inputs, &[&RESERVED_ARGUMENTS[..], &PAGING_ARGUMENTS].concat());
        if !taken.is_empty() {
            return Err(taken);
        }
        let (asked, consent) = questions(&self.inputs, self.confirm)?;
        let question = DeclaredQuestion::read(node, self.database.as_deref(), &self.sql, self.inputs.clone())?
            .in_transaction(self.transaction.clone())?;
        let (columns, unreachable) = match question.prepare(&node.statements).await {
            Ok(columns) => (columns, None),
            Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::TimedOut) => (None, Some(error)),
            Err(error) => return Err(vec![Problem::at("sql", error)]),
        };
        let inline = self.limits.inline.or(limits.inline).unwrap_or_default();
        let columns = columns.filter(|_| inline.bytes.is_some_and(|max| max <= STRUCTURED_BYTES_MAX));
        let access = node.databases.tenancy().restrict(question.database.name(), self.access);
        let handler = Arc::new(Ask { node: node.clone(), question, asked, consent, columns: columns.clone() });
        let mut tool = Tool::new(self.name, self.description, handler)
            .with_annotations(annotations(self.annotations, self.transaction.writes))
            .with_access(access)
            .with_limits(self.limits);
        tool.title = self.title;
        tool.meta.extend(self.cache.map(cache_note));
        let wrong = |at: &'static str| {
            move |error: tidegate_core::SchemaError| {
                vec![Problem::at(at, Error::new(ErrorKind::InvalidArguments, error.to_string()))]
            }
        };
        tool = tool
            .with_input_schema(object_schema(
                &self.inputs,
                if self.transaction.writes { shape() } else { with_paging(shape()) },
            ))
            .map_err(wrong("input"))?;
        if let Some(columns) = columns {
            tool.output_schema = Some(Arc::new(Schema::new(output_schema(&columns)).map_err(wrong("sql"))?));
        }
        Ok((tool, unreachable))
    }
}

/// What was said, completed. That a tool writes cannot be denied.
fn annotations(said: ToolAnnotations, writes: bool) -> ToolAnnotations {
    let open_world = said.open_world.or(Some(false));
    if writes {
        return ToolAnnotations {
            read_only: Some(false),
            destructive: said.destructive.or(Some(true)),
            open_world,
            ..said
        };
    }
    ToolAnnotations { read_only: said.read_only.or(Some(true)), open_world, ..said }
}

/// Problems of inputs whose names every tool with a table has already.
pub(super) fn taken_names(inputs: &[Input], reserved: &[&str]) -> Vec<Problem> {
    let taken = inputs.iter().filter(|input| reserved.contains(&input.name.as_str())).map(|input| {
        let message = format!("{} is an argument that every tool with a table has; choose another name", input.name);
        Problem::at(format!("input.{}", input.name), Error::new(ErrorKind::InvalidArguments, message))
    });
    taken.collect()
}

/// What a tool asks the person behind a call; all that is wrong with it is told together.
pub(super) fn questions(
    inputs: &[Input],
    confirm: Option<TextTemplate>,
) -> Result<(AskedParameters, Option<Consent>), Vec<Problem>> {
    let asked = AskedParameters::of(inputs);
    let consent = confirm.map(|question| Consent::new(question, inputs)).transpose();
    match (asked, consent) {
        (Ok(asked), Ok(consent)) => Ok((asked, consent)),
        (asked, consent) => Err([asked.err(), consent.err()].into_iter().flatten().flatten().collect()),
    }
}

/// The arguments of every tool with a table.
pub(super) fn shape() -> Map<String, Value> {
    let formats = Format::ALL.map(Format::name);
    Map::from_iter([
        ("format".to_owned(), json!({"enum": formats})),
        ("extract".to_owned(), json!({"type": "string", "description": "Only the unique values of this column"})),
    ])
}

/// The arguments of every tool whose answers may be stored, besides.
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

struct Ask {
    node: Arc<NodeView>,
    question: DeclaredQuestion,
    asked: AskedParameters,
    consent: Option<Consent>,
    /// Those that the output schema promises; none where it promises nothing.
    columns: Option<SchemaRef>,
}

#[async_trait]
impl Handler for Ask {
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
        let (shape, paging): (Shape, Paging) = (arguments(&job)?, arguments(&job)?);
        if let Some(page) = paging.page(&self.node, shape.format()?, self.columns.is_some(), &job, &reply).await {
            return page;
        }
        let format = shape.format()?;
        let arguments = self.asked.complete(&job, &reply).await?;
        let statement = self.question.statement(&arguments, &self.node.statements)?;
        if let Some(consent) = &self.consent {
            consent.get(&arguments, &reply).await?;
        }
        let question = Question {
            database: self.question.database.clone(),
            statement,
            max_rows: None,
            format,
            extract: shape.extract,
            mode: Mode::Auto,
            structured: self.columns.clone(),
            more: Some("Ask for less with other arguments.".to_owned()),
            rest: Rest::default(),
        };
        if self.question.writes() {
            return self.node.executor.answer(question, &job, &reply).await;
        }
        paging.answer(&self.node, question, &job, &reply).await
    }
}
