//! The settings that `current_setting` and `pg_settings` return: those of PostgreSQL that clients read.

/// A setting.
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) value: &'static str,
    pub(super) description: &'static str,
}

const fn setting(name: &'static str, value: &'static str, description: &'static str) -> Setting {
    Setting { name, value, description }
}

/// The version of PostgreSQL whose SQL dialect is used.
pub(super) const VERSION: &str = "15.0";

/// All settings, sorted as PostgreSQL sorts them.
pub(super) const SETTINGS: &[Setting] = &[
    setting("application_name", "", "The name of the client's application."),
    setting("block_size", "8192", "The size of a block on disk."),
    setting("bytea_output", "hex", "How bytea is written."),
    setting("client_encoding", "UTF8", "The encoding of the client."),
    setting("DateStyle", "ISO, MDY", "How dates and times are written."),
    setting("default_transaction_isolation", "repeatable read", "The isolation of a transaction."),
    setting("default_transaction_read_only", "on", "Whether a transaction only reads."),
    setting("extra_float_digits", "1", "How many digits floating-point numbers are written with."),
    setting("integer_datetimes", "on", "Whether dates and times are stored as integers."),
    setting("IntervalStyle", "postgres", "How intervals are written."),
    setting("is_superuser", "off", "Whether the current user is a superuser."),
    setting("lc_collate", "C", "The order of text."),
    setting("lc_ctype", "C", "The classes and cases of characters."),
    setting("max_identifier_length", "63", "The maximum length of an identifier in PostgreSQL."),
    setting("search_path", "\"$user\", public", "The schemas in which names are looked up."),
    setting("server_encoding", "UTF8", "The encoding of the database."),
    setting("server_version", VERSION, "The version of PostgreSQL whose SQL dialect is used."),
    setting("server_version_num", "150000", "The version of PostgreSQL whose SQL dialect is used, as a number."),
    setting("standard_conforming_strings", "on", "Whether a backslash in a string is a backslash."),
    setting("TimeZone", "UTC", "The time zone."),
    setting("transaction_isolation", "repeatable read", "The isolation of this transaction."),
    setting("transaction_read_only", "on", "Whether this transaction only reads."),
];

/// Returns the value of the setting `name`, ignoring case.
pub(super) fn find_value(name: &str) -> Option<&'static str> {
    SETTINGS.iter().find(|setting| setting.name.eq_ignore_ascii_case(name)).map(|setting| setting.value)
}
