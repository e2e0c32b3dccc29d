//! What to use in place of the parts of PostgreSQL's `pg_catalog` that are not there.

use datafusion::common::TableReference;
use tidegate_core::{Error, ErrorKind};

use super::errors::FUNCTIONS_HINT;

const PG_CATALOG: &str = "pg_catalog";
const DESCRIPTIONS: &str = "Use the tools list_tables and get_schema, which return the descriptions.";

/// Names of relations or functions, and what to use in their place.
type Advice = &'static [(&'static [&'static str], &'static str)];

/// For relations other than those of tables.
const RELATIONS: Advice = &[
    (&["pg_attribute", "pg_attrdef", "pg_type", "pg_enum", "pg_stats"], "Use information_schema.columns."),
    (&["pg_namespace"], "Use information_schema.schemata."),
    (
        &["pg_index", "pg_indexes", "pg_constraint", "pg_trigger", "pg_rules", "pg_policies", "pg_sequences"],
        "There are no keys, indexes, triggers, rules, policies and sequences; information_schema.tables has the tables.",
    ),
    (&["pg_description", "pg_shdescription"], DESCRIPTIONS),
    (&["pg_stat_user_tables", "pg_stat_all_tables"], "Use the tool list_tables, which returns numbers of rows."),
    (&["pg_settings"], "Use SELECT current_setting('name')."),
    (&["pg_database"], "Use SELECT current_database(), or the tool list_databases."),
    (&["pg_roles", "pg_user", "pg_authid", "pg_auth_members"], "Use SELECT current_user."),
    (&["pg_proc", "pg_operator", "pg_aggregate", "pg_cast"], FUNCTIONS_HINT),
];
const TABLES: &str = "Use information_schema.tables, or information_schema.columns for columns.";

const FUNCTIONS: Advice = &[
    (
        &[
            "has_any_column_privilege",
            "has_schema_privilege",
            "has_table_privilege",
            "pg_table_is_visible",
            "to_regclass",
        ],
        "Use information_schema.tables, which has the tables that you may read.",
    ),
    (&["has_column_privilege"], "Use information_schema.columns, which has the columns that you may read."),
    (&["format_type", "to_regtype", "pg_type_is_visible"], "Use data_type of information_schema.columns."),
    (&["to_regnamespace"], "Use information_schema.schemata."),
    (&["obj_description", "col_description", "shobj_description"], DESCRIPTIONS),
    (
        &["pg_database_size", "pg_indexes_size", "pg_relation_size", "pg_table_size", "pg_total_relation_size"],
        "The size on disk is not available; use the tool list_tables, or SELECT count(*).",
    ),
];

fn find(name: &str, all: Advice) -> Option<&'static str> {
    all.iter().find(|(names, _)| names.contains(&name)).map(|(_, advice)| *advice)
}

/// The error for `reference`, for which there is no table: `error`, or the advice for a catalog that is not there.
pub(crate) fn advise_catalog(reference: &TableReference, error: Error) -> Error {
    let name = reference.table().to_lowercase();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    let is_catalog = match reference.schema() {
        Some(schema) => schema.eq_ignore_ascii_case(PG_CATALOG),
        None => name.starts_with("pg_"),
    };
    if error.kind() != ErrorKind::NotFound || !is_catalog {
        return error;
    }
    Error::new(ErrorKind::NotFound, format!("{PG_CATALOG}.{name} is not there"))
        .with_hint(find(name, RELATIONS).unwrap_or(TABLES))
}

/// What to use in place of the function `name` of the catalogs.
pub(super) fn catalog_function_advice(name: &str) -> Option<&'static str> {
    find(&name.to_lowercase(), FUNCTIONS)
}
