//! Principals: the identity of a caller, how it was proven, and the origin of a call. The caller is a principal with its origin
//! and toolset, which access is checked for; the owner of data that outlives its call has a form that can be stored.
//!
//! OAuth scopes have a syntax, and broader ones imply narrower ones:
//! [RFC 6749, 3.3](https://www.rfc-editor.org/rfc/rfc6749#section-3.3),
//! [MCP 2026-07-28, Step-Up Authorization Flow](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#step-up-authorization-flow)

use std::any::Any;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::grants::{AllowedNames, Grants};

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
    /// Not at all: the configuration declares who calls from this machine.
    Development,
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

/// A named part of the registry. Callers at its endpoint see nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolset {
    /// The name, which is part of the endpoint's address.
    pub name: String,
    /// The tools, resources and prompts in it, by name.
    pub entries: AllowedNames,
}

/// The principal of a call, its origin and its toolset.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The principal.
    pub principal: Arc<Principal>,
    /// The transport and address of the call.
    pub origin: CallOrigin,
    /// The toolset of the endpoint; `None` for the whole registry.
    pub toolset: Option<Arc<Toolset>>,
    /// The registry snapshot that it calls; `None` for the current one. A caller keeps the snapshot with which it was
    /// authenticated until it is authenticated again. Its type is known to the registry alone, which builds on this one.
    pub pinned_snapshot: Option<Arc<dyn Any + Send + Sync>>,
    /// Whether its only credential is a signed link. Such a caller must not create further links.
    pub is_link_only: bool,
}

impl Caller {
    /// A caller at the endpoint of the whole registry.
    pub fn new(principal: Arc<Principal>, origin: CallOrigin) -> Self {
        Self { principal, origin, toolset: None, pinned_snapshot: None, is_link_only: false }
    }

    /// Whether both have the same identity. Anonymous callers are distinguished by their addresses, so all callers
    /// behind one proxy count as one.
    pub fn is_same_identity(&self, other: &Self) -> bool {
        let has_address_alone = self.principal.auth_method == AuthMethod::Anonymous;
        let address = |caller: &Self| caller.origin.peer.map(|peer| peer.to_canonical());
        self.principal.is_same_identity(&other.principal) && (!has_address_alone || address(self) == address(other))
    }

    /// Whether it can see the jobs and sessions of `owner`: its own. Operators see those of their tenant, the user of the
    /// process sees all.
    pub fn can_see_activity_of(&self, owner: &Self) -> bool {
        self.is_same_identity(owner) || (self.principal.grants.is_operator() && self.shares_tenant_with(owner))
    }

    /// Whether both have the same tenant, or none. The user of the process belongs to every tenant.
    pub fn shares_tenant_with(&self, owner: &Self) -> bool {
        self.principal.tenant == owner.principal.tenant || self.principal.auth_method == AuthMethod::Process
    }

    /// The same caller at the endpoint of `toolset`.
    #[must_use]
    pub fn with_toolset(self, toolset: Option<Arc<Toolset>>) -> Self {
        Self { toolset, ..self }
    }
}

/// The identity of a caller, as [`Caller::is_same_identity`] compares it: the owner of its results and tasks. It remains
/// valid after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CallerIdentity {
    /// How the identity was proven.
    #[serde(rename = "proof")]
    pub auth_method: Cow<'static, str>,
    /// The principal's name.
    pub subject: String,
    /// The principal's tenant.
    pub tenant: Option<String>,
    /// The address; only for anonymous callers.
    pub address: Option<IpAddr>,
}

impl CallerIdentity {
    /// The identity of `caller`.
    pub fn from_caller(caller: &Caller) -> Self {
        let principal = &caller.principal;
        let has_address_alone = principal.auth_method == AuthMethod::Anonymous;
        let peer = caller.origin.peer.map(|peer| peer.to_canonical());
        Self {
            auth_method: Cow::Borrowed(principal.auth_method.name()),
            subject: principal.subject.clone(),
            tenant: principal.tenant.clone(),
            address: peer.filter(|_| has_address_alone),
        }
    }

    /// The identity whose usage counts for `caller`: anonymous callers count as their network.
    pub fn for_quota(caller: &Caller) -> Self {
        let owner = Self::from_caller(caller);
        Self { address: owner.address.map(quota_address), ..owner }
    }

