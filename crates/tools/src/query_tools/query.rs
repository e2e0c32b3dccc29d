//! `query`: a query built from parts.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::Error;
use tidegate_query::{OverflowPolicy, QueryRequest, QuerySpec};
use tidegate_runtime::{Handler, Job, Metadata, ReplySender, Tool};

use crate::arguments::parse_arguments;
use crate::node_view::NodeView;
use crate::paging::PagingArguments;
use crate::tool_definition::read_only_tool;

pub(crate) fn tool(node: &Arc<NodeView>) -> Tool {
    read_only_tool(
        "query",
        "Query a table",
        "Rows of a table: selected, filtered, joined, grouped, ordered. Names must be exact: use get_schema before it.",
        QuerySpec::schema(),
        Query(node.clone()),
    )
}

struct Query(Arc<NodeView>);

#[async_trait]
impl Handler for Query {
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
        let paging: PagingArguments = parse_arguments(&job)?;
        let mut spec = QuerySpec::from_json(job.arguments())?;
        if let Some(page) = paging.read_page(&self.0, spec.format, false, &job, &reply).await {
            return page;
        }
        let database = self.0.databases.get(spec.database.as_deref(), job.principal())?.clone();
        job.record_database(database.name());
        let max_rows = paging.rows_max(spec.has_explicit_limit.then_some(spec.limit), spec.limit);
        spec.limit = max_rows.unwrap_or(QuerySpec::UNLIMITED);
        let statement = spec.render(&*database, job.principal()).await?;
        let QuerySpec { format, extract, mode, .. } = spec;
        let request = QueryRequest {
            database,
            statement,
            max_rows,
            format,
            extract,
            mode,
            structured: None,
            overflow_hint: None,
            overflow: OverflowPolicy::default(),
        };
        paging.run_query(&self.0, request, &job, &reply).await
    }
}
