//! Which functions a statement may call.
//!
//! Functions are allowed unless they are known to do more than compute; the restrictions of the database itself are the
//! next defence layer. In FROM, a function must be on the list of its dialect, because it may access files and networks.
//! PostgreSQL has no such list: there, each function may be called in FROM and elsewhere alike.
//!
//! The embedded engine has no functions that do more than compute. Names of such functions in other systems are refused so that
//! the error states the reason, and stay refused if the engine adds them.
//!
//! PostgreSQL has hundreds of functions that manage the server, and each version adds more. Nearly all begin with
//! `pg_`, so of those only the listed read-only ones are allowed. The name of a function that a database defines itself does
//! not show what it does. The crate `postgres` looks up its volatility and its rights before a statement runs.

use crate::dialect::SqlDialect;

/// The list of the functions that `dialect` allows in FROM.
pub(crate) fn table_functions(dialect: SqlDialect) -> &'static [&'static str] {
    dialect.choose(EMBEDDED_TABLE_FUNCTIONS, &[], SQLITE_TABLE_FUNCTIONS, MYSQL_TABLE_FUNCTIONS)
}

/// Whether `dialect` allows the function of that name (its parts folded) in FROM.
pub(crate) fn is_known_table_function(name: &[String], dialect: SqlDialect) -> bool {
    let is_known = |last: &str| table_functions(dialect).contains(&last);
    match (name, dialect) {
        (_, SqlDialect::Postgres) => true,
        ([only], SqlDialect::DataFusion) => {
            is_known(only) || is_deterministic_function(only) || OTHER_FUNCTIONS_IN_FROM.contains(&only.as_str())
        }
        ([only], _) => is_known(only),
        _ => false,
    }
}

/// The reason for refusing the function `name` (in lower case), with its schema if given.
pub(crate) fn function_refusal(schema: Option<&str>, name: &str, dialect: SqlDialect) -> Option<&'static str> {
    if !name.chars().all(|character| character.is_alphanumeric() || character == '_' || character == '$') {
        return Some("a function's name is made of letters, digits and underscores");
    }
    match dialect {
        SqlDialect::DataFusion => postgres_function_refusal(schema, name)
            .or_else(|| find_reason(SQLITE_REFUSED_FUNCTIONS, name))
            .or_else(|| find_reason(OTHER_REFUSED_FUNCTIONS, name)),
        SqlDialect::Postgres => postgres_function_refusal(schema, name),
        SqlDialect::Sqlite => find_reason(SQLITE_REFUSED_FUNCTIONS, name),
        SqlDialect::MySql => schema
            .and_then(|schema| find_reason(MYSQL_REFUSED_SCHEMAS, schema))
            .or_else(|| find_reason(MYSQL_REFUSED_FUNCTIONS, name)),
    }
}

/// The reason for refusing the field `name` (in lower case) of a value, which may be a call of a function.
pub(crate) fn field_refusal(name: &str, dialect: SqlDialect) -> Option<&'static str> {
    if dialect.is_postgres() { postgres_field_refusal(name) } else { None }
}

/// The reason for refusing the table `name`, with its schema if given, both folded: some tables are functions.
pub(crate) fn table_refusal(schema: Option<&str>, name: &str, dialect: SqlDialect) -> Option<&'static str> {
    match dialect {
        SqlDialect::DataFusion => None,
        SqlDialect::Postgres => postgres_table_refusal(name),
        SqlDialect::Sqlite => sqlite_table_refusal(name),
        SqlDialect::MySql => mysql_table_refusal(schema?, name),
    }
}

