//! The `mcpServers` of a client: databases are found in the arguments and variables of database servers.

use super::super::databases::server_kind_of;
use super::super::yaml_tree::YamlNode;
use super::draft::ConfigDraft;
use super::toolbox::database;

/// Options of servers whose value is a configuration file of their own.
const FILE_OPTIONS: [&str; 4] = ["--config", "--tools-file", "--tools_file", "--tools-files"];

pub(super) fn convert(root: &YamlNode, draft: &mut ConfigDraft) {
    for (name, position, server) in root.get("mcpServers").map(YamlNode::members).unwrap_or_default() {
        let (line, subject) = (position.line, format!("server {name}"));
        let mut arguments = Vec::new();
        for argument in server.texts_of("args") {
            match argument.split_once('=') {
                Some((option, value)) if option.starts_with("--") => {
                    arguments.extend([option.to_owned(), value.to_owned()]);
                }
                _ => arguments.push(argument),
            }
        }
        let variables = server.get("env").map(YamlNode::members).unwrap_or_default();
        let variables = variables.iter().filter_map(|(_, _, value)| value.text());
        let target = arguments.iter().cloned().chain(variables).find(|text| target_of(text).is_some());
        let file =
            arguments.array_windows().find(|[option, _]| FILE_OPTIONS.contains(&option.as_str())).map(|[_, file]| file);
        match (target.as_deref().and_then(target_of), file) {
            (Some((kind, target)), _) => {
                draft.add_database(database(name, kind, target));
                draft.note_to_check(line, &subject, "its database is offered with all built-in tools, which only read");
                draft.offer_all_built_in();
            }
            (None, Some(file)) => {
                draft.leave_out(line, &subject, format!("convert its own file: tidegate config import {file}"));
            }
            (None, None) => draft.leave_out(line, &subject, "no database that can be opened is named in it"),
        }
    }
}

/// The kind and the target of a database that `text` names.
fn target_of(text: &str) -> Option<(&'static str, &str)> {
    if let Some(server) = server_kind_of(text) {
        return Some((server.key, text));
    }
    let file = text.strip_prefix("sqlite://").unwrap_or(text);
    let file = file.strip_prefix('/').filter(|path| path.starts_with('.')).unwrap_or(file);
    let ending = file.rsplit_once('.').map(|(_, ending)| ending)?;
    ["db", "sqlite", "sqlite3"].contains(&ending).then_some(("sqlite", file))
}
