//! `tidegate pg status`.

use clap::Args;
use tidegate_postgres_handlers::{CallLogStatus, HandlerSchemaScripts, InstallStatus, LineCount};

use super::HandlerSchemaArguments;
use crate::command_error::CommandError;
use crate::output;

/// Show the installed version, its owner, and the roles that may call handlers
#[derive(Debug, Args)]
pub(crate) struct PgStatusCommand {
    #[command(flatten)]
    schema_arguments: HandlerSchemaArguments,
}

impl PgStatusCommand {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let installed = self.schema_arguments.installer()?.status().await?;
        output::print(render_status(&installed))
    }
}

fn render_status(installed: &InstallStatus) -> String {
    let InstallStatus { database, schema, owner, dispatch_roles, .. } = installed;
    let handlers = match &installed.handlers {
        None => NOT_READABLE.to_owned(),
        Some(_) if installed.has_owner_rights => render_handler_counts(installed),
        Some(_) => format!("{}; what this role may call", render_handler_counts(installed)),
    };
    let callers = match dispatch_roles.as_slice() {
        [] => format!("nobody but {owner}; SELECT {schema}.grant_mcp_access('ROLE') lets a role in"),
        roles => roles.join(", "),
    };
    format!(
        "database      {database}\n\
         schema        {schema}, owned by {owner}\n\
         version       {}\n\
         handlers      {handlers}\n\
         exchange log  {}\n\
         may call      {callers}\n",
        render_version(installed.version),
        render_exchange_log(installed.call_log),
    )
}

const NOT_READABLE: &str = "this role may not read that";

fn render_version(installed: Option<u32>) -> String {
    match installed {
        Some(version) => format!("{version}, as this program brings it"),
        None => format!("{NOT_READABLE}; this program brings {}", HandlerSchemaScripts::VERSION),
    }
}

/// The numbers of handlers: `3: 2 tools, 1 prompt`.
pub(super) fn render_handler_counts(installed: &InstallStatus) -> String {
    let counts = installed.handlers.iter().flatten();
    let of_types: Vec<String> = counts.clone().map(|(of_type, count)| pluralize(*count, of_type)).collect();
    match counts.map(|(_, count)| count).sum::<u64>() {
        0 => "none".to_owned(),
        count => format!("{count}: {}", of_types.join(", ")),
    }
}

fn render_exchange_log(log: Option<CallLogStatus>) -> String {
    let Some(CallLogStatus { is_on, lines }) = log else { return NOT_READABLE.to_owned() };
    let is_on = if is_on { "on" } else { "off" };
    match lines {
        Some(lines) => format!("{is_on}, {}", self::render_line_count(lines)),
        None => is_on.to_owned(),
    }
}

pub(super) fn render_line_count(lines: LineCount) -> String {
    match lines {
        LineCount::Exactly(count) => pluralize(count, "line"),
        LineCount::MoreThan(count) => format!("more than {}", pluralize(count, "line")),
    }
}

fn pluralize(count: u64, subject: &str) -> String {
    format!("{count} {subject}{}", if count == 1 { "" } else { "s" })
}
