//! `query`: a question put together from parts.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{Error, Handler, Job, Metadata, ReplySender, Tool};
use tidegate_query::{QuerySpec, Question};

use crate::definition::read_only;
use crate::node::NodeView;

pub(crate) fn tool(node: &Arc<NodeView>) -> Tool {
    read_only(
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
        let spec = QuerySpec::from_json(job.arguments())?;
        let database = self.0.databases.get(spec.database.as_deref(), job.principal())?.clone();
        let statement = spec.render(&*database, job.principal()).await?;
        let QuerySpec { limit, format, extract, mode, .. } = spec;
        let question = Question {
            database,
            statement,
            max_rows: Some(limit),
            format,
            extract,
            mode,
            structured: false,
            more: None,
        };
        self.0.executor.answer(question, &job, &reply).await
    }
}
