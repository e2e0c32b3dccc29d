//! `node_status`: how the node is doing.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{Error, Handler, Job, Metadata, ReplySender, Tool};

use crate::arguments::{Shape, arguments};
use crate::definition::{Input, read_only};
use crate::discover::listings;
use crate::node::NodeView;
use crate::table::{Table, count, text};

pub(crate) fn tool(node: &Arc<NodeView>) -> Tool {
    read_only(
        "node_status",
        "Node status",
        "How the node is doing: databases that answer, open calls, memory, uptime.",
        Input::new().with_shape(),
        NodeStatus(node.clone()),
    )
}

struct NodeStatus(Arc<NodeView>);

#[async_trait]
impl Handler for NodeStatus {
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
        let shape: Shape = arguments(&job)?;
        let node = &self.0;
        let found = listings(&node.databases, None, job.principal()).await?;
        let reachable = found.iter().filter(|listing| listing.catalog.is_ok()).count();
        let status = if reachable == found.len() { "ok" } else { "degraded; list_databases says why" };
        let open_calls = node.jobs()?.open_count_for(job.caller());
        let one = |value: Option<u64>| count([value].into_iter());
        let answer = Table::new()
            .column("status", text([Some(status.to_owned())].into_iter()))
            .column("databases", one(Some(found.len() as u64)))
            .column("databases_reachable", one(Some(reachable as u64)))
            .column("open_calls", one(Some(open_calls as u64)))
            .column("memory_bytes", one(memory_bytes()))
            .column("uptime_seconds", one(Some(node.uptime_seconds())));
        node.executor.answer_rows(answer.rows()?, shape.presentation("")?, &job, &reply).await
    }
}

/// The process's anonymous memory, where the system tells it (Linux).
fn memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
