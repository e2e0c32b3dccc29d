//! MCP handlers in a PostgreSQL database: the schema that contains them, and the execution of calls.
//!
//! [`DatabaseHandlers`] lists the handlers of a database for the registry of a node and watches them for changes. A call
//! begins a transaction with the caller's role, calls the function of the handler, and returns its answer.
//! [`Installer`] creates the schema from the files in `sql/handlers`; [`run_test_file`] runs the tests of handlers.

mod answer;
mod call;
mod call_log;
mod database_handlers;
mod entries;
mod install;
mod record;
mod script;
mod testing;

pub use call::PgRowsFunction;
pub use database_handlers::{DatabaseHandlers, HandlerCatalog, HandlerWatcher};
pub use entries::HandlerEntry;
pub use install::{
    CallLogStatus, HandlerSchemaScripts, InstallMode, InstallStatus, Installation, Installer, LineCount, SchemaName,
    SchemaNameError,
};
pub use record::{Compatibility, HandlerKind, HandlerOptions, HandlerRecord};
pub use testing::{TestError, TestOptions, TestReport, TestResult, run_test_file};
