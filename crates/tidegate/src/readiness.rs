//! `/ready`: whether the databases that the node needs answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::future::join_all;
use tidegate_transport::http::ReadinessCheck;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::config::NodeAssembler;

const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a result is returned without another probe.
const RESULT_MAX_AGE: Duration = Duration::from_secs(2);

pub(crate) struct DatabaseReadiness {
    assembly: Arc<NodeAssembler>,
    /// Locked during a probe: further requests wait for its result, so that there is one probe at a time.
    last: Mutex<Option<ProbeResult>>,
}

struct ProbeResult {
    ended_at: Instant,
    /// The names of the databases that do not answer, and why.
    unreachable: BTreeMap<String, String>,
}

impl DatabaseReadiness {
    pub(crate) fn new(assembly: Arc<NodeAssembler>) -> Self {
        Self { assembly, last: Mutex::default() }
    }

    async fn probe(&self) -> BTreeMap<String, String> {
        let required = self.assembly.required_databases();
        let probes = required.iter().map(|database| async move {
            let problem = match timeout(PROBE_TIMEOUT, database.check_reachable()).await {
                Ok(Ok(())) => return None,
                Ok(Err(error)) => error.detail().map_or_else(|| error.to_string(), str::to_owned),
                Err(_) => format!("no answer within {} s", PROBE_TIMEOUT.as_secs()),
            };
            Some((database.name().to_owned(), problem))
        });
        join_all(probes).await.into_iter().flatten().collect()
    }
}

#[async_trait]
impl ReadinessCheck for DatabaseReadiness {
    async fn problem(&self) -> Option<String> {
        let mut last = self.last.lock().await;
        let is_current = |result: &&ProbeResult| result.ended_at.elapsed() < RESULT_MAX_AGE;
        let is_ready = match last.as_ref().filter(is_current) {
            Some(result) => result.unreachable.is_empty(),
            None => {
                let unreachable = self.probe().await;
                let before = last.take().map(|result| result.unreachable).unwrap_or_default();
                log_changes(&before, &unreachable);
                let is_ready = unreachable.is_empty();
                *last = Some(ProbeResult { ended_at: Instant::now(), unreachable });
                is_ready
            }
        };
        // Any client can read this, so that it names no database.
        (!is_ready).then(|| "a required database does not answer; the log names it".to_owned())
    }
}

fn log_changes(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) {
    for (database, problem) in now.iter().filter(|(name, _)| !before.contains_key(*name)) {
        tracing::warn!(database, "not ready: a required database does not answer: {problem}");
    }
    for database in before.keys().filter(|name| !now.contains_key(*name)) {
        tracing::info!(database, "a required database answers again");
    }
}
