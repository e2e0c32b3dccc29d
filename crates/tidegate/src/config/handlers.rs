//! Handlers in databases, as entries beside the declared ones.

use std::sync::Arc;

use crate::node::ServedState;
use async_trait::async_trait;
use serde_json::{Map, Value};
use tidegate_core::{DatabaseTenants, Error, ErrorKind, Principal};
use tidegate_postgres_handlers::{
    DatabaseHandlers, HandlerCatalog, HandlerEntry, HandlerKind, HandlerWatcher, PgRowsFunction,
};
use tidegate_runtime::{Job, ServerName, SnapshotBuilder};
use tidegate_sql::Statement;
use tidegate_tools::ToolServices;
use tidegate_tools::declared::{StatementProvider, statement_tool_handler, with_row_arguments};

/// The entries of a node: those of the configuration, and the handlers of its databases as last read.
#[derive(Clone)]
pub(super) struct EntriesWithHandlers {
    declared: ServedState,
    sources: Vec<HandlerDatabase>,
}

#[derive(Clone)]
struct HandlerDatabase {
    name: String,
    handlers: Arc<DatabaseHandlers>,
    /// `None` until the database was reachable.
    catalog: Option<HandlerCatalog>,
}

impl EntriesWithHandlers {
    /// Reads `handlers` of databases with these names. A database that cannot be read has no handlers yet, and adds a
    /// warning.
    pub(super) async fn load_catalogs(
        declared: ServedState,
        handlers: Vec<(String, Arc<DatabaseHandlers>)>,
        warnings: &mut Vec<String>,
    ) -> Self {
        let reading = handlers.into_iter().map(|(name, handlers)| async move {
            let catalog = handlers.list().await;
            (HandlerDatabase { name, handlers, catalog: None }, catalog)
        });
        let read = futures::future::join_all(reading).await;
        let sources = read.into_iter().map(|(source, catalog)| match catalog {
            Ok(catalog) => HandlerDatabase { catalog: Some(catalog), ..source },
            Err(error) => {
                // The inspection of the databases reports those that are unavailable.
                if error.kind() != ErrorKind::Unavailable {
                    let reason = error.detail().map_or_else(|| error.to_string(), str::to_owned);
                    warnings.push(format!("database {}: {reason}", source.name));
                }
                source
            }
        });
        Self { declared, sources: sources.collect() }
    }

    pub(super) fn refresh(&mut self, name: &str, catalog: HandlerCatalog) {
        if let Some(source) = self.sources.iter_mut().find(|source| source.name == name) {
            source.catalog = Some(catalog);
        }
    }

    pub(super) fn handler_watchers(&self) -> Vec<(String, HandlerWatcher)> {
        let watcher = |source: &HandlerDatabase| (source.name.clone(), source.handlers.watch(source.catalog.clone()));
        self.sources.iter().map(watcher).collect()
    }

    /// The state of a node with these entries. If names are equal, declared entries win over handlers, whose names are
    /// chosen by anyone with write access to the schema; between databases, the first one wins.
    pub(super) fn build_state(&self, warnings: &mut Vec<String>) -> ServedState {
        let services = self.declared.services();
        self.declared.clone().entries(|mut entries| {
            for source in &self.sources {
                entries = source.add_entries(entries, services, warnings);
            }
            entries
        })
    }
}

impl HandlerDatabase {
    fn add_entries(
        &self,
        mut entries: SnapshotBuilder,
        services: &Arc<ToolServices>,
        warnings: &mut Vec<String>,
    ) -> SnapshotBuilder {
        let Some(catalog) = &self.catalog else { return entries };
        // Every client receives the name, so it must not come from a database that only some tenants may know.
        if services.databases.tenancy().admits(&self.name, &Principal::anonymous()) {
            let (name, version) = (catalog.server_name.clone(), catalog.server_version.clone());
            entries = entries.server_name(ServerName { name, version });
        }
        if let Some(code) = self.handlers.absent_entry_code() {
            entries = entries.absent_entry_code(code);
        }
        warnings.extend(catalog.problems.iter().map(|problem| format!("database {}: {problem}", self.name)));
        for record in &catalog.handlers {
            let (kind, name) = (record.kind, &record.name);
            let mut warn_left_out = |reason: &str| {
                warnings.push(format!("database {}: the {} {name:?} is left out: {reason}", self.name, kind.name()));
            };
            let rows = |rows| statement_tool_handler(services.clone(), self.name.clone(), PgStatementProvider(rows));
            let entry = self.handlers.entry(catalog, record, rows).and_then(|entry| match entry {
                HandlerEntry::Tool(tool) if record.returns_rows => {
                    Ok(HandlerEntry::Tool(Box::new(with_row_arguments(*tool)?)))
                }
                entry => Ok(entry),
            });
            let entry = match entry {
                Ok(entry) => restrict_to_tenants(entry, services.databases.tenancy(), &self.name),
                Err(reason) => {
                    warn_left_out(&reason);
                    continue;
                }
            };
            let is_taken = match &entry {
                HandlerEntry::Tool(tool) => entries.has_tool(&tool.name),
                HandlerEntry::Prompt(prompt) => entries.has_prompt(&prompt.name),
                HandlerEntry::Resource(resource) => entries.has_resource(&resource.uri),
                HandlerEntry::Template(template) => entries.has_resource(template.template.as_str()),
            };
            if is_taken {
                let subject = if kind == HandlerKind::Resource { "URI" } else { "name" };
                warn_left_out(&format!("its {subject} is that of another entry"));
                continue;
            }
            entries = match entry {
                HandlerEntry::Tool(tool) => entries.tool(*tool),
                HandlerEntry::Prompt(prompt) => entries.prompt(*prompt),
                HandlerEntry::Resource(resource) => entries.resource(*resource),
                HandlerEntry::Template(template) => entries.template(*template),
            };
        }
        entries
    }
}

fn restrict_to_tenants(mut entry: HandlerEntry, tenancy: &DatabaseTenants, database: &str) -> HandlerEntry {
    let access = match &mut entry {
        HandlerEntry::Tool(tool) => &mut tool.access,
        HandlerEntry::Prompt(prompt) => &mut prompt.access,
        HandlerEntry::Resource(resource) => &mut resource.access,
        HandlerEntry::Template(template) => &mut template.access,
    };
    *access = tenancy.restrict(database, std::mem::take(access));
    entry
}

struct PgStatementProvider(PgRowsFunction);

#[async_trait]
impl StatementProvider for PgStatementProvider {
    async fn statement(&self, job: &Job, arguments: Map<String, Value>) -> Result<Statement, Error> {
        self.0.statement(job, arguments).await
    }

    fn on_call_end(&self, job: &Job, arguments: Map<String, Value>, failure: Option<&Error>) {
        self.0.record_end(job, arguments, failure);
    }
}
