//! Log tools: sources, fields, facets, and entries with everything that is computed over them.

mod answer;
mod counting;
mod list_logs_fields;
mod list_logs_sources;
mod query_logs;
mod scan;
mod search;
mod source_resource;

use std::sync::Arc;

use tidegate_core::{Access, AllowedNames, PrincipalRule};
use tidegate_runtime::SnapshotBuilder;

use crate::log_sources::LogSources;
use crate::tool_definition::add_tools;
use crate::tool_services::ToolServices;

/// What the log tools need: the node and its sources.
pub(crate) struct LogContext {
    pub(crate) services: Arc<ToolServices>,
    pub(crate) sources: LogSources,
    uniform_times: counting::UniformTimes,
}

/// Adds the log tools and the resource of each source to `builder`, as far as `allowed` includes their names. A caller has them only if it may read one of
/// `sources`; without sources, nobody has them.
pub fn register_log_tools(
    builder: SnapshotBuilder,
    services: &Arc<ToolServices>,
    sources: &LogSources,
    allowed: &AllowedNames,
) -> SnapshotBuilder {
    if sources.is_empty() {
        return builder;
    }
    let context = Arc::new(LogContext {
        services: services.clone(),
        sources: sources.clone(),
        uniform_times: Default::default(),
    });
    let tools = [
        list_logs_sources::tool(&context),
        list_logs_fields::list_logs_fields_tool(&context),
        list_logs_fields::list_logs_fields_values_tool(&context),
        query_logs::tool(&context),
    ];
    let rule_context = context.clone();
    let rule = PrincipalRule::new(move |principal| {
        !rule_context.sources.visible_to(&rule_context.services.databases, principal).is_empty()
    });
    let access = Access { principal_rule: Some(rule), ..Access::default() };
    let builder = match allowed.includes(source_resource::NAME) {
        true => builder.template(source_resource::template(&context, access.clone())),
        false => builder,
    };
    add_tools(builder, tools, &access, allowed)
}
