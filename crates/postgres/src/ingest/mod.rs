//! Tables that take rows: each write is one transaction, and its rows are sent with `COPY … FROM STDIN BINARY`.
//!
//! # Who writes
//!
//! A write runs as the role of the connection, with connections of its own. The role and the claims of a caller do not
//! apply: whether a caller may write is decided before. The role needs `INSERT` on the columns, `DELETE` on a table that
//! is replaced, and no row-level security on the table, which `COPY` does not support.
//!
//! # Columns
//!
//! The columns of a body are those of the table, without generated ones, without `GENERATED ALWAYS AS IDENTITY`, and
//! without columns that may be missing and whose type has no binary form here. Their Arrow types are those of reading,
//! except that `numeric` without a precision is `Decimal256(76, 38)`, and that times and timestamps with a precision have
//! the coarsest unit that holds it. The server would round and cut values silently, so the values are checked before.
//!
//! [`WritePlan`](tidegate_query::WritePlan) says when the default of a column applies.
//!
//! # Replacing
//!
//! `WriteMode::Replace` locks the table against other writers (`SHARE ROW EXCLUSIVE`), deletes its rows and copies the
//! new ones, in one transaction. Readers see the old rows until then. `TRUNCATE` would block readers for the whole body,
//! and would show an empty table to transactions with an older snapshot.
//!
//! # Sequence
//!
//! The sequence of a receipt is the number of its transaction (`txid_current`). Numbers grow in the order in which
//! transactions begin to write, not in the order in which they commit.
//!
//! # Keys
//!
//! The key of a write is stored as its SHA-256 in `tidegate.ingest_keys`, in the transaction of the rows. The table is
//! created if the role may do so. A key is remembered for 24 hours.

mod encode;
mod write;

use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{
    ClaimSettings, DeclaredTable, DeclaredTables, ExtensionType, IngestTable, RunAs, TargetColumn, WriteMode,
    WriteRequest, WriteStart, WriteTarget, with_type_name,
};
use tidegate_sql::{SqlDialect, Transaction};
use tokio_postgres::types::{Kind, ToSql, Type};
use tokio_postgres::{Client, Row};

use crate::connect::ConnectTarget;
use crate::options::PostgresOptions;
use crate::pool::{Lease, Pool};
use crate::session::{ROLLBACK, TransactionIdentity};
use crate::values::{numeric_modifier, type_name};
use write::{TablePlan, Write};

/// How long closing waits for writes.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// The default of [`PostgresIngestOptions::writes_max`].
const WRITES_MAX: usize = 4;

/// The tables of a PostgreSQL database that take rows.
#[derive(Debug, Clone, PartialEq)]
pub struct PostgresIngestOptions {
    /// The tables, with those of rejected rows. A name has its schema unless the search path has it.
    pub tables: Vec<DeclaredTable>,
    /// The maximum number of writes at once, each with its own connection. Further writes wait for as long as
    /// [`PostgresOptions::acquire_timeout`].
    pub writes_max: usize,
}

impl Default for PostgresIngestOptions {
    fn default() -> Self {
        Self { tables: Vec::new(), writes_max: WRITES_MAX }
    }
}

/// Tables of a PostgreSQL database that take rows. It connects on demand.
pub struct PostgresIngest {
    database: Arc<str>,
    pool: Pool,
    tables: DeclaredTables,
    schemas: Option<Vec<String>>,
}

tidegate_core::impl_debug!(PostgresIngest { database, tables });

impl PostgresIngest {
    /// The tables of `ingest` in the database `name` at `target`; opens no connection. Of `options`, the limits and times
    /// of connections apply, and the schemas.
    ///
    /// # Errors
    /// `InvalidArguments` if a table is declared twice; `Internal` if the pool cannot be created.
    pub fn open(
        name: impl Into<String>,
        target: ConnectTarget,
        options: PostgresOptions,
        ingest: PostgresIngestOptions,
    ) -> Result<Self, Error> {
        let database: Arc<str> = name.into().into();
        let target = target.with_message_bytes_max(options.message_bytes_max);
        let tables = DeclaredTables::new(database.clone(), SqlDialect::Postgres, ingest.tables)?;
        let schemas = options.schemas.clone();
        let options = PostgresOptions {
            run_as: RunAs::default(),
            claims: ClaimSettings::default(),
            connections_max: ingest.writes_max,
            ..options
        };
        let pool = Pool::new(database.clone(), target, Arc::new(options))?;
        Ok(Self { database, pool, tables, schemas })
    }

