//! Tools that write rows: `append_rows`, `replace_rows` and `drop_table`.
//!
//! They exist only on a node with tables that take rows, and only for callers that may write to one of them. Over REST,
//! their rows are the body of the request; over MCP, an argument. [`store_body`] is the one way from bytes to a table.
//! Operators also have `ingest_status` and `maintain_ingest`.

mod body_decoder;
mod maintenance;
mod row_arguments;
mod stamps;
mod store_body;
mod writable_table;
mod write_rows;

use std::path::PathBuf;
use std::sync::Arc;

use tidegate_core::{Access, Acl, AllowedNames, DatabaseTenants, PrincipalRule, TransportKind};
use tidegate_query::{NodeMemory, WriteTarget};
use tidegate_runtime::{SnapshotBuilder, Tool};

pub(crate) use self::body_decoder::on_blocking_thread;
pub use self::maintenance::register_ingest_maintenance;
pub(crate) use self::stamps::Stamps;
pub(crate) use self::store_body::{commit, record_write};
pub(crate) use self::write_rows::insert_row;

/// Over which transports tools are called that only programs need. Models do not see them.
const PROGRAM_TRANSPORTS: [TransportKind; 3] =
    [TransportKind::Rest, TransportKind::FlightSql, TransportKind::CommandLine];

/// The tools of a server with tables that take rows.
pub const TABLE_TOOLS: [&str; 3] = ["append_rows", "replace_rows", "drop_table"];
/// The tools of a server with folders of such tables.
pub const FOLDER_TOOLS: [&str; 2] = ["ingest_status", "maintain_ingest"];

/// How rows are taken.
#[derive(Debug, Clone)]
pub struct IngestToolOptions {
    /// The tenants of the databases. Rows can only be written to databases that exist for the caller.
    pub tenancy: DatabaseTenants,
    /// The folder of bodies that must be complete before they can be read.
    pub spool_folder: PathBuf,
    /// Whether tools that replace and remove rows are also called over MCP.
    pub is_advanced: bool,
    /// The memory that rows draw on while they are decoded and written.
    pub memory: Arc<NodeMemory>,
}

impl Default for IngestToolOptions {
    /// No tenants, the temporary folder of the system, tools that remove rows only over REST and the command line, and memory
    /// without a limit.
    fn default() -> Self {
        Self {
            tenancy: DatabaseTenants::default(),
            spool_folder: std::env::temp_dir(),
            is_advanced: false,
            memory: Arc::default(),
        }
    }
}

/// What the tools need: the tables that take rows, and how.
pub(crate) struct IngestContext {
    targets: Vec<Arc<dyn WriteTarget>>,
    options: IngestToolOptions,
}

impl IngestContext {
    pub(crate) fn new(targets: Vec<Arc<dyn WriteTarget>>, options: IngestToolOptions) -> Self {
        Self { targets, options }
    }
}

/// Adds the tools that write rows to `builder`, as far as `allowed` includes their names. A caller has them only if its
/// roles let it write to one of `targets`; without targets, nobody has them.
pub fn register_ingest_tools(
    builder: SnapshotBuilder,
    targets: Vec<Arc<dyn WriteTarget>>,
    options: IngestToolOptions,
    allowed: &AllowedNames,
) -> SnapshotBuilder {
    if targets.is_empty() {
        return builder;
    }
    let context = Arc::new(IngestContext::new(targets, options));
    let rule_context = context.clone();
    let rule = PrincipalRule::new(move |principal| rule_context.targets_for(principal).next().is_some());
    let open = Access { principal_rule: Some(rule), ..Access::default() };
    let of_programs = match context.options.is_advanced {
        true => open.clone(),
        false => Access { acl: Acl { transports: Some(PROGRAM_TRANSPORTS.to_vec()), networks: None }, ..open.clone() },
    };
    let tools = [
        write_rows::append_tool(&context).with_access(Access { is_for_senders: true, ..open }),
        write_rows::replace_tool(&context).with_access(of_programs.clone()),
        write_rows::drop_table_tool(&context).with_access(of_programs),
    ];
    let tools = tools.into_iter().filter(|tool: &Tool| allowed.includes(&tool.name));
    tools.fold(builder, SnapshotBuilder::tool)
}
