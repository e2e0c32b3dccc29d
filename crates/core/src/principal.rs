//! Who is calling, how that was proven, and from where.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

/// How the principal's identity was proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Proof {
    /// Nothing was shown.
    Anonymous,
    /// The process was started by its user (stdio, command line).
    Process,
}

/// Who is calling. Anonymous is a principal too.
#[derive(Debug, Clone, PartialEq)]
pub struct Principal {
    /// The name that jobs, logs and quotas go by.
    pub subject: String,
    /// The tenant it belongs to, if any.
    pub tenant: Option<String>,
    /// Roles it holds.
    pub roles: BTreeSet<String>,
    /// Permissions it holds; [`crate::Access`] demands them by name.
    pub permissions: BTreeSet<String>,
    /// Further claims, as the token carried them.
    pub claims: Map<String, Value>,
    /// How it was proven.
    pub proof: Proof,
}

impl Principal {
    /// Somebody who showed nothing.
    pub fn anonymous() -> Arc<Self> {
        static ANONYMOUS: LazyLock<Arc<Principal>> =
            LazyLock::new(|| Arc::new(Principal::named("anonymous", Proof::Anonymous)));
        ANONYMOUS.clone()
    }

    /// The user who started the process.
    pub fn owner() -> Arc<Self> {
        static OWNER: LazyLock<Arc<Principal>> = LazyLock::new(|| Arc::new(Principal::named("owner", Proof::Process)));
        OWNER.clone()
    }

    fn named(subject: &str, proof: Proof) -> Self {
        Self {
            subject: subject.to_owned(),
            tenant: None,
            roles: BTreeSet::new(),
            permissions: BTreeSet::new(),
            claims: Map::new(),
            proof,
        }
    }
}

/// Which adapter a call came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransportKind {
    /// Newline-delimited messages over the standard streams.
    Stdio,
    /// MCP over Streamable HTTP.
    StreamableHttp,
    /// The command line of this very process.
    CommandLine,
}

impl TransportKind {
    /// The name as it stands in configuration, logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::StreamableHttp => "http",
            Self::CommandLine => "cli",
        }
    }
}

/// Where a call came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The adapter.
    pub transport: TransportKind,
    /// The peer's address; none where there is no network.
    pub peer: Option<IpAddr>,
}
