//! Who is calling, how that was proven, and from where.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use serde_json::{Map, Value};

use crate::grants::Grants;
use crate::scopes::{ImpliedScopes, SCOPE_CLAIMS};

/// How the principal's identity was proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuthMethod {
    /// Nothing was shown.
    Anonymous,
    /// The process was started by its user (stdio, command line).
    Process,
    /// An API key.
    Key,
    /// A token of an issuer, signed or asked about.
    Token,
    /// The certificate of a TLS client.
    Certificate,
    /// The word of a proxy that is trusted to know.
    Proxy,
}

impl AuthMethod {
    /// The name as it stands in logs and in what is written down.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Process => "process",
            Self::Key => "key",
            Self::Token => "token",
            Self::Certificate => "certificate",
            Self::Proxy => "proxy",
        }
    }
}

/// Who is calling. Anonymous is a principal too.
#[derive(Debug, Clone)]
pub struct Principal {
    /// The name that jobs, logs and quotas go by.
    pub subject: String,
    /// The tenant it belongs to, if any.
    pub tenant: Option<String>,
    /// Roles it holds.
    pub roles: BTreeSet<String>,
    /// What its roles let it reach.
    pub grants: Arc<Grants>,
    /// Further claims, as the token carried them.
    pub claims: Map<String, Value>,
    /// Which of its token's scopes stand for others too.
    pub implied_scopes: Arc<ImpliedScopes>,
    /// How it was proven.
    pub auth_method: AuthMethod,
    /// The configuration that its grants come from. It reaches the entries of the same one only, so that grants of
    /// yesterday never meet entries of today, nor the other way round.
    pub generation: u64,
    /// Which gate let it in, of those that followed one another; 0 of one that none follows.
    pub authenticator_version: u64,
    /// When its key or token ends, as far as that is known.
    pub expires_at: Option<SystemTime>,
}

impl PartialEq for Principal {
    /// Whichever gates let them in, and for how long: after keys were read again somebody has the same rights as before.
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
    /// Somebody who showed nothing, where nobody has to: reaches all that demands no access name.
    pub fn anonymous() -> Arc<Self> {
        static ANONYMOUS: LazyLock<Arc<Principal>> = LazyLock::new(|| {
            Arc::new(Principal::new("anonymous", AuthMethod::Anonymous, Arc::new(Grants::for_anonymous())))
        });
        ANONYMOUS.clone()
    }

    /// The user who started the process: reaches everything.
    pub fn process_user() -> Arc<Self> {
        static OWNER: LazyLock<Arc<Principal>> =
            LazyLock::new(|| Arc::new(Principal::new("owner", AuthMethod::Process, Arc::new(Grants::everything()))));
        OWNER.clone()
    }

    /// A principal without roles and claims, of the generation 0, which is that of a registry that never says any.
    pub fn new(subject: impl Into<String>, auth_method: AuthMethod, grants: Arc<Grants>) -> Self {
        let (tenant, roles, claims, implied_scopes) = (None, BTreeSet::new(), Map::new(), Arc::default());
        let (subject, generation, authenticator_version, expires_at) = (subject.into(), 0, 0, None);
        Self {
            subject,
            tenant,
            roles,
            grants,
            claims,
            implied_scopes,
            auth_method,
            generation,
            authenticator_version,
            expires_at,
        }
    }

    /// Whether its key or token has not ended at `now`, as far as that is known.
    pub fn is_valid_at(&self, now: SystemTime) -> bool {
        self.expires_at.is_none_or(|until| now < until)
    }

    /// Whether its token carries all of these OAuth scopes, or broader ones that imply them.
    pub fn has_scopes(&self, expected: &[String]) -> bool {
        let claims: Vec<&Value> = SCOPE_CLAIMS.iter().filter_map(|name| self.claims.get(*name)).collect();
        expected.iter().all(|scope| claims.iter().any(|claim| self.implied_scopes.claim_includes(claim, scope)))
    }

    /// Whether both are the same somebody. A key and a token may carry the same name.
    pub fn is_same_identity(&self, other: &Self) -> bool {
        self.auth_method == other.auth_method && self.subject == other.subject && self.tenant == other.tenant
    }
}

/// Which adapter a call came through.
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
    /// The registry as REST.
    Rest,
    /// The command line of this very process.
    CommandLine,
}

impl TransportKind {
    /// Every adapter.
    pub const ALL: [Self; 6] =
        [Self::Stdio, Self::StreamableHttp, Self::Sse, Self::WebSocket, Self::Rest, Self::CommandLine];

    /// The name as it stands in configuration, logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::StreamableHttp => "http",
            Self::Sse => "sse",
            Self::WebSocket => "ws",
            Self::Rest => "rest",
            Self::CommandLine => "cli",
        }
    }
}

/// Where a call came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallOrigin {
    /// The adapter.
    pub transport: TransportKind,
    /// The peer's address; none where there is no network.
    pub peer: Option<IpAddr>,
}

/// What `peer` counts as where addresses are counted: whoever has one IPv6 address has the 2^64 others of its network.
pub fn quota_address(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}
