//! Keys and certificates are read again, also while a new configuration cannot be entered.

use std::sync::atomic::Ordering;

use super::{Assembly, identity};

impl Assembly {
    /// Reads the keys and certificates again for the configuration in force. What was revoked ends so, whatever is wrong
    /// with a new configuration or with anything else that entering one takes.
    pub(crate) fn renew_gate(&self) {
        let Some(loaded) = self.entered() else { return };
        self.tls.renew(&loaded);
        match identity::renewed_gate(&loaded, self.generation.load(Ordering::Relaxed)) {
            Ok(gate) => self.doorkeeper.swap(gate),
            Err(error) => tracing::error!("the keys stay as they were: {error}"),
        }
    }
}
