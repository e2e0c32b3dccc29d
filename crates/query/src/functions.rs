//! Which functions a statement may call.
//!
//! Table functions must be on the list of their dialect: what stands in FROM may reach files and
//! networks. Other functions pass unless they are known to do more than compute; the database
//! itself is the wall behind that.

use crate::dialect::SqlDialect;

/// The table functions of `dialect` that only compute.
pub(crate) fn table_functions(dialect: SqlDialect) -> &'static [&'static str] {
    match dialect {
        SqlDialect::DataFusion => &["generate_series", "range", "unnest"],
        SqlDialect::Postgres => &["generate_series", "unnest"],
        SqlDialect::Sqlite => &["json_each", "json_tree"],
    }
}

/// Why calling `name` (in lower case) is refused, if it is.
pub(crate) fn refusal(name: &str) -> Option<&'static str> {
    if !name.chars().all(|character| character.is_alphanumeric() || character == '_' || character == '$') {
        return Some("a function's name is made of letters, digits and underscores");
    }
    REFUSED
        .iter()
        .find(|(patterns, _)| patterns.iter().any(|pattern| matches(pattern, name)))
        .map(|(_, reason)| *reason)
}

/// Patterns of names (`*` at the end for any end), and why they are refused.
const REFUSED: &[(&[&str], &str)] = &[
    (
        &[
            "pg_read_*",
            "pg_ls_*",
            "pg_stat_file",
            "pg_file_*",
            "pg_logdir_ls",
            "lo_*",
            "loread",
            "lowrite",
            "readfile",
            "writefile",
            "fileio_*",
            "fsdir",
            "load_file",
            "load_extension",
            "edit",
        ],
        "it reaches files, and only the tables of the catalog can be read",
    ),
    (
        &["dblink*", "http", "http_*", "postgres_fdw_*", "remote", "remotesecure"],
        "it reaches other systems, and only the tables of the catalog can be read",
    ),
    (
        &[
            "query_to_xml*",
            "table_to_xml*",
            "cursor_to_xml*",
            "schema_to_xml*",
            "database_to_xml*",
            "ts_stat",
            "xpath_table",
            "crosstab*",
            "connectby",
            "eval",
            "xp_*",
        ],
        "it runs SQL or reads tables given as text, which cannot be checked",
    ),
    (
        &[
            "set_config",
            "setval",
            "nextval",
            "setseed",
            "pg_advisory_*",
            "pg_try_advisory_*",
            "pg_notify",
            "pg_prewarm*",
            "pg_logical_*",
            "pg_replication_*",
            "pg_create_*",
            "pg_drop_*",
            "pg_switch_wal",
            "pg_wal_replay_*",
            "pg_start_backup",
            "pg_stop_backup",
            "pg_backup_*",
            "pg_promote",
            "pg_reload_conf",
            "pg_rotate_logfile*",
            "pg_terminate_backend",
            "pg_cancel_backend",
            "pg_stat_reset*",
            "pg_stat_statements_reset",
            "pg_clear_*",
            "pg_restore_*",
            "pg_sync_*",
            "pg_log_*",
            "pg_extension_config_dump",
            "pg_nextoid",
            "pg_import_*",
            "gin_clean_pending_list",
            "brin_summarize_*",
            "brin_desummarize_*",
            "heap_force_*",
            "fts3_tokenizer",
        ],
        "it changes something beside its answer, and only reading is allowed",
    ),
    (&["pg_sleep*", "sleep", "sleepeachrow", "benchmark"], "it only spends time"),
];

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}
