//! What all requests to a node share: its replicas in turn, until one answers, the identity of callers, and what was
//! observed. Also the actions of nodes that have one answer: the check, and the storage of a table.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use arrow_flight::Action;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{NodeObservation, TableStorage, is_node_failure};
use tidegate_sql::SqlDialect;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tonic::metadata::{AsciiMetadataValue, MetadataValue};
use tonic::{Code, Request, Status};

use super::connection::NodeConnection;
use super::options::{FlightSqlOptions, NodeAddress, NodeCredential};
use super::server_kind::ServerKind;
use super::status;
use super::tables::TableCache;
use crate::node_protocol::{
    CHECK_ACTION, CheckAnswer, DATABASE_HEADER, DatabaseRequest, STORAGE_ACTION, StorageAnswer, TableRequest,
};

/// A node with its replicas.
pub(super) struct NodeClient {
    pub(super) name: String,
    /// The database there.
    pub(super) database: Option<String>,
    pub(super) dialect: SqlDialect,
    pub(super) timeout: Duration,
    pub(super) replicas: Replicas,
    pub(super) tables: TableCache,
    audience: String,
    credential: NodeCredential,
    observation: Mutex<NodeObservation>,
    runtime: Option<Handle>,
}

impl NodeClient {
    pub(super) fn new(name: String, options: FlightSqlOptions) -> Result<Self, Error> {
        let FlightSqlOptions { urls, database, dialect, credential, audience, tls, timeout } = options;
        if urls.is_empty() {
            return Err(Error::new(ErrorKind::InvalidArguments, format!("node {name:?} has no URL")));
        }
        if let NodeCredential::Token(token) = &credential {
            authorization(token)?;
        }
        let connections: Result<Vec<_>, Error> =
            urls.iter().map(|url| NodeConnection::new(NodeAddress::parse(url)?, &tls).map(Arc::new)).collect();
        Ok(Self {
            replicas: Replicas::new(connections?),
            audience: audience.unwrap_or_else(|| name.clone()),
            name,
            database,
            dialect,
            timeout,
            credential,
            tables: TableCache::default(),
            observation: Mutex::default(),
            runtime: Handle::try_current().ok(),
        })
    }

    /// A request for `principal` that ends after `within`.
    pub(super) fn request<T>(&self, message: T, principal: &Principal, within: Duration) -> Result<Request<T>, Error> {
        let mut request = self.unlimited_request(message, principal)?;
        request.set_timeout(within);
        Ok(request)
    }

    /// A request for `principal` that ends when it is dropped.
    pub(super) fn unlimited_request<T>(&self, message: T, principal: &Principal) -> Result<Request<T>, Error> {
        let mut request = Request::new(message);
        let token = match &self.credential {
            NodeCredential::None => None,
            NodeCredential::Token(token) => Some(authorization(token)?),
            NodeCredential::CallerTokens(tokens) => Some(authorization(&tokens.token_for(principal, &self.audience)?)?),
        };
        if let Some(token) = token {
            request.metadata_mut().insert("authorization", token);
        }
        if let Some(database) = self.database.as_ref().and_then(|database| database.parse().ok()) {
            request.metadata_mut().insert(DATABASE_HEADER, database);
        }
        Ok(request)
    }

    /// What the answers to `principal` depend on, besides their requests. It is the same for all callers, if the node
    /// cannot distinguish them.
    pub(super) fn identity(&self, principal: &Principal) -> [u8; 32] {
        match self.credential {
            NodeCredential::None | NodeCredential::Token(_) => [0; 32],
            NodeCredential::CallerTokens(_) => identity_digest(principal),
        }
    }

    pub(super) fn observed(&self) -> NodeObservation {
        self.observation.lock().clone()
    }

    /// Records that the node answered, whatever the answer was.
    pub(super) fn observe_answer(&self, latency: Option<Duration>) {
        let mut observation = self.observation.lock();
        observation.last_seen = Some(SystemTime::now());
        observation.failure = None;
        observation.latency = latency.or(observation.latency);
    }

    pub(super) fn observe_failure(&self, error: &Error) {
        let mut observation = self.observation.lock();
        if matches!(error.kind(), ErrorKind::Unauthenticated | ErrorKind::Forbidden) {
            observation.last_seen = Some(SystemTime::now());
        }
        observation.failure = Some(error.message().to_owned());
    }

    pub(super) fn observe_version(&self, version: &str) {
        self.observation.lock().version = Some(version.to_owned());
    }

    /// The result of `work`. It goes on when its caller leaves: it prepares something for others, too.
    pub(super) async fn finish<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, receiver) = oneshot::channel();
        self.spawn(async move {
            // An error means that the caller is gone.
            let _ = sender.send(work.await);
        });
        receiver.await.unwrap_or_else(|_| Err(status::unavailable(&self.name, "the program is ending")))
    }

    /// Runs `work` where the database was created.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        match &self.runtime {
            Some(runtime) => drop(runtime.spawn(work)),
            None => drop(tokio::spawn(work)),
        }
    }
}

