//! MCP Toolbox for Databases: sources, tools, toolsets and prompts, in both layouts. In the older one, maps below
//! `sources`, `tools` and `toolsets` hold entries with a `kind`. In the newer one, each entry is a YAML document with
//! `kind`, `name` and `type`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tidegate_sql::SqlDialect;
use tidegate_tools::DISCOVER_TOOLSET;
use tidegate_transport::http::is_reserved_toolset_name;

use super::super::yaml_tree::YamlNode;
use super::draft::ConfigDraft;
use super::toolbox_tool;

/// Keywords of a connection string that `queryParams` may contain.
const CONNECTION_KEYWORDS: [&str; 12] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "sslnegotiation",
    "application_name",
    "connect_timeout",
    "options",
    "target_session_attrs",
    "channel_binding",
    "hostaddr",
    "load_balance_hosts",
];

/// Parameters of the driver of Go whose effect does not need to be set here.
const MYSQL_DEFAULTS: [&str; 4] = ["parseTime", "charset", "collation", "loc"];

/// An entry in either layout.
pub(super) struct Entry<'a> {
    /// `source`, `tool`, `toolset`, …
    kind: String,
    pub(super) name: String,
    /// `postgres`, `postgres-sql`, …
    pub(super) type_name: String,
    pub(super) node: &'a YamlNode,
}

impl Entry<'_> {
    pub(super) fn subject(&self) -> String {
        format!("{} {}", self.kind, self.name).trim_end().to_owned()
    }

    /// Lists the keys that are not in `known`.
    pub(super) fn report_unknown_keys(&self, known: &[&str], draft: &mut ConfigDraft) {
        for (name, position, _) in self.node.members() {
            if !["name", "kind", "type"].contains(&name.as_str()) && !known.contains(&name.as_str()) {
                draft.leave_out(position.line, &self.subject(), format!("{name} has no equivalent"));
            }
        }
    }
}

/// What a source has become.
pub(super) enum Source<'a> {
    Database(SqlDialect),
    Http(&'a YamlNode),
    LeftOut,
}

pub(super) fn convert(documents: &[YamlNode], draft: &mut ConfigDraft) {
    let entries: Vec<Entry<'_>> = documents.iter().flat_map(|document| entries(document, draft)).collect();
    let of_kind = |kind: &'static str| entries.iter().filter(move |entry| entry.kind == kind);
    let mut sources = BTreeMap::new();
    for entry in of_kind("source") {
        sources.insert(entry.name.as_str(), convert_source(entry, draft));
    }
    of_kind("tool").for_each(|entry| toolbox_tool::convert(entry, &sources, draft));
    of_kind("toolset").chain(of_kind("group")).for_each(|entry| convert_toolset(entry, draft));
    of_kind("prompt").for_each(|entry| convert_prompt(entry, draft));
    for entry in &entries {
        if !["source", "tool", "toolset", "group", "prompt"].contains(&entry.kind.as_str()) {
            let advice = match entry.kind.as_str() {
                "authService" | "authSource" => "configure auth.tokens for the issuer of the tokens",
                _ => "it has no equivalent",
            };
            draft.leave_out(entry.node.line(), &entry.subject(), advice);
        }
    }
}

/// The entries of one document.
fn entries<'a>(document: &'a YamlNode, draft: &mut ConfigDraft) -> Vec<Entry<'a>> {
    let singular = |kind: &str| kind.strip_suffix('s').unwrap_or(kind).to_owned();
    if let Some(kind) = document.text_of("kind") {
        let text = |member: &str| document.text_of(member).unwrap_or_default();
        let entry = Entry { kind: singular(&kind), name: text("name"), type_name: text("type"), node: document };
        return vec![entry];
    }
    let mut entries = Vec::new();
    for (section, position, map) in document.members() {
        if map.members().is_empty() && !map.items().is_empty() {
            draft.leave_out(position.line, section, "a map of names is expected");
        }
        entries.extend(map.members().iter().map(|(name, _, node)| Entry {
            kind: singular(section),
            name: name.clone(),
            type_name: node.text_of("kind").or_else(|| node.text_of("type")).unwrap_or_default(),
            node,
        }));
    }
    entries
}

fn convert_source<'a>(entry: &Entry<'a>, draft: &mut ConfigDraft) -> Source<'a> {
    let (line, subject) = (entry.node.line(), entry.subject());
    match entry.type_name.as_str() {
        "postgres" => {
            entry.report_unknown_keys(
                &["host", "port", "user", "password", "database", "queryParams", "connectTimeout"],
                draft,
            );
            let target = connection_string(entry, draft);
            draft.add_database(database(&entry.name, "postgres", &target));
            Source::Database(SqlDialect::Postgres)
        }
        "mysql" => {
            entry.report_unknown_keys(
                &["host", "port", "user", "password", "database", "queryParams", "queryTimeout"],
                draft,
            );
            let target = mysql_connection_string(entry, draft);
            let mut database = database(&entry.name, "mysql", &target);
            if let Some(timeout) = entry.node.text_of("queryTimeout") {
                database.insert("timeout".to_owned(), timeout.into());
            }
            draft.add_database(database);
            Source::Database(SqlDialect::MySql)
        }
        "sqlite" => match entry.node.text_of("database") {
            Some(file) if !file.contains(":memory:") => {
                entry.report_unknown_keys(&["database"], draft);
                draft.add_database(database(&entry.name, "sqlite", &file));
                Source::Database(SqlDialect::Sqlite)
            }
            _ => {
                draft.leave_out(line, &subject, "it has no file");
                Source::LeftOut
            }
        },
        "http" => {
            let known = ["baseUrl", "timeout", "headers", "queryParams", "returnFullError"];
            entry.report_unknown_keys(&known, draft);
            Source::Http(entry.node)
        }
        other => {
            draft.leave_out(line, &subject, format!("there is no database of the type {other}"));
            Source::LeftOut
        }
    }
}

