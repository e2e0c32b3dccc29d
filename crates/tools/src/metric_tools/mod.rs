//! Metric tools: the metrics of a source, their points, and what changed between two times.

mod answer;
mod compare_metrics;
mod list_metrics;
mod query_metrics;

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_core::{Access, AllowedNames, Error, PrincipalRule, Violation};
use tidegate_runtime::SnapshotBuilder;

use crate::arguments::read_time;
use crate::metric_sources::MetricSources;
use crate::tool_definition::{InputSchemaBuilder, add_tools, any_of};
use crate::tool_services::ToolServices;

/// What the metric tools need: the node and its sources.
pub(crate) struct MetricContext {
    pub(crate) services: Arc<ToolServices>,
    pub(crate) sources: MetricSources,
}

/// Adds the metric tools to `builder`, as far as `allowed` includes their names. A caller has them only if it may read
/// one of `sources`; without sources, nobody has them.
pub fn register_metric_tools(
    builder: SnapshotBuilder,
    services: &Arc<ToolServices>,
    sources: &MetricSources,
    allowed: &AllowedNames,
) -> SnapshotBuilder {
    if sources.is_empty() {
        return builder;
    }
    let context = Arc::new(MetricContext { services: services.clone(), sources: sources.clone() });
    let tools = [list_metrics::tool(&context), query_metrics::tool(&context), compare_metrics::tool(&context)];
    let of_rule = context.clone();
    let rule = PrincipalRule::new(move |principal| {
        !of_rule.sources.visible_to(&of_rule.services.databases, principal).is_empty()
    });
    let access = Access { principal_rule: Some(rule), ..Access::default() };
    add_tools(builder, tools, &access, allowed)
}

/// Adds the arguments that all tools have.
fn with_source_and_time(builder: InputSchemaBuilder) -> InputSchemaBuilder {
    builder
        .with("source", json!({"type": "string"}))
        .with("after", any_of(&["string", "number"], "-1h, RFC 3339, a date or epoch"))
        .with("before", any_of(&["string", "number"], ""))
}

fn labels_schema() -> Value {
    json!({"type": "object", "description":
        "{label: value or [values]}; {\"not\": …}, {\"matches\": regex}, null for missing"})
}

/// The window from `after` to `before`, without both the `length` before now.
fn read_window(
    after: &Option<Value>,
    before: &Option<Value>,
    (now, length): (i64, i64),
    violations: &mut Vec<Violation>,
) -> (i64, i64) {
    let before = read_time("before", before, (now, now), violations);
    (read_time("after", after, (now, before.saturating_sub(length)), violations), before)
}

/// Fails with all `violations`, if there are any.
fn reject(violations: Vec<Violation>) -> Result<(), Error> {
    if violations.is_empty() {
        return Ok(());
    }
    Err(Error::invalid_arguments("the arguments do not fit the metric source:", violations))
}
