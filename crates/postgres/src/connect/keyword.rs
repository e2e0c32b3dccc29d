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
    Supported,
    /// It makes no difference here, whatever its value.
    Ignored,
    /// Only these values can be honoured, and they are how it is anyway.
    OnlyValues(&'static [&'static str]),
    /// It cannot be honoured.
    Rejected,
}

/// The keyword named `name`.
pub(super) fn find(name: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|keyword| keyword.name == name)
}

/// The known name most like `name`, of those that can be used.
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
    supported("fallback_application_name"),
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
    supported("keepalives"),
    supported("keepalives_idle"),
    supported("keepalives_interval"),
    supported("keepalives_count"),
    supported("tcp_user_timeout"),
    // What makes no difference here.
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
    // What cannot be honoured.
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