/// Functions of PostgreSQL and SQLite whose value depends only on their arguments and input rows. Any other function
/// may be volatile.
#[rustfmt::skip]
const DETERMINISTIC_FUNCTIONS: &[&str] = &[
    "abs", "array_agg", "array_length", "avg", "btrim", "cardinality", "ceil", "ceiling", "char_length", "coalesce",
    "concat", "concat_ws", "corr", "count", "cume_dist", "date_part", "date_trunc", "dense_rank", "exp", "first_value",
    "floor", "format", "greatest", "group_concat", "ifnull", "iif", "initcap", "instr", "json_agg", "json_array_length",
    "json_extract", "json_extract_path_text", "jsonb_agg", "jsonb_array_length", "lag", "last_value", "lead", "least",
    "left", "length", "ln", "log", "lower", "lpad", "ltrim", "max", "md5", "min", "mod", "mode", "nth_value", "ntile",
    "nullif", "octet_length", "percent_rank", "percentile_cont", "percentile_disc", "position", "power", "printf",
    "rank", "regexp_replace", "repeat", "replace", "reverse", "right", "round", "row_number", "rpad", "rtrim", "sign",
    "split_part", "sqrt", "stddev", "stddev_pop", "stddev_samp", "string_agg", "strpos", "substr", "substring", "sum",
    "total", "translate", "trim", "trunc", "unnest", "upper", "var_pop", "var_samp", "variance",
];

/// Whether the value of the function `name` depends only on its arguments and input rows. Any unlisted function may be
/// volatile.
pub fn is_deterministic_function(name: &str) -> bool {
    DETERMINISTIC_FUNCTIONS.binary_search(&name.to_lowercase().as_str()).is_ok()
}

#[rustfmt::skip]
const EMBEDDED_TABLE_FUNCTIONS: &[&str] = &[
    "generate_series", "generate_subscripts", "json_array_elements", "json_array_elements_text", "json_each",
    "json_each_text", "json_object_keys", "json_to_record", "json_to_recordset", "jsonb_array_elements",
    "jsonb_array_elements_text", "jsonb_each", "jsonb_each_text", "jsonb_object_keys", "jsonb_path_query",
    "jsonb_path_query_tz", "jsonb_to_record", "jsonb_to_recordset", "range", "regexp_matches", "regexp_split_to_table",
    "string_to_table", "unnest",
];

/// Other functions that FROM accepts, in addition to deterministic ones: the marker for ROWS FROM, and scalar
/// functions, which are tables of one row there.
#[rustfmt::skip]
const OTHER_FUNCTIONS_IN_FROM: &[&str] = &[
    "rows_from", "age", "array_append", "array_cat", "array_position", "array_prepend", "array_remove", "array_replace",
    "array_to_string", "ascii", "chr", "clock_timestamp", "date_bin", "decode", "div", "encode", "gcd",
    "json_build_array", "json_build_object", "json_object", "json_typeof", "jsonb_build_array", "jsonb_build_object",
    "jsonb_object", "jsonb_pretty", "jsonb_set", "jsonb_typeof", "lcm", "make_date", "make_interval", "make_time",
    "make_timestamp", "make_timestamptz", "now", "parse_ident", "pi", "pow", "random", "regexp_count", "regexp_match",
    "regexp_split_to_array", "row_to_json", "sha256", "starts_with", "string_to_array", "to_char", "to_date", "to_hex",
    "to_json", "to_jsonb", "to_number", "to_timestamp", "trim_array", "width_bucket",
];

/// Functions that are refused, in addition to those of PostgreSQL and SQLite.
const OTHER_REFUSED_FUNCTIONS: RefusalRules = &[
    (&["load_file"], READS_FILES),
    (&["remote", "remotesecure"], REACHES_SYSTEMS),
    (&["xp_*"], SQL_AS_TEXT),
    (&["sleep", "sleepeachrow", "benchmark"], WASTES_TIME),
];

