//! What all requests to a node share: its replicas, the identity of callers, and what was observed.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::NodeObservation;
use tidegate_sql::SqlDialect;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tonic::Request;
use tonic::metadata::{AsciiMetadataValue, MetadataValue};

use super::address::NodeAddress;
use super::attempts::Replicas;
use super::connection::NodeConnection;
use super::options::{FlightSqlOptions, NodeCredential};
use super::status;
use super::table_cache::TableCache;
use crate::node_protocol::DATABASE_HEADER;

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
