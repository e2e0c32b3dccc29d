//! A table of a member database as the caller sees it, and a query of a member.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{Database, DatabaseKind, NodeDatabase, as_foreign_text, without_type_name};
use tidegate_sql::{SqlDialect, Statement};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::column_conversion;
use super::push::{ComparisonSemantics, has_own_order, selected_type};
use crate::embedded::{Engine, QueryCancellation};

/// A database whose tables are those of a federated database, or a node whose tables are those of a network.
#[derive(Clone)]
pub(crate) enum Member {
    Database(Arc<dyn Database>),
    Node(Arc<dyn NodeDatabase>),
}

impl Deref for Member {
    type Target = dyn Database;

    fn deref(&self) -> &(dyn Database + 'static) {
        match self {
            Self::Database(database) => &**database,
            Self::Node(node) => &**node,
        }
    }
}

impl Member {
    /// Whether statements are planned by our engine, in this process or in a node. A Flight SQL server with the same
    /// dialect may be another program.
    pub(super) fn is_own_engine(&self) -> bool {
        self.dialect().is_embedded()
            && match self {
                Self::Database(database) => database.kind() != DatabaseKind::FlightSql,
                Self::Node(_) => true,
            }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Database(left), Self::Database(right)) => Arc::ptr_eq(left, right),
            (Self::Node(left), Self::Node(right)) => Arc::ptr_eq(left, right),
            _ => false,
        }
    }
}

#[derive(Clone)]
pub(crate) struct MemberTable {
    pub(crate) member: Member,
    /// The name in the member's own catalog.
    pub(crate) name: String,
    /// The columns with their types in the federated database.
    pub(crate) schema: SchemaRef,
    pub(crate) rows: Option<u64>,
    pub(crate) context: MemberQueryContext,
}

impl MemberTable {
    pub(crate) fn member_name(&self) -> &str {
        self.member.name()
    }

    pub(crate) fn table_schema(&self) -> &SchemaRef {
        &self.schema
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for MemberTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.member.name(), self.name)
    }
}

pub(super) async fn load_schema(
    member: &Arc<dyn Database>,
    name: &str,
    principal: &Principal,
) -> Result<SchemaRef, Error> {
    let columns = member.columns(name, principal).await?;
    let dialect = member.dialect();
    // Not `*`, because the principal may have access to some columns only.
    let listed: Vec<String> = columns.iter().map(|column| dialect.quote_identifier(&column.name)).collect();
    if listed.is_empty() {
        let message = format!("the table {}.{name} has no readable columns", member.name());
        return Err(Error::new(ErrorKind::InvalidArguments, message));
    }
    let sql = format!("SELECT {} FROM {} LIMIT 0", listed.join(", "), dialect.quote_table(name));
    let described = member.describe(&Statement::parse(&sql, dialect)?, principal).await?;
    let fields = described.fields().iter().map(|field| {
        let column = without_needless_name(with_single_type(field), dialect);
        if has_own_order(&column, dialect) { as_foreign_text(column) } else { column }
    });
    Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

/// `field` without the name of its type, unless queries depend on it. WITH RECURSIVE refuses columns that differ in
/// nothing but such names.
fn without_needless_name(field: Field, dialect: SqlDialect) -> Field {
    let unnamed = without_type_name(field.clone());
    let semantics = |field| (ComparisonSemantics::for_field(field, dialect), selected_type(field, dialect));
    if semantics(&unnamed) == semantics(&field) { unnamed } else { field }
}

/// A column of a member with a single type, even if its values have their own types.
fn with_single_type(field: &Field) -> Field {
    match field.data_type() {
        DataType::Union(..) => field.clone().with_data_type(column_conversion::type_from_declaration(field)),
        _ => field.clone(),
    }
}

/// The principal and the runtime of member queries.
#[derive(Debug, Clone)]
pub(crate) struct MemberQueryContext {
    pub(crate) principal: Arc<Principal>,
    /// Knows the job once the plan runs.
    pub(crate) cancellation: QueryCancellation,
    /// The caller's runtime. Members use the network, which the engine's runtime does not support.
    pub(crate) runtime: Handle,
    pub(crate) tasks: TaskTracker,
    /// How long a node may take for its first rows.
    pub(crate) first_rows_within: Option<Duration>,
}

impl MemberQueryContext {
    /// For one statement of `principal`, in the runtime of the caller.
    pub(crate) fn new(principal: &Principal, engine: &Engine, tasks: &TaskTracker) -> Self {
        Self {
            principal: Arc::new(principal.clone()),
            cancellation: QueryCancellation::new(engine.shutdown_token()),
            runtime: Handle::current(),
            tasks: tasks.clone(),
            first_rows_within: None,
        }
    }
}

#[derive(Clone)]
pub(super) struct MemberQuery {
    pub(super) member: Member,
    pub(super) statement: Statement,
    pub(super) rows: Option<u64>,
}

impl fmt::Debug for MemberQuery {
    /// The database and the SQL of the query.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.member.name(), self.statement.text())
    }
}