#[rustfmt::skip]
const READ_ONLY_FUNCTIONS: &[&str] = &[
    "pg_backend_pid", "pg_blocking_pids", "pg_char_to_encoding", "pg_client_encoding", "pg_collation_actual_version",
    "pg_collation_is_visible", "pg_column_compression", "pg_column_is_updatable", "pg_column_size", "pg_conf_load_time",
    "pg_conversion_is_visible", "pg_current_snapshot", "pg_current_xact_id_if_assigned",
    "pg_database_collation_actual_version", "pg_database_size", "pg_describe_object", "pg_encoding_max_length",
    "pg_encoding_to_char", "pg_function_is_visible", "pg_get_catalog_foreign_keys", "pg_get_constraintdef",
    "pg_get_expr", "pg_get_function_arg_default", "pg_get_function_arguments", "pg_get_function_identity_arguments",
    "pg_get_function_result", "pg_get_function_sqlbody", "pg_get_functiondef", "pg_get_indexdef", "pg_get_keywords",
    "pg_get_object_address", "pg_get_partition_constraintdef", "pg_get_partkeydef", "pg_get_ruledef",
    "pg_get_serial_sequence", "pg_get_statisticsobjdef*", "pg_get_triggerdef", "pg_get_userbyid", "pg_get_viewdef",
    "pg_has_role", "pg_identify_object*", "pg_index_column_has_property", "pg_index_has_property",
    "pg_indexam_has_property", "pg_indexes_size", "pg_input_error_info", "pg_input_is_valid", "pg_is_in_recovery",
    "pg_is_other_temp_schema", "pg_jit_available", "pg_last_committed_xact", "pg_lsn*", "pg_my_temp_schema",
    "pg_opclass_is_visible", "pg_operator_is_visible", "pg_opfamily_is_visible", "pg_options_to_table",
    "pg_partition_ancestors", "pg_partition_root", "pg_partition_tree", "pg_postmaster_start_time",
    "pg_relation_is_publishable", "pg_relation_is_updatable", "pg_relation_size", "pg_sequence_last_value",
    "pg_sequence_parameters", "pg_size_bytes", "pg_size_pretty", "pg_snapshot_xip", "pg_snapshot_xmax",
    "pg_snapshot_xmin", "pg_statistics_obj_is_visible", "pg_table_is_visible", "pg_table_size",
    "pg_tablespace_databases", "pg_tablespace_size", "pg_timezone_abbrevs", "pg_timezone_names",
    "pg_total_relation_size", "pg_trigger_depth", "pg_ts_config_is_visible", "pg_ts_dict_is_visible",
    "pg_ts_parser_is_visible", "pg_ts_template_is_visible", "pg_type_is_visible", "pg_typeof", "pg_visible_in_snapshot",
    "pg_xact_commit_timestamp", "pg_xact_status",
];

const MANAGES_SERVER: &str = "of the functions pg_…, only those that inspect tables, types and sizes are allowed";
const SHOWS_RAW_STORAGE: &str = "it returns raw storage, which bypasses the privileges of the role";
const ASSIGNS_TRANSACTION_ID: &str = "it assigns a transaction ID, and only reading is allowed";

/// Refused functions, the more specific reason first.
#[rustfmt::skip]
const REFUSED: RefusalRules = &[
    (
        &[
            "pg_read_*", "pg_ls_*", "pg_stat_file", "pg_file_*", "pg_logdir_ls", "lo_*", "loread", "lowrite",
            "xslt_process",
        ],
        READS_FILES,
    ),
    (&["dblink*", "http", "http_*", "postgres_fdw_*", "oracle_execute", "ogr_fdw_*"], REACHES_SYSTEMS),
    (
        &[
            "query_to_xml*", "table_to_xml*", "cursor_to_xml*", "schema_to_xml*", "database_to_xml*", "ts_stat",
            "ts_rewrite", "xpath_table", "crosstab*", "connectby", "pgr_*", "run_command_on_*", "st_findextent",
        ],
        SQL_AS_TEXT,
    ),
    (&["pg_sleep*"], WASTES_TIME),
    (&["pg_current_xact_id", "txid_current"], ASSIGNS_TRANSACTION_ID),
    (
        &[
            "set_config", "setval", "nextval", "setseed", "pg_advisory_*", "pg_try_advisory_*", "pg_notify",
            "pg_terminate_backend", "pg_cancel_backend", "pg_reload_conf", "pg_stat_reset*", "pg_export_snapshot",
            "brin_summarize_*", "brin_desummarize_*", "gin_clean_pending_list", "heap_force_*", "autoprewarm_*",
            "binary_upgrade_*", "hypopg_*", "addgeometrycolumn", "dropgeometry*", "updategeometrysrid",
            "populate_geometry_columns", "lockrow", "unlockrows", "addauth", "enablelongtransactions",
            "disablelongtransactions",
        ],
        CHANGES_STATE,
    ),
    (
        &[
            "get_raw_page*", "bt_page_*", "bt_multi_page_stats", "bt_metap", "heap_page_*", "page_header", "pgrowlocks",
            "bt_index_check", "bt_index_parent_check", "verify_heapam",
        ],
        SHOWS_RAW_STORAGE,
    ),
];

