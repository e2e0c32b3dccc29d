//! Tools of MCP Toolbox for Databases.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::super::yaml_tree::YamlNode;
use super::draft::ConfigDraft;
use super::http_tool;
use super::sql_tool::SqlTool;
use super::toolbox::{Entry, Source};

const COMMON_KEYS: [&str; 5] = ["source", "description", "authRequired", "scopesRequired", "annotations"];

pub(super) fn convert(entry: &Entry<'_>, sources: &BTreeMap<&str, Source<'_>>, draft: &mut ConfigDraft) {
    let (line, subject) = (entry.node.line(), entry.subject());
    let source_name = entry.node.text_of("source").unwrap_or_default();
    let Some(source) = sources.get(source_name.as_str()).filter(|source| !matches!(source, Source::LeftOut)) else {
        return draft.leave_out(line, &subject, format!("its source {source_name:?} is left out or does not exist"));
    };
    if let Some(built_in) = built_in_tools(&entry.type_name) {
        let (first, advice) = (built_in.join(", "), "which only reads");
        draft.leave_out(line, &subject, format!("the built-in {first} is offered instead, {advice}"));
        return draft.offer_built_in(&entry.name, built_in);
    }
    let dialect = match (entry.type_name.as_str(), source) {
        (kind, Source::Database(dialect)) if kind.strip_suffix("-sql") == Some(dialect.key()) => Some(*dialect),
        ("http", Source::Http(_)) => None,
        (other, _) => {
            return draft.leave_out(line, &subject, format!("there is no tool of the type {other}"));
        }
    };
    let name = draft.name_tool(&entry.name, line);
    let tool = match (dialect, source) {
        (Some(dialect), _) => {
            let tool = SqlTool { name: &entry.name, node: entry.node, database: &source_name, dialect };
            tool.convert(&name, draft)
        }
        (None, Source::Http(source)) => http_tool::convert(entry, &name, source, draft),
        (None, _) => Err("its source is not http".to_owned()),
    };
    match tool {
        Ok(mut tool) => {
            report_unknown_keys(entry, dialect.is_some(), draft);
            add_access(entry, &mut tool, draft);
            add_annotations(entry.node, &mut tool);
            draft.add_tool(&entry.name, tool);
        }
        Err(reason) => draft.leave_out(line, &subject, reason),
    }
}

fn report_unknown_keys(entry: &Entry<'_>, is_sql: bool, draft: &mut ConfigDraft) {
    let own: &[&str] = match is_sql {
        true => &["statement", "parameters", "templateParameters"],
        false => {
            &["path", "method", "headers", "requestBody", "pathParams", "queryParams", "bodyParams", "headerParams"]
        }
    };
    entry.report_unknown_keys(&[&COMMON_KEYS[..], own].concat(), draft);
}

fn built_in_tools(type_name: &str) -> Option<&'static [&'static str]> {
    match type_name.split_once('-')? {
        (_, "execute-sql") => Some(&["sql"]),
        (_, "list-tables") => Some(&["list_tables", "get_schema"]),
        _ => None,
    }
}

/// Callers without an access name cannot use the tool, so nothing becomes accessible before roles are configured.
fn add_access(entry: &Entry<'_>, tool: &mut Map<String, Value>, draft: &mut ConfigDraft) {
    let services = entry.node.texts_of("authRequired");
    if !services.is_empty() {
        let message = format!(
            "authRequired is now access: [{0}]; configure auth.tokens and roles that hold {0}",
            services.join(", ")
        );
        draft.note_to_check(entry.node.line(), &entry.subject(), message);
        tool.insert("access".to_owned(), json!(services));
    }
    let scopes = entry.node.texts_of("scopesRequired");
    if !scopes.is_empty() {
        tool.insert("scopes".to_owned(), json!(scopes));
    }
}

fn add_annotations(node: &YamlNode, tool: &mut Map<String, Value>) {
    let Some(hints) = node.get("annotations") else { return };
    let names = [
        ("readOnlyHint", "read_only"),
        ("destructiveHint", "destructive"),
        ("idempotentHint", "idempotent"),
        ("openWorldHint", "open_world"),
    ];
    let set = names.iter().filter_map(|(from, to)| Some(((*to).to_owned(), hints.value_of(from)?)));
    let annotations: Map<String, Value> = set.collect();
    if !annotations.is_empty() {
        tool.insert("annotations".to_owned(), Value::Object(annotations));
    }
}

/// A text with `{{.name}}` as a text with `{{name}}`; `None` for other template actions, and for names that `name` does
/// not know.
pub(super) fn convert_template(text: &str, name: impl Fn(&str) -> Option<String>) -> Option<String> {
    let (mut converted, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once("{{") {
        let (inside, after) = behind.split_once("}}")?;
        let inside = inside.trim().strip_prefix('.')?;
        converted.push_str(&format!("{before}{{{{{}}}}}", name(inside)?));
        rest = after;
    }
    Some(converted + rest)
}
