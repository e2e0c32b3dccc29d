//! A table of a member database, as the caller sees it.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::Database;
use tidegate_sql::Statement;

use super::column_conversion;

/// A table of a member.
#[derive(Clone)]
pub(super) struct MemberTable {
    pub(super) member: Arc<dyn Database>,
    /// The name in the member's own catalog.
    pub(super) name: String,
    /// The columns with their types in the federated database.
    pub(super) schema: SchemaRef,
    /// The member's estimate of the number of rows.
    pub(super) rows: Option<u64>,
}

impl std::fmt::Debug for MemberTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.member.name(), self.name)
    }
}

impl MemberTable {
    /// Loads the table of `member` with this name.
    ///
    /// # Errors
    /// `NotFound` with the nearest names; errors of the member.
    pub(super) async fn load(member: Arc<dyn Database>, name: &str, principal: &Principal) -> Result<Self, Error> {
        let columns = member.columns(name, principal).await?;
        let dialect = member.dialect();
        // Not `*`, because the principal may have access to some columns only.
        let listed: Vec<String> = columns.iter().map(|column| dialect.quote_identifier(&column.name)).collect();
        if listed.is_empty() {
            let message = format!("the table {}.{name} has no readable columns", member.name());
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        let sql = format!("SELECT {} FROM {} LIMIT 0", listed.join(", "), dialect.quote_table(name));
        let given = member.describe(&Statement::parse(&sql, dialect)?, principal).await?;
        let schema =
            Arc::new(Schema::new(given.fields().iter().map(|field| with_single_type(field)).collect::<Vec<_>>()));
        Ok(Self { member, name: name.to_owned(), schema, rows: None })
    }
}

/// A column of a member with a single type, even if its values have their own types.
fn with_single_type(field: &Field) -> Field {
    match field.data_type() {
        DataType::Union(..) => field.clone().with_data_type(column_conversion::type_from_declaration(field)),
        _ => field.clone(),
    }
}
