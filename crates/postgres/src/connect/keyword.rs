//! The keywords of a connection string, and their support.
//!
//! Unsupported keywords of libpq are errors and are not ignored: most of them make a connection safer, and the user
//! relies on them.

/// A keyword of libpq.
#[derive(Debug)]
pub(super) struct Keyword {
    pub(super) name: &'static str,
    /// The environment variable with the same meaning.
    pub(super) variable: Option<&'static str>,
    pub(super) support: Support,
}

/// The support for a keyword.
#[derive(Debug)]
pub(super) enum Support {
    /// It has its usual effect.
    Supported,
    /// It has no effect here, whatever its value.
    Ignored,
    /// Only these values are accepted; they describe the behaviour that always applies.
    OnlyValues(&'static [&'static str]),
    /// It is not supported.
    Rejected,
}

/// The keyword named `name`.
pub(super) fn find(name: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|keyword| keyword.name == name)
}

/// The supported keyword most similar to `name`.
pub(super) fn nearest(name: &str) -> Option<String> {
    let usable = KEYWORDS.iter().filter(|keyword| !matches!(keyword.support, Support::Rejected));
    tidegate_core::nearest_names(name, usable.map(|keyword| keyword.name)).into_iter().next()
}

const fn supported(name: &'static str) -> Keyword {
    Keyword { name, variable: None, support: Support::Supported }
}

const fn with_variable(name: &'static str, variable: &'static str) -> Keyword {
    Keyword { name, variable: Some(variable), support: Support::Supported }
}

const fn ignored(name: &'static str) -> Keyword {
    Keyword { name, variable: None, support: Support::Ignored }
}

const fn only_values(name: &'static str, variable: Option<&'static str>, values: &'static [&'static str]) -> Keyword {
    Keyword { name, variable, support: Support::OnlyValues(values) }
}

const fn rejected(name: &'static str, variable: Option<&'static str>) -> Keyword {
    Keyword { name, variable, support: Support::Rejected }
}

pub(super) const KEYWORDS: &[Keyword] = &[
    // Location.
    with_variable("service", "PGSERVICE"),
    with_variable("host", "PGHOST"),
    with_variable("hostaddr", "PGHOSTADDR"),
    with_variable("port", "PGPORT"),
    with_variable("dbname", "PGDATABASE"),
    with_variable("target_session_attrs", "PGTARGETSESSIONATTRS"),
    with_variable("load_balance_hosts", "PGLOADBALANCEHOSTS"),
    // Authentication.
    with_variable("user", "PGUSER"),
    with_variable("password", "PGPASSWORD"),
    with_variable("passfile", "PGPASSFILE"),
    with_variable("channel_binding", "PGCHANNELBINDING"),
    with_variable("application_name", "PGAPPNAME"),
    supported("fallback_application_name"),
    with_variable("options", "PGOPTIONS"),
    // Protection.
    with_variable("sslmode", "PGSSLMODE"),
    with_variable("sslnegotiation", "PGSSLNEGOTIATION"),
    with_variable("sslrootcert", "PGSSLROOTCERT"),
    with_variable("sslcert", "PGSSLCERT"),
    with_variable("sslkey", "PGSSLKEY"),
    with_variable("sslsni", "PGSSLSNI"),
    with_variable("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    with_variable("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION"),
    // Timeouts.
    with_variable("connect_timeout", "PGCONNECT_TIMEOUT"),
    supported("keepalives"),
    supported("keepalives_idle"),
    supported("keepalives_interval"),
    supported("keepalives_count"),
    supported("tcp_user_timeout"),
    // Without effect here.
    only_values("client_encoding", Some("PGCLIENTENCODING"), &["UTF8", "utf8", "UTF-8", "utf-8", "auto"]),
    only_values("gssencmode", Some("PGGSSENCMODE"), &["disable", "prefer"]),
    only_values("sslcertmode", Some("PGSSLCERTMODE"), &["allow"]),
    ignored("sslcompression"),
    only_values("min_protocol_version", Some("PGMINPROTOCOLVERSION"), &["3.0"]),
    only_values("replication", None, &["false", "off", "no", "0"]),
    ignored("max_protocol_version"),
    ignored("krbsrvname"),
    ignored("gsslib"),
    ignored("gssdelegation"),
    // Unsupported.
    rejected("require_auth", Some("PGREQUIREAUTH")),
    rejected("requirepeer", Some("PGREQUIREPEER")),
    rejected("sslpassword", None),
    rejected("sslcrl", Some("PGSSLCRL")),
    rejected("sslcrldir", Some("PGSSLCRLDIR")),
    rejected("sslkeylogfile", None),
    rejected("scram_client_key", None),
    rejected("scram_server_key", None),
    rejected("servicefile", None),
    rejected("oauth_issuer", None),
    rejected("oauth_client_id", None),
    rejected("oauth_client_secret", None),
    rejected("oauth_scope", None),
];
