//! Ends work that blocks a thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::DeltaError;

/// A flag that work checks between two steps. Clones are the same flag.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Ends the work with its next step.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work is to end.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails if the work is to end.
    ///
    /// # Errors
    /// `Stopped`.
    pub fn check(&self) -> Result<(), DeltaError> {
        if self.is_stopped() { Err(DeltaError::Stopped) } else { Ok(()) }
    }
}
