//! The replicas of a node in turn, until one answers.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::is_node_failure;
use tokio::time::Instant;

use super::connection::NodeConnection;
use super::node_client::NodeClient;

/// While a replica is used, the node itself is probed at this interval.
const PROBE_EVERY: Duration = Duration::from_secs(5);

/// The servers of a node: itself, and its replicas.
pub(super) struct Replicas {
    connections: Vec<Arc<NodeConnection>>,
    /// The position of the one that answered last.
    preferred: AtomicUsize,
    probed_at: Mutex<Option<Instant>>,
}

impl Replicas {
    pub(super) fn new(connections: Vec<Arc<NodeConnection>>) -> Self {
        Self { connections, preferred: AtomicUsize::new(0), probed_at: Mutex::default() }
    }

    /// The one that is in use, or would be tried first.
    pub(super) fn preferred(&self) -> &NodeConnection {
        &self.connections[self.preferred_position()]
    }

    /// The node itself, which takes rows; replicas have copies.
    pub(super) fn first(&self) -> &Arc<NodeConnection> {
        &self.connections[0]
    }

    /// There is at least one.
    fn preferred_position(&self) -> usize {
        self.preferred.load(Ordering::Relaxed).min(self.connections.len() - 1)
    }

    pub(super) async fn is_any_reachable(&self) -> bool {
        for connection in &self.connections {
            if connection.is_reachable().await {
                return true;
            }
        }
        false
    }

    pub(super) fn close(&self) {
        self.connections.iter().for_each(|connection| connection.close());
    }

    fn must_probe(&self) -> bool {
        if self.preferred_position() == 0 {
            return false;
        }
        let mut probed_at = self.probed_at.lock();
        let is_due = probed_at.is_none_or(|probed_at| probed_at.elapsed() >= PROBE_EVERY);
        if is_due {
            *probed_at = Some(Instant::now());
        }
        is_due
    }

    fn prefer(&self, position: usize) {
        if self.preferred.swap(position, Ordering::Relaxed) == 0 && position != 0 {
            *self.probed_at.lock() = Some(Instant::now());
        }
    }
}

/// The attempts of one request.
pub(super) struct Attempts<'a> {
    client: &'a NodeClient,
    order: std::vec::IntoIter<usize>,
    current: usize,
    has_moved_on: bool,
    /// Whether the current replica is tried once more, on a new connection.
    has_retried: bool,
    retry: Option<usize>,
    deadline: Instant,
}

impl NodeClient {
    /// The replicas for one request that must be accepted before `deadline`.
    pub(super) fn attempts(self: &Arc<Self>, deadline: Instant) -> Attempts<'_> {
        if self.replicas.must_probe() {
            let client = self.clone();
            self.spawn(async move {
                if client.replicas.connections[0].is_reachable().await {
                    client.replicas.prefer(0);
                }
            });
        }
        let (first, count) = (self.replicas.preferred_position(), self.replicas.connections.len());
        let others = (0..count).filter(|position| *position != first);
        let order: Vec<usize> = std::iter::once(first).chain(others).collect();
        Attempts {
            client: self,
            order: order.into_iter(),
            current: first,
            has_moved_on: false,
            has_retried: false,
            retry: None,
            deadline,
        }
    }
}

impl Attempts<'_> {
    /// The next replica, and the time within which it must accept the request.
    pub(super) fn next(&mut self) -> Option<(Arc<NodeConnection>, Duration)> {
        let retry = self.retry.take();
        let left = u32::try_from(self.order.len() + usize::from(retry.is_some())).unwrap_or(u32::MAX);
        let position = retry.or_else(|| self.order.next())?;
        self.has_moved_on |= position != self.current;
        self.current = position;
        let within = self.deadline.saturating_duration_since(Instant::now()) / left;
        Some((self.client.replicas.connections[self.current].clone(), within))
    }

    /// Records the result of the current attempt. It is final, unless the replica failed and there are others.
    ///
    /// A connection may have broken unnoticed while it was idle. A server that has answered before is therefore tried
    /// again on a new connection; statements only read.
    pub(super) fn settle<T>(&mut self, result: Result<T, Error>) -> ControlFlow<Result<T, Error>> {
        match &result {
            Err(error) if error.kind() == ErrorKind::Cancelled => {}
            Err(error) if is_node_failure(error) => {
                self.client.observe_failure(error);
                // It may be another program when it returns.
                let had_answered = self.client.replicas.connections[self.current].take_kind().is_some();
                if error.kind() == ErrorKind::Unavailable && had_answered && !self.has_retried {
                    (self.has_retried, self.retry) = (true, Some(self.current));
                }
                if (self.retry.is_some() || self.order.len() > 0) && Instant::now() < self.deadline {
                    return ControlFlow::Continue(());
                }
            }
            _ => {
                self.client.observe_answer(None);
                // Another request may have found out in the meantime that the node itself is back.
                if self.has_moved_on {
                    self.client.replicas.prefer(self.current);
                }
            }
        }
        ControlFlow::Break(result)
    }
}
