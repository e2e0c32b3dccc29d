//! The rows of `pg_catalog`.

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;

use super::objects::{OWNER_NAME, VisibleObjects, VisibleTable};
use super::oid;
use super::relation::CatalogRows;
use super::settings::SETTINGS;
use super::types::{PgType, TYPES, column_type, dimensions};

/// The access method of all tables.
const HEAP_OID: i64 = 2;
const DEFAULT_TABLESPACE: i64 = 1_663;
const UTF8_ENCODING: i64 = 6;
/// The oid of the caller's role.
pub(super) const USER_OID: i64 = 16_383;

/// Returns the rows of `relation` of `pg_catalog`; none for objects that do not exist here.
pub(super) fn rows(relation: &str, objects: &VisibleObjects) -> Result<RecordBatch> {
    let tables = &objects.tables;
    match relation {
        "pg_class" => classes(objects),
        "pg_attribute" => attributes(tables),
        "pg_type" => types(),
        "pg_namespace" => start_rows(relation, objects.schemas.len())?
            .numbers("oid", objects.schemas.values().copied())
            .texts("nspname", objects.schemas.keys())
            .number(&["nspowner"], oid::OWNER_OID)
            .finish(),
        "pg_tables" => start_rows(relation, tables.len())?
            .texts("schemaname", tables.iter().map(|table| &table.schema))
            .texts("tablename", tables.iter().map(|table| &table.name))
            .text(&["tableowner"], OWNER_NAME)
            .flag(&["hasindexes", "hasrules", "hastriggers", "rowsecurity"], false)
            .finish(),
        "pg_stat_user_tables" => start_rows(relation, tables.len())?
            .numbers("relid", tables.iter().map(|table| table.oid))
            .texts("schemaname", tables.iter().map(|table| &table.schema))
            .texts("relname", tables.iter().map(|table| &table.name))
            .nullable_numbers(
                "n_live_tup",
                tables.iter().map(|table| table.rows.and_then(|rows| i64::try_from(rows).ok())),
            )
            .finish(),
        "pg_description" => {
            let described = || tables.iter().filter(|table| table.comment.is_some());
            start_rows(relation, described().count())?
                .numbers("objoid", described().map(|table| table.oid))
                .number(&["classoid"], oid::builtin_catalog_oid("pg_class"))
                .texts("description", described().filter_map(|table| table.comment.as_ref()))
                .finish()
        }
        "pg_settings" => settings(),
        "pg_database" => database(objects),
        "pg_roles" => start_rows(relation, 2)?
            .numbers("oid", [oid::OWNER_OID, USER_OID])
            .texts("rolname", [OWNER_NAME, &objects.user])
            .flag(&["rolsuper", "rolcreaterole", "rolcreatedb", "rolreplication", "rolbypassrls"], false)
            .flag(&["rolinherit"], true)
            .flags("rolcanlogin", [false, true])
            .number(&["rolconnlimit"], -1)
            .finish(),
        "pg_user" => start_rows(relation, 1)?
            .text(&["usename"], &objects.user)
            .number(&["usesysid"], USER_OID)
            .flag(&["usecreatedb", "usesuper", "userepl", "usebypassrls"], false)
            .finish(),
        "pg_am" => start_rows(relation, 1)?
            .number(&["oid"], HEAP_OID)
            .text(&["amname"], "heap")
            .text(&["amhandler"], "heap_tableam_handler")
            .text(&["amtype"], "t")
            .finish(),
        "pg_tablespace" => start_rows(relation, 1)?
            .number(&["oid"], DEFAULT_TABLESPACE)
            .text(&["spcname"], "pg_default")
            .number(&["spcowner"], oid::OWNER_OID)
            .finish(),
        other => start_rows(other, 0)?.finish(),
    }
}

fn database(objects: &VisibleObjects) -> Result<RecordBatch> {
    start_rows("pg_database", 1)?
        .number(&["oid"], oid::DATABASE_OID)
        .text(&["datname"], &objects.database)
        .number(&["datdba"], oid::OWNER_OID)
        .number(&["encoding"], UTF8_ENCODING)
        .text(&["datlocprovider"], "c")
        .flag(&["datallowconn"], true)
        .number(&["datconnlimit"], -1)
        .number(&["dattablespace"], DEFAULT_TABLESPACE)
        .text(&["datcollate", "datctype"], "C")
        .finish()
}

fn start_rows(relation: &str, rows: usize) -> Result<CatalogRows> {
    CatalogRows::new(&format!("pg_catalog.{relation}"), rows)
}

