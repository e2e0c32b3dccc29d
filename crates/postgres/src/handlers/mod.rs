//! MCP handlers in a database: the schema that contains them, and the execution of calls.
//!
//! [`HandlerCatalog`] lists the handlers of a database for the registry of a node. A call begins a transaction with the
//! caller's role, calls the function of the handler, and returns its answer.

mod answer;
mod call;
mod catalog;
mod content;
mod entries;
mod exchange_log;
pub(crate) mod handler_error;
mod inspection;
mod install;
mod install_error;
mod options;
mod record;
mod rows;
mod schema_name;
mod script;
mod sql_layer;
mod status;
mod testing;
mod watcher;

pub(crate) use call::DatabaseHandler;
pub use catalog::HandlerCatalog;
pub use entries::HandlerEntry;
pub(crate) use exchange_log::ExchangeRecorder;
pub use install::{InstallChanges, InstallMode, Installer};
pub use options::HandlerOptions;
pub use record::{HandlerKind, HandlerRecord};
pub use rows::HandlerRows;
pub use schema_name::{SchemaName, SchemaNameError};
pub use script::{Script, ScriptError, ScriptProblem, ScriptStatement};
pub use sql_layer::{MigrationStep, SqlLayer};
pub use status::{ExchangeLogStatus, InstallStatus, InstalledVersion, LineCount};
pub use testing::{TestError, TestOptions, TestReport, TestResult, run_test_file};
pub use watcher::HandlerWatcher;
