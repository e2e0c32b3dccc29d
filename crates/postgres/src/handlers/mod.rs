//! MCP handlers that live in a database: the schema that holds them, and the way of a call to them.
//!
//! The registry of a node is filled with what the database lists ([`HandlerCatalog`]); a call begins a transaction as
//! the caller's role, runs the handler's function itself, and hands its answer on.

mod answer;
mod call;
mod catalog;
mod changes;
mod content;
mod entries;
mod exchange;
pub(crate) mod failure;
mod install;
mod layer;
mod options;
mod record;
mod refusal;
mod rows;
mod schema_name;
mod script;
mod status;
mod survey;
mod testing;

pub(crate) use call::HandlerCode;
pub use catalog::HandlerCatalog;
pub use changes::HandlerChanges;
pub use entries::HandlerEntry;
pub(crate) use exchange::Exchanges;
pub use install::{Change, Ending, Installer};
pub use layer::{Layer, Step};
pub use options::HandlerOptions;
pub use record::{HandlerKind, HandlerRecord};
pub use rows::HandlerRows;
pub use schema_name::{SchemaName, SchemaNameError};
pub use script::{Script, ScriptError, ScriptProblem, ScriptStatement};
pub use status::{ExchangeLog, InstalledVersion, Lines, Status};
pub use testing::{TestError, TestOptions, TestReport, TestResult, run_test_file};