fn classes(objects: &VisibleObjects) -> Result<RecordBatch> {
    let tables = &objects.tables;
    // -1 means unknown, as for a table that was never analyzed.
    let rows = |table: &VisibleTable| table.rows.and_then(|rows| i64::try_from(rows).ok()).unwrap_or(-1);
    start_rows("pg_class", tables.len())?
        .numbers("oid", tables.iter().map(|table| table.oid))
        .texts("relname", tables.iter().map(|table| &table.name))
        .numbers("relnamespace", tables.iter().map(|table| objects.schema_oid(&table.schema)))
        .number(&["relowner"], oid::OWNER_OID)
        .number(&["relam"], HEAP_OID)
        .numbers("reltuples", tables.iter().map(rows))
        .text(&["relpersistence"], "p")
        .text(&["relkind"], "r")
        .numbers("relnatts", tables.iter().map(|table| i64::try_from(table.columns.len()).unwrap_or_default()))
        .text(&["relreplident"], "d")
        .flag(&["relispopulated"], true)
        .finish()
}

fn attributes(tables: &[VisibleTable]) -> Result<RecordBatch> {
    let columns = || tables.iter().flat_map(|table| &table.columns);
    let described: Vec<(&PgType, i64)> = columns().map(|field| column_type(field)).collect();
    let types = || described.iter().map(|(of, _)| *of);
    let numbered = tables.iter().flat_map(|table| (1..).take(table.columns.len()));
    start_rows("pg_attribute", described.len())?
        .numbers("attrelid", tables.iter().flat_map(|table| std::iter::repeat_n(table.oid, table.columns.len())))
        .texts("attname", columns().map(|field| field.name()))
        .numbers("atttypid", types().map(|of| of.oid))
        .number(&["attstattarget", "attcacheoff"], -1)
        .numbers("attlen", types().map(|of| of.length))
        .numbers("attnum", numbered)
        .numbers("attndims", columns().map(|field| dimensions(field.data_type())))
        .numbers("atttypmod", described.iter().map(|(_, modifier)| *modifier))
        .flags("attbyval", types().map(|of| of.is_by_value))
        .texts("attalign", types().map(|of| &of.alignment))
        .texts("attstorage", types().map(|of| &of.storage))
        .flags("attnotnull", columns().map(|field| !field.is_nullable()))
        .flag(&["attislocal"], true)
        .numbers("attcollation", types().map(|of| of.collation))
        .finish()
}

fn types() -> Result<RecordBatch> {
    let all = || TYPES.iter();
    let input = |of: &PgType| if of.category == "A" { "array_in".to_owned() } else { format!("{}in", of.name) };
    let output = |of: &PgType| if of.category == "A" { "array_out".to_owned() } else { format!("{}out", of.name) };
    start_rows("pg_type", TYPES.len())?
        .numbers("oid", all().map(|of| of.oid))
        .texts("typname", all().map(|of| &of.name))
        .number(&["typnamespace"], oid::builtin_schema_oid("pg_catalog"))
        .number(&["typowner"], oid::OWNER_OID)
        .numbers("typlen", all().map(|of| of.length))
        .flags("typbyval", all().map(|of| of.is_by_value))
        .texts("typtype", all().map(|of| &of.kind))
        .texts("typcategory", all().map(|of| &of.category))
        .flags("typispreferred", all().map(|of| of.is_preferred))
        .flag(&["typisdefined"], true)
        .text(&["typdelim"], ",")
        .text(&["typsubscript", "typreceive", "typsend", "typmodin", "typmodout", "typanalyze"], "-")
        .numbers("typelem", all().map(|of| of.element))
        .numbers("typarray", all().map(|of| of.array))
        .texts("typinput", all().map(input))
        .texts("typoutput", all().map(output))
        .texts("typalign", all().map(|of| &of.alignment))
        .texts("typstorage", all().map(|of| &of.storage))
        .number(&["typtypmod"], -1)
        .numbers("typcollation", all().map(|of| of.collation))
        .finish()
}

fn settings() -> Result<RecordBatch> {
    let all = || SETTINGS.iter();
    start_rows("pg_settings", SETTINGS.len())?
        .texts("name", all().map(|setting| setting.name))
        .texts("setting", all().map(|setting| setting.value))
        .texts("boot_val", all().map(|setting| setting.value))
        .texts("reset_val", all().map(|setting| setting.value))
        .texts("short_desc", all().map(|setting| setting.description))
        .text(&["category"], "Preset Options")
        .text(&["context"], "internal")
        .text(&["vartype"], "string")
        .text(&["source"], "default")
        .flag(&["pending_restart"], false)
        .finish()
}
