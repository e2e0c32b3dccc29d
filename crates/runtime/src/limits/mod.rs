//! Measures and enforces the limits of calls.

mod admission;
mod charges;
mod meter;
mod meter_table;
mod meters;
mod usage;
mod usage_file;
mod usage_flusher;

pub(crate) use self::admission::{Admission, AdmissionGuard, PermitQueues, RunPermits};
pub(crate) use self::charges::{Charges, ReachedLimit};
pub(crate) use self::meters::Meters;
pub(crate) use self::usage::{Calendar, UsageAmount};
pub(crate) use self::usage_flusher::UsageFlusher;
