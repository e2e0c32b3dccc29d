//! `tidegate pg uninstall`.

use clap::Args;
use serde_json::json;
use tidegate_core::{InputAnswer, InputRequest};
use tidegate_postgres_handlers::{InstallMode, InstallStatus, Installer, LineCount};

use super::{ExecutionFlags, HandlerSchemaArguments, status};
use crate::command_error::CommandError;
use crate::{output, terminal};

/// Remove all handlers and their schema; a schema that existed before stays, empty
#[derive(Debug, Args)]
pub(crate) struct PgUninstallCommand {
    #[command(flatten)]
    schema_arguments: HandlerSchemaArguments,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    execution: ExecutionFlags,
}

impl PgUninstallCommand {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let Self { schema_arguments, yes, execution } = self;
        if execution.print {
            return output::print(schema_arguments.schema.uninstall_script());
        }
        let installer = schema_arguments.installer()?;
        let installed = installer.status().await?;
        let loss = describe_loss(&installed);
        let location = format!("the schema {} of the database {}", installed.schema, installed.database);
        if execution.dry_run {
            installer.uninstall(InstallMode::DryRun).await?;
            return output::print(format_args!(
                "handlers would be uninstalled from {location}, {loss}\nthis was a dry run: nothing is changed\n"
            ));
        }
        if !yes && !confirm_uninstall(&installer, &location, &loss).await? {
            return output::print("nothing is changed\n");
        }
        installer.uninstall(InstallMode::Commit).await?;
        output::print(format_args!("handlers are uninstalled from {location}, {loss}\n"))
    }
}

fn describe_loss(installed: &InstallStatus) -> String {
    let lines = installed.call_log.and_then(|log| log.lines).filter(|lines| *lines != LineCount::Exactly(0));
    let lines = lines
        .map(|lines| format!(", and {} of the exchange log", status::render_line_count(lines)))
        .unwrap_or_default();
    match status::render_handler_counts(installed).as_str() {
        "none" => format!("with no handler in it{lines}"),
        handlers => format!("with the handlers in it ({handlers}){lines}"),
    }
}

/// Asks the person at the terminal, after a dry run, so that no question is asked in vain.
async fn confirm_uninstall(installer: &Installer, location: &str, loss: &str) -> Result<bool, CommandError> {
    installer.uninstall(InstallMode::DryRun).await?;
    if !terminal::terminal_capabilities().forms {
        return Err(CommandError::Usage(format!(
            "this would uninstall handlers from {location}, {loss}; without a terminal to confirm it, write --yes"
        )));
    }
    let schema = json!({"type": "object", "properties": {"agreed": {"type": "boolean", "title": "Uninstall them?"}}});
    let request = InputRequest::form(format!("This uninstalls handlers from {location}, {loss}."), schema);
    Ok(match terminal::prompt_form(request).await {
        Some(InputAnswer::Accepted(form)) => form.get("agreed").is_some_and(|agreed| *agreed == true),
        _ => false,
    })
}
