//! The rows of the catalogs.

use std::collections::BTreeSet;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;

use super::objects::{PUBLIC_SCHEMA, VisibleObjects, VisibleTable};
use super::relation::{CatalogRows, INFORMATION_SCHEMA, PG_CATALOG};
use super::types::{ColumnType, column_type};

/// The name of the role that owns all objects.
const OWNER_NAME: &str = "tidegate";
/// Bytes that a text may have.
const TEXT_BYTES: i64 = 1 << 30;

/// Returns the rows of the catalog with the full name `name`; none for objects that do not exist here.
///
/// # Errors
/// `Internal` if there is no such catalog.
pub fn catalog_rows(name: &str, objects: &VisibleObjects) -> Result<RecordBatch> {
    let tables = &objects.tables;
    match name {
        "information_schema.tables" => start_table_rows(name, objects, |table| [table].into_iter())?
            .text(&["table_type"], "BASE TABLE")
            .text(&["is_insertable_into", "is_typed"], "NO")
            .finish(),
        "information_schema.columns" => columns(objects),
        "information_schema.schemata" => {
            let own = tables.iter().map(|table| table.schema.as_str());
            let names: BTreeSet<&str> = own.chain([INFORMATION_SCHEMA, PG_CATALOG, PUBLIC_SCHEMA]).collect();
            CatalogRows::new(name, names.len())?
                .text(&["catalog_name"], &objects.database)
                .texts("schema_name", names)
                .text(&["schema_owner"], OWNER_NAME)
                .finish()
        }
        "information_schema.information_schema_catalog_name" => {
            CatalogRows::new(name, 1)?.text(&["catalog_name"], &objects.database).finish()
        }
        "information_schema.enabled_roles" => CatalogRows::new(name, 1)?.text(&["role_name"], &objects.user).finish(),
        "information_schema.table_privileges" | "information_schema.role_table_grants" => {
            let rows = start_table_rows(name, objects, |table| [table].into_iter())?;
            with_privileges(rows, objects).text(&["with_hierarchy"], "YES").finish()
        }
        "information_schema.column_privileges" | "information_schema.role_column_grants" => {
            with_privileges(start_column_rows(name, objects)?, objects).finish()
        }
        "pg_catalog.pg_tables" => CatalogRows::new(name, tables.len())?
            .texts("schemaname", tables.iter().map(|table| &table.schema))
            .texts("tablename", tables.iter().map(|table| &table.name))
            .text(&["tableowner"], OWNER_NAME)
            .flag(&["hasindexes", "hasrules", "hastriggers", "rowsecurity"], false)
            .finish(),
        other => CatalogRows::new(other, 0)?.finish(),
    }
}

/// Adds the privilege to read, which the caller has and may not grant.
fn with_privileges(rows: CatalogRows, objects: &VisibleObjects) -> CatalogRows {
    rows.text(&["grantor"], OWNER_NAME)
        .text(&["grantee"], &objects.user)
        .text(&["privilege_type"], "SELECT")
        .text(&["is_grantable"], "NO")
}

/// Starts rows with the names of a table, one for each item that `each` returns for it.
fn start_table_rows<'a, I: Iterator<Item = &'a VisibleTable>>(
    name: &str,
    objects: &'a VisibleObjects,
    each: impl Fn(&'a VisibleTable) -> I,
) -> Result<CatalogRows> {
    let tables = || objects.tables.iter().flat_map(&each);
    Ok(CatalogRows::new(name, tables().count())?
        .text(&["table_catalog"], &objects.database)
        .texts("table_schema", tables().map(|table| &table.schema))
        .texts("table_name", tables().map(|table| &table.name)))
}

fn start_column_rows(name: &str, objects: &VisibleObjects) -> Result<CatalogRows> {
    let names = objects.tables.iter().flat_map(|table| &table.columns).map(|field| field.name());
    let rows = start_table_rows(name, objects, |table| std::iter::repeat_n(table, table.columns.len()))?;
    Ok(rows.texts("column_name", names))
}

fn columns(objects: &VisibleObjects) -> Result<RecordBatch> {
    let fields = || objects.tables.iter().flat_map(|table| &table.columns);
    let types: Vec<ColumnType> = fields().map(|field| column_type(field)).collect();
    let numeric: Vec<NumericPrecision> = types.iter().map(|column| NumericPrecision::from_type(*column)).collect();
    let is_text = |column: &ColumnType| column.name == "text" && !column.is_array;
    let positions = || objects.tables.iter().flat_map(|table| 1_i64..=table.columns.len().try_into().unwrap_or(0));
    start_column_rows("information_schema.columns", objects)?
        .numbers("ordinal_position", positions().map(Some))
        .texts("is_nullable", fields().map(|field| if field.is_nullable() { "YES" } else { "NO" }))
        .texts("data_type", types.iter().map(|column| data_type(*column)))
        .numbers("character_octet_length", types.iter().map(|column| is_text(column).then_some(TEXT_BYTES)))
        .numbers("numeric_precision", numeric.iter().map(|numeric| numeric.precision))
        .numbers("numeric_precision_radix", numeric.iter().map(|numeric| numeric.radix))
        .numbers("numeric_scale", numeric.iter().map(|numeric| numeric.scale))
        .numbers("datetime_precision", types.iter().map(|column| time_precision(*column)))
        .text(&["udt_catalog"], &objects.database)
        .text(&["udt_schema"], PG_CATALOG)
        .texts("udt_name", types.iter().map(|column| column.own_name()))
        .texts("dtd_identifier", positions().map(|position| position.to_string()))
        .text(&["is_self_referencing", "is_identity", "identity_cycle", "is_updatable"], "NO")
        .text(&["is_generated"], "NEVER")
        .finish()
}

fn data_type(column: ColumnType) -> String {
    if column.is_array { "ARRAY".to_owned() } else { column.sql_name() }
}

/// Returns the digits of the seconds.
fn time_precision(column: ColumnType) -> Option<i64> {
    match column.name {
        _ if column.is_array => None,
        "date" => Some(0),
        "time" | "timestamp" | "timestamptz" | "interval" => Some(6),
        _ => None,
    }
}

/// The description of the type of a number.
#[derive(Default)]
struct NumericPrecision {
    precision: Option<i64>,
    radix: Option<i64>,
    scale: Option<i64>,
}

impl NumericPrecision {
    fn from_type(column: ColumnType) -> Self {
        let (precision, radix, scale) = match column.name {
            _ if column.is_array => return Self::default(),
            "int2" => (Some(16), 2, Some(0)),
            "int4" => (Some(32), 2, Some(0)),
            "int8" => (Some(64), 2, Some(0)),
            "float4" => (Some(24), 2, None),
            "float8" => (Some(53), 2, None),
            "numeric" => {
                let digits = column.digits;
                (digits.map(|(all, _)| i64::from(all)), 10, digits.map(|(_, scale)| i64::from(scale)))
            }
            _ => return Self::default(),
        };
        Self { precision, radix: Some(radix), scale }
    }
}