pub(super) fn database(name: &str, kind: &str, target: &str) -> Map<String, Value> {
    Map::from_iter([("name".to_owned(), name.into()), (kind.to_owned(), target.into())])
}

/// Keywords, because the values of variables would need percent encoding in a URI.
fn connection_string(entry: &Entry<'_>, draft: &mut ConfigDraft) -> String {
    let mut pairs = keyword_pairs(entry.node, "dbname", &[("connectTimeout", "connect_timeout")]);
    for (name, position, value) in entry.node.get("queryParams").map(YamlNode::members).unwrap_or_default() {
        match value.text() {
            Some(value) if CONNECTION_KEYWORDS.contains(&name.as_str()) => pairs.push(keyword_value(name, &value)),
            _ => draft.leave_out(position.line, &entry.subject(), format!("queryParams.{name} has no equivalent")),
        }
    }
    pairs.join(" ")
}

fn mysql_connection_string(entry: &Entry<'_>, draft: &mut ConfigDraft) -> String {
    let mut pairs = keyword_pairs(entry.node, "database", &[]);
    for (name, position, value) in entry.node.get("queryParams").map(YamlNode::members).unwrap_or_default() {
        let mode = match (name.as_str(), value.text().as_deref()) {
            ("tls", Some("true")) => Some("VERIFY_IDENTITY"),
            ("tls", Some("skip-verify")) => Some("REQUIRED"),
            ("tls", Some("preferred")) => Some("PREFERRED"),
            ("tls", Some("false")) => Some("DISABLED"),
            _ => None,
        };
        match mode {
            Some(mode) => pairs.push(keyword_value("ssl-mode", mode)),
            None if MYSQL_DEFAULTS.contains(&name.as_str()) => {}
            None => draft.leave_out(position.line, &entry.subject(), format!("queryParams.{name} has no equivalent")),
        }
    }
    pairs.join(" ")
}

/// The pairs of the members of a server, whose keyword for a database is `database`, and of `further` ones with their
/// keywords.
pub(super) fn keyword_pairs(node: &YamlNode, database: &str, further: &[(&str, &str)]) -> Vec<String> {
    let members =
        [("host", "host"), ("port", "port"), ("database", database), ("user", "user"), ("password", "password")];
    let pair = |(member, keyword): &(&str, &str)| Some(keyword_value(keyword, &node.text_of(member)?));
    members.iter().chain(further).filter_map(pair).collect()
}

fn keyword_value(keyword: &str, value: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "_-./:".contains(character);
    if !value.is_empty() && value.chars().all(is_plain) {
        return format!("{keyword}={value}");
    }
    format!("{keyword}='{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn convert_toolset(entry: &Entry<'_>, draft: &mut ConfigDraft) {
    let (line, subject) = (entry.node.line(), entry.subject());
    let list = entry.node.get("tools").unwrap_or(entry.node);
    let mut names = Vec::new();
    for name in list.items().iter().filter_map(YamlNode::text) {
        match draft.tool_name(&name) {
            Some(new) => names.push(new.to_owned()),
            None => draft.leave_out(line, &subject, format!("the tool {name} is left out")),
        }
    }
    names.extend(entry.node.texts_of("prompts"));
    entry.report_unknown_keys(&["tools", "prompts"], draft);
    if names.is_empty() {
        return draft.leave_out(line, &subject, "it has no tools");
    }
    if entry.name.is_empty() {
        return draft.leave_out(line, &subject, "the endpoint /mcp always has all entries that the caller may use");
    }
    let is_word = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
    let mut name: String = entry.name.chars().map(|c| if is_word(c) { c } else { '_' }).collect();
    if name == DISCOVER_TOOLSET || is_reserved_toolset_name(&name) {
        name.push_str("_tools");
    }
    if name != entry.name {
        draft.note_to_check(line, &subject, format!("is now called {name}"));
    }
    draft.add_toolset(name, names);
}

fn convert_prompt(entry: &Entry<'_>, draft: &mut ConfigDraft) {
    let (line, subject) = (entry.node.line(), entry.subject());
    let mut prompt = Map::new();
    prompt.insert("name".to_owned(), entry.name.clone().into());
    prompt.insert("description".to_owned(), entry.node.text_of("description").unwrap_or_default().into());
    let list = |member: &str| entry.node.get(member).map(YamlNode::items).unwrap_or_default();
    let arguments = list("arguments").iter().map(|argument| {
        let required = argument.value_of("required").unwrap_or(true.into());
        let description = argument.text_of("description").unwrap_or_default();
        json!({"name": argument.text_of("name").unwrap_or_default(), "description": description, "required": required})
    });
    let arguments: Vec<Value> = arguments.collect();
    if !arguments.is_empty() {
        prompt.insert("arguments".to_owned(), arguments.into());
    }
    let mut messages = Vec::new();
    for message in list("messages") {
        let text = message.text_of("content").unwrap_or_default();
        let Some(text) = toolbox_tool::convert_template(&text, |name| Some(name.to_owned())) else {
            return draft.leave_out(line, &subject, "its text has template actions other than {{.name}}");
        };
        messages.push(json!({"role": message.text_of("role").unwrap_or_else(|| "user".to_owned()), "text": text}));
    }
    entry.report_unknown_keys(&["description", "arguments", "messages"], draft);
    prompt.insert("messages".to_owned(), messages.into());
    draft.add_prompt(prompt);
}