    /// Ends running writes, whose rows are not stored, and closes the connections.
    pub async fn close(&self) {
        self.pool.close(CLOSE_TIMEOUT).await;
    }

    /// The number of connections that writes hold now.
    pub fn connections_in_use(&self) -> usize {
        self.pool.connections_in_use()
    }

    async fn begin_transaction(&self, writes: bool) -> Result<Lease, Error> {
        let mut lease = self.pool.acquire().await?;
        let transaction = Transaction { writes, ..Transaction::default() };
        lease.begin(&transaction, &TransactionIdentity::default()).await?;
        Ok(lease)
    }

    async fn look_up(&self, lease: &mut Lease, name: &str, mode: WriteMode) -> Result<TargetTable, Error> {
        let connection = lease.connection()?;
        let found = TargetTable::look_up(connection.client(), name, self.schemas.as_ref(), mode);
        lease.run(found).await.map_err(|error| error.into_error(name, &self.database))
    }

    /// Prepares the tables of `request` in the transaction of `lease`, and deletes the rows that it replaces.
    async fn prepare(&self, lease: &mut Lease, request: &WriteRequest) -> Result<Vec<TablePlan>, Error> {
        let mut plans = Vec::with_capacity(request.tables.len());
        for (position, write) in request.tables.iter().enumerate() {
            let mode = if position == 0 { request.mode } else { WriteMode::Append };
            let declared = self.tables.find(&write.table)?;
            let table = self.look_up(lease, &declared.name, mode).await?;
            let plan = TablePlan::new(&declared.name, table, &write.schema)?;
            if mode == WriteMode::Replace {
                let connection = lease.connection()?;
                let sql = format!("DELETE FROM {}", plan.table.sql_name);
                let deleted = lease.run(connection.client().batch_execute(&sql)).await;
                deleted.map_err(|error| write::write_error(&error, &self.database, &plan.table, None))?;
            }
            plans.push(plan);
        }
        Ok(plans)
    }
}

#[async_trait]
impl WriteTarget for PostgresIngest {
    fn database(&self) -> &str {
        &self.database
    }

    fn tables(&self) -> Vec<String> {
        self.tables.names()
    }

    async fn table(&self, table: &str) -> Result<IngestTable, Error> {
        let declared = self.tables.find(table)?;
        let mut lease = self.begin_transaction(false).await?;
        let target = self.look_up(&mut lease, &declared.name, WriteMode::Append).await?;
        // If this fails, the lease discards the connection.
        let _ = lease.end(ROLLBACK).await;
        Ok(IngestTable {
            name: declared.name.clone(),
            schema: Some(body_schema(&target)),
            adds_columns: false,
            stamps: declared.stamps.clone(),
        })
    }

    async fn begin(&self, request: WriteRequest) -> Result<WriteStart, Error> {
        for write in &request.tables {
            self.tables.find(&write.table)?;
        }
        if request.key.is_some() {
            write::ensure_table(&self.pool, &self.database).await?;
        }
        let mut lease = self.begin_transaction(true).await?;
        let connection = lease.connection()?;
        let settings = write::transaction_settings(connection.server_version());
        let set = lease.run(connection.client().batch_execute(&settings)).await;
        set.map_err(|error| crate::error::internal_statement_error(&error, &self.database))?;
        let key = request.key.as_deref().map(write::StoredKey::new);
        if let Some(key) = &key
            && let Some(receipt) = key.begin(&mut lease, &self.database).await?
        {
            let _ = lease.end(ROLLBACK).await;
            return Ok(WriteStart::Repeated(receipt));
        }
        let plans = self.prepare(&mut lease, &request).await?;
        let write = Write::new(self.database.clone(), lease, plans, key)?;
        Ok(WriteStart::Writer(write::spawn(write, &self.pool)))
    }

    async fn drop_table(&self, table: &str) -> Result<(), Error> {
        self.tables.refuse_drop(table)
    }
}

