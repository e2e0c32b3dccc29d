//! All handlers of a database as the roles see them that calls run as.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use tidegate_core::{Error, ErrorKind};
use tidegate_query::Transaction;
use tokio_postgres::error::SqlState;

use super::options::HandlerOptions;
use super::record::{HANDLERS_SQL, HandlerKind, HandlerRecord, RecordError};
use crate::error;
use crate::lease::Lease;
use crate::server::PostgresServer;
use crate::transaction::ROLLBACK;

/// Handlers of a database at most; what is beyond them is left out, and said.
const HANDLERS_MAX: i64 = 10_000;

/// All handlers of a database.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HandlerCatalog {
    /// Grows with each change of the handlers.
    pub revision: i64,
    /// The handlers, each once, by kind and name.
    pub handlers: Vec<Arc<HandlerRecord>>,
    /// What is wrong with handlers that are left out.
    pub problems: Vec<String>,
    /// Whether calls are to be written into the exchange log.
    pub(crate) logs_exchanges: bool,
    /// Whether a function of the database's owner knows who exists.
    pub(crate) checks_identity: bool,
}

impl PostgresServer {
    /// What the roles see of the handlers.
    ///
    /// # Errors
    /// `Unavailable` when the server cannot be reached, `NotFound` when the schema is not there, `Forbidden` when its
    /// owner has let in none of the roles.
    pub(crate) async fn list_handlers(&self, options: &HandlerOptions) -> Result<HandlerCatalog, Error> {
        let roles: Vec<Option<String>> = match self.options.run_as.roles() {
            roles if roles.is_empty() => vec![None],
            roles => roles.into_iter().map(|role| Some(role.to_owned())).collect(),
        };
        let mut sum = CatalogMerge::default();
        let mut refused = None;
        for role in &roles {
            match self.list_handlers_for_role(role.clone(), options).await {
                Ok(seen) => sum.add(seen),
                // One role may do without handlers while another has some.
                Err(error) if error.kind() == ErrorKind::Forbidden => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        match refused {
            Some(error) if sum.catalogs_merged == 0 => Err(error),
            _ => Ok(sum.into_catalog()),
        }
    }

    async fn list_handlers_for_role(
        &self,
        role: Option<String>,
        options: &HandlerOptions,
    ) -> Result<HandlerCatalog, Error> {
        let identity = crate::session::TransactionIdentity { role: role.clone(), ..self.owner_identity() };
        let mut lease = self.begin(&Transaction::default(), &identity).await?;
        lease.mark_busy();
        let read = read_catalog(&lease, options, role.as_deref()).await;
        let read = read.map_err(|error| read_error(&error, &self.database, options, role.as_deref()))?;
        // A connection whose end fails is thrown away by its lease, and the answer is there.
        let _ = lease.end(ROLLBACK).await;
        Ok(read)
    }
}

async fn read_catalog(
    lease: &Lease,
    options: &HandlerOptions,
    role: Option<&str>,
) -> Result<HandlerCatalog, tokio_postgres::Error> {
    // The lease lives as long as its session is needed.
    let Ok(session) = lease.session() else { return Ok(HandlerCatalog::default()) };
    let client = session.client();
    let schema = options.schema.as_str();
    let registry = format!("SELECT revision, logs_exchanges, identity_check IS NOT NULL FROM {schema}.registry");
    let registry = client.query_typed(&registry, &[]).await?;
    let mut catalog = HandlerCatalog::default();
    if let Some(row) = registry.first() {
        catalog.revision = row.try_get(0)?;
        catalog.logs_exchanges = options.audit || row.try_get(1)?;
        catalog.checks_identity = row.try_get(2)?;
    }
    let handlers = HANDLERS_SQL.replace("{schema}", schema);
    let rows = client.query_typed(&handlers, &[(&HANDLERS_MAX, tokio_postgres::types::Type::INT8)]).await?;
    if i64::try_from(rows.len()).is_ok_and(|count| count == HANDLERS_MAX) {
        catalog.problems.push(format!("only the first {HANDLERS_MAX} handlers are served"));
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

/// Why the handlers could not be read, for the owner of the node.
fn read_error(error: &tokio_postgres::Error, database: &str, options: &HandlerOptions, role: Option<&str>) -> Error {
    let schema = &options.schema;
    let whom = role.unwrap_or("the login role");
    match error.code() {
        Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            let message = format!("the handlers of the database {database} are not for {whom}");
            Error::new(ErrorKind::Forbidden, message)
                .with_hint(format!("Their owner lets a role in with SELECT {schema}.grant_mcp_access('ROLE')."))
        }
        Some(code) if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::UNDEFINED_SCHEMA => {
            let message = format!("the database {database} has no handlers in the schema {schema}");
            Error::new(ErrorKind::NotFound, message).with_hint("tidegate pg install makes it.")
        }
        Some(code) if *code == SqlState::UNDEFINED_COLUMN || *code == SqlState::UNDEFINED_FUNCTION => {
            let message = format!("the schema {schema} of the database {database} is of an older version");
            Error::new(ErrorKind::NotFound, message).with_hint("tidegate pg upgrade renews it.")
        }
        _ => error::internal_statement_error(error, database),
    }
}

/// What several roles see, as one.
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
        // The oldest revision that was seen: what came in between is read again.
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
