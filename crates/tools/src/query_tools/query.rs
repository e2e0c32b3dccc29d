//! `query`: a query built from parts.

use std::sync::Arc;

use tidegate_core::Error;
use tidegate_query::{OutputOptions, QueryRequest, QuerySpec};
use tidegate_runtime::{Answer, RunningCall, Tool};

use crate::arguments::{PagingArguments, parse_arguments};
use crate::tool_context::ToolContext;
use crate::tool_definition::{context_handler, read_only_tool};

const BUDGET_HINT: &str =
    "Narrow the query (where, group_by, select), or request the rows after the last one (order_by, where).";

pub(crate) fn tool(node: &Arc<ToolContext>) -> Tool {
    read_only_tool(
        "query",
        "Query a table",
        "Rows of a table: selected, filtered, joined, grouped, ordered. Use get_schema before it.",
        QuerySpec::schema(),
        context_handler(node, handle),
    )
}

async fn handle(node: Arc<ToolContext>, call: RunningCall) -> Result<Answer, Error> {
    let paging: PagingArguments = parse_arguments(&call)?;
    let mut spec = QuerySpec::from_json(call.arguments())?;
    if let Some(page) = paging.read_page(&node, None, &call)? {
        return Ok(page);
    }
    let named = spec.database.take();
    let database = node.resolve_tables(named.as_deref(), spec.tables_mut(), call.principal()).await?;
    call.record_database(database.name());
    let rows_max = paging.rows_max(spec.has_explicit_limit.then_some(spec.limit), spec.limit);
    spec.limit = rows_max.unwrap_or(QuerySpec::UNLIMITED);
    let statement = spec.render_with_cache(&*database, call.principal(), &node.statements).await?;
    let limit_hint = "Narrow the query (where, group_by, select) or raise the limit.";
    let output = OutputOptions {
        rows_max,
        mode: spec.mode,
        limit_hint: (!spec.has_explicit_limit).then_some(limit_hint),
        ..paging.output.output_options(BUDGET_HINT)?
    };
    paging.run_query(&node, QueryRequest { database, statement, output }, &call)
}