fn body_schema(table: &TargetTable) -> SchemaRef {
    Arc::new(Schema::new(table.columns.iter().map(|column| column.field.clone()).collect::<Vec<_>>()))
}

const DIALECT: SqlDialect = SqlDialect::Postgres;

/// The relation with that name in the given schema or on the search path, and what the role may do with it.
const RELATION_SQL: &str = "
SELECT c.oid, n.nspname::text, c.relname::text, c.relkind::text, pg_catalog.row_security_active(c.oid),
       current_user::text
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relname = $2
  AND CASE WHEN $1::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = $1 END
  AND ($3::text[] IS NULL OR n.nspname = ANY ($3))
  AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
LIMIT 1";

/// The columns, with the domains of each replaced by the type below them: whether a column or one of its domains
/// forbids nulls or has a default, the modifier that applies, whether the role may insert it, and the type with its items.
const COLUMNS_SQL: &str = "
WITH RECURSIVE typed(attnum, type, modifier, forbids_nulls, has_default) AS (
  SELECT a.attnum, a.atttypid, a.atttypmod, a.attnotnull, a.atthasdef OR a.attidentity <> ''
  FROM pg_catalog.pg_attribute a
  WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND a.attidentity <> 'a'
  UNION ALL
  SELECT typed.attnum, t.typbasetype, CASE WHEN typed.modifier >= 0 THEN typed.modifier ELSE t.typtypmod END,
         typed.forbids_nulls OR t.typnotnull, typed.has_default OR t.typdefault IS NOT NULL
  FROM typed JOIN pg_catalog.pg_type t ON t.oid = typed.type WHERE t.typtype = 'd')
SELECT a.attname::text, typed.modifier, typed.forbids_nulls, typed.has_default,
       pg_catalog.has_column_privilege($1, a.attnum, 'INSERT'),
       t.oid, t.typname::text, t.typtype::text, i.oid, i.typname::text, i.typtype::text
FROM typed JOIN pg_catalog.pg_type t ON t.oid = typed.type AND t.typtype <> 'd'
JOIN pg_catalog.pg_attribute a ON a.attrelid = $1 AND a.attnum = typed.attnum
LEFT JOIN pg_catalog.pg_type i ON t.typcategory = 'A' AND i.oid = t.typelem
ORDER BY a.attnum";

/// The columns of each constraint.
const CONSTRAINTS_SQL: &str = "
SELECT k.conname::text, pg_catalog.array_agg(a.attname::text ORDER BY a.attnum)
FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_attribute a ON a.attrelid = $1 AND a.attnum = ANY (k.conkey)
WHERE k.conrelid = $1 GROUP BY k.conname";

/// A table that takes rows.
#[derive(Debug)]
struct TargetTable {
    /// The name for SQL, with its schema.
    sql_name: String,
    /// The columns that a body may have.
    columns: Vec<TargetColumn<ValueForm>>,
    /// The columns of each constraint, by its name.
    constraints: Vec<(String, Vec<String>)>,
}

/// Why a table takes no rows.
enum TableError {
    Server(tokio_postgres::Error),
    Missing,
    Refused { reason: String, hint: String },
}

impl From<tokio_postgres::Error> for TableError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error)
    }
}

impl TableError {
    fn into_error(self, table: &str, database: &str) -> Error {
        match self {
            Self::Server(error) => crate::error::statement_error(&error, database, ""),
            Self::Missing => {
                let message = format!("the table {table:?} is declared, but the database {database} has none");
                Error::new(ErrorKind::NotFound, message)
                    .with_hint("The owner of the node corrects the name, or grants USAGE on its schema.")
            }
            Self::Refused { reason, hint } => {
                let message = format!("the table {table:?} of the database {database} takes no rows: {reason}");
                Error::new(ErrorKind::InvalidArguments, message).with_hint(hint)
            }
        }
    }
}

/// A column as the catalog of the server has it.
struct CatalogColumn {
    name: String,
    modifier: i32,
    forbids_nulls: bool,
    has_default: bool,
    may_insert: bool,
    kind: Type,
}

