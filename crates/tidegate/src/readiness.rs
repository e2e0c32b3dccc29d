//! `/ready`: whether the databases that the node needs answer.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use parking_lot::Mutex;
use tidegate_runtime::{CacheAges, LoadingCache};
use tidegate_transport::http::ReadinessCheck;
use tokio::time::timeout;

use crate::config::ConfigApplier;

const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Load balancers wait for a second, often less than a probe takes. Their next request receives its result.
const RESULT_AGES: CacheAges = CacheAges {
    refresh_after: Duration::from_secs(2),
    expire_after: Duration::from_secs(15),
    load_timeout: Duration::from_secs(10),
    keys_max: NonZeroUsize::MIN,
};

/// The names of the databases that do not answer, and why.
type Unreachable = BTreeMap<String, String>;

pub(crate) struct DatabaseReadiness {
    applier: Arc<ConfigApplier>,
    results: LoadingCache<(), Unreachable>,
    /// Those that the log has.
    reported: Arc<Mutex<Unreachable>>,
}

impl DatabaseReadiness {
    pub(crate) fn new(applier: Arc<ConfigApplier>) -> Self {
        Self { applier, results: LoadingCache::new(RESULT_AGES), reported: Arc::default() }
    }
}

async fn probe(applier: &ConfigApplier) -> Unreachable {
    let required = applier.required_databases();
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

#[async_trait]
impl ReadinessCheck for DatabaseReadiness {
    async fn problem(&self) -> Option<String> {
        let (applier, reported) = (self.applier.clone(), self.reported.clone());
        let load = async move {
            let unreachable = probe(&applier).await;
            let mut reported = reported.lock();
            log_changes(&reported, &unreachable);
            reported.clone_from(&unreachable);
            drop(reported);
            Ok(unreachable)
        };
        let is_ready = self.results.get(&(), || load).await.is_ok_and(|unreachable| unreachable.is_empty());
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
