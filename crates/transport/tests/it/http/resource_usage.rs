//! What a server holds at a moment, as `/metrics` tells it: after whatever happened it must be what it was before.

use super::{Server, until};

/// Calls, sessions, connections and tasks that live, by series. What a transport never had counts as none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResourceUsage(Vec<(String, String)>);

impl Server {
    /// What it holds now.
    pub(super) async fn resource_usage(&self) -> ResourceUsage {
        let mut level = vec![("tidegate_jobs_open".to_owned(), String::new())];
        for gauge in ["tidegate_sessions", "tidegate_connections"] {
            for transport in ["http", "sse", "ws"] {
                level.push((format!("{gauge}{{transport=\"{transport}\"}}"), String::new()));
            }
        }
        level.push(("tidegate_tasks".to_owned(), String::new()));
        let text = self.metrics().await;
        for (series, value) in &mut level {
            let line = text.lines().find_map(|line| line.strip_prefix(series.as_str())?.strip_prefix(' '));
            *value = line.unwrap_or("0").to_owned();
        }
        ResourceUsage(level)
    }

    /// Waits until it holds what it held then.
    pub(super) async fn wait_until_back_at(&self, level: &ResourceUsage) {
        let mut now = self.resource_usage().await;
        let timeout = std::time::Instant::now() + super::TEST_TIMEOUT / 2;
        until(async || {
            now = self.resource_usage().await;
            now == *level || timeout < std::time::Instant::now()
        })
        .await;
        assert_eq!(now, *level);
    }
}