impl CatalogColumn {
    fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            name: row.try_get(0)?,
            modifier: row.try_get(1)?,
            forbids_nulls: row.try_get(2)?,
            has_default: row.try_get(3)?,
            may_insert: row.try_get(4)?,
            kind: match row.try_get(8)? {
                Some(item) => {
                    let item = catalog_type(item, row.try_get(9)?, row.try_get(10)?, None);
                    catalog_type(row.try_get(5)?, row.try_get(6)?, row.try_get(7)?, Some(item))
                }
                None => catalog_type(row.try_get(5)?, row.try_get(6)?, row.try_get(7)?, None),
            },
        })
    }
}

/// The type with this id, name and `typtype`. The driver would look up types itself, with prepared statements that do not
/// survive a transaction behind a pooler.
fn catalog_type(oid: u32, name: String, typtype: &str, item: Option<Type>) -> Type {
    if let Some(known) = Type::from_oid(oid) {
        return known;
    }
    let kind = match (typtype, item) {
        (_, Some(item)) => Kind::Array(item),
        // Their labels are checked by the server.
        ("e", None) => Kind::Enum(Vec::new()),
        ("b", None) => Kind::Simple,
        _ => Kind::Pseudo,
    };
    Type::new(name, oid, kind, String::new())
}

impl TargetTable {
    /// The table `name`, in the open transaction of `client`. Until its end, the columns cannot change. A table that is
    /// replaced is locked against other writers.
    async fn look_up(
        client: &Client,
        name: &str,
        schemas: Option<&Vec<String>>,
        mode: WriteMode,
    ) -> Result<Self, TableError> {
        let parts = DIALECT.table_parts(name);
        let (schema, table) = match parts.as_slice() {
            [schema, table] => (Some(schema), table),
            [table] => (None, table),
            _ => return Err(TableError::Missing),
        };
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&schema, Type::TEXT), (table, Type::TEXT), (&schemas, Type::TEXT_ARRAY)];
        let rows = client.query_typed(RELATION_SQL, &parameters).await?;
        let relation = rows.first().ok_or(TableError::Missing)?;
        let (oid, sql_name) = check_relation(relation)?;
        if mode == WriteMode::Replace {
            client.batch_execute(&format!("LOCK TABLE {sql_name} IN SHARE ROW EXCLUSIVE MODE")).await?;
        }
        let role: String = relation.try_get(5)?;
        let columns = load_columns(client, oid, &sql_name, &role).await?;
        let rows = client.query_typed(CONSTRAINTS_SQL, &[(&oid, Type::OID)]).await?;
        let constraints = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        let constraints = constraints.collect::<Result<_, tokio_postgres::Error>>()?;
        Ok(Self { sql_name, columns, constraints })
    }
}

/// The id of the relation and its name for SQL, if `COPY` can write to it.
fn check_relation(relation: &Row) -> Result<(u32, String), TableError> {
    let refused = |reason: String, hint: &str| Err(TableError::Refused { reason, hint: hint.to_owned() });
    let (schema, table): (String, String) = (relation.try_get(1)?, relation.try_get(2)?);
    let (kind, has_row_security): (String, bool) = (relation.try_get(3)?, relation.try_get(4)?);
    let kind = match kind.as_str() {
        "r" | "p" => None,
        "v" => Some("a view"),
        "m" => Some("a materialized view"),
        _ => Some("a foreign table"),
    };
    if let Some(kind) = kind {
        return refused(format!("it is {kind}"), "Declare the table whose rows it has.");
    }
    if has_row_security {
        let role: String = relation.try_get(5)?;
        return refused(
            format!("row-level security applies to the role {role}, and COPY does not support it"),
            "Let the node write with a role that has BYPASSRLS or owns the table.",
        );
    }
    let sql_name = format!("{}.{}", DIALECT.quote_identifier(&schema), DIALECT.quote_identifier(&table));
    Ok((relation.try_get(0)?, sql_name))
}

