//! Statements that the server has parsed, with the columns of their results.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use arrow::datatypes::SchemaRef;
use tidegate_sql::SqlDialect;
use tokio_postgres::types::{Kind, Type};
use tokio_postgres::{Client, Column, Error, Statement};

use crate::values::{ColumnDecoder, arrow_schema, type_name};

pub(crate) struct PreparedStatement {
    pub(crate) statement: Statement,
    pub(crate) columns: Vec<ColumnDecoder>,
    pub(crate) schema: SchemaRef,
    /// The user-defined types of its columns and parameters.
    pub(crate) types: Vec<Type>,
    pub(crate) composites: CompositeTypes,
    /// The statement as written, if it runs in the FROM of another one.
    original_statement: Option<Statement>,
    /// Whether the statement needs no transaction around it: it can leave nothing behind in the session. Unset until it is known.
    pub(crate) runs_alone: OnceLock<bool>,
}

pub(crate) enum PrepareError {
    Server(Error),
    /// The values of a column cannot be read, and the statement cannot be in a FROM.
    Column {
        name: String,
        type_name: String,
    },
}

impl From<Error> for PrepareError {
    fn from(error: Error) -> Self {
        Self::Server(error)
    }
}

/// Prepares `text`. Columns of types with an unknown binary form are selected as text.
pub(crate) async fn prepare(client: &Client, text: &str, writes: bool) -> Result<PreparedStatement, PrepareError> {
    let statement = client.prepare(text).await?;
    let types = statement.columns().iter().map(Column::type_).chain(statement.params());
    let types = types.filter(|kind| Type::from_oid(kind.oid()).is_none()).cloned().collect();
    let decoders: Vec<Option<ColumnDecoder>> = statement
        .columns()
        .iter()
        .map(|column| ColumnDecoder::for_type(column.name(), column.type_(), column.type_modifier()))
        .collect();
    let Some(unknown) = decoders.iter().position(Option::is_none) else {
        return Ok(PreparedStatement::new(statement, decoders.into_iter().flatten().collect(), types));
    };
    if writes {
        let column = &statement.columns()[unknown];
        let type_name = type_name(column.type_(), column.type_modifier());
        return Err(PrepareError::Column { name: column.name().to_owned(), type_name });
    }
    let with_casts = client.prepare(&select_with_text_casts(text, statement.columns(), &decoders)).await?;
    let columns = statement.columns().iter().zip(decoders).map(|(column, decoder)| {
        decoder.unwrap_or_else(|| ColumnDecoder::for_text(column.name(), column.type_(), column.type_modifier()))
    });
    let prepared = PreparedStatement::new(with_casts, columns.collect(), types);
    Ok(PreparedStatement { original_statement: Some(statement), ..prepared })
}

impl PreparedStatement {
    fn new(statement: Statement, columns: Vec<ColumnDecoder>, types: Vec<Type>) -> Self {
        let composites = CompositeTypes::new(&types);
        let (schema, original_statement) = (arrow_schema(&columns), None);
        Self { statement, schema, columns, types, composites, original_statement, runs_alone: OnceLock::new() }
    }

    /// Whether the server refuses to run the statement after its columns have changed. It does not notice changed
    /// members of composite types, nor new or renamed columns of a statement in a FROM.
    pub(crate) fn is_checked_by_server(&self) -> bool {
        self.original_statement.is_none() && self.composites.is_empty()
    }

    /// Whether `text`, from which this was prepared, still has the same columns. Its tables are locked until the
    /// transaction ends, but not composite types that belong to no table.
    pub(crate) async fn is_current(&self, client: &Client, text: &str) -> Result<bool, Error> {
        if self.is_checked_by_server() {
            return Ok(true);
        }
        // Both are sent together, the statement first: parsing it takes the locks.
        let (current, are_current) = futures::join!(client.prepare(text), self.composites.are_current(client));
        let original = self.original_statement.as_ref().unwrap_or(&self.statement);
        Ok(column_descriptions(&current?).eq(column_descriptions(original)) && are_current?)
    }
}

/// Names, types and modifiers of the columns of `statement`.
fn column_descriptions(statement: &Statement) -> impl Iterator<Item = (&str, u32, i32)> {
    statement.columns().iter().map(|column| (column.name(), column.type_().oid(), column.type_modifier()))
}

/// Selects the columns of `text` in their order; those without a decoder are cast to text. The inner names are
/// generated, because those of the statement may be empty or equal.
fn select_with_text_casts(text: &str, columns: &[Column], decoders: &[Option<ColumnDecoder>]) -> String {
    let select = |(index, (column, decoder)): (usize, (&Column, &Option<ColumnDecoder>))| {
        let cast = if decoder.is_none() { "::pg_catalog.text" } else { "" };
        let name = match column.name() {
            "" => String::new(),
            name => format!(" AS {}", SqlDialect::Postgres.quote_identifier(name)),
        };
        format!("answer.c{index}{cast}{name}")
    };
    let selected: Vec<String> = columns.iter().zip(decoders).enumerate().map(select).collect();
    let names: Vec<String> = (0..columns.len()).map(|index| format!("c{index}")).collect();
    let text = text.trim_end().trim_end_matches(';');
    // The statement may end in a comment.
    format!("SELECT {} FROM ({text}\n) AS answer({})", selected.join(", "), names.join(", "))
}

const MEMBERS_SQL: &str = "
    SELECT t.oid, a.attname::text, a.atttypid
    FROM pg_catalog.pg_type t JOIN pg_catalog.pg_attribute a ON a.attrelid = t.typrelid
    WHERE t.oid = ANY ($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY t.oid, a.attnum";

/// The composite types of a statement, as the driver loaded them: names and types of their members by the type's oid.
///
/// The driver loads a type once for each connection, and the server does not report changes. Renamed members would keep
/// their old names.
#[derive(Debug, Clone)]
pub(crate) struct CompositeTypes(BTreeMap<u32, Vec<(String, u32)>>);

impl CompositeTypes {
    fn new(types: &[Type]) -> Self {
        let mut composites = Self(BTreeMap::new());
        types.iter().for_each(|kind| composites.add(kind));
        composites
    }

    fn add(&mut self, kind: &Type) {
        match kind.kind() {
            Kind::Array(inner) | Kind::Domain(inner) | Kind::Range(inner) => self.add(inner),
            Kind::Composite(fields) => {
                let members = fields.iter().map(|field| (field.name().to_owned(), field.type_().oid()));
                self.0.insert(kind.oid(), members.collect());
                fields.iter().for_each(|field| self.add(field.type_()));
            }
            _ => {}
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the types still have the same members. Queries the server if there are any.
    pub(crate) async fn are_current(&self, client: &Client) -> Result<bool, Error> {
        if self.is_empty() {
            return Ok(true);
        }
        let oids: Vec<u32> = self.0.keys().copied().collect();
        let mut current: BTreeMap<u32, Vec<(String, u32)>> = BTreeMap::new();
        for row in client.query_typed(MEMBERS_SQL, &[(&oids, Type::OID_ARRAY)]).await? {
            current.entry(row.try_get(0)?).or_default().push((row.try_get(1)?, row.try_get(2)?));
        }
        // A type without members has no rows.
        Ok(self.0.iter().filter(|(_, members)| !members.is_empty()).eq(current.iter()))
    }
}