fn authorization(token: &str) -> Result<AsciiMetadataValue, Error> {
    let value: Result<AsciiMetadataValue, _> = MetadataValue::try_from(format!("Bearer {token}"));
    let mut value = value.map_err(|_| {
        let message = "the token for a node has characters that no header may have";
        Error::new(ErrorKind::InvalidArguments, message)
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// A digest of all that a token of `principal` contains.
fn identity_digest(principal: &Principal) -> [u8; 32] {
    let Principal { subject, tenant, roles, claims, auth_method, .. } = principal;
    let claims = serde_json::to_string(claims).unwrap_or_default();
    let mut digest = Sha256::new();
    let mut add = |part: &str| {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    };
    add(auth_method.name());
    add(subject);
    add(if tenant.is_some() { "tenant" } else { "" });
    add(tenant.as_deref().unwrap_or_default());
    add(&claims);
    roles.iter().for_each(|role| add(role));
    digest.finalize().into()
}

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

/// An action on one connection.
pub(super) struct NodeAction<'a> {
    pub(super) client: &'a Arc<NodeClient>,
    pub(super) connection: &'a Arc<NodeConnection>,
    pub(super) principal: &'a Principal,
    pub(super) within: Duration,
}

impl NodeAction<'_> {
    /// The answer of the node to the action called `name`.
    async fn run<A: DeserializeOwned>(&self, name: &str, body: &impl Serialize) -> Result<Result<A, Status>, Error> {
        let mut lease = self.connection.lease().await;
        // Texts and numbers always serialize.
        let body = serde_json::to_vec(body).unwrap_or_default().into();
        let action = Action { r#type: name.to_owned(), body };
        let request = self.client.request(action, self.principal, self.within)?;
        let answer = async {
            let mut parts = lease.client.do_action(request).await?.into_inner();
            let first = parts.message().await?;
            // The status of the action follows its answer.
            while parts.message().await?.is_some() {}
            Ok(first)
        };
        let answer = match answer.await {
            Ok(answer) => answer,
            Err(status) => return Ok(Err(status)),
        };
        let malformed = |problem: &str| status::malformed(&self.client.name, problem);
        let answer = answer.ok_or_else(|| malformed(&format!("the action {name} has no answer")))?;
        serde_json::from_slice(&answer.body).map(Ok).map_err(|error| malformed(&error.to_string()))
    }

    pub(super) async fn check(&self) -> Result<CheckAnswer, Error> {
        let request = DatabaseRequest { database: self.client.database.clone() };
        let answer: Result<CheckAnswer, Status> = self.run(CHECK_ACTION, &request).await?;
        let answer = answer.map_err(|status| status::to_error(&self.client.name, &status))?;
        self.client.observe_version(&answer.version);
        status::check_protocol(&self.client.name, answer.protocol, &answer.version)?;
        Ok(answer)
    }

    /// How `table` is stored. Nothing is known of tables of older versions and of other programs.
    async fn table_storage(&self, table: &str) -> Result<TableStorage, Error> {
        if self.client.detect(self.connection, self.principal, self.within).await? != ServerKind::Tidegate {
            return Ok(TableStorage::default());
        }
        let request = TableRequest { database: self.client.database.clone(), table: table.to_owned() };
        match self.run(STORAGE_ACTION, &request).await? {
            Ok(StorageAnswer { bytes, indexed_columns }) => Ok(TableStorage { bytes, indexed_columns }),
            Err(status) if status.code() == Code::Unimplemented => Ok(TableStorage::default()),
            Err(status) => Err(status::to_error(&self.client.name, &status)),
        }
    }
}

impl NodeClient {
    /// How `table` is stored at the first replica that answers.
    pub(super) async fn table_storage(
        self: &Arc<Self>,
        table: &str,
        principal: &Principal,
    ) -> Result<TableStorage, Error> {
        let mut attempts = self.attempts(Instant::now() + self.timeout);
        while let Some((connection, within)) = attempts.next() {
            let action = NodeAction { client: self, connection: &connection, principal, within };
            let storage = timeout(within, action.table_storage(table)).await;
            let storage = storage.unwrap_or_else(|_| Err(status::timed_out(&self.name, within.as_secs_f64())));
            if let ControlFlow::Break(result) = attempts.settle(storage) {
                return result;
            }
        }
        Err(status::unavailable(&self.name, "no replica answered"))
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::{AuthMethod, Grants};

    use super::*;

    #[test]
    fn callers_with_other_rights_have_another_identity() {
        let base = Principal::new("ann", AuthMethod::Token, Arc::new(Grants::default()));
        let mut others = vec![Principal { subject: "bob".to_owned(), ..base.clone() }];
        others.push(Principal { tenant: Some(String::new()), ..base.clone() });
        others.push(Principal { roles: ["a".to_owned()].into(), ..base.clone() });
        others.push(Principal { auth_method: AuthMethod::Key, ..base.clone() });
        let mut claims = base.claims.clone();
        claims.insert("site".to_owned(), "rome".into());
        others.push(Principal { claims, ..base.clone() });
        for other in others {
            assert_ne!(identity_digest(&base), identity_digest(&other), "{other:?}");
        }
        assert_eq!(identity_digest(&base), identity_digest(&base.clone()));
    }
}