async fn load_columns(
    client: &Client,
    oid: u32,
    sql_name: &str,
    role: &str,
) -> Result<Vec<TargetColumn<ValueForm>>, TableError> {
    // Parsing the statement locks the table against other definitions until the transaction ends; it needs no privilege.
    let lock = format!("PREPARE tidegate_ingest AS SELECT FROM {sql_name}; DEALLOCATE tidegate_ingest");
    client.batch_execute(&lock).await?;
    let rows = client.query_typed(COLUMNS_SQL, &[(&oid, Type::OID)]).await?;
    let columns = rows.iter().map(CatalogColumn::from_row).collect::<Result<Vec<_>, _>>()?;
    if !columns.iter().any(|column| column.may_insert) {
        return Err(TableError::Refused {
            reason: format!("the role {role} may not insert into it"),
            hint: format!("Its owner grants it: GRANT INSERT ON {sql_name} TO {};", DIALECT.quote_identifier(role)),
        });
    }
    let mut targets = Vec::with_capacity(columns.len());
    for column in &columns {
        let is_optional = column.has_default || !column.forbids_nulls;
        let target = field_and_form(&column.name, &column.kind, column.modifier, is_optional);
        match target.filter(|_| column.may_insert) {
            Some((field, form)) => targets.push(TargetColumn {
                field,
                form,
                has_default: column.has_default,
                takes_nulls: !column.forbids_nulls,
            }),
            None if is_optional => {}
            None => return Err(unusable_column(column, role)),
        }
    }
    if targets.is_empty() {
        return Err(TableError::Refused {
            reason: "no column has a type that can be written".to_owned(),
            hint: "Declare another table.".to_owned(),
        });
    }
    Ok(targets)
}

fn unusable_column(column: &CatalogColumn, role: &str) -> TableError {
    let name = &column.name;
    let reason = match column.may_insert {
        true => {
            format!("the column {name:?} needs values of the type {}, which cannot be written here", column.kind.name())
        }
        false => format!("the column {name:?} needs values, and the role {role} may not insert them"),
    };
    TableError::Refused { reason, hint: "Give the column a default.".to_owned() }
}

/// The maximum number of digits of Arrow's decimals.
const DECIMAL128_DIGITS: i32 = 38;
const DECIMAL256_DIGITS: i32 = 76;
/// The digits after the point of a `numeric` without a precision.
const UNBOUNDED_SCALE: i8 = 38;
/// The modifiers of `varchar` and `char` include the header of a stored value.
const HEADER_BYTES: i32 = 4;
/// Digits of a second in times and timestamps.
const TIME_DIGITS: u32 = 6;

/// The binary form of a type, with the bounds within which the server changes no value.
#[derive(Debug, Clone, PartialEq)]
enum ValueForm {
    Boolean,
    Int16,
    Int32,
    Int64,
    UInt32,
    Float32,
    Float64,
    /// The digits after the point, if they are bounded.
    Numeric {
        scale: Option<u32>,
    },
    /// The maximum number of characters. The server would cut spaces after it.
    Text {
        characters_max: Option<usize>,
    },
    Jsonb,
    Uuid,
    /// `inet`, or `cidr`.
    Address {
        is_network: bool,
    },
    Bytes,
    Date,
    /// Microseconds that are multiples of this.
    Time {
        step: i64,
    },
    Timestamp {
        step: i64,
    },
    /// One dimension; the id of the item type precedes the items.
    List {
        item: Box<ValueForm>,
        oid: u32,
    },
}

/// The field `name` and the form of the type `kind` with its modifier, -1 for none. Domains were replaced by the type
/// below them. `None` if values of the type cannot be written.
fn field_and_form(name: &str, kind: &Type, modifier: i32, is_nullable: bool) -> Option<(Field, ValueForm)> {
    let (data_type, form) = match kind.kind() {
        // The vectors of the catalog are arrays too, with their own names.
        Kind::Array(item) if kind.name().starts_with('_') => {
            let (field, form) = scalar_field("item", item, modifier, true)?;
            (DataType::List(Arc::new(field)), ValueForm::List { item: Box::new(form), oid: item.oid() })
        }
        _ => return scalar_field(name, kind, modifier, is_nullable),
    };
    let field = Field::new(name, data_type, is_nullable);
    Some((with_type_name(field, type_name(kind, modifier)), form))
}

fn scalar_field(name: &str, kind: &Type, modifier: i32, is_nullable: bool) -> Option<(Field, ValueForm)> {
    let (data_type, form) = match kind.kind() {
        Kind::Enum(_) => (DataType::Utf8, ValueForm::Text { characters_max: None }),
        Kind::Simple => scalar(kind, modifier)?,
        _ => return None,
    };
    let mut field = Field::new(name, data_type, is_nullable);
    if matches!(*kind, Type::JSON | Type::JSONB) {
        field = ExtensionType::Json.annotate(field);
    }
    Some((with_type_name(field, type_name(kind, modifier)), form))
}

