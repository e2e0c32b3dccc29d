//! Functions of SQLite, and table-valued functions that are used as tables.

use super::rules::{
    CHANGES_STATE, REACHES_SYSTEMS, READS_FILES, RefusalRules, SQL_AS_TEXT, find_reason, matches_pattern,
};

#[rustfmt::skip]
pub(super) const TABLE_FUNCTIONS: &[&str] = &[
    "json_each", "json_tree", "jsonb_each", "jsonb_tree", "generate_series", "pragma_table_info", "pragma_table_xinfo",
    "pragma_table_list", "pragma_index_list", "pragma_index_info", "pragma_index_xinfo", "pragma_foreign_key_list",
    "pragma_collation_list", "pragma_function_list", "pragma_compile_options",
];

#[rustfmt::skip]
pub(super) const REFUSED_FUNCTIONS: RefusalRules = &[
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
const REFUSED_TABLES: RefusalRules = &[
    (&["sqlite_dbpage", "dbstat", "sqlite_dbdata", "sqlite_dbptr"], "it shows the raw pages of the file"),
    (&["sqlite_stmt", "bytecode", "tables_used", "sqlite_memstat"], "it shows other statements"),
    (&["fsdir", "lsdir"], READS_FILES),
];

/// The reason for refusing the table `name`.
///
/// SQLite reads a table-valued function without parentheses as a table, and each pragma with an answer is one.
pub(super) fn table_refusal(name: &str) -> Option<&'static str> {
    if name.starts_with("pragma_") && !TABLE_FUNCTIONS.iter().any(|pattern| matches_pattern(pattern, name)) {
        return Some("it returns more than the tables and their columns");
    }
    find_reason(REFUSED_TABLES, name)
}
