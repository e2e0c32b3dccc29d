//! The rows of `information_schema`.

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;

use super::objects::{OWNER, Objects, Table};
use super::relation::Rows;
use super::types::{Type, digits, format_type, of_field};

/// Bytes that a text may have.
const TEXT_BYTES: i64 = 1 << 30;

/// The rows of `relation` of `information_schema`; of those that tell of what there is none of here, none.
pub(super) fn rows(relation: &str, objects: &Objects) -> Result<RecordBatch> {
    match relation {
        "tables" => of_tables(relation, objects, |table| [table].into_iter())?
            .text(&["table_type"], "BASE TABLE")
            .text(&["is_insertable_into", "is_typed"], "NO")
            .finish(),
        "columns" => columns(objects),
        "schemata" => new(relation, objects.schemas.len())?
            .text(&["catalog_name"], &objects.database)
            .texts("schema_name", objects.schemas.keys())
            .text(&["schema_owner"], OWNER)
            .finish(),
        "information_schema_catalog_name" => new(relation, 1)?.text(&["catalog_name"], &objects.database).finish(),
        "enabled_roles" => new(relation, 1)?.text(&["role_name"], &objects.user).finish(),
        "table_privileges" | "role_table_grants" => of_tables(relation, objects, |table| [table].into_iter())?
            .text(&["grantor"], OWNER)
            .text(&["grantee"], &objects.user)
            .text(&["privilege_type"], "SELECT")
            .text(&["is_grantable"], "NO")
            .text(&["with_hierarchy"], "YES")
            .finish(),
        "column_privileges" | "role_column_grants" => of_columns(relation, objects)?
            .text(&["grantor"], OWNER)
            .text(&["grantee"], &objects.user)
            .text(&["privilege_type"], "SELECT")
            .text(&["is_grantable"], "NO")
            .finish(),
        other => new(other, 0)?.finish(),
    }
}

fn new(relation: &str, rows: usize) -> Result<Rows> {
    Rows::new(&format!("information_schema.{relation}"), rows)
}

/// Rows that begin with the names of a table, as many of each as `each` gives.
fn of_tables<'a, I: Iterator<Item = &'a Table>>(
    relation: &str,
    objects: &'a Objects,
    each: impl Fn(&'a Table) -> I,
) -> Result<Rows> {
    let tables = || objects.tables.iter().flat_map(&each);
    Ok(new(relation, tables().count())?
        .text(&["table_catalog"], &objects.database)
        .texts("table_schema", tables().map(|table| &table.schema))
        .texts("table_name", tables().map(|table| &table.name)))
}

fn of_columns(relation: &str, objects: &Objects) -> Result<Rows> {
    let names = objects.tables.iter().flat_map(|table| &table.columns).map(|field| field.name());
    let rows = of_tables(relation, objects, |table| std::iter::repeat_n(table, table.columns.len()))?;
    Ok(rows.texts("column_name", names))
}

fn columns(objects: &Objects) -> Result<RecordBatch> {
    let fields = || objects.tables.iter().flat_map(|table| &table.columns);
    let described: Vec<(&Type, i64)> = fields().map(|field| of_field(field)).collect();
    let types = || described.iter().map(|(of, _)| *of);
    let numeric: Vec<Numeric> = described.iter().map(|(of, modifier)| Numeric::of(of, *modifier)).collect();
    let positions = || objects.tables.iter().flat_map(|table| 1_i64..=table.columns.len().try_into().unwrap_or(0));
    of_columns("columns", objects)?
        .numbers("ordinal_position", positions())
        .texts("is_nullable", fields().map(|field| if field.is_nullable() { "YES" } else { "NO" }))
        .texts("data_type", types().map(data_type))
        .maybe_numbers("character_octet_length", types().map(|of| (of.category == "S").then_some(TEXT_BYTES)))
        .maybe_numbers("numeric_precision", numeric.iter().map(|numeric| numeric.precision))
        .maybe_numbers("numeric_precision_radix", numeric.iter().map(|numeric| numeric.radix))
        .maybe_numbers("numeric_scale", numeric.iter().map(|numeric| numeric.scale))
        .maybe_numbers("datetime_precision", types().map(time_precision))
        .text(&["udt_catalog"], &objects.database)
        .text(&["udt_schema"], "pg_catalog")
        .texts("udt_name", types().map(|of| &of.name))
        .texts("dtd_identifier", positions().map(|position| position.to_string()))
        .text(&["is_self_referencing", "is_identity", "identity_cycle", "is_updatable"], "NO")
        .text(&["is_generated"], "NEVER")
        .finish()
}

fn data_type(of: &Type) -> String {
    if of.category == "A" { "ARRAY".to_owned() } else { format_type(of.oid, None) }
}

/// The digits of the seconds.
fn time_precision(of: &Type) -> Option<i64> {
    match of.name.as_str() {
        "date" => Some(0),
        "time" | "timestamp" | "timestamptz" | "interval" => Some(6),
        _ => None,
    }
}

/// The description of the type of a number.
struct Numeric {
    precision: Option<i64>,
    radix: Option<i64>,
    scale: Option<i64>,
}

impl Numeric {
    fn of(of: &Type, modifier: i64) -> Self {
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
