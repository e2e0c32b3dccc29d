//! The activity of a PostgreSQL database (13 and newer) as live tables: sessions, statements, locks, sizes and the use
//! of indexes.
//!
//! They are read with statements of the owner that run as the role of the caller, so that PostgreSQL decides what the
//! role may see. The text of statements is sensitive. Columns that are not needed are not computed.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType};
use futures::StreamExt;
use tidegate_core::{Error, ErrorKind, Principal, PrincipalRule};
use tidegate_query::Database;
use tidegate_sql::Statement;
use tidegate_system::{
    MASK, ReadOptions, ReadSummary, SystemColumn, SystemColumnType, SystemTableDescription, SystemValue,
};

use super::live_table::{LiveTable, ReadContext, RowCallback};

/// The extension without which statements are not recorded.
const STATEMENTS_EXTENSION: &str = "pg_stat_statements";

/// A table about the activity of a PostgreSQL database.
pub struct PostgresTable {
    database: Arc<dyn Database>,
    /// Who may query the database.
    admits: PrincipalRule,
    description: SystemTableDescription,
    query: &'static ActivityQuery,
}

impl PostgresTable {
    /// The tables about `database`, named after it, for principals that `admits` allows.
    pub fn all(database: &Arc<dyn Database>, admits: &PrincipalRule) -> Vec<Arc<dyn LiveTable>> {
        let table = |query: &'static ActivityQuery| Self {
            description: query.description(database.name()),
            database: database.clone(),
            admits: admits.clone(),
            query,
        };
        QUERIES.iter().map(|query| Arc::new(table(query)) as Arc<dyn LiveTable>).collect()
    }

    async fn read_rows(
        &self,
        context: &ReadContext,
        options: &ReadOptions,
        on_row: RowCallback<'_>,
    ) -> Result<ReadSummary, Error> {
        let cells: Vec<Cell> = self.description.columns.iter().map(|column| Cell::of_column(column, options)).collect();
        let sql = self.query.sql(|position| matches!(cells.get(position), Some(Cell::Read(_))), options.rows_max);
        let statement = Statement::from_owner(sql, Vec::new(), self.database.dialect());
        let plan = self.database.plan(&statement, &context.principal).await.map_err(|error| self.explain(error))?;
        let mut batches = plan.run(&context.job).await.map_err(|error| self.explain(error))?.batches;
        let mut summary = ReadSummary { rows: 0, is_truncated: false };
        while let Some(batch) = batches.next().await {
            let columns = convert_columns(&batch.map_err(|error| self.explain(error))?, &cells)?;
            let rows = columns.first().map_or(0, Vec::len);
            let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
            for _ in 0..rows {
                if summary.rows >= options.rows_max {
                    summary.is_truncated = true;
                    return Ok(summary);
                }
                let row = columns.iter_mut().map(|values| values.next().unwrap_or(SystemValue::Null)).collect();
                summary.rows += 1;
                if on_row(row) == ControlFlow::Break(()) {
                    return Ok(summary);
                }
            }
        }
        Ok(summary)
    }

    /// `error` of the statement, with the extension if that is missing.
    fn explain(&self, error: Error) -> Error {
        let is_about_extension = |text: &str| text.contains(STATEMENTS_EXTENSION);
        let mentions = is_about_extension(error.message()) || error.detail().is_some_and(is_about_extension);
        if !self.query.needs_extension || !mentions {
            return error;
        }
        let database = self.database.name();
        let message =
            format!("the database {database:?} has no extension {STATEMENTS_EXTENSION} that its role may read");
        Error::new(ErrorKind::Unavailable, message).with_hint(format!(
            "Add {STATEMENTS_EXTENSION} to shared_preload_libraries, restart PostgreSQL, and run CREATE EXTENSION \
             {STATEMENTS_EXTENSION}."
        ))
    }
}

impl LiveTable for PostgresTable {
    fn description(&self) -> &SystemTableDescription {
        &self.description
    }

    fn is_visible_to(&self, principal: &Principal) -> bool {
        self.admits.allows_principal(principal)
    }

    fn read(
        &self,
        context: &ReadContext,
        options: &ReadOptions,
        on_row: RowCallback<'_>,
    ) -> Result<ReadSummary, Error> {
        context.runtime.block_on(self.read_rows(context, options, on_row))
    }
}

/// How the value of a column is produced.
#[derive(Clone, Copy)]
enum Cell {
    Masked,
    NotNeeded,
    Read(SystemColumnType),
}