fn scalar(kind: &Type, modifier: i32) -> Option<(DataType, ValueForm)> {
    let characters_max = usize::try_from(modifier - HEADER_BYTES).ok();
    Some(match *kind {
        Type::BOOL => (DataType::Boolean, ValueForm::Boolean),
        Type::INT2 => (DataType::Int16, ValueForm::Int16),
        Type::INT4 => (DataType::Int32, ValueForm::Int32),
        Type::INT8 => (DataType::Int64, ValueForm::Int64),
        Type::OID => (DataType::UInt32, ValueForm::UInt32),
        Type::FLOAT4 => (DataType::Float32, ValueForm::Float32),
        Type::FLOAT8 => (DataType::Float64, ValueForm::Float64),
        Type::NUMERIC => numeric(modifier)?,
        Type::TEXT | Type::JSON => (DataType::Utf8, ValueForm::Text { characters_max: None }),
        Type::VARCHAR | Type::BPCHAR => (DataType::Utf8, ValueForm::Text { characters_max }),
        Type::JSONB => (DataType::Utf8, ValueForm::Jsonb),
        Type::UUID => (DataType::Utf8, ValueForm::Uuid),
        Type::INET => (DataType::Utf8, ValueForm::Address { is_network: false }),
        Type::CIDR => (DataType::Utf8, ValueForm::Address { is_network: true }),
        Type::BYTEA => (DataType::Binary, ValueForm::Bytes),
        Type::DATE => (DataType::Date32, ValueForm::Date),
        Type::TIME => {
            let (unit, step) = time_unit(modifier);
            let data_type = match unit {
                TimeUnit::Microsecond | TimeUnit::Nanosecond => DataType::Time64(unit),
                TimeUnit::Second | TimeUnit::Millisecond => DataType::Time32(unit),
            };
            (data_type, ValueForm::Time { step })
        }
        Type::TIMESTAMP | Type::TIMESTAMPTZ => {
            let (unit, step) = time_unit(modifier);
            let zone = (*kind == Type::TIMESTAMPTZ).then(|| "UTC".into());
            (DataType::Timestamp(unit, zone), ValueForm::Timestamp { step })
        }
        // A type of an extension, recognised by its name; its binary form is that of text.
        _ if kind.name() == "citext" => (DataType::Utf8, ValueForm::Text { characters_max: None }),
        _ => return None,
    })
}

fn numeric(modifier: i32) -> Option<(DataType, ValueForm)> {
    let Some((precision, scale)) = numeric_modifier(modifier) else {
        let data_type = DataType::Decimal256(DECIMAL256_DIGITS as u8, UNBOUNDED_SCALE);
        return Some((data_type, ValueForm::Numeric { scale: None }));
    };
    // With a negative scale, the server rounds to tens or hundreds; a larger scale has no Arrow type.
    let form = ValueForm::Numeric { scale: Some(u32::try_from(scale).ok()?) };
    let precision = precision.max(scale).min(DECIMAL256_DIGITS);
    if scale > precision {
        return None;
    }
    // Both are at most 76.
    let (digits, fraction) = (precision as u8, scale as i8);
    Some(match precision <= DECIMAL128_DIGITS {
        true => (DataType::Decimal128(digits, fraction), form),
        false => (DataType::Decimal256(digits, fraction), form),
    })
}

/// The coarsest unit that holds times with the precision of `modifier`, and the step between them in microseconds.
fn time_unit(modifier: i32) -> (TimeUnit, i64) {
    match u32::try_from(modifier) {
        Ok(0) => (TimeUnit::Second, 1_000_000),
        Ok(digits @ 1..=3) => (TimeUnit::Millisecond, 10_i64.pow(TIME_DIGITS - digits)),
        Ok(digits @ 4..=5) => (TimeUnit::Microsecond, 10_i64.pow(TIME_DIGITS - digits)),
        _ => (TimeUnit::Microsecond, 1),
    }
}
