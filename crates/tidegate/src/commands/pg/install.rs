//! `tidegate pg install`, `upgrade` and `print`: the schema of handlers, created, upgraded or printed.

use clap::Args;
use tidegate_postgres_handlers::{HandlerSchemaScripts, InstallChanges, InstallMode};

use super::{ExecutionFlags, HandlerSchemaArguments, SchemaFlag};
use crate::command_error::CommandError;
use crate::output;

/// The arguments of `install` and `upgrade`.
#[derive(Debug, Args)]
pub(crate) struct PgInstallArguments {
    #[command(flatten)]
    schema_arguments: HandlerSchemaArguments,
    #[command(flatten)]
    execution: ExecutionFlags,
}

impl PgInstallArguments {
    /// Creates the schema or upgrades it; with `is_upgrade`, it must exist.
    pub(super) async fn run(self, is_upgrade: bool) -> Result<(), CommandError> {
        let Self { schema_arguments, execution } = self;
        if execution.print {
            // The script itself checks what exists.
            return output::print(schema_arguments.schema.install_script());
        }
        let (installer, mode) = (schema_arguments.installer()?, execution.mode());
        let change = if is_upgrade { installer.upgrade(mode).await? } else { installer.install(mode).await? };
        output::print(render_change(&change, mode))
    }
}

/// Print the SQL that creates the schema of handlers, for psql
#[derive(Debug, Args)]
pub(crate) struct PgPrintCommand {
    #[command(flatten)]
    schema: SchemaFlag,
    /// Print the SQL that removes the schema
    #[arg(long)]
    uninstall: bool,
}

impl PgPrintCommand {
    pub(super) fn run(self) -> Result<(), CommandError> {
        let script = if self.uninstall { self.schema.uninstall_script() } else { self.schema.install_script() };
        output::print(script)
    }
}

const STEPS_LISTED_MAX: usize = 8;

fn render_change(change: &InstallChanges, mode: InstallMode) -> String {
    let InstallChanges { database, schema, .. } = change;
    let (location, version) =
        (format!("the schema {schema} of the database {database}"), HandlerSchemaScripts::VERSION);
    let is_dry = mode == InstallMode::DryRun;
    if change.is_empty() {
        return format!("{location} has the handlers of this program, version {version}: there is nothing to change\n");
    }
    let mut text = match (change.was_installed, is_dry) {
        (false, false) => format!("handlers are installed in {location}, version {version}\n"),
        (false, true) => format!("handlers would be installed in {location}, version {version}\n"),
        (true, false) => format!("{location} had handlers already and is upgraded {}\n", versions(change)),
        (true, true) => format!("{location} has handlers already and would be upgraded {}\n", versions(change)),
    };
    match change.steps.as_slice() {
        [] => {}
        [first, .., last] if change.steps.len() > STEPS_LISTED_MAX => {
            text.push_str(&format!("  steps      {}, from {first} to {last}\n", change.steps.len()));
        }
        steps => {
            let steps: Vec<String> = steps.iter().map(ToString::to_string).collect();
            text.push_str(&format!("  steps      {}\n", steps.join(", ")));
        }
    }
    let counts = [
        (change.functions_added, "added"),
        (change.functions_replaced, "replaced"),
        (change.functions_dropped, "dropped"),
    ];
    let counts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, subject)| format!("{count} {subject}")).collect();
    if !counts.is_empty() {
        text.push_str(&format!("  functions  {}\n", counts.join(", ")));
    }
    match (is_dry, change.was_installed) {
        (true, _) => text.push_str("this was a dry run: nothing is changed\n"),
        (false, false) => {
            text.push_str(&format!("a role that is to call them needs SELECT {schema}.grant_mcp_access('ROLE')\n"))
        }
        (false, true) => {}
    }
    text
}

fn versions(change: &InstallChanges) -> String {
    match change.version_before {
        Some(version) if version == HandlerSchemaScripts::VERSION => format!("within version {version}"),
        Some(version) => format!("from version {version} to {}", HandlerSchemaScripts::VERSION),
        None => format!("from a version before {0} to {0}", HandlerSchemaScripts::VERSION),
    }
}