impl Cell {
    fn of_column(column: &SystemColumn, options: &ReadOptions) -> Self {
        let is_needed = options.columns.as_ref().is_none_or(|names| names.iter().any(|name| *name == column.name));
        match is_needed {
            false => Self::NotNeeded,
            true if column.is_sensitive && !options.grants_sensitive => Self::Masked,
            true => Self::Read(column.column_type),
        }
    }
}

/// The columns of the table from the columns of the answer, which has one for each cell.
fn convert_columns(batch: &RecordBatch, cells: &[Cell]) -> Result<Vec<Vec<SystemValue>>, Error> {
    let column = |(cell, values): (&Cell, &Arc<dyn Array>)| match cell {
        Cell::Masked => Ok(vec![SystemValue::from(MASK); values.len()]),
        Cell::NotNeeded => Ok(vec![SystemValue::Null; values.len()]),
        Cell::Read(column_type) => convert_values(values, *column_type),
    };
    cells.iter().zip(batch.columns()).map(column).collect()
}

fn convert_values(values: &Arc<dyn Array>, column_type: SystemColumnType) -> Result<Vec<SystemValue>, Error> {
    let internal = |error: arrow::error::ArrowError| Error::internal(error.to_string());
    let cast_to = |data_type: &DataType| cast(values, data_type).map_err(internal);
    fn with_null<T: Into<SystemValue>>(value: Option<T>) -> SystemValue {
        value.map_or(SystemValue::Null, Into::into)
    }
    Ok(match column_type {
        SystemColumnType::Text => cast_to(&DataType::Utf8)?.as_string::<i32>().iter().map(with_null).collect(),
        SystemColumnType::Integer => {
            cast_to(&DataType::Int64)?.as_primitive::<Int64Type>().iter().map(with_null).collect()
        }
        SystemColumnType::Unsigned => {
            let numbers = cast_to(&DataType::Int64)?;
            let unsigned = |number: Option<i64>| with_null(number.and_then(|number| u64::try_from(number).ok()));
            numbers.as_primitive::<Int64Type>().iter().map(unsigned).collect()
        }
        SystemColumnType::Float | SystemColumnType::Duration => {
            cast_to(&DataType::Float64)?.as_primitive::<Float64Type>().iter().map(with_null).collect()
        }
        SystemColumnType::Boolean => cast_to(&DataType::Boolean)?.as_boolean().iter().map(with_null).collect(),
        SystemColumnType::Timestamp => {
            let times = cast_to(&DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())))?;
            let time = |time: Option<i64>| time.map_or(SystemValue::Null, SystemValue::Timestamp);
            times.as_primitive::<TimestampMicrosecondType>().iter().map(time).collect()
        }
    })
}

/// A table: what is read from where.
struct ActivityQuery {
    /// The part of the name of the table after the name of the database.
    suffix: &'static str,
    description: &'static str,
    columns: &'static [ActivityColumn],
    /// FROM and what follows.
    source: &'static str,
    /// Whether the statement needs the extension for statements.
    needs_extension: bool,
}

struct ActivityColumn {
    name: &'static str,
    column_type: SystemColumnType,
    unit: Option<&'static str>,
    description: &'static str,
    sql: &'static str,
    is_sensitive: bool,
    is_good_filter: bool,
}

impl ActivityColumn {
    const fn new(
        name: &'static str,
        column_type: SystemColumnType,
        sql: &'static str,
        description: &'static str,
    ) -> Self {
        Self { name, column_type, unit: None, description, sql, is_sensitive: false, is_good_filter: false }
    }

    const fn good_filter(mut self) -> Self {
        self.is_good_filter = true;
        self
    }

    const fn sensitive(mut self) -> Self {
        self.is_sensitive = true;
        self
    }

    fn describe(&self) -> SystemColumn {
        SystemColumn {
            unit: self.unit.map(Into::into),
            is_sensitive: self.is_sensitive,
            is_good_filter: self.is_good_filter,
            ..SystemColumn::new(self.name, self.column_type, self.description)
        }
    }
}

const fn text(name: &'static str, sql: &'static str, description: &'static str) -> ActivityColumn {
    ActivityColumn::new(name, SystemColumnType::Text, sql, description)
}

const fn integer(name: &'static str, sql: &'static str, description: &'static str) -> ActivityColumn {
    ActivityColumn::new(name, SystemColumnType::Integer, sql, description)
}

const fn count(name: &'static str, sql: &'static str, description: &'static str) -> ActivityColumn {
    ActivityColumn::new(name, SystemColumnType::Unsigned, sql, description)
}

const fn bytes(name: &'static str, sql: &'static str, description: &'static str) -> ActivityColumn {
    let mut column = count(name, sql, description);
    column.unit = Some("bytes");
    column
}

