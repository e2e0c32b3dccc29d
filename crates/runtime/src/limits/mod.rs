//! Measures and enforces the limits of calls.

mod admission;
mod charges;
mod meter;
mod meter_table;
mod meters;
mod rate_meter;
mod reached_limit;
mod resizable_semaphore;
mod usage;
mod usage_file;
mod usage_flusher;

pub(crate) use self::admission::{Admission, AdmissionGuard, PermitQueues, RunPermits};
pub(crate) use self::charges::Charges;
pub(crate) use self::meters::Meters;
pub(crate) use self::reached_limit::ReachedLimit;
pub(crate) use self::usage::{Calendar, UsageAmount};
pub(crate) use self::usage_flusher::UsageFlusher;