    /// The identity as text, to sign or to compare.
    pub fn to_text(&self) -> String {
        // Serializing a few strings cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The claims that contain scopes in tokens: the standard one, and the one of some issuers.
pub const SCOPE_CLAIMS: [&str; 2] = ["scope", "scp"];
/// The maximum number of scopes, broader and narrower ones together.
const SCOPES_MAX: usize = 256;

/// Which scopes imply others: a token with a broader scope needs no narrower one. By default no scope implies another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImpliedScopes {
    /// For each broader scope, all narrower scopes that it implies directly or indirectly.
    narrower: BTreeMap<String, BTreeSet<String>>,
}

/// Why a mapping of scopes is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImpliedScopesError {
    /// Not a scope.
    #[error("{0:?} is no scope: one is a word without spaces, quotes and backslashes")]
    InvalidScope(String),
    /// A scope that implies itself.
    #[error("the scope {scope:?} implies itself: {}", path.join(", which implies "))]
    Cycle {
        /// The scope.
        scope: String,
        /// The path from the scope to itself.
        path: Vec<String>,
    },
    /// Too many scopes.
    #[error("{count} scopes are named; at most {SCOPES_MAX} are allowed")]
    TooMany {
        /// The number of scopes.
        count: usize,
    },
}

/// Whether `text` is a valid scope.
pub fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
}

impl ImpliedScopes {
    /// Takes the scopes that each broader scope implies. Implication is transitive.
    ///
    /// # Errors
    /// If a name is not a scope, a scope would imply itself, or there are more than 256 scopes.
    pub fn new(implied: &BTreeMap<String, Vec<String>>) -> Result<Self, ImpliedScopesError> {
        let names: BTreeSet<&String> =
            implied.iter().flat_map(|(broad, narrow)| [broad].into_iter().chain(narrow)).collect();
        if let Some(name) = names.iter().find(|name| !is_scope(name)) {
            return Err(ImpliedScopesError::InvalidScope((*name).clone()));
        }
        if names.len() > SCOPES_MAX {
            return Err(ImpliedScopesError::TooMany { count: names.len() });
        }
        let narrower = implied.keys().map(|broad| Ok((broad.clone(), collect_narrower(broad, implied)?)));
        Ok(Self { narrower: narrower.collect::<Result<_, _>>()? })
    }

    /// Whether the scope `had` is or implies `expected`.
    pub fn implies(&self, had: &str, expected: &str) -> bool {
        had == expected || self.narrower.get(had).is_some_and(|narrower| narrower.contains(expected))
    }

    /// Whether the claim of a token, words separated by spaces or a list, contains `expected` or a scope that implies
    /// it.
    pub fn claim_includes(&self, claim: &Value, expected: &str) -> bool {
        match claim {
            Value::String(scopes) => scopes.split(' ').any(|scope| self.implies(scope, expected)),
            Value::Array(scopes) => scopes.iter().filter_map(Value::as_str).any(|scope| self.implies(scope, expected)),
            _ => false,
        }
    }

    /// The smallest subset of `scopes` that implies all of them, in their order.
    pub fn minimal(&self, scopes: &[String]) -> Vec<String> {
        let mut minimal: Vec<String> = Vec::new();
        for scope in scopes {
            let is_implied = scopes.iter().any(|other| other != scope && self.implies(other, scope));
            if !is_implied && !minimal.contains(scope) {
                minimal.push(scope.clone());
            }
        }
        minimal
    }
}

/// All scopes that `broad` implies. Each is visited once.
fn collect_narrower(
    broad: &String,
    implied: &BTreeMap<String, Vec<String>>,
) -> Result<BTreeSet<String>, ImpliedScopesError> {
    // The predecessor of each scope, for the path back.
    let mut from: BTreeMap<&String, &String> = BTreeMap::new();
    let mut open = vec![broad];
    while let Some(scope) = open.pop() {
        for narrow in implied.get(scope).into_iter().flatten() {
            if narrow == broad {
                return Err(ImpliedScopesError::Cycle { scope: broad.clone(), path: cycle_path(broad, scope, &from) });
            }
            if !from.contains_key(narrow) {
                from.insert(narrow, scope);
                open.push(narrow);
            }
        }
    }
    Ok(from.into_keys().cloned().collect())
}

/// The path from `broad` to `last` and back to `broad`.
fn cycle_path(broad: &String, last: &String, from: &BTreeMap<&String, &String>) -> Vec<String> {
    let back = std::iter::successors(Some(last), |scope| from.get(scope).copied());
    let mut path: Vec<String> = [broad].into_iter().chain(back).cloned().collect();
    path.reverse();
    path
}
