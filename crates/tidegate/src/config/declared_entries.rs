//! Adds the declared tools, resources and prompts to the state of a node.

use std::sync::Arc;

use futures::StreamExt as _;
use tidegate_core::{Budget, CallLimits, Limits, suggestion};
use tidegate_query::NodeMemory;
use tidegate_tools::IngestToolOptions;
use tidegate_tools::declared::{
    AllowedHosts, CACHE_OF_WRITER, DeclarationProblem, HttpClient, HttpProblem, PreparedResource,
};

use super::databases::OpenDatabases;
use super::named_table::NamedTable;
use super::problem::ConfigProblem;
use super::problems::Problems;
use super::types::{Config, ToolConfig};
use super::{LoadedConfig, declarations, names};
use crate::node::ServedState;

const PREPARED_AT_ONCE: usize = 8;

/// Adds all of them.
pub(super) async fn add_declared_entries(
    mut state: ServedState,
    (loaded, memory): (&LoadedConfig, &Arc<NodeMemory>),
    limits: Limits,
    open: &OpenDatabases,
    problems: &Problems,
) -> ServedState {
    let config = &loaded.config;
    state = add_preset_tools(state, config, limits.inline, problems);
    state = add_sql_tools(state, config, limits, problems).await;
    state = add_insert_tools(state, config, (memory, limits.inline), open, problems).await;
    state = add_http_tools(state, loaded, limits.inline, problems);
    state = add_resources(state, loaded, limits.inline, problems).await;
    add_prompts(state, config, problems)
}

/// Adds the declared tools that call built-in ones, before the other declared tools.
fn add_preset_tools(mut state: ServedState, config: &Config, inline: Budget, problems: &Problems) -> ServedState {
    for (index, entry) in config.tools.iter().enumerate() {
        let (Some(name), path) = (&entry.tool, format!("tools[{index}]")) else { continue };
        let Some(declared) = problems.accept(declarations::build_preset_tool(entry, &path, inline)) else { continue };
        state = state.entries(|entries| {
            // One that is bound to an endpoint answers about that.
            let offered = || entries.tools().filter(|tool| tool.preset.is_none() && tool.access.toolset.is_none());
            let prepared = match offered().find(|tool| tool.name == *name) {
                Some(built_in) => problems.accept(declared.prepare(built_in).map_err(nest_problems(&path))),
                // The process that writes rows offers the tool.
                None if names::row_tools(config).any(|tool| tool == name) => {
                    if entry.cache.is_some() && !names::READING_ROW_TOOLS.contains(&name.as_str()) {
                        problems.add(format_args!("{path}.cache"), CACHE_OF_WRITER);
                    }
                    None
                }
                None => {
                    let nearest = suggestion(name, offered().map(|tool| tool.name.as_str()));
                    let message = format!("this server offers no built-in tool {name:?}{nearest}");
                    problems.add(format_args!("{path}.tool"), message);
                    None
                }
            };
            match prepared {
                Some(tool) => entries.tool(tool),
                None => entries,
            }
        });
    }
    state
}

/// Adds the declared tools with SQL. Several statements are prepared concurrently.
async fn add_sql_tools(mut state: ServedState, config: &Config, limits: Limits, problems: &Problems) -> ServedState {
    let inline = limits.inline;
    let limits = CallLimits { timeout: Some(limits.timeout), inline: Some(inline), ..CallLimits::default() };
    let services = state.services().clone();
    let has_statement =
        |entry: &ToolConfig| entry.http.is_none() && entry.insert_into.is_none() && entry.tool.is_none();
    let sql_tools = config.tools.iter().enumerate().filter(|(_, entry)| has_statement(entry));
    let preparations: Vec<_> = sql_tools
        .map(|(index, entry)| {
            let (services, path) = (&services, format!("tools[{index}]"));
            async move {
                let tool = declarations::build_sql_tool(entry, &path, inline)?;
                tool.prepare(services, limits).await.map_err(nest_problems(&path))
            }
        })
        .collect();
    let mut prepared = futures::stream::iter(preparations).buffered(PREPARED_AT_ONCE);
    while let Some(prepared) = prepared.next().await {
        if let Some((tool, unreachable)) = problems.accept(prepared) {
            problems.warn(unreachable.map(|error| format!("tool {}: {error}", tool.name)));
            state = state.entries(|entries| entries.tool(tool));
        }
    }
    state
}

