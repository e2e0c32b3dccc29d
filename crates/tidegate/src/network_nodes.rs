//! Checks the nodes of networks, for commands and for the log.

use std::fmt;
use std::time::Duration;

use futures::future::join_all;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{Database, NodeCheck};

/// A node that takes longer does not answer.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);

/// A node of a network and its answer to a check.
pub(crate) struct CheckedNode {
    network: String,
    name: String,
    url: String,
    pub(crate) check: Result<NodeCheck, Error>,
}

/// The nodes of `database`, all of them checked at once as `principal`; none if it is no network.
pub(crate) async fn check_nodes(database: &dyn Database, principal: &Principal) -> Vec<CheckedNode> {
    let nodes = database.network().map(|network| network.nodes()).unwrap_or_default();
    let checks = nodes.iter().map(|node| async move {
        let checked = tokio::time::timeout(CHECK_TIMEOUT, node.check(principal)).await;
        let late = |_| {
            let message = format!("no answer within {} s", CHECK_TIMEOUT.as_secs());
            Err(Error::new(ErrorKind::TimedOut, message))
        };
        let (network, name) = (database.name().to_owned(), node.name().to_owned());
        CheckedNode { network, name, url: node.url(), check: checked.unwrap_or_else(late) }
    });
    join_all(checks).await
}

impl fmt::Display for CheckedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { network, name, url, check } = self;
        match check {
            Ok(check) => {
                let milliseconds = check.latency.as_secs_f64() * 1_000.0;
                write!(f, "node {name} of {network}: {}, version {}, {milliseconds:.1} ms", check.url, check.version)
            }
            Err(error) => {
                let verb = match error.kind() {
                    ErrorKind::Unauthenticated | ErrorKind::Forbidden => "refuses this server",
                    _ => "does not answer",
                };
                let reason = error.to_string().replace('\n', ". ");
                write!(f, "node {name} of {network} at {url} {verb}: {reason}")
            }
        }
    }
}
