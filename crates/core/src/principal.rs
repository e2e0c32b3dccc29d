//! Principals: the identity of a caller, how it was proven, and the origin of a call.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use serde_json::{Map, Value};

use crate::grants::Grants;
use crate::scopes::{ImpliedScopes, SCOPE_CLAIMS};

/// How a principal's identity was proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum AuthMethod {
    /// There were no credentials.
    Anonymous,
    /// By the user who started the process (stdio, command line).
    Process,
    /// An API key.
    Key,
    /// A token of an issuer, verified by its signature or by introspection.
    Token,
    /// The certificate of a TLS client.
    Certificate,
    /// Headers of a trusted proxy.
    Proxy,
}

impl AuthMethod {
    /// The name, as used in logs and stored data.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// An identity that calls. Anonymous is a principal too.
#[derive(Debug, Clone)]
pub struct Principal {
    /// The name in jobs, logs and quotas.
    pub subject: String,
    /// Its tenant, if any.
    pub tenant: Option<String>,
    /// Its roles.
    pub roles: BTreeSet<String>,
    /// The rights of its roles.
    pub grants: Arc<Grants>,
    /// The claims of its token.
    pub claims: Map<String, Value>,
    /// Which scopes of its token imply others.
    pub implied_scopes: Arc<ImpliedScopes>,
    /// How it was proven.
    pub auth_method: AuthMethod,
    /// The generation of the configuration that its grants come from. It can call entries of that generation only, so
    /// that old grants are never combined with new entries, or new grants with old entries.
    pub generation: u64,
    /// The version of the authenticator that admitted it; 0 for an authenticator that is never replaced.
    pub authenticator_version: u64,
    /// When its key or token expires, if known.
    pub expires_at: Option<SystemTime>,
}

impl PartialEq for Principal {
    /// Ignores the authenticator and the expiry: after keys are read again, a principal has the same rights as before.
    fn eq(&self, other: &Self) -> bool {
        let Self {
            subject,
            tenant,
            roles,
            grants,
            claims,
            implied_scopes,
            auth_method: proof,
            generation,
            authenticator_version: _,
            expires_at: _,
        } = self;
        (subject, tenant, proof, generation) == (&other.subject, &other.tenant, &other.auth_method, &other.generation)
            && (roles, claims) == (&other.roles, &other.claims)
            && (grants, implied_scopes) == (&other.grants, &other.implied_scopes)
    }
}

impl Principal {
    /// The anonymous principal where authentication is not required. It can call all entries that require no access
    /// name.
    pub fn anonymous() -> Arc<Self> {
        static ANONYMOUS: LazyLock<Arc<Principal>> = LazyLock::new(|| {
            Arc::new(Principal::new("anonymous", AuthMethod::Anonymous, Arc::new(Grants::for_anonymous())))
        });
        ANONYMOUS.clone()
    }

    /// The user who started the process, with all rights.
    pub fn process_user() -> Arc<Self> {
        static OWNER: LazyLock<Arc<Principal>> =
            LazyLock::new(|| Arc::new(Principal::new("owner", AuthMethod::Process, Arc::new(Grants::everything()))));
        OWNER.clone()
    }

    /// A principal without roles and claims. Its generation is 0, the default of a registry.
    pub fn new(subject: impl Into<String>, auth_method: AuthMethod, grants: Arc<Grants>) -> Self {
        Self {
            subject: subject.into(),
            tenant: None,
            roles: BTreeSet::new(),
            grants,
            claims: Map::new(),
            implied_scopes: Arc::default(),
            auth_method,
            generation: 0,
            authenticator_version: 0,
            expires_at: None,
        }
    }

    /// Whether its key or token has not expired at `now`, as far as the expiry is known.
    pub fn is_valid_at(&self, now: SystemTime) -> bool {
        self.expires_at.is_none_or(|until| now < until)
    }

    /// Whether its token carries all of these OAuth scopes, or broader ones that imply them.
    pub fn has_scopes(&self, expected: &[String]) -> bool {
        let claims: Vec<&Value> = SCOPE_CLAIMS.iter().filter_map(|name| self.claims.get(*name)).collect();
        expected.iter().all(|scope| claims.iter().any(|claim| self.implied_scopes.claim_includes(claim, scope)))
    }

    /// Whether both have the same identity. A key and a token with the same name are different identities.
    pub fn is_same_identity(&self, other: &Self) -> bool {
        self.auth_method == other.auth_method && self.subject == other.subject && self.tenant == other.tenant
    }
}

/// The transport of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransportKind {
    /// Newline-delimited messages over the standard streams.
    Stdio,
    /// MCP over Streamable HTTP.
    StreamableHttp,
    /// MCP over HTTP+SSE of 2024-11-05.
    Sse,
    /// MCP over WebSocket.
    WebSocket,
    /// The registry as a REST API.
    Rest,
    /// Statements over Arrow Flight SQL.
    FlightSql,
    /// The command line of this process.
    CommandLine,
}

impl TransportKind {
    /// Every transport.
    pub const ALL: [Self; 7] =
        [Self::Stdio, Self::StreamableHttp, Self::Sse, Self::WebSocket, Self::Rest, Self::FlightSql, Self::CommandLine];

    /// The name, as used in configuration, logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::StreamableHttp => "http",
            Self::Sse => "sse",
            Self::WebSocket => "ws",
            Self::Rest => "rest",
            Self::FlightSql => "flight",
            Self::CommandLine => "cli",
        }
    }
}

/// The origin of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallOrigin {
    /// The transport.
    pub transport: TransportKind,
    /// The peer's address; `None` without a network.
    pub peer: Option<IpAddr>,
}

/// The address that `peer` counts as in quotas. For IPv6 it is the /64 network, because one holder usually has a whole
/// network.
pub fn quota_address(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}