/// Schemas of extensions whose functions have effects outside of the statement.
const REFUSED_SCHEMAS: RefusalRules = &[
    (&["net", "aws_s3", "aws_lambda", "supabase_functions"], REACHES_SYSTEMS),
    (&["utl_file", "azure_storage"], READS_FILES),
    (&["dbms_sql", "graphql"], SQL_AS_TEXT),
    (&["cron", "dbms_alert", "dbms_pipe", "pglogical", "pgmq", "pgq", "partman", "pgagent"], CHANGES_STATE),
];

const SHOWS_QUERIES: &str = "it shows the queries of others";
const SHOWS_ACTIVITY: &str = "it shows the activity of others";
const SHOWS_SAMPLES: &str = "it shows samples of rows";
const SHOWS_PASSWORDS: &str = "it shows the passwords of other systems";
const SHOWS_PASSWORD_HASHES: &str = "it shows the hashes of passwords";
const SHOWS_SERVER: &str = "it shows the configuration or the memory of the server";

/// Views and tables that show more than the tables of the database. All sessions of a node have one login role, so the
/// privileges of the role do not separate its callers. They include each one that only a superuser may read, because a
/// node may have such a login.
#[rustfmt::skip]
const REFUSED_TABLES: RefusalRules = &[
    (
        &[
            "pg_stat_activity", "pg_stat_statements*", "pg_prepared_statements", "pg_cursors", "pg_stat_monitor*",
            "pg_qualstats*", "pg_show_plans*", "pg_store_plans*", "pg_active_session_history", "pg_stat_kcache*",
        ],
        SHOWS_QUERIES,
    ),
    (
        &[
            "pg_locks", "pg_prepared_xacts", "pg_stat_gssapi", "pg_stat_progress_*", "pg_stat_replication",
            "pg_stat_ssl", "pg_stat_wal_receiver", "pg_wait_sampling*",
        ],
        SHOWS_ACTIVITY,
    ),
    (&["pg_stats*", "pg_statistic*"], SHOWS_SAMPLES),
    (&["pg_authid", "pg_shadow"], SHOWS_PASSWORD_HASHES),
    // The options of a mapping include the password of the login role, which may be mapped itself. A subscription has a
    // connection string, and a rule of access may have the password of an LDAP server.
    (
        &[
            "pg_user_mapping", "pg_user_mappings", "_pg_user_mappings", "user_mapping_options", "pg_subscription",
            "pg_hba_file_rules", "pg_dist_authinfo",
        ],
        SHOWS_PASSWORDS,
    ),
    (&["pg_largeobject", "pg_toast_*"], SHOWS_RAW_STORAGE),
    (
        &[
            "pg_aios", "pg_backend_memory_contexts", "pg_config", "pg_file_settings", "pg_ident_file_mappings",
            "pg_replication_origin_status", "pg_shmem_allocations*",
        ],
        SHOWS_SERVER,
    ),
];

/// The functions behind such views. Each version of PostgreSQL adds functions `pg_stat_get_…`.
#[rustfmt::skip]
const REFUSED_VIEW_FUNCTIONS: RefusalRules = &[
    (
        &[
            "pg_stat_get_activity", "pg_stat_get_backend_activity", "pg_stat_statements*", "pg_prepared_statement",
            "pg_cursor", "pg_stat_monitor*", "pg_qualstats*", "pg_show_plans*", "pg_store_plans*", "pg_stat_kcache*",
        ],
        SHOWS_QUERIES,
    ),
    (
        &["pg_lock_status", "pg_prepared_xact", "pg_stat_get_*", "pg_isolation_test_*", "pg_wait_sampling*"],
        SHOWS_ACTIVITY,
    ),
    (&["pg_mcv_list_items"], SHOWS_SAMPLES),
];

