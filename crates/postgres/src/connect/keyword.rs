//! The keywords of a connection string, and the errors in their values.
//!
//! Unsupported keywords of libpq are errors and are not ignored: most of them make a connection safer, and the user
//! relies on them.

use std::fmt;
use std::path::PathBuf;

use self::Support::{Ignored, OnlyValues, Rejected, Supported};

#[derive(Debug)]
pub(super) struct Keyword {
    pub(super) name: &'static str,
    /// The environment variable with the same meaning, if not empty.
    pub(super) variable: &'static str,
    pub(super) support: Support,
}

#[derive(Debug)]
pub(super) enum Support {
    /// It has its usual effect.
    Supported,
    /// It has no effect here, whatever its value.
    Ignored,
    /// Only these values are accepted; they describe the behaviour that always applies.
    OnlyValues(&'static [&'static str]),
    Rejected,
}

pub(super) struct KeywordValue {
    pub(super) keyword: &'static Keyword,
    pub(super) value: String,
}

#[derive(Debug, Clone)]
pub(super) enum SettingOrigin {
    ConnectionString,
    /// A line of a service file, counted from 1.
    Service(PathBuf, usize),
    Variable(&'static str),
    Default,
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConnectionString => f.write_str("the connection string"),
            Self::Service(path, line) => write!(f, "line {line} of {}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Default => f.write_str("by default"),
        }
    }
}

/// An error in a connection string, or in a setting that completes it.
///
/// No value is ever quoted: any part of a connection string may be an unescaped part of the password.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConnectionStringError(String);

impl ConnectionStringError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// The text of `origin` has no valid syntax at the character `position`, counted from 1.
    pub(super) fn malformed(origin: &SettingOrigin, problem: &str, position: usize) -> Self {
        Self(format!("{origin} cannot be read: {problem}, at character {position}"))
    }

    /// `origin` has the unknown keyword `name` at the character `position`. If the name may be part of a password, the
    /// error has only its position.
    pub(super) fn unknown_keyword(origin: &SettingOrigin, name: &str, position: usize, is_secret: bool) -> Self {
        if let Some((name, instead)) = FOREIGN_KEYWORDS.iter().find(|(foreign, _)| *foreign == name) {
            return Self(format!("{origin} has the keyword {name}, which is one of another driver; {instead}"));
        }
        let subject = if is_secret { format!("at character {position}") } else { format!("{name:?}") };
        let usable = KEYWORDS.iter().filter(|keyword| !matches!(keyword.support, Rejected));
        let nearest = tidegate_core::nearest_names(name, usable.map(|keyword| keyword.name)).into_iter().next();
        let nearest = nearest.map(|nearest| format!("; did you mean {nearest}?")).unwrap_or_default();
        Self(format!("{origin} has an unknown keyword {subject}{nearest}"))
    }
}

pub(super) fn find(name: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|keyword| keyword.name == name)
}

const SCHEMA_ADVICE: &str = "write options=-csearch_path%3DNAME in a URI, or the schema before the name of each table";
const POOL_ADVICE: &str = "leave it out: the pool is one of Tidegate, with its own settings in tidegate.yaml";

/// Keywords of other drivers, and what has their effect here.
const FOREIGN_KEYWORDS: [(&str, &str); 12] = [
    ("currentSchema", SCHEMA_ADVICE),
    ("schema", SCHEMA_ADVICE),
    ("search_path", SCHEMA_ADVICE),
    ("pgbouncer", "write pgbouncer: true of the database in tidegate.yaml"),
    ("connection_limit", POOL_ADVICE),
    ("pool_timeout", POOL_ADVICE),
    ("pool_size", POOL_ADVICE),
    ("prepareThreshold", "leave it out"),
    ("prepared_statement_cache_size", "leave it out"),
    ("ApplicationName", "write application_name"),
    ("loginTimeout", "write connect_timeout"),
    ("ssl", "write sslmode=require, or another mode of sslmode"),
];

const fn keyword(name: &'static str, variable: &'static str, support: Support) -> Keyword {
    Keyword { name, variable, support }
}

pub(super) const KEYWORDS: &[Keyword] = &[
    // Location.
    keyword("service", "PGSERVICE", Supported),
    keyword("host", "PGHOST", Supported),
    keyword("hostaddr", "PGHOSTADDR", Supported),
    keyword("port", "PGPORT", Supported),
    keyword("dbname", "PGDATABASE", Supported),
    keyword("target_session_attrs", "PGTARGETSESSIONATTRS", Supported),
    keyword("load_balance_hosts", "PGLOADBALANCEHOSTS", Supported),
    // Authentication.
    keyword("user", "PGUSER", Supported),
    keyword("password", "PGPASSWORD", Supported),
    keyword("passfile", "PGPASSFILE", Supported),
    keyword("channel_binding", "PGCHANNELBINDING", Supported),
    keyword("application_name", "PGAPPNAME", Supported),
    keyword("fallback_application_name", "", Supported),
    keyword("options", "PGOPTIONS", Supported),
    // Protection.
    keyword("sslmode", "PGSSLMODE", Supported),
    keyword("sslnegotiation", "PGSSLNEGOTIATION", Supported),
    keyword("sslrootcert", "PGSSLROOTCERT", Supported),
    keyword("sslcert", "PGSSLCERT", Supported),
    keyword("sslkey", "PGSSLKEY", Supported),
    keyword("sslsni", "PGSSLSNI", Supported),
    keyword("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION", Supported),
    keyword("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION", Supported),
    // Timeouts.
    keyword("connect_timeout", "PGCONNECT_TIMEOUT", Supported),
    keyword("keepalives", "", Supported),
    keyword("keepalives_idle", "", Supported),
    keyword("keepalives_interval", "", Supported),
    keyword("keepalives_count", "", Supported),
    keyword("tcp_user_timeout", "", Supported),
    // Without effect here.
    keyword("client_encoding", "PGCLIENTENCODING", OnlyValues(&["UTF8", "utf8", "UTF-8", "utf-8", "auto"])),
    keyword("gssencmode", "PGGSSENCMODE", OnlyValues(&["disable", "prefer"])),
    keyword("sslcertmode", "PGSSLCERTMODE", OnlyValues(&["allow"])),
    keyword("sslcompression", "", Ignored),
    keyword("min_protocol_version", "PGMINPROTOCOLVERSION", OnlyValues(&["3.0"])),
    keyword("replication", "", OnlyValues(&["false", "off", "no", "0"])),
    keyword("max_protocol_version", "", Ignored),
    keyword("krbsrvname", "", Ignored),
    keyword("gsslib", "", Ignored),
    keyword("gssdelegation", "", Ignored),
    // Unsupported.
    keyword("require_auth", "PGREQUIREAUTH", Rejected),
    keyword("requirepeer", "PGREQUIREPEER", Rejected),
    keyword("sslpassword", "", Rejected),
    keyword("sslcrl", "PGSSLCRL", Rejected),
    keyword("sslcrldir", "PGSSLCRLDIR", Rejected),
    keyword("sslkeylogfile", "", Rejected),
    keyword("scram_client_key", "", Rejected),
    keyword("scram_server_key", "", Rejected),
    keyword("servicefile", "", Rejected),
    keyword("oauth_issuer", "", Rejected),
    keyword("oauth_client_id", "", Rejected),
    keyword("oauth_client_secret", "", Rejected),
    keyword("oauth_scope", "", Rejected),
];