/// Adds the declared tools that add rows to tables.
async fn add_insert_tools(
    mut state: ServedState,
    config: &Config,
    (memory, inline): (&Arc<NodeMemory>, Budget),
    open: &OpenDatabases,
    problems: &Problems,
) -> ServedState {
    for (index, entry) in config.tools.iter().enumerate() {
        let (Some(name), None, path) = (&entry.insert_into, &entry.tool, format!("tools[{index}]")) else { continue };
        let at_name = |message| vec![ConfigProblem::new(format!("{path}.insert_into"), message)];
        let tool = problems.accept(declarations::build_insert_tool(entry, &path, inline));
        let table = problems.accept(NamedTable::find(name, config, open).await.map_err(at_name));
        let (Some(tool), Some(NamedTable { target, name, known })) = (tool, table) else { continue };
        let tenancy = state.services().databases.tenancy().clone();
        let options = IngestToolOptions { tenancy, memory: memory.clone(), ..IngestToolOptions::default() };
        let prepared = match target {
            Some(target) => tool.prepare(target, &name, known.as_ref(), options).map(Some),
            // The process that writes to the table offers the tool.
            None => tool.check(known.as_ref()).map(|()| None),
        };
        if let Some(Some(tool)) = problems.accept(prepared.map_err(nest_problems(&path))) {
            state = state.entries(|entries| entries.tool(tool));
        }
    }
    state
}

fn add_http_tools(mut state: ServedState, loaded: &LoadedConfig, inline: Budget, problems: &Problems) -> ServedState {
    let config = &loaded.config;
    if config.tools.iter().all(|tool| tool.http.is_none()) {
        return state;
    }
    let to_config_problems = |problems: Vec<HttpProblem>| {
        let problems = problems.into_iter();
        let problems = problems
            .map(|HttpProblem { field, message, hint }| ConfigProblem::new(field, format!("{message}; {hint}")));
        problems.collect::<Vec<_>>()
    };
    let client = AllowedHosts::parse(&config.http.allow_hosts).map_err(to_config_problems).and_then(|hosts| {
        let client = HttpClient::new(Arc::new(hosts), env!("CARGO_PKG_VERSION"));
        client.map_err(|error| vec![ConfigProblem::new("http", error.to_string())])
    });
    let Some(client) = problems.accept(client) else { return state };
    for (index, entry) in config.tools.iter().enumerate() {
        let (Some(http), None, None) = (&entry.http, &entry.insert_into, &entry.tool) else { continue };
        let path = format!("tools[{index}]");
        let tool = declarations::build_http_tool(entry, http, &path, loaded, inline);
        let tool = tool.and_then(|tool| tool.prepare(state.services(), &client).map_err(nest_problems(&path)));
        if let Some(tool) = problems.accept(tool) {
            state = state.entries(|entries| entries.tool(tool));
        }
    }
    state
}

async fn add_resources(
    mut state: ServedState,
    loaded: &LoadedConfig,
    inline: Budget,
    problems: &Problems,
) -> ServedState {
    for (index, entry) in loaded.config.resources.iter().enumerate() {
        let path = format!("resources[{index}]");
        let resource = match declarations::build_resource(entry, &path, loaded.folder(), inline) {
            Ok(resource) => resource.prepare(state.services()).await.map_err(nest_problems(&path)),
            Err(problems) => Err(problems),
        };
        let Some((prepared, unreachable)) = problems.accept(resource) else { continue };
        problems.warn(unreachable.map(|error| format!("resource {}: {error}", entry.name)));
        state = state.entries(|entries| match prepared {
            PreparedResource::Resource(resource) => entries.resource(*resource),
            PreparedResource::Template(template) => entries.template(*template),
        });
    }
    state
}

fn add_prompts(mut state: ServedState, config: &Config, problems: &Problems) -> ServedState {
    for (index, entry) in config.prompts.iter().enumerate() {
        let path = format!("prompts[{index}]");
        let prompt = declarations::build_prompt(entry, &path);
        let prompt = prompt.and_then(|prompt| prompt.prepare(state.services()).map_err(nest_problems(&path)));
        if let Some(prompt) = problems.accept(prompt) {
            state = state.entries(|entries| entries.prompt(prompt));
        }
    }
    state
}

fn nest_problems(path: &str) -> impl Fn(Vec<DeclarationProblem>) -> Vec<ConfigProblem> {
    let nest = move |problem: DeclarationProblem| {
        ConfigProblem::new(format!("{path}.{}", problem.path), problem.error.to_string())
    };
    move |problems| problems.into_iter().map(nest).collect()
}
