//! The columns of a result and their types.
//!
//! In SQLite, types belong to values. Only columns of STRICT tables and aliases of the rowid have a guaranteed type.
//! Every other column is a union of SQLite's four types, so that each value keeps its own type.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UnionFields, UnionMode};
use rusqlite::Statement;

use crate::catalog;
use crate::session::ReadTransaction;
use crate::tables::{SqliteType, TableKind};
use crate::work_error::WorkError;

const DECLARED_TYPE_KEY: &str = "tidegate.type";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResultColumn {
    name: String,
    declared_type: Option<String>,
    pub(super) kind: SqliteType,
}

fn data_type(kind: SqliteType) -> DataType {
    match kind {
        SqliteType::Integer => DataType::Int64,
        SqliteType::Real => DataType::Float64,
        SqliteType::Text => DataType::Utf8,
        SqliteType::Blob => DataType::Binary,
        SqliteType::Any => DataType::Union(any_fields(), UnionMode::Dense),
    }
}

/// The members of the union of a column without a certain type. Null is stored as a null blob, so that it sorts last.
pub(super) fn any_fields() -> UnionFields {
    static FIELDS: LazyLock<UnionFields> = LazyLock::new(|| {
        let members = [
            ("integer", DataType::Int64),
            ("real", DataType::Float64),
            ("text", DataType::Utf8),
            ("blob", DataType::Binary),
        ];
        let fields = members.into_iter().map(|(name, data_type)| Arc::new(Field::new(name, data_type, true)));
        (0_i8..).zip(fields).collect()
    });
    FIELDS.clone()
}

pub(crate) fn describe_columns(
    reading: &ReadTransaction<'_>,
    statement: &Statement<'_>,
    sql: &str,
) -> Result<Vec<ResultColumn>, WorkError> {
    let certain = CertainTypes::from_statement(reading, sql)?;
    let declared: Vec<Option<String>> =
        statement.columns().map(|column| column.decl_type().map(str::to_owned)).collect();
    let mut columns = Vec::with_capacity(declared.len());
    for (origin, declared) in statement.columns_with_metadata().zip(declared) {
        let kind = match (origin.database_name(), origin.table_name(), origin.origin_name()) {
            (Some(schema), Some(table), Some(column)) => certain.column_type(schema, table, column),
            _ => SqliteType::Any,
        };
        columns.push(ResultColumn { name: origin.name().to_owned(), declared_type: declared, kind });
    }
    Ok(columns)
}

pub(crate) fn arrow_schema(columns: &[ResultColumn]) -> SchemaRef {
    let fields = columns.iter().map(|column| {
        // Always nullable: joins produce nulls for columns that have none.
        let field = Field::new(&column.name, data_type(column.kind), true);
        match &column.declared_type {
            Some(declared) => field.with_metadata(HashMap::from([(DECLARED_TYPE_KEY.to_owned(), declared.clone())])),
            None => field,
        }
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The columns with a certain type, among the tables that a statement reads.
struct CertainTypes {
    kinds: BTreeMap<(String, String, String), SqliteType>,
}

/// The origin name that SQLite reports for `SELECT rowid` if no column has that name.
const ROWID: &str = "rowid";

/// For queries with these keywords, SQLite reports the origin of only one of the combined columns.
const COMPOUND_KEYWORDS: &[&str] = &["union", "intersect", "except", "values"];

impl CertainTypes {
    fn from_statement(reading: &ReadTransaction<'_>, sql: &str) -> Result<Self, WorkError> {
        let mut kinds = BTreeMap::new();
        let text = sql.to_lowercase();
        // The word may also be part of a name or a text. Then only the certainty of a type is lost.
        if COMPOUND_KEYWORDS.iter().any(|word| text.contains(word)) {
            return Ok(Self { kinds });
        }
        for (schema, name) in reading.tables_read() {
            // Policy views pass the values of their table on unchanged.
            if reading.policy_views().is_some_and(|policy_views| policy_views.is_policy_view(&schema, &name)) {
                continue;
            }
            let Some(table) = catalog::lookup_table(reading, &schema, &name)? else { continue };
            if table.kind == TableKind::View {
                // The definition of another view would also have to be checked.
                return Ok(Self { kinds: BTreeMap::new() });
            }
            let columns = catalog::read_columns(reading, &table)?;
            let has_rowid = table.kind == TableKind::Table && !table.is_without_rowid;
            if has_rowid && !columns.iter().any(|column| column.name.eq_ignore_ascii_case(ROWID)) {
                kinds.insert((table.schema.clone(), table.name.clone(), ROWID.to_owned()), SqliteType::Integer);
            }
            for column in columns {
                if let Some(kind) = column.certain_type(&table) {
                    kinds.insert((table.schema.clone(), table.name.clone(), column.name), kind);
                }
            }
        }
        Ok(Self { kinds })
    }

    fn column_type(&self, schema: &str, table: &str, column: &str) -> SqliteType {
        let key = (schema.to_owned(), table.to_owned(), column.to_owned());
        self.kinds.get(&key).copied().unwrap_or(SqliteType::Any)
    }
}