const fn seconds(name: &'static str, sql: &'static str, description: &'static str) -> ActivityColumn {
    let mut column = ActivityColumn::new(name, SystemColumnType::Duration, sql, description);
    column.unit = Some("seconds");
    column
}

const fn boolean(name: &'static str, sql: &'static str, description: &'static str) -> ActivityColumn {
    ActivityColumn::new(name, SystemColumnType::Boolean, sql, description)
}

const fn time(name: &'static str, sql: &'static str, description: &'static str) -> ActivityColumn {
    ActivityColumn::new(name, SystemColumnType::Timestamp, sql, description)
}

impl ActivityQuery {
    /// The description of the table about `database`.
    fn description(&self, database: &str) -> SystemTableDescription {
        SystemTableDescription {
            name: format!("{database}_{}", self.suffix).into(),
            description: format!("PostgreSQL database {database}: {}", self.description).into(),
            columns: self.columns.iter().map(ActivityColumn::describe).collect(),
            parameters: Vec::new(),
        }
    }

    /// The statement with a value for each column, null for those that `is_needed` leaves out. It has one row more than
    /// `rows_max`, which shows that there are more.
    fn sql(&self, is_needed: impl Fn(usize) -> bool, rows_max: usize) -> String {
        let mut sql = "SELECT ".to_owned();
        for (position, column) in self.columns.iter().enumerate() {
            let separator = if position == 0 { "" } else { ", " };
            let value = if is_needed(position) { column.sql } else { "NULL::text" };
            // Writing to a text does not fail.
            let _ = write!(sql, "{separator}{value} AS {}", column.name);
        }
        let _ = write!(sql, " {} LIMIT {}", self.source, rows_max.saturating_add(1));
        sql
    }
}

