//! `server_info`: who the server is and what bounds it sets.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{Error, Handler, Job, Metadata, ReplySender, Tool};

use crate::arguments::{Shape, arguments};
use crate::definition::{Input, read_only};
use crate::node::NodeView;
use crate::table::{Table, count, text};

pub(crate) fn tool(node: &Arc<NodeView>) -> Tool {
    read_only(
        "server_info",
        "Server information",
        "Name, version, SQL dialects, and the limits of an answer.",
        Input::new().with_shape(),
        ServerInfo(node.clone()),
    )
}

struct ServerInfo(Arc<NodeView>);

#[async_trait]
impl Handler for ServerInfo {
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
        let shape: Shape = arguments(&job)?;
        let node = &self.0;
        let limits = node.limits()?;
        let inline = job.inline_budget();
        let mut dialects: Vec<&str> =
            node.databases.of(job.principal()).map(|database| database.dialect().name()).collect();
        dialects.sort_unstable();
        dialects.dedup();
        let label = |value: &str| text([Some(value.to_owned())].into_iter());
        let one = |value: Option<u64>| count([value].into_iter());
        let answer = Table::new()
            .column("name", label(&node.identity.name))
            .column("title", label(&node.identity.title))
            .column("version", label(&node.identity.version))
            .column("sql", label(&dialects.join(", ")))
            .column("timeout_seconds", one(Some(limits.timeout.as_secs())))
            .column("inline_rows", one(inline.rows))
            .column("inline_bytes", one(inline.bytes.map(|bytes| bytes as u64)));
        node.executor.answer_rows(answer.rows()?, shape.presentation("")?, &job, &reply).await
    }
}
