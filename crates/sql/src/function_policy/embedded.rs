//! Functions of the embedded engine's SQL.
//!
//! The engine has no functions that do more than compute. Names of such functions in other systems are refused so that
//! the error states the reason, and stay refused if the engine adds them.

use super::rules::{REACHES_SYSTEMS, READS_FILES, RefusalRules, SQL_AS_TEXT, WASTES_TIME};

#[rustfmt::skip]
pub(super) const TABLE_FUNCTIONS: &[&str] = &[
    "generate_series", "generate_subscripts", "json_array_elements", "json_array_elements_text", "json_each",
    "json_each_text", "json_object_keys", "json_to_record", "json_to_recordset", "jsonb_array_elements",
    "jsonb_array_elements_text", "jsonb_each", "jsonb_each_text", "jsonb_object_keys", "jsonb_path_query",
    "jsonb_path_query_tz", "jsonb_to_record", "jsonb_to_recordset", "range", "regexp_matches", "regexp_split_to_table",
    "string_to_table", "unnest",
];

/// Other functions that FROM accepts, in addition to deterministic ones: the marker for ROWS FROM, and scalar
/// functions, which are tables of one row there.
#[rustfmt::skip]
pub(super) const OTHER_FUNCTIONS_IN_FROM: &[&str] = &[
    "rows_from", "age", "array_append", "array_cat", "array_position", "array_prepend", "array_remove", "array_replace",
    "array_to_string", "ascii", "chr", "clock_timestamp", "date_bin", "decode", "div", "encode", "gcd",
    "json_build_array", "json_build_object", "json_object", "json_typeof", "jsonb_build_array", "jsonb_build_object",
    "jsonb_object", "jsonb_pretty", "jsonb_set", "jsonb_typeof", "lcm", "make_date", "make_interval", "make_time",
    "make_timestamp", "make_timestamptz", "now", "parse_ident", "pi", "pow", "random", "regexp_count", "regexp_match",
    "regexp_split_to_array", "row_to_json", "sha256", "starts_with", "string_to_array", "to_char", "to_date", "to_hex",
    "to_json", "to_jsonb", "to_number", "to_timestamp", "trim_array", "width_bucket",
];

/// Functions that are refused, in addition to those of PostgreSQL and SQLite.
pub(super) const REFUSED_FUNCTIONS: RefusalRules = &[
    (&["load_file"], READS_FILES),
    (&["remote", "remotesecure"], REACHES_SYSTEMS),
    (&["xp_*"], SQL_AS_TEXT),
    (&["sleep", "sleepeachrow", "benchmark"], WASTES_TIME),
];
