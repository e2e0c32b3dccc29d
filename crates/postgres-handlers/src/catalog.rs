//! All handlers of a database that are visible to the roles of calls.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use tidegate_core::{Error, ErrorKind};
use tidegate_postgres::CallTransaction;
use tidegate_postgres::error::internal_statement_error;
use tidegate_sql::Transaction;
use tokio_postgres::error::SqlState;

use crate::database_handlers::{DatabaseHandlers, HandlerOptions};
use crate::record::{HANDLERS_SQL, HandlerKind, HandlerRecord, RecordError};

/// The maximum number of handlers of a database; further ones are left out, with a warning.
const HANDLERS_MAX: usize = 10_000;

/// All handlers of a database.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HandlerCatalog {
    /// Increases with each change of the handlers.
    pub revision: i64,
    /// The handlers without duplicates, by kind and name.
    pub handlers: Vec<Arc<HandlerRecord>>,
    /// The problems of handlers that are left out.
    pub problems: Vec<String>,
    /// Whether calls are recorded in the exchange log.
    pub(crate) logs_exchanges: bool,
    /// Whether the owner has set an identity check.
    pub(crate) checks_identity: bool,
}

impl DatabaseHandlers {
    /// The handlers that are visible to the roles of calls.
    ///
    /// # Errors
    /// `Unavailable` if the server cannot be reached, `NotFound` if the schema does not exist, `Forbidden` if none of
    /// the roles has access to it.
    pub async fn list(&self) -> Result<HandlerCatalog, Error> {
        let mut sum = CatalogMerge::default();
        let mut refused = None;
        for role in self.database.roles() {
            match self.list_for_role(role).await {
                Ok(seen) => sum.add(seen),
                // One role may have access while another has none.
                Err(error) if error.kind() == ErrorKind::Forbidden => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        match refused {
            Some(error) if sum.catalogs_merged == 0 => Err(error),
            _ => Ok(sum.into_catalog()),
        }
    }

    async fn list_for_role(&self, role: Option<String>) -> Result<HandlerCatalog, Error> {
        let identity = self.database.identity_for_role(role);
        let mut transaction = self.database.begin(&Transaction::default(), &identity).await?;
        let role = identity.role.as_deref();
        let read = read_catalog(&mut transaction, &self.options, role).await;
        let read = read.map_err(|error| read_error(&error, &self.name, &self.options, role))?;
        transaction.roll_back().await;
        Ok(read)
    }
}

async fn read_catalog(
    transaction: &mut CallTransaction,
    options: &HandlerOptions,
    role: Option<&str>,
) -> Result<HandlerCatalog, tokio_postgres::Error> {
    let schema = options.schema.as_str();
    let registry = format!("SELECT revision, logs_exchanges, identity_check IS NOT NULL FROM {schema}.registry");
    let registry = transaction.query(&registry, &[]).await?;
    let mut catalog = HandlerCatalog::default();
    if let Some(row) = registry.first() {
        catalog.revision = row.try_get(0)?;
        catalog.logs_exchanges = options.audit || row.try_get(1)?;
        catalog.checks_identity = row.try_get(2)?;
    }
    let handlers = HANDLERS_SQL.replace("{schema}", schema);
    let rows = transaction.query(&format!("{handlers} LIMIT {HANDLERS_MAX}"), &[]).await?;
    if rows.len() == HANDLERS_MAX {
        catalog
            .problems
            .push(format!("there are more than {HANDLERS_MAX} handlers; only the first {HANDLERS_MAX} are served"));
    }
    for row in &rows {
        match HandlerRecord::from_row(row, options, role) {
            Ok(record) => catalog.handlers.push(Arc::new(record)),
            Err(RecordError::Row(error)) => return Err(error),
            Err(RecordError::Invalid(why)) => {
                let (kind, name): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
                catalog.problems.push(format!("the {kind} {name:?} is left out: {why}"));
            }
        }
    }
    Ok(catalog)
}

/// The error of reading the handlers, for the owner of the node.
fn read_error(error: &tokio_postgres::Error, database: &str, options: &HandlerOptions, role: Option<&str>) -> Error {
    let schema = &options.schema;
    let whom = role.unwrap_or("the login role");
    match error.code() {
        Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            let message = format!("the role {whom} has no access to the handlers of the database {database}");
            Error::new(ErrorKind::Forbidden, message)
                .with_hint(format!("The owner of the schema can run SELECT {schema}.grant_mcp_access('ROLE')."))
        }
        Some(code) if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::UNDEFINED_SCHEMA => {
            let message = format!("the database {database} has no handlers in the schema {schema}");
            Error::new(ErrorKind::NotFound, message).with_hint("Create it with tidegate pg install.")
        }
        Some(code) if *code == SqlState::UNDEFINED_COLUMN || *code == SqlState::UNDEFINED_FUNCTION => {
            let message = format!("the schema {schema} of the database {database} has an older version");
            Error::new(ErrorKind::NotFound, message).with_hint("Upgrade it with tidegate pg upgrade.")
        }
        _ => internal_statement_error(error, database),
    }
}

/// The merged catalogs of several roles.
#[derive(Default)]
struct CatalogMerge {
    catalogs_merged: usize,
    first: HandlerCatalog,
    by_name: BTreeMap<(HandlerKind, String), HandlerRecord>,
}

impl CatalogMerge {
    fn add(&mut self, catalog: HandlerCatalog) {
        self.catalogs_merged += 1;
        let HandlerCatalog { revision, handlers, problems, logs_exchanges, checks_identity } = catalog;
        // The oldest revision: changes in between are read again.
        self.first.revision = if self.catalogs_merged == 1 { revision } else { self.first.revision.min(revision) };
        self.first.logs_exchanges = logs_exchanges;
        self.first.checks_identity = checks_identity;
        self.first
            .problems
            .extend(problems.into_iter().filter(|problem| !self.first.problems.contains(problem)).collect::<Vec<_>>());
        for record in handlers {
            match self.by_name.entry((record.kind, record.name.clone())) {
                Entry::Vacant(place) => {
                    place.insert(Arc::unwrap_or_clone(record));
                }
                Entry::Occupied(mut known) => known.get_mut().roles.extend(record.roles.iter().cloned()),
            }
        }
    }

    fn into_catalog(self) -> HandlerCatalog {
        HandlerCatalog { handlers: self.by_name.into_values().map(Arc::new).collect(), ..self.first }
    }
}
