//! A table of a member database as the caller sees it, and a query of a member.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::Database;
use tidegate_sql::Statement;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::column_conversion;
use crate::embedded::QueryCancellation;

#[derive(Clone)]
pub(super) struct MemberTable {
    pub(super) member: Arc<dyn Database>,
    /// The name in the member's own catalog.
    pub(super) name: String,
    /// The columns with their types in the federated database.
    pub(super) schema: SchemaRef,
    pub(super) rows: Option<u64>,
    pub(super) context: MemberQueryContext,
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
    Ok(Arc::new(Schema::new(described.fields().iter().map(|field| with_single_type(field)).collect::<Vec<_>>())))
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
pub(super) struct MemberQueryContext {
    pub(super) principal: Arc<Principal>,
    /// Knows the job once the plan runs.
    pub(super) cancellation: QueryCancellation,
    /// The caller's runtime. Members use the network, which the engine's runtime does not support.
    pub(super) runtime: Handle,
    pub(super) tasks: TaskTracker,
}

#[derive(Clone)]
pub(super) struct MemberQuery {
    pub(super) member: Arc<dyn Database>,
    pub(super) statement: Statement,
    pub(super) rows: Option<u64>,
}

impl fmt::Debug for MemberQuery {
    /// The database and the SQL of the query.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.member.name(), self.statement.text())
    }
}
