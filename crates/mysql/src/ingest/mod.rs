//! Tables that take rows: each write is one transaction of `INSERT` statements with several rows each.
//!
//! # Who writes
//!
//! A write runs as the account of the connection string, with connections of its own, which do not only read. The role and the
//! variables of a caller do not apply: whether a caller may write is decided before. The account needs `INSERT` on the table,
//! and `DELETE` on a table that is replaced.
//!
//! # Columns
//!
//! The columns of a body are those of the table, without generated ones and without those of spatial types that may be
//! missing. Their Arrow types are those of reading. What the server would store as another value is refused.
//! [`WritePlan`](tidegate_query::WritePlan) says when the default of a column applies.
//!
//! # Sequence and keys
//!
//! The sequence of a receipt is the time of the commit in microseconds since 1970, and grows with each write of this process.
//! Digests of keys are in the table `tidegate_ingest_keys` of the database for 24 hours, which is created if the account may.

mod value;
mod write;

use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::{Field, Schema};
use async_trait::async_trait;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error as MySqlError, Row};
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{
    ClaimSettings, DeclaredTable, DeclaredTables, ExtensionType, IngestTable, RowPolicies, RunAs, TargetColumn,
    WriteMode, WriteRequest, WriteStart, WriteTarget, with_type_name,
};
use tidegate_sql::SqlDialect;

use crate::connection_string::MySqlTarget;
use crate::error::statement_error;
use crate::options::MySqlOptions;
use crate::pool::{Lease, Pool};
use crate::session::{SessionAccess, SessionIdentity, value_text};
use value::{StoredForm, stored_form};
use write::{TablePlan, Write};

const DIALECT: SqlDialect = SqlDialect::MySql;
/// How long closing waits for writes.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of writes at once, each with its own connection. Further ones wait for as long as
/// [`MySqlOptions::acquire_timeout`].
const WRITES_MAX: usize = 4;

/// Tables of a MySQL database that take rows. It connects on demand.
pub struct MySqlIngest {
    database: Arc<str>,
    pool: Pool,
    tables: DeclaredTables,
    default_schema: Option<String>,
    /// The sequence of the last write.
    last_sequence: Arc<Mutex<u64>>,
}

tidegate_core::impl_debug!(MySqlIngest { database, tables });

impl MySqlIngest {
    /// The tables `tables`, with those of rejected rows, in the database `name` at `target`; opens no connection. Of
    /// `options`, the limits and times of connections apply.
    ///
    /// # Errors
    /// `InvalidArguments` if a table is declared twice; `Internal` if the pool cannot be created.
    pub fn open(
        name: impl Into<String>,
        target: &MySqlTarget,
        options: MySqlOptions,
        tables: Vec<DeclaredTable>,
    ) -> Result<Self, Error> {
        let database: Arc<str> = name.into().into();
        let tables = DeclaredTables::new(database.clone(), DIALECT, tables)?;
        let options = MySqlOptions {
            run_as: RunAs::default(),
            claims: ClaimSettings::default(),
            row_policies: RowPolicies::default(),
            connections_max: WRITES_MAX,
            statement_timeout: None,
            ..options
        };
        let pool = Pool::new(database.clone(), target, Arc::new(options), SessionAccess::Writes)?;
        let default_schema = target.database().map(str::to_owned);
        Ok(Self { database, pool, tables, default_schema, last_sequence: Arc::default() })
    }

    /// Ends running writes, whose rows are not stored, and closes the connections.
    pub async fn close(&self) {
        self.pool.close(CLOSE_TIMEOUT).await;
    }

    async fn acquire(&self) -> Result<Lease, Error> {
        let mut lease = self.pool.acquire(SessionIdentity::default()).await?;
        lease.check().await?;
        lease.mark_busy();
        Ok(lease)
    }

    async fn look_up(&self, lease: &mut Lease, name: &str) -> Result<TargetTable, Error> {
        let refused = |reason: &str| {
            let message = format!("the table {name:?} of the database {} takes no rows: {reason}", self.database);
            Error::new(ErrorKind::InvalidArguments, message)
        };
        let parts = DIALECT.table_parts(name);
        let (schema, table) = match (parts.as_slice(), &self.default_schema) {
            ([schema, table], _) | ([table], Some(schema)) => (schema, table),
            _ => return Err(refused("its name needs that of its database, as SHOP.TABLE")),
        };
        let connection = &mut lease.session()?.connection;
        let found = load_table(connection, schema, table).await;
        let (kind, columns) = found.map_err(|error| statement_error(&error, &self.database))?;
        match kind {
            TableKind::Missing => {
                let message = format!("the table {name:?} is declared, but the database {} has none", self.database);
                Err(Error::new(ErrorKind::NotFound, message)
                    .with_hint("The owner of the node corrects the name, or grants INSERT on the table."))
            }
            TableKind::View => Err(refused("it is a view")),
            TableKind::WithoutTransactions => {
                Err(refused("its storage engine has no transactions").with_hint("Convert it to InnoDB."))
            }
            TableKind::Table => {
                let sql_name = format!("{}.{}", DIALECT.quote_identifier(schema), DIALECT.quote_identifier(table));
                Ok(TargetTable { sql_name, columns })
            }
        }
    }
}

