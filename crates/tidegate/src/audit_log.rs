//! The audit log of this node: it is opened, or looked at.

use std::sync::Arc;

use tidegate_audit::AuditLog;

use crate::command_error::CommandError;
use crate::config::{ConfigProblem, LoadedConfig, audit_options};

/// Where the configuration names the log.
const FILE_KEY: &str = "audit.file";

/// Opens the log that the configuration asks for; none where it asks for none. A node that is to be audited does not run
/// without.
pub(crate) fn open(loaded: &LoadedConfig) -> Result<Option<Arc<AuditLog>>, CommandError> {
    let mut problems = Vec::new();
    let options = audit_options(loaded, &mut problems);
    if !problems.is_empty() {
        return Err(loaded.to_error(&problems).into());
    }
    let log = options.map(|options| AuditLog::open(&options)).transpose();
    log.map_err(|error| CommandError::Usage(format!("{FILE_KEY}: {error}")))
}

/// Why the log cannot be opened that the configuration asks for, if it cannot; nothing is written for that.
pub(crate) fn find_problem(loaded: &LoadedConfig) -> Option<ConfigProblem> {
    let options = audit_options(loaded, &mut Vec::new())?;
    AuditLog::check_openable(&options).err().map(|error| ConfigProblem::new(FILE_KEY, error.to_string()))
}
