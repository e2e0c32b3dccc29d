//! What an installation changed, for whoever asked for it.

use tidegate_postgres_handlers::{InstallChanges, InstallMode, SqlLayer};

/// Steps that are listed one by one.
const STEPS_LISTED_MAX: usize = 8;

/// A few lines.
pub(super) fn render_change(change: &InstallChanges, ending: InstallMode) -> String {
    let InstallChanges { database, schema, .. } = change;
    let place = format!("the schema {schema} of the database {database}");
    let is_dry = ending == InstallMode::DryRun;
    if change.is_empty() {
        return format!(
            "{place} has the handlers of this program, version {}: there is nothing to change\n",
            SqlLayer::VERSION
        );
    }
    let mut text = match (change.was_installed, is_dry) {
        (false, false) => format!("handlers are installed in {place}, version {}\n", SqlLayer::VERSION),
        (false, true) => format!("handlers would be installed in {place}, version {}\n", SqlLayer::VERSION),
        (true, false) => format!("{place} had handlers already and is upgraded {}\n", versions(change)),
        (true, true) => format!("{place} has handlers already and would be upgraded {}\n", versions(change)),
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
        Some(version) if version == SqlLayer::VERSION => format!("within version {version}"),
        Some(version) => format!("from version {version} to {}", SqlLayer::VERSION),
        None => format!("from a version before {0} to {0}", SqlLayer::VERSION),
    }
}
