//! The handlers of one database: its connections, the options of its owner, and the exchange log.

use std::sync::Arc;

use tidegate_core::Error;
use tidegate_postgres::PostgresDatabase;
use tidegate_runtime::{Handler, Job};

use crate::call::PgFunctionHandler;
use crate::catalog::HandlerCatalog;
use crate::entries::HandlerEntry;
use crate::exchange_log::ExchangeRecorder;
use crate::record::HandlerRecord;
use crate::rows::PgRowsFunction;
use crate::schema_name::SchemaName;
use crate::watcher::HandlerWatcher;

/// The configuration of the handlers that callers may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerOptions {
    /// The schema that contains them.
    pub schema: SchemaName,
    /// Whether they may write. Otherwise each runs in a read-only transaction, whatever its metadata says.
    pub writes: bool,
    /// Whether each call is recorded in the exchange log of the database, even if the log is switched off there.
    pub audit: bool,
}

/// The handlers of one database.
pub struct DatabaseHandlers {
    pub(crate) database: Arc<PostgresDatabase>,
    /// The name of the database.
    pub(crate) name: Arc<str>,
    pub(crate) options: HandlerOptions,
    exchange_log: ExchangeRecorder,
}

impl DatabaseHandlers {
    /// The handlers of `database`, whose name is `name`.
    pub fn new(name: &str, database: Arc<PostgresDatabase>, options: HandlerOptions) -> Arc<Self> {
        Arc::new(Self { database, name: name.into(), options, exchange_log: ExchangeRecorder::default() })
    }

    /// Watches for changes since the `known` handlers.
    pub fn watch(self: &Arc<Self>, known: Option<HandlerCatalog>) -> HandlerWatcher {
        HandlerWatcher::new(self.clone(), known)
    }

    /// The registry entry for `record` of `catalog`. A handler that returns rows is executed by the tool that `rows`
    /// creates.
    ///
    /// # Errors
    /// The reason why the handler cannot be served, although the database accepted it.
    pub fn entry(
        self: &Arc<Self>,
        catalog: &HandlerCatalog,
        record: &Arc<HandlerRecord>,
        rows: impl FnOnce(PgRowsFunction) -> Arc<dyn Handler>,
    ) -> Result<HandlerEntry, String> {
        let output_schema = record.output_schema()?;
        let handler: Arc<dyn Handler> = match record.returns_rows {
            true => rows(PgRowsFunction::new(self.clone(), record.clone(), catalog)),
            false => Arc::new(PgFunctionHandler::new(self.clone(), record.clone(), catalog, output_schema.clone())),
        };
        record.to_entry(handler, output_schema, &self.database)
    }

    /// Records in the exchange log that the call `job` of the handler of `record` has ended.
    pub(crate) fn record_call(
        &self,
        record: &HandlerRecord,
        job: &Job,
        arguments: serde_json::Value,
        failure: Option<&Error>,
    ) {
        self.exchange_log.record_call(self, record, job, arguments, failure);
    }
}
