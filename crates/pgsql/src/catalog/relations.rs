//! The relations of the catalogs: their columns, the tables that they show to a caller, and their rows.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::{Result, internal_err};

use super::type_name::{ColumnType, column_type};
use crate::data_type::timestamptz;

/// The schemas of the catalogs.
pub(super) const PG_CATALOG: &str = "pg_catalog";

const INFORMATION_SCHEMA: &str = "information_schema";

/// The columns of each relation, by its full name.
static RELATIONS: LazyLock<BTreeMap<String, SchemaRef>> =
    LazyLock::new(|| parse_relations(include_str!("relations.txt")));

fn parse_relations(text: &str) -> BTreeMap<String, SchemaRef> {
    let mut relations: BTreeMap<String, String> = BTreeMap::new();
    let mut name = "";
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        match line.strip_prefix("  ") {
            None => name = line,
            Some(columns) => {
                let all = relations.entry(name.to_owned()).or_default();
                all.push_str(columns);
                all.push(' ');
            }
        }
    }
    let schema_of = |columns: &str| -> SchemaRef {
        let columns = columns.split(',').filter_map(|column| column.trim().split_once(' '));
        let fields = columns.map(|(name, of)| Field::new(name, arrow_type(of), true));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    };
    relations.into_iter().map(|(name, columns)| (name, schema_of(&columns))).collect()
}

fn arrow_type(of: &str) -> DataType {
    match of {
        "bool" => DataType::Boolean,
        "int4" => DataType::Int32,
        "timestamptz" => timestamptz(),
        _ => DataType::Utf8,
    }
}

/// Returns the full name of a catalog that a statement names, ignoring case. Without a schema, it is one of
/// `pg_catalog`.
pub fn relation_name(schema: Option<&str>, name: &str) -> Option<&'static str> {
    let schema = schema.map_or_else(|| PG_CATALOG.to_owned(), str::to_lowercase);
    let full = format!("{schema}.{}", name.to_lowercase());
    RELATIONS.get_key_value(&full).map(|(name, _)| name.as_str())
}

/// Returns the full names of all catalogs.
#[cfg(test)]
pub(super) fn relation_names() -> impl Iterator<Item = &'static str> {
    RELATIONS.keys().map(String::as_str)
}

/// Builds the rows of a catalog column by column. Columns without values are NULL.
struct CatalogRows {
    schema: SchemaRef,
    rows: usize,
    columns: HashMap<&'static str, ArrayRef>,
}

impl CatalogRows {
    /// Starts `rows` rows of the catalog with the full name `relation`.
    fn new(relation: &str, rows: usize) -> Result<Self> {
        match RELATIONS.get(relation) {
            Some(schema) => Ok(Self { schema: schema.clone(), rows, columns: HashMap::new() }),
            None => internal_err!("there is no catalog {relation}"),
        }
    }

    fn texts<T: Into<String>>(self, column: &'static str, values: impl IntoIterator<Item = T>) -> Self {
        self.with(column, Arc::new(values.into_iter().map(|value| Some(value.into())).collect::<StringArray>()))
    }

    fn numbers(self, column: &'static str, values: impl IntoIterator<Item = Option<i64>>) -> Self {
        self.with(column, Arc::new(values.into_iter().collect::<Int64Array>()))
    }

    /// Sets the same text in all rows of some columns.
    fn text(self, columns: &[&'static str], value: &str) -> Self {
        let rows = self.rows;
        columns.iter().fold(self, |all, column| all.texts(column, std::iter::repeat_n(value, rows)))
    }

    fn flag(self, columns: &[&'static str], value: bool) -> Self {
        let values: ArrayRef = Arc::new(BooleanArray::from(vec![value; self.rows]));
        columns.iter().fold(self, |all, column| all.with(column, values.clone()))
    }

    fn with(mut self, column: &'static str, values: ArrayRef) -> Self {
        self.columns.insert(column, values);
        self
    }

    fn finish(mut self) -> Result<RecordBatch> {
        let mut columns = Vec::new();
        for field in self.schema.fields() {
            columns.push(match self.columns.remove(field.name().as_str()) {
                Some(values) => cast(&values, field.data_type())?,
                None => new_null_array(field.data_type(), self.rows),
            });
        }
        if let Some(column) = self.columns.keys().next() {
            return internal_err!("a catalog has no column {column}");
        }
        Ok(RecordBatch::try_new(self.schema, columns)?)
    }
}

/// The schema of tables that have no schema of their own.
pub const PUBLIC_SCHEMA: &str = "public";

/// The tables and columns of one database that one caller may see at one moment. The catalogs contain nothing else.
#[derive(Debug, Clone, Default)]
pub struct VisibleObjects {
    pub(super) database: String,
    pub(super) user: String,
    tables: Vec<VisibleTable>,
}

/// A table that a caller may see.
#[derive(Debug, Clone)]
pub struct VisibleTable {
    /// The schema of the table.
    pub schema: String,
    /// The name of the table within its schema.
    pub name: String,
    /// The columns that the caller may see. Empty if the table cannot be read, or if the statement needs no columns.
    pub columns: Vec<FieldRef>,
}

impl VisibleObjects {
    /// Creates the view of the `tables` of `database` that `user` may see.
    pub fn new(database: impl Into<String>, user: impl Into<String>, mut tables: Vec<VisibleTable>) -> Self {
        tables.sort_by(|left, right| (&left.schema, &left.name).cmp(&(&right.schema, &right.name)));
        Self { database: database.into(), user: user.into(), tables }
    }

    /// Returns the number of columns of all tables.
    pub fn column_count(&self) -> usize {
        self.tables.iter().map(|table| table.columns.len()).sum()
    }
}

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
