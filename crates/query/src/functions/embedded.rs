//! Functions of the embedded engine's SQL.
//!
//! It has none that do more than compute; the names of other systems' are refused so that an answer
//! says why, and stay refused should the engine learn them.

use super::{CHANGES, FILES, Refused, SQL_AS_TEXT, SYSTEMS, WAITS};

/// Table functions that only compute.
pub(super) const TABLE_FUNCTIONS: &[&str] = &["generate_series", "range", "unnest"];

/// Functions that are refused.
pub(super) const REFUSED: Refused = &[
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
        FILES,
    ),
    (&["dblink*", "http", "http_*", "postgres_fdw_*", "remote", "remotesecure"], SYSTEMS),
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
        SQL_AS_TEXT,
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
        CHANGES,
    ),
    (&["pg_sleep*", "sleep", "sleepeachrow", "benchmark"], WAITS),
];
