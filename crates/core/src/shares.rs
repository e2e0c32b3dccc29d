//! How much of the node one principal may take: its share of the calls, so that one key cannot keep everybody else out.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::error::{Error, ErrorKind};
use crate::limits::Limits;
use crate::principal::{Principal, Proof};

/// From so many holders on those that have no call open are forgotten.
const HOLDERS_MAX: usize = 1_024;

/// The shares of all principals that have calls open.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    of: Mutex<HashMap<Holder, Weak<Share>>>,
}

/// What one principal has of the node. Each of its open calls holds it once.
#[derive(Debug)]
pub(crate) struct Share {
    /// Places among the running calls; a call waits for one here before it waits for one among all.
    pub(crate) running: Arc<Semaphore>,
}

/// Somebody, as [`Principal::is_same_as`] tells them apart.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Holder {
    proof: Proof,
    subject: String,
    tenant: Option<String>,
}

impl Shares {
    /// The share of `principal` for one more call; none where nobody has a bound of its own, and for the user of the
    /// process, whose node it is.
    ///
    /// # Errors
    /// `RateLimited` when it has too many calls open.
    pub(crate) fn of(&self, principal: &Principal, limits: &Limits) -> Result<Option<Arc<Share>>, Error> {
        let Some(bounds) = limits.of_one.filter(|_| principal.proof != Proof::Process) else { return Ok(None) };
        let holder =
            Holder { proof: principal.proof, subject: principal.subject.clone(), tenant: principal.tenant.clone() };
        let mut of = self.of.lock();
        if of.len() >= HOLDERS_MAX {
            of.retain(|_, share| share.strong_count() > 0);
        }
        let known = of.entry(holder).or_default();
        let share = known.upgrade().unwrap_or_else(|| {
            let share = Arc::new(Share { running: Arc::new(Semaphore::new(bounds.running_calls_max)) });
            *known = Arc::downgrade(&share);
            share
        });
        // This call holds it already.
        if Arc::strong_count(&share) > bounds.open_calls_max {
            let message = format!("more than {} of your calls are open; wait until one ends", bounds.open_calls_max);
            return Err(Error::new(ErrorKind::RateLimited, message));
        }
        Ok(Some(share))
    }
}
