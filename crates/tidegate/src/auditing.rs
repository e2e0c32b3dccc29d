//! The audit log of this node: it is opened, or looked at.

use std::sync::Arc;

use tidegate_audit::AuditLog;

use crate::config::{Loaded, Problem, audit_options};
use crate::failure::Failure;

/// Where the configuration names the log.
const FILE: &str = "audit.file";

/// Opens the log that the configuration asks for; none where it asks for none. A node that is to be audited does not run
/// without.
pub(crate) fn open(loaded: &Loaded) -> Result<Option<Arc<AuditLog>>, Failure> {
    let mut problems = Vec::new();
    let options = audit_options(loaded, &mut problems);
    if !problems.is_empty() {
        return Err(loaded.broken(&problems).into());
    }
    let log = options.map(|options| AuditLog::open(&options)).transpose();
    log.map_err(|error| Failure::Usage(format!("{FILE}: {error}")))
}

/// Why the log cannot be opened that the configuration asks for, if it cannot; nothing is written for that.
pub(crate) fn obstacle(loaded: &Loaded) -> Option<Problem> {
    let options = audit_options(loaded, &mut Vec::new())?;
    AuditLog::look(&options).err().map(|error| Problem::new(FILE, error.to_string()))
}
