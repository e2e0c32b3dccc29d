//! The columns of an answer and their types.
//!
//! SQLite's types belong to values. Certain are only the columns of STRICT tables and the aliases of the rowid; every
//! other column is a union of SQLite's four types, so that each value keeps its own.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UnionFields, UnionMode};
use rusqlite::Statement;

use crate::session::ReadTransaction;
use crate::tables::{self, TableKind};
use crate::work_error::WorkError;

/// The key under which a field's metadata has the type that the column was declared with.
const DECLARED_TYPE_KEY: &str = "tidegate.type";

/// A column of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResultColumn {
    name: String,
    declared_type: Option<String>,
    pub(super) kind: SqliteType,
}

/// What a column's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SqliteType {
    Integer,
    Real,
    Text,
    Blob,
    /// Each has a type of its own.
    Any,
}

impl SqliteType {
    fn data_type(self) -> DataType {
        match self {
            Self::Integer => DataType::Int64,
            Self::Real => DataType::Float64,
            Self::Text => DataType::Utf8,
            Self::Blob => DataType::Binary,
            Self::Any => DataType::Union(any_fields(), UnionMode::Dense),
        }
    }
}

/// The members of a column whose values have their own types. Null is a null blob, so that it is sorted last.
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

/// The columns of `statement`, which was prepared from `filter_to_sql` just now.
///
/// # Errors
/// When the catalog cannot be read.
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
        let place = (origin.database_name(), origin.table_name(), origin.origin_name());
        let kind = match place {
            (Some(schema), Some(table), Some(column)) => certain.column_type(schema, table, column),
            _ => SqliteType::Any,
        };
        columns.push(ResultColumn { name: origin.name().to_owned(), declared_type: declared, kind });
    }
    Ok(columns)
}

/// `columns` as Arrow has them.
pub(crate) fn arrow_schema(columns: &[ResultColumn]) -> SchemaRef {
    let fields = columns.iter().map(|column| {
        // Whether a value may be null is not known: joins make nulls of what has none.
        let field = Field::new(&column.name, column.kind.data_type(), true);
        match &column.declared_type {
            Some(declared) => field.with_metadata(HashMap::from([(DECLARED_TYPE_KEY.to_owned(), declared.clone())])),
            None => field,
        }
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The columns of the tables that a statement reads whose types are certain.
struct CertainTypes {
    kinds: BTreeMap<(String, String, String), SqliteType>,
}

/// The origin of `SELECT rowid` where no column has that name.
const ROWID: &str = "rowid";

/// What joins several queries to one, or makes rows of nothing: SQLite names the origin of a column by one of them.
const COMPOUND_KEYWORDS: &[&str] = &["union", "intersect", "except", "values"];

impl CertainTypes {
    fn from_statement(reading: &ReadTransaction<'_>, sql: &str) -> Result<Self, WorkError> {
        let mut kinds = BTreeMap::new();
        let text = sql.to_lowercase();
        // Found in a name or a text too, which costs no more than a type.
        if COMPOUND_KEYWORDS.iter().any(|word| text.contains(word)) {
            return Ok(Self { kinds });
        }
        for (schema, name) in reading.tables_read() {
            // Views that stand before tables hand their values on.
            if reading.policy_views().is_some_and(|policy_views| policy_views.is_policy_view(&schema, &name)) {
                continue;
            }
            let Some(table) = tables::lookup_table(reading, &schema, &name)? else { continue };
            if table.kind == TableKind::View {
                // Its text would have to be looked at as well.
                return Ok(Self { kinds: BTreeMap::new() });
            }
            let columns = tables::read_columns(reading, &table)?;
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
