//! Counts of SQLite and PostgreSQL beside scans and brute force, over random rows.

pub(crate) mod node;
mod postgres;
pub(crate) mod properties;
pub(crate) mod rows;
mod sqlite;

use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Runtime;

/// A runner of the usual number of cases, divided by `divisor`, and a runtime for their calls.
fn runner(divisor: u32) -> (TestRunner, Runtime) {
    let cases = Config::default().cases.div_ceil(divisor);
    let config = Config { cases, max_shrink_iters: 200, failure_persistence: None, ..Config::default() };
    (TestRunner::new(config), Runtime::new().unwrap())
}