fn postgres_table_refusal(name: &str) -> Option<&'static str> {
    find_reason(REFUSED_TABLES, name)
}

/// Refused functions without the prefix `pg_` that belong to the server, or that are not VOLATILE, and that can be
/// called with one value. Other refused names are more often columns: `log.http_status`. The crate `postgres` looks up
/// the VOLATILE functions of a database, also those that are written as fields.
#[rustfmt::skip]
const CALLED_AS_FIELDS: &[&str] = &[
    "binary_upgrade_*", "brin_summarize_*", "crosstab*", "gin_clean_pending_list", "lo_close", "lo_creat", "lo_create",
    "lo_get", "lo_import", "lo_tell", "lo_tell64", "lo_unlink", "nextval", "setseed", "ts_stat",
];

/// The reason for refusing `x.name`, which PostgreSQL reads as `name(x)` if `x` has no such column or field.
fn postgres_field_refusal(name: &str) -> Option<&'static str> {
    let may_be_call = name.starts_with("pg_") || CALLED_AS_FIELDS.iter().any(|pattern| matches_pattern(pattern, name));
    postgres_function_refusal(None, name).filter(|_| may_be_call)
}

fn postgres_function_refusal(schema: Option<&str>, name: &str) -> Option<&'static str> {
    let manages =
        || name.starts_with("pg_") && !READ_ONLY_FUNCTIONS.iter().any(|pattern| matches_pattern(pattern, name));
    schema
        .and_then(|schema| find_reason(REFUSED_SCHEMAS, schema))
        .or_else(|| find_reason(REFUSED, name))
        .or_else(|| find_reason(REFUSED_VIEW_FUNCTIONS, name))
        .or_else(|| manages().then_some(MANAGES_SERVER))
}

#[rustfmt::skip]
const SQLITE_TABLE_FUNCTIONS: &[&str] = &[
    "json_each", "json_tree", "jsonb_each", "jsonb_tree", "generate_series", "pragma_table_info", "pragma_table_xinfo",
    "pragma_table_list", "pragma_index_list", "pragma_index_info", "pragma_index_xinfo", "pragma_foreign_key_list",
    "pragma_collation_list", "pragma_function_list", "pragma_compile_options",
];

#[rustfmt::skip]
const SQLITE_REFUSED_FUNCTIONS: RefusalRules = &[
    (&["load_extension", "readfile", "writefile", "edit", "fsdir", "lsdir", "lsmode", "fileio_*"], READS_FILES),
    (&["http_*"], REACHES_SYSTEMS),
    (&["eval"], SQL_AS_TEXT),
    (
        &[
            "fts3_tokenizer", "fts5", "sqlite_log", "sqlite_rename_*", "sqlite_drop_column", "sqlite_add_constraint",
            "spatialite_*", "initspatialmetadata*", "shell_*", "sqlite_db_config", "register_*",
        ],
        CHANGES_STATE,
    ),
];

/// Tables that show more than the tables of the catalog.
const SQLITE_REFUSED_TABLES: RefusalRules = &[
    (&["sqlite_dbpage", "dbstat", "sqlite_dbdata", "sqlite_dbptr"], "it shows the raw pages of the file"),
    (&["sqlite_stmt", "bytecode", "tables_used", "sqlite_memstat"], "it shows other statements"),
    (&["fsdir", "lsdir"], READS_FILES),
];

/// The reason for refusing the table `name`.
///
/// SQLite reads a table-valued function without parentheses as a table, and each pragma with an answer is one.
fn sqlite_table_refusal(name: &str) -> Option<&'static str> {
    if name.starts_with("pragma_") && !SQLITE_TABLE_FUNCTIONS.iter().any(|pattern| matches_pattern(pattern, name)) {
        return Some("it returns more than the tables and their columns");
    }
    find_reason(SQLITE_REFUSED_TABLES, name)
}

