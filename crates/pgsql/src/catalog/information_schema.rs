//! The rows of `information_schema`.

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;

use super::objects::{OWNER_NAME, VisibleObjects, VisibleTable};
use super::relation::CatalogRows;
use super::types::{PgType, column_type, digits, format_type};

/// Bytes that a text may have.
const TEXT_BYTES: i64 = 1 << 30;

/// Returns the rows of `relation` of `information_schema`; none for objects that do not exist here.
pub(super) fn rows(relation: &str, objects: &VisibleObjects) -> Result<RecordBatch> {
    match relation {
        "tables" => start_table_rows(relation, objects, |table| [table].into_iter())?
            .text(&["table_type"], "BASE TABLE")
            .text(&["is_insertable_into", "is_typed"], "NO")
            .finish(),
        "columns" => columns(objects),
        "schemata" => start_rows(relation, objects.schemas.len())?
            .text(&["catalog_name"], &objects.database)
            .texts("schema_name", objects.schemas.keys())
            .text(&["schema_owner"], OWNER_NAME)
            .finish(),
        "information_schema_catalog_name" => {
            start_rows(relation, 1)?.text(&["catalog_name"], &objects.database).finish()
        }
        "enabled_roles" => start_rows(relation, 1)?.text(&["role_name"], &objects.user).finish(),
        "table_privileges" | "role_table_grants" => start_table_rows(relation, objects, |table| [table].into_iter())?
            .text(&["grantor"], OWNER_NAME)
            .text(&["grantee"], &objects.user)
            .text(&["privilege_type"], "SELECT")
            .text(&["is_grantable"], "NO")
            .text(&["with_hierarchy"], "YES")
            .finish(),
        "column_privileges" | "role_column_grants" => start_column_rows(relation, objects)?
            .text(&["grantor"], OWNER_NAME)
            .text(&["grantee"], &objects.user)
            .text(&["privilege_type"], "SELECT")
            .text(&["is_grantable"], "NO")
            .finish(),
        other => start_rows(other, 0)?.finish(),
    }
}

fn start_rows(relation: &str, rows: usize) -> Result<CatalogRows> {
    CatalogRows::new(&format!("information_schema.{relation}"), rows)
}

/// Starts rows with the names of a table, one for each item that `each` returns for it.
fn start_table_rows<'a, I: Iterator<Item = &'a VisibleTable>>(
    relation: &str,
    objects: &'a VisibleObjects,
    each: impl Fn(&'a VisibleTable) -> I,
) -> Result<CatalogRows> {
    let tables = || objects.tables.iter().flat_map(&each);
    Ok(start_rows(relation, tables().count())?
        .text(&["table_catalog"], &objects.database)
        .texts("table_schema", tables().map(|table| &table.schema))
        .texts("table_name", tables().map(|table| &table.name)))
}

fn start_column_rows(relation: &str, objects: &VisibleObjects) -> Result<CatalogRows> {
    let names = objects.tables.iter().flat_map(|table| &table.columns).map(|field| field.name());
    let rows = start_table_rows(relation, objects, |table| std::iter::repeat_n(table, table.columns.len()))?;
    Ok(rows.texts("column_name", names))
}

fn columns(objects: &VisibleObjects) -> Result<RecordBatch> {
    let fields = || objects.tables.iter().flat_map(|table| &table.columns);
    let described: Vec<(&PgType, i64)> = fields().map(|field| column_type(field)).collect();
    let types = || described.iter().map(|(of, _)| *of);
    let numeric: Vec<NumericPrecision> =
        described.iter().map(|(of, modifier)| NumericPrecision::from_type(of, *modifier)).collect();
    let positions = || objects.tables.iter().flat_map(|table| 1_i64..=table.columns.len().try_into().unwrap_or(0));
    start_column_rows("columns", objects)?
        .numbers("ordinal_position", positions())
        .texts("is_nullable", fields().map(|field| if field.is_nullable() { "YES" } else { "NO" }))
        .texts("data_type", types().map(data_type))
        .nullable_numbers("character_octet_length", types().map(|of| (of.category == "S").then_some(TEXT_BYTES)))
        .nullable_numbers("numeric_precision", numeric.iter().map(|numeric| numeric.precision))
        .nullable_numbers("numeric_precision_radix", numeric.iter().map(|numeric| numeric.radix))
        .nullable_numbers("numeric_scale", numeric.iter().map(|numeric| numeric.scale))
        .nullable_numbers("datetime_precision", types().map(time_precision))
        .text(&["udt_catalog"], &objects.database)
        .text(&["udt_schema"], "pg_catalog")
        .texts("udt_name", types().map(|of| &of.name))
        .texts("dtd_identifier", positions().map(|position| position.to_string()))
        .text(&["is_self_referencing", "is_identity", "identity_cycle", "is_updatable"], "NO")
        .text(&["is_generated"], "NEVER")
        .finish()
}

fn data_type(of: &PgType) -> String {
    if of.category == "A" { "ARRAY".to_owned() } else { format_type(of.oid, None) }
}

/// Returns the digits of the seconds.
fn time_precision(of: &PgType) -> Option<i64> {
    match of.name.as_str() {
        "date" => Some(0),
        "time" | "timestamp" | "timestamptz" | "interval" => Some(6),
        _ => None,
    }
}

/// The description of the type of a number.
struct NumericPrecision {
    precision: Option<i64>,
    radix: Option<i64>,
    scale: Option<i64>,
}

impl NumericPrecision {
    fn from_type(of: &PgType, modifier: i64) -> Self {
        let (precision, radix, scale) = match of.name.as_str() {
            "int2" => (Some(16), Some(2), Some(0)),
            "int4" => (Some(32), Some(2), Some(0)),
            "int8" => (Some(64), Some(2), Some(0)),
            "float4" => (Some(24), Some(2), None),
            "float8" => (Some(53), Some(2), None),
            "numeric" => {
                let digits = digits(modifier);
                (digits.map(|(precision, _)| precision), Some(10), digits.map(|(_, scale)| scale))
            }
            _ => (None, None, None),
        };
        Self { precision, radix, scale }
    }
}
