//! The keywords of a connection string, and what becomes of each.
//!
//! A keyword that libpq knows and we cannot honour is refused rather than skipped: most of them
//! are there to make a connection safer, and whoever wrote one relies on it.

/// One keyword that libpq knows.
#[derive(Debug)]
pub(super) struct Keyword {
    pub(super) name: &'static str,
    /// The environment variable that stands in for it.
    pub(super) variable: Option<&'static str>,
    pub(super) support: Support,
}

/// What becomes of a keyword.
#[derive(Debug)]
pub(super) enum Support {
    /// It is read.
    Honoured,
    /// It makes no difference here, whatever its value.
    Idle,
    /// Only these values can be honoured, and they are how it is anyway.
    Only(&'static [&'static str]),
    /// It cannot be honoured.
    Refused,
}

/// The keyword named `name`.
pub(super) fn find(name: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|keyword| keyword.name == name)
}

/// The known name most like `name`, of those that can be used.
pub(super) fn nearest(name: &str) -> Option<String> {
    let usable = KEYWORDS.iter().filter(|keyword| !matches!(keyword.support, Support::Refused));
    tidegate_core::nearest(name, usable.map(|keyword| keyword.name)).into_iter().next()
}

const fn honoured(name: &'static str) -> Keyword {
    Keyword { name, variable: None, support: Support::Honoured }
}

const fn with_variable(name: &'static str, variable: &'static str) -> Keyword {
    Keyword { name, variable: Some(variable), support: Support::Honoured }
}

const fn idle(name: &'static str) -> Keyword {
    Keyword { name, variable: None, support: Support::Idle }
}

const fn only(name: &'static str, variable: Option<&'static str>, values: &'static [&'static str]) -> Keyword {
    Keyword { name, variable, support: Support::Only(values) }
}

const fn refused(name: &'static str, variable: Option<&'static str>) -> Keyword {
    Keyword { name, variable, support: Support::Refused }
}

pub(super) const KEYWORDS: &[Keyword] = &[
    // Where it is found.
    with_variable("service", "PGSERVICE"),
    with_variable("host", "PGHOST"),
    with_variable("hostaddr", "PGHOSTADDR"),
    with_variable("port", "PGPORT"),
    with_variable("dbname", "PGDATABASE"),
    with_variable("target_session_attrs", "PGTARGETSESSIONATTRS"),
    with_variable("load_balance_hosts", "PGLOADBALANCEHOSTS"),
    // Who connects.
    with_variable("user", "PGUSER"),
    with_variable("password", "PGPASSWORD"),
    with_variable("passfile", "PGPASSFILE"),
    with_variable("channel_binding", "PGCHANNELBINDING"),
    with_variable("application_name", "PGAPPNAME"),
    honoured("fallback_application_name"),
    with_variable("options", "PGOPTIONS"),
    // How it is protected.
    with_variable("sslmode", "PGSSLMODE"),
    with_variable("sslnegotiation", "PGSSLNEGOTIATION"),
    with_variable("sslrootcert", "PGSSLROOTCERT"),
    with_variable("sslcert", "PGSSLCERT"),
    with_variable("sslkey", "PGSSLKEY"),
    with_variable("sslsni", "PGSSLSNI"),
    with_variable("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    with_variable("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION"),
    // How long it takes.
    with_variable("connect_timeout", "PGCONNECT_TIMEOUT"),
    honoured("keepalives"),
    honoured("keepalives_idle"),
    honoured("keepalives_interval"),
    honoured("keepalives_count"),
    honoured("tcp_user_timeout"),
    // What makes no difference here.
    only("client_encoding", Some("PGCLIENTENCODING"), &["UTF8", "utf8", "UTF-8", "utf-8", "auto"]),
    only("gssencmode", Some("PGGSSENCMODE"), &["disable", "prefer"]),
    only("sslcertmode", Some("PGSSLCERTMODE"), &["allow"]),
    idle("sslcompression"),
    only("min_protocol_version", Some("PGMINPROTOCOLVERSION"), &["3.0"]),
    only("replication", None, &["false", "off", "no", "0"]),
    idle("max_protocol_version"),
    idle("krbsrvname"),
    idle("gsslib"),
    idle("gssdelegation"),
    // What cannot be honoured.
    refused("require_auth", Some("PGREQUIREAUTH")),
    refused("requirepeer", Some("PGREQUIREPEER")),
    refused("sslpassword", None),
    refused("sslcrl", Some("PGSSLCRL")),
    refused("sslcrldir", Some("PGSSLCRLDIR")),
    refused("sslkeylogfile", None),
    refused("scram_client_key", None),
    refused("scram_server_key", None),
    refused("servicefile", None),
    refused("oauth_issuer", None),
    refused("oauth_client_id", None),
    refused("oauth_client_secret", None),
    refused("oauth_scope", None),
];
