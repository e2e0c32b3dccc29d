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
            Ok(gate) => {
                self.doorkeeper.swap(gate);
                self.enter_again();
            }
            Err(error) => tracing::error!("the keys stay as they were: {error}"),
        }
    }

    /// Enters what is served once more: of callers whose answers stream it is asked then whether they are still let in.
    fn enter_again(&self) {
        let served = self.served.lock();
        if let Some(now) = served.as_ref() {
            // Told when it was entered first.
            self.node.enter(now.state(&mut Vec::new()));
        }
    }
}
