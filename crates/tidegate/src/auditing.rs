//! The audit log of this node.

use std::sync::Arc;

use tidegate_audit::AuditLog;

use crate::config::{Loaded, audit_options};
use crate::failure::Failure;

/// Opens the log that the configuration asks for; none where it asks for none. A node that is to be audited does not run
/// without.
pub(crate) fn open(loaded: &Loaded) -> Result<Option<Arc<AuditLog>>, Failure> {
    let mut problems = Vec::new();
    let options = audit_options(loaded, &mut problems);
    if !problems.is_empty() {
        return Err(loaded.broken(&problems).into());
    }
    let log = options.map(|options| AuditLog::open(&options)).transpose();
    log.map_err(|error| Failure::Usage(format!("audit.file: {error}")))
}
