//! The identifier of a query, which binds cursors to it.

use serde_json::{Map, Value};
use tidegate_runtime::Job;

use crate::stable_hash::StableHasher;

/// Arguments that do not identify the query.
const OUTPUT_ARGUMENTS: [&str; 7] = ["cursor", "delivery", "format", "limit", "max_rows", "mode", "no_cache"];

/// Computes the identifier of the query of `job`. It covers the target and the arguments in any order, except those
/// that only change the output.
pub fn compute_query_id(job: &Job) -> u64 {
    let arguments = job.arguments().iter().filter(|(name, _)| !OUTPUT_ARGUMENTS.contains(&name.as_str()));
    let mut arguments: Value =
        arguments.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<String, Value>>().into();
    arguments.sort_all_objects();
    let mut hasher = StableHasher::default();
    hasher.add(job.target().name());
    hasher.add(arguments.to_string());
    hasher.finish()
}
