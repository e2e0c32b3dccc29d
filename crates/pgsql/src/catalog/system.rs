//! The rows of `pg_catalog`.

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;

use super::objects::{OWNER, Objects, Table};
use super::oid;
use super::relation::Rows;
use super::settings::SETTINGS;
use super::types::{TYPES, Type, dimensions, of_field};

/// The access method of all tables.
const HEAP: i64 = 2;
const DEFAULT_TABLESPACE: i64 = 1_663;
const UTF8: i64 = 6;
/// The role of the caller.
pub(super) const USER: i64 = 16_383;

/// The rows of `relation` of `pg_catalog`; of those that tell of what there is none of here, none.
pub(super) fn rows(relation: &str, objects: &Objects) -> Result<RecordBatch> {
    let tables = &objects.tables;
    match relation {
        "pg_class" => classes(objects),
        "pg_attribute" => attributes(tables),
        "pg_type" => types(),
        "pg_namespace" => new(relation, objects.schemas.len())?
            .numbers("oid", objects.schemas.values().copied())
            .texts("nspname", objects.schemas.keys())
            .number(&["nspowner"], oid::OWNER)
            .finish(),
        "pg_tables" => new(relation, tables.len())?
            .texts("schemaname", tables.iter().map(|table| &table.schema))
            .texts("tablename", tables.iter().map(|table| &table.name))
            .text(&["tableowner"], OWNER)
            .flag(&["hasindexes", "hasrules", "hastriggers", "rowsecurity"], false)
            .finish(),
        "pg_stat_user_tables" => new(relation, tables.len())?
            .numbers("relid", tables.iter().map(|table| table.oid))
            .texts("schemaname", tables.iter().map(|table| &table.schema))
            .texts("relname", tables.iter().map(|table| &table.name))
            .maybe_numbers(
                "n_live_tup",
                tables.iter().map(|table| table.rows.and_then(|rows| i64::try_from(rows).ok())),
            )
            .finish(),
        "pg_description" => {
            let described = || tables.iter().filter(|table| table.comment.is_some());
            new(relation, described().count())?
                .numbers("objoid", described().map(|table| table.oid))
                .number(&["classoid"], oid::of_catalog("pg_class"))
                .texts("description", described().filter_map(|table| table.comment.as_ref()))
                .finish()
        }
        "pg_settings" => settings(),
        "pg_database" => database(objects),
        "pg_roles" => new(relation, 2)?
            .numbers("oid", [oid::OWNER, USER])
            .texts("rolname", [OWNER, &objects.user])
            .flag(&["rolsuper", "rolcreaterole", "rolcreatedb", "rolreplication", "rolbypassrls"], false)
            .flag(&["rolinherit"], true)
            .flags("rolcanlogin", [false, true])
            .number(&["rolconnlimit"], -1)
            .finish(),
        "pg_user" => new(relation, 1)?
            .text(&["usename"], &objects.user)
            .number(&["usesysid"], USER)
            .flag(&["usecreatedb", "usesuper", "userepl", "usebypassrls"], false)
            .finish(),
        "pg_am" => new(relation, 1)?
            .number(&["oid"], HEAP)
            .text(&["amname"], "heap")
            .text(&["amhandler"], "heap_tableam_handler")
            .text(&["amtype"], "t")
            .finish(),
        "pg_tablespace" => new(relation, 1)?
            .number(&["oid"], DEFAULT_TABLESPACE)
            .text(&["spcname"], "pg_default")
            .number(&["spcowner"], oid::OWNER)
            .finish(),
        other => new(other, 0)?.finish(),
    }
}

fn database(objects: &Objects) -> Result<RecordBatch> {
    new("pg_database", 1)?
        .number(&["oid"], oid::DATABASE)
        .text(&["datname"], &objects.database)
        .number(&["datdba"], oid::OWNER)
        .number(&["encoding"], UTF8)
        .text(&["datlocprovider"], "c")
        .flag(&["datallowconn"], true)
        .number(&["datconnlimit"], -1)
        .number(&["dattablespace"], DEFAULT_TABLESPACE)
        .text(&["datcollate", "datctype"], "C")
        .finish()
}

fn new(relation: &str, rows: usize) -> Result<Rows> {
    Rows::new(&format!("pg_catalog.{relation}"), rows)
}

fn classes(objects: &Objects) -> Result<RecordBatch> {
    let tables = &objects.tables;
    // A number that is not known is -1, as of a table that was never analyzed.
    let rows = |table: &Table| table.rows.and_then(|rows| i64::try_from(rows).ok()).unwrap_or(-1);
    new("pg_class", tables.len())?
        .numbers("oid", tables.iter().map(|table| table.oid))
        .texts("relname", tables.iter().map(|table| &table.name))
        .numbers("relnamespace", tables.iter().map(|table| objects.schema_oid(&table.schema)))
        .number(&["relowner"], oid::OWNER)
        .number(&["relam"], HEAP)
        .numbers("reltuples", tables.iter().map(rows))
        .text(&["relpersistence"], "p")
        .text(&["relkind"], "r")
        .numbers("relnatts", tables.iter().map(|table| i64::try_from(table.columns.len()).unwrap_or_default()))
        .text(&["relreplident"], "d")
        .flag(&["relispopulated"], true)
        .finish()
}

fn attributes(tables: &[Table]) -> Result<RecordBatch> {
    let columns = || tables.iter().flat_map(|table| &table.columns);
    let described: Vec<(&Type, i64)> = columns().map(|field| of_field(field)).collect();
    let types = || described.iter().map(|(of, _)| *of);
    let numbered = tables.iter().flat_map(|table| (1..).take(table.columns.len()));
    new("pg_attribute", described.len())?
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
    let input = |of: &Type| if of.category == "A" { "array_in".to_owned() } else { format!("{}in", of.name) };
    let output = |of: &Type| if of.category == "A" { "array_out".to_owned() } else { format!("{}out", of.name) };
    new("pg_type", TYPES.len())?
        .numbers("oid", all().map(|of| of.oid))
        .texts("typname", all().map(|of| &of.name))
        .number(&["typnamespace"], oid::of_schema("pg_catalog"))
        .number(&["typowner"], oid::OWNER)
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
    new("pg_settings", SETTINGS.len())?
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
