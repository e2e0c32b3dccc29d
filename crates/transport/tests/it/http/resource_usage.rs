//! The resources that a server holds, according to `/metrics`: after each test they must return to the initial level.

use super::Server;
use tidegate_testkit::wait::wait_until;

/// Open calls, sessions, connections and tasks, by series. A missing series counts as zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResourceUsage(Vec<(String, String)>);

impl Server {
    /// The current resource usage.
    pub(super) async fn resource_usage(&self) -> ResourceUsage {
        let mut level = vec![("tidegate_jobs_open".to_owned(), String::new())];
        for gauge in ["tidegate_sessions", "tidegate_connections"] {
            for transport in ["http", "sse", "ws"] {
                level.push((format!("{gauge}{{transport=\"{transport}\"}}"), String::new()));
            }
        }
        level.push(("tidegate_runtime_tasks".to_owned(), String::new()));
        let text = self.metrics().await;
        for (series, value) in &mut level {
            let line = text.lines().find_map(|line| line.strip_prefix(series.as_str())?.strip_prefix(' '));
            *value = line.unwrap_or("0").to_owned();
        }
        ResourceUsage(level)
    }

    /// Waits until the usage is back at `level`.
    pub(super) async fn wait_until_back_at(&self, level: &ResourceUsage) {
        wait_until("the usage before", async || self.resource_usage().await == *level).await;
    }
}
