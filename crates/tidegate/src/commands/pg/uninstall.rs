//! `tidegate pg uninstall`.

use std::io::Write as _;

use clap::Args;
use serde_json::json;
use tidegate_core::{InputAnswer, InputRequest};
use tidegate_postgres::handlers::{Ending, Installer, Lines, Status};

use super::place::{Manner, Place};
use super::status;
use crate::failure::Failure;
use crate::terminal;

/// Take the schema away with all handlers in it; a schema that was there before it stays, empty
#[derive(Debug, Args)]
pub(crate) struct Uninstall {
    #[command(flatten)]
    place: Place,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    manner: Manner,
}

impl Uninstall {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let Self { place, yes, manner } = self;
        if manner.print {
            return Ok(write!(std::io::stdout(), "{}", place.schema.uninstall_script())?);
        }
        let installer = place.installer()?;
        let installed = installer.status().await?;
        let loss = loss(&installed);
        let place = format!("the schema {} of the database {}", installed.schema, installed.database);
        if manner.dry_run {
            installer.uninstall(Ending::RolledBack).await?;
            let dry =
                format!("handlers would be uninstalled from {place}, {loss}\nthis was a dry run: nothing is changed\n");
            return Ok(write!(std::io::stdout(), "{dry}")?);
        }
        if !yes && !agreed(&installer, &place, &loss).await? {
            return Ok(writeln!(std::io::stdout(), "nothing is changed")?);
        }
        installer.uninstall(Ending::Kept).await?;
        Ok(writeln!(std::io::stdout(), "handlers are uninstalled from {place}, {loss}")?)
    }
}

/// What goes with the schema.
fn loss(installed: &Status) -> String {
    let lines = installed.exchange.and_then(|log| log.lines).filter(|lines| *lines != Lines::Counted(0));
    let lines = lines.map(|lines| format!(", and {} of the exchange log", status::lines(lines))).unwrap_or_default();
    match status::handlers(installed).as_str() {
        "none" => format!("with no handler in it{lines}"),
        handlers => format!("with the handlers in it ({handlers}){lines}"),
    }
}

/// Asks the person at the terminal. What would be refused is refused before.
async fn agreed(installer: &Installer, place: &str, loss: &str) -> Result<bool, Failure> {
    installer.uninstall(Ending::RolledBack).await?;
    if !terminal::abilities().forms {
        return Err(Failure::Usage(format!(
            "this would uninstall handlers from {place}, {loss}; there is nobody to ask, so it takes --yes"
        )));
    }
    let schema = json!({"type": "object", "properties": {"agreed": {"type": "boolean", "title": "Uninstall them?"}}});
    let question = InputRequest::form(format!("This uninstalls handlers from {place}, {loss}."), schema);
    Ok(match terminal::ask(question).await {
        Some(InputAnswer::Accepted(form)) => form.get("agreed").is_some_and(|agreed| *agreed == true),
        _ => false,
    })
}
