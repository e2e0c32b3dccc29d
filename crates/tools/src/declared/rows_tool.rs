//! A tool whose rows come from a [`StatementSource`], with all output formats and deliveries.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tidegate_core::{Error, JsonSchema};
use tidegate_query::QueryRequest;
use tidegate_runtime::{Answer, Handler, Job, RunningCall, Tool};
use tidegate_sql::Statement;

use crate::arguments::{PagingArguments, UNLISTED_OF_DECLARED, output_properties, parse_arguments, with_paging};
use crate::tool_context::ToolContext;

/// Supplies the statement for each call of a tool.
#[async_trait]
pub trait StatementSource: Send + Sync + 'static {
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
    node: Arc<ToolContext>,
    database: String,
    source: impl StatementSource,
) -> Arc<dyn Handler> {
    Arc::new(StatementToolHandler { node, database, source: Arc::new(source) })
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
    tool.with_unlisted_arguments(&UNLISTED_OF_DECLARED).map_err(|error| error.to_string())
}

struct StatementToolHandler<S> {
    node: Arc<ToolContext>,
    database: String,
    source: Arc<S>,
}

#[async_trait]
impl<S: StatementSource> Handler for StatementToolHandler<S> {
    async fn handle(&self, call: RunningCall) -> Result<Answer, Error> {
        let paging: PagingArguments = parse_arguments(&call)?;
        if let Some(page) = paging.read_page(&self.node, None, &call)? {
            return Ok(page);
        }
        let mut own = call.arguments().clone();
        with_paging(output_properties()).keys().for_each(|name| drop(own.remove(name)));
        let missing = || Error::internal(format!("the database {} is not a database of the server", self.database));
        let answer = async {
            let request = QueryRequest {
                database: self.node.databases.get_unrestricted(&self.database).ok_or_else(missing)?.clone(),
                statement: self.source.statement(&call, own.clone()).await?,
                output: paging.output.output_options("Request less with other arguments.")?,
            };
            paging.run_query(&self.node, request, &call)
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