/// All tables.
static QUERIES: [ActivityQuery; 5] = [
    ActivityQuery {
        suffix: "activity",
        description: "server processes (without the one that reads this) with their state, what they wait for, and their current or last statement.",
        columns: &[
            integer("pid", "a.pid::bigint", "The process id of the server process.").good_filter(),
            text("database_name", "a.datname::text", "The database of the session.").good_filter(),
            text("user_name", "a.usename::text", "The role that logged in.").good_filter(),
            text("application_name", "a.application_name::text", "The name that the client set.").good_filter(),
            text("client_address", "a.client_addr::text", "The address of the client; null for local sockets."),
            text("backend_type", "a.backend_type::text", "client backend, or the kind of background process."),
            text("state", "a.state::text", "active, idle, idle in transaction and others.").good_filter(),
            text("wait_event_type", "a.wait_event_type::text", "The kind of event that it waits for.").good_filter(),
            text("wait_event", "a.wait_event::text", "The event that it waits for."),
            text(
                "blocked_by",
                "nullif(array_to_string(pg_blocking_pids(a.pid), ' '), '')",
                "The process ids that hold locks it waits for, separated by spaces.",
            ),
            text("query", "a.query::text", "The current statement, or the last one of an idle session.").sensitive(),
            seconds(
                "query_seconds",
                "CASE WHEN a.state = 'active' THEN extract(epoch FROM clock_timestamp() - a.query_start)::float8 END",
                "The time since the start of the current statement.",
            )
            .good_filter(),
            seconds(
                "transaction_seconds",
                "extract(epoch FROM clock_timestamp() - a.xact_start)::float8",
                "The time since the start of the current transaction.",
            ),
            time("query_start", "a.query_start", "The start of the current or last statement."),
            time("transaction_start", "a.xact_start", "The start of the current transaction."),
            time("session_start", "a.backend_start", "The start of the session."),
            time("state_change", "a.state_change", "The last change of the state."),
        ],
        source: "FROM pg_catalog.pg_stat_activity a WHERE a.pid <> pg_backend_pid()",
        needs_extension: false,
    },
    ActivityQuery {
        suffix: "statements",
        description: "statements with how often they ran and how long they took, from pg_stat_statements.",
        columns: &[
            integer("query_id", "s.queryid", "The number of the statement with its constants left out."),
            text("user_name", "pg_get_userbyid(s.userid)::text", "The role that ran it.").good_filter(),
            text("query", "s.query::text", "The statement with its constants left out.").sensitive(),
            count("calls", "s.calls", "How often it ran.").good_filter(),
            seconds("total_seconds", "s.total_exec_time / 1000", "The time of all runs.").good_filter(),
            seconds("mean_seconds", "s.mean_exec_time / 1000", "The average time of a run.").good_filter(),
            seconds("max_seconds", "s.max_exec_time / 1000", "The time of the longest run."),
            count("rows", "s.rows", "The rows of all runs."),
            count("shared_blocks_hit", "s.shared_blks_hit", "Blocks of 8 KiB that were in memory."),
            count("shared_blocks_read", "s.shared_blks_read", "Blocks that were read from disk or its cache."),
            count("temporary_blocks_written", "s.temp_blks_written", "Blocks of temporary files that were written."),
        ],
        source: "FROM pg_stat_statements s JOIN pg_catalog.pg_database d ON d.oid = s.dbid \
                 WHERE d.datname = current_database()",
        needs_extension: true,
    },
    ActivityQuery {
        suffix: "locks",
        description: "locks that server processes hold or wait for.",
        columns: &[
            integer("pid", "l.pid::bigint", "The process id of the server process.").good_filter(),
            text("lock_type", "l.locktype::text", "relation, transactionid, tuple and others.").good_filter(),
            text(
                "relation",
                "CASE WHEN l.database IN (0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = \
                 current_database())) THEN l.relation::regclass::text END",
                "The table or index; null for other databases.",
            )
            .good_filter(),
            text("mode", "l.mode::text", "The mode of the lock, such as AccessShareLock."),
            boolean("is_granted", "l.granted", "Whether the process holds the lock; otherwise it waits.").good_filter(),
            text(
                "blocked_by",
                "CASE WHEN NOT l.granted THEN array_to_string(pg_blocking_pids(l.pid), ' ') END",
                "The process ids that hold what it waits for, separated by spaces.",
            ),
            text("user_name", "a.usename::text", "The role of the session.").good_filter(),
            text("query", "a.query::text", "The statement of the session.").sensitive(),
            seconds(
                "transaction_seconds",
                "extract(epoch FROM clock_timestamp() - a.xact_start)::float8",
                "The time since the start of the transaction.",
            ),
        ],
        source: "FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid \
                 WHERE l.pid IS DISTINCT FROM pg_backend_pid()",
        needs_extension: false,
    },
    ActivityQuery {
        suffix: "table_sizes",
        description: "tables that the role may read, with size, estimated rows and vacuum.",
        columns: &[
            text("schema_name", "n.nspname::text", "The schema.").good_filter(),
            text("table_name", "c.relname::text", "The table.").good_filter(),
            bytes("total_bytes", "pg_total_relation_size(c.oid)", "The size with indexes and long values.")
                .good_filter(),
            bytes("table_bytes", "pg_table_size(c.oid)", "The size without indexes."),
            bytes("index_bytes", "pg_indexes_size(c.oid)", "The size of all indexes."),
            count("rows", "greatest(c.reltuples, 0)::bigint", "The number of rows, as the planner estimates it."),
            count("dead_rows", "s.n_dead_tup", "Deleted rows that vacuum has not removed yet."),
            count("sequential_scans", "s.seq_scan", "How often the whole table was read."),
            count("index_scans", "s.idx_scan", "How often an index was used."),
            time("last_vacuum", "greatest(s.last_vacuum, s.last_autovacuum)", "The last vacuum."),
            time("last_analyze", "greatest(s.last_analyze, s.last_autoanalyze)", "The last analyze."),
        ],
        source: "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                 LEFT JOIN pg_catalog.pg_stat_user_tables s ON s.relid = c.oid \
                 WHERE c.relkind IN ('r', 'm', 'p') AND n.nspname <> 'information_schema' \
                 AND n.nspname NOT LIKE 'pg\\_%' AND has_table_privilege(c.oid, 'SELECT')",
        needs_extension: false,
    },
    ActivityQuery {
        suffix: "index_usage",
        description: "indexes of tables that the role may read, with their size and how often they were used.",
        columns: &[
            text("schema_name", "s.schemaname::text", "The schema.").good_filter(),
            text("table_name", "s.relname::text", "The table.").good_filter(),
            text("index_name", "s.indexrelname::text", "The index.").good_filter(),
            count("scans", "s.idx_scan", "How often the index was used since statistics were reset.").good_filter(),
            count("rows_read", "s.idx_tup_read", "Entries of the index that were read."),
            count("rows_fetched", "s.idx_tup_fetch", "Rows of the table that were fetched by it."),
            bytes("size_bytes", "pg_relation_size(s.indexrelid)", "The size of the index."),
            boolean("is_unique", "i.indisunique", "Whether it keeps values unique, so that it is needed even unused."),
            boolean("is_primary_key", "i.indisprimary", "Whether it is the primary key."),
        ],
        source: "FROM pg_catalog.pg_stat_user_indexes s JOIN pg_catalog.pg_index i ON i.indexrelid = s.indexrelid \
                 WHERE has_table_privilege(s.relid, 'SELECT')",
        needs_extension: false,
    },
];