#[async_trait]
impl WriteTarget for MySqlIngest {
    fn database(&self) -> &str {
        &self.database
    }

    fn tables(&self) -> Vec<String> {
        self.tables.names()
    }

    async fn table(&self, table: &str) -> Result<IngestTable, Error> {
        let declared = self.tables.find(table)?;
        let mut lease = self.acquire().await?;
        let target = self.look_up(&mut lease, &declared.name).await?;
        lease.mark_idle();
        let fields: Vec<Field> = target.columns.iter().map(|column| column.field.clone()).collect();
        Ok(IngestTable {
            name: declared.name.clone(),
            schema: Some(Arc::new(Schema::new(fields))),
            adds_columns: false,
            stamps: declared.stamps.clone(),
        })
    }

    async fn begin(&self, request: WriteRequest) -> Result<WriteStart, Error> {
        let mut lease = self.acquire().await?;
        let mut plans = Vec::with_capacity(request.tables.len());
        for write in &request.tables {
            let declared = self.tables.find(&write.table)?;
            let table = self.look_up(&mut lease, &declared.name).await?;
            plans.push(TablePlan::new(&declared.name, table, &write.schema)?);
        }
        let replaces = request.mode == WriteMode::Replace;
        let write = Write::new(self.database.clone(), lease, plans, self.last_sequence.clone());
        match write.begin(request.key.as_deref(), replaces).await? {
            (write, None) => Ok(WriteStart::Writer(write::spawn(write, &self.pool))),
            (write, Some(receipt)) => {
                write.roll_back().await;
                Ok(WriteStart::Repeated(receipt))
            }
        }
    }

    async fn drop_table(&self, table: &str) -> Result<(), Error> {
        self.tables.refuse_drop(table)
    }
}

/// A table that takes rows.
struct TargetTable {
    /// The name for SQL, with its database.
    sql_name: String,
    columns: Vec<TargetColumn<StoredForm>>,
}

enum TableKind {
    Missing,
    View,
    WithoutTransactions,
    Table,
}

const TABLE_SQL: &str = "SELECT t.TABLE_TYPE, e.TRANSACTIONS FROM information_schema.TABLES t \
                         LEFT JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE \
                         WHERE t.TABLE_SCHEMA = ? AND t.TABLE_NAME = ?";
const COLUMNS_SQL: &str = "SELECT COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_DEFAULT, EXTRA \
                           FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? \
                           ORDER BY ORDINAL_POSITION";

async fn load_table(
    connection: &mut Conn,
    schema: &str,
    table: &str,
) -> Result<(TableKind, Vec<TargetColumn<StoredForm>>), MySqlError> {
    let row: Option<Row> = connection.exec_first(TABLE_SQL, (schema, table)).await?;
    let Some(row) = row else { return Ok((TableKind::Missing, Vec::new())) };
    let kind = match (value_text(&row, 0).as_deref(), value_text(&row, 1).as_deref()) {
        (Some("BASE TABLE"), Some("YES")) => TableKind::Table,
        (Some("BASE TABLE"), _) => TableKind::WithoutTransactions,
        _ => TableKind::View,
    };
    let rows: Vec<Row> = connection.exec(COLUMNS_SQL, (schema, table)).await?;
    Ok((kind, rows.iter().filter_map(target_column).collect()))
}

/// The column that a row of the catalog describes; `None` if it takes no values and needs none.
fn target_column(row: &Row) -> Option<TargetColumn<StoredForm>> {
    let text = |index: usize| value_text(row, index).unwrap_or_default();
    let (name, declared, extra) = (text(0), text(1), text(4).to_ascii_uppercase());
    // DEFAULT_GENERATED is the mark of a default that is computed.
    if ["VIRTUAL GENERATED", "STORED GENERATED", "PERSISTENT"].iter().any(|kind| extra.contains(kind)) {
        return None;
    }
    // MariaDB writes a default as SQL.
    let default = value_text(row, 3).filter(|default| default != "NULL");
    let has_default = default.is_some() || extra.contains("AUTO_INCREMENT") || extra.contains("DEFAULT_GENERATED");
    let takes_nulls = text(2) == "YES";
    let is_optional = takes_nulls || has_default;
    let (data_type, form) = match stored_form(&declared) {
        Some(known) => known,
        None if is_optional => return None,
        // A body cannot have it, and each row needs it: the error names the column.
        None => (arrow::datatypes::DataType::Null, StoredForm::Number),
    };
    let mut field = Field::new(name, data_type, is_optional);
    if declared == "json" {
        field = ExtensionType::Json.annotate(field);
    }
    let field = with_type_name(field, declared);
    Some(TargetColumn { field, form, has_default, takes_nulls })
}
