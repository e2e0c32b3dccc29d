//! The settings that `current_setting` returns: those of PostgreSQL that clients read.

/// The version of PostgreSQL whose SQL dialect is used.
pub(super) const VERSION: &str = "15.0";

/// All settings and their values, sorted as PostgreSQL sorts them.
const SETTINGS: &[(&str, &str)] = &[
    ("application_name", ""),
    ("block_size", "8192"),
    ("bytea_output", "hex"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("default_transaction_isolation", "repeatable read"),
    ("default_transaction_read_only", "on"),
    ("extra_float_digits", "1"),
    ("integer_datetimes", "on"),
    ("IntervalStyle", "postgres"),
    ("is_superuser", "off"),
    ("lc_collate", "C"),
    ("lc_ctype", "C"),
    ("max_identifier_length", "63"),
    ("search_path", "\"$user\", public"),
    ("server_encoding", "UTF8"),
    ("server_version", VERSION),
    ("server_version_num", "150000"),
    ("standard_conforming_strings", "on"),
    ("TimeZone", "UTC"),
    ("transaction_isolation", "repeatable read"),
    ("transaction_read_only", "on"),
];

/// Returns the value of the setting `name`, ignoring case.
pub(super) fn find_value(name: &str) -> Option<&'static str> {
    SETTINGS.iter().find(|(setting, _)| setting.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
}

/// Returns the names of all settings.
pub(super) fn names() -> Vec<&'static str> {
    SETTINGS.iter().map(|(name, _)| *name).collect()
}
