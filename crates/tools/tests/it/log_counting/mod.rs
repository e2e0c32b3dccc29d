//! Counts of SQLite and PostgreSQL beside scans and brute force, over random rows.

pub(crate) mod node;
mod postgres;
pub(crate) mod properties;
pub(crate) mod rows;
mod sqlite;

use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Runtime;

/// A runner of `cases` cases, and a runtime for their calls.
fn runner(cases: u32) -> (TestRunner, Runtime) {
    let config = Config { cases, max_shrink_iters: 200, failure_persistence: None, ..Config::default() };
    (TestRunner::new(config), Runtime::new().unwrap())
}