const MYSQL_TABLE_FUNCTIONS: &[&str] = &["json_table"];

/// Functions of MySQL and MariaDB, and of libraries that are often loaded into them.
#[rustfmt::skip]
const MYSQL_REFUSED_FUNCTIONS: RefusalRules = &[
    (&["load_file"], READS_FILES),
    (&["sys_get", "sys_eval", "sys_exec", "sys_set", "http_*", "spider_*", "mroonga_command"], REACHES_SYSTEMS),
    (
        &[
            "sleep", "benchmark", "master_pos_wait", "source_pos_wait", "master_gtid_wait", "wait_for_executed_gtid_set",
            "wait_until_sql_thread_after_gtids", "wsrep_sync_wait_upto_gtid",
        ],
        WASTES_TIME,
    ),
    (
        &[
            "get_lock", "release_lock", "release_all_locks", "nextval", "setval", "last_insert_id", "audit_api_*",
            "audit_log_*", "asynchronous_connection_failover_*", "flush_rewrite_cache", "group_replication_*",
            "keyring_*", "load_rewrite_rules", "mysql_firewall_*", "service_*", "set_firewall_mode",
            "version_tokens_*",
        ],
        CHANGES_STATE,
    ),
    (&["is_free_lock", "is_used_lock", "found_rows"], SHOWS_ACTIVITY),
];

/// Databases of the server itself.
const MYSQL_REFUSED_SCHEMAS: RefusalRules =
    &[(&["mysql"], SHOWS_PASSWORD_HASHES), (&["performance_schema", "sys"], SHOWS_QUERIES)];

/// Tables of `information_schema` that show more than tables, columns and privileges. All sessions of a node have one
/// login, so the server lets each caller see the queries of all others.
#[rustfmt::skip]
const MYSQL_REFUSED_TABLES: RefusalRules = &[
    (&["processlist", "innodb_trx", "optimizer_trace", "profiling", "query_cache_*"], SHOWS_QUERIES),
    (
        &[
            "client_statistics", "innodb_lock*", "innodb_metrics", "innodb_mutexes", "metadata_lock_info",
            "user_statistics", "thread_pool_*",
        ],
        SHOWS_ACTIVITY,
    ),
    (&["column_statistics", "innodb_ft_*"], SHOWS_SAMPLES),
    (&["innodb_buffer_*", "innodb_cmp*", "innodb_sys_*", "innodb_tablespaces*", "files"], SHOWS_SERVER),
];

/// The reason for refusing the table `name` of the database `schema`. Their case does not matter to the server.
fn mysql_table_refusal(schema: &str, name: &str) -> Option<&'static str> {
    let (schema, name) = (schema.to_lowercase(), name.to_lowercase());
    let refused = || find_reason(MYSQL_REFUSED_TABLES, &name).filter(|_| schema == "information_schema");
    find_reason(MYSQL_REFUSED_SCHEMAS, &schema).or_else(refused)
}

/// Patterns of function names (`*` matches any suffix), and the reason for their refusal.
type RefusalRules = &'static [(&'static [&'static str], &'static str)];

const READS_FILES: &str = "it accesses files, and only the tables of the catalog can be read";
const REACHES_SYSTEMS: &str = "it accesses other systems, and only the tables of the catalog can be read";
const SQL_AS_TEXT: &str = "it runs SQL or reads tables given as text, which cannot be checked";
const CHANGES_STATE: &str = "it has side effects, and only reading is allowed";
const WASTES_TIME: &str = "it only consumes time";

fn find_reason(refused: RefusalRules, name: &str) -> Option<&'static str> {
    let is_in = |patterns: &[&str]| patterns.iter().any(|pattern| matches_pattern(pattern, name));
    refused.iter().find(|(patterns, _)| is_in(patterns)).map(|(_, reason)| *reason)
}

fn matches_pattern(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_sorted_for_the_search() {
        assert!(DETERMINISTIC_FUNCTIONS.is_sorted());
    }
}
