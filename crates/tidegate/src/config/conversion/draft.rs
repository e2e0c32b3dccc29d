//! A configuration that is being converted.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use tidegate_runtime::SnapshotBuilder;
use tidegate_tools::entries_of_every_server;

use super::yaml_writer::write_members;
use super::{ForeignFormat, ImportedConfig};

pub(super) struct ConfigDraft {
    file: String,
    databases: Vec<Value>,
    tools: Vec<Value>,
    toolsets: Map<String, Value>,
    prompts: Vec<Value>,
    allow_hosts: Vec<String>,
    /// `None` offers all.
    built_in: Option<Vec<String>>,
    /// The new names of tools, by their old names.
    tool_names: BTreeMap<String, String>,
    /// What the server has itself; a declared tool needs another name.
    reserved: SnapshotBuilder,
    left_out: Vec<(usize, String)>,
    to_check: Vec<(usize, String)>,
}

impl ConfigDraft {
    pub(super) fn new(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            databases: Vec::new(),
            tools: Vec::new(),
            toolsets: Map::new(),
            prompts: Vec::new(),
            allow_hosts: Vec::new(),
            built_in: Some(Vec::new()),
            tool_names: BTreeMap::new(),
            reserved: entries_of_every_server(),
            left_out: Vec::new(),
            to_check: Vec::new(),
        }
    }

    /// Lists what was not converted.
    pub(super) fn leave_out(&mut self, line: usize, subject: &str, reason: impl AsRef<str>) {
        self.left_out.push((line, format!("{subject}: {}", reason.as_ref())));
    }

    /// Lists what was converted and has to be checked or completed.
    pub(super) fn note_to_check(&mut self, line: usize, subject: &str, advice: impl AsRef<str>) {
        self.to_check.push((line, format!("{subject}: {}", advice.as_ref())));
    }

    pub(super) fn add_database(&mut self, database: Map<String, Value>) {
        self.databases.push(Value::Object(database));
    }

    /// The name for the tool that was called `name`, which may have a reserved name.
    pub(super) fn name_tool(&mut self, name: &str, line: usize) -> String {
        let is_allowed = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
        let mut new: String = name.chars().map(|c| if is_allowed(c) { c } else { '_' }).take(100).collect();
        while new.is_empty() || self.reserved.has_tool(&new) || self.has_tool(&new) {
            new.push_str("_tool");
        }
        if new != name {
            self.note_to_check(
                line,
                &format!("tool {name}"),
                format!("is now called {new}: the name is reserved, taken or not allowed"),
            );
        }
        new
    }

    fn has_tool(&self, name: &str) -> bool {
        self.tool_names.values().any(|other| other == name)
    }

    pub(super) fn add_tool(&mut self, old_name: &str, tool: Map<String, Value>) {
        if let Some(name) = tool.get("name").and_then(Value::as_str) {
            self.tool_names.insert(old_name.to_owned(), name.to_owned());
        }
        self.tools.push(Value::Object(tool));
    }

    /// Offers the built-in tools `names` instead of the tool `old_name`.
    pub(super) fn offer_built_in(&mut self, old_name: &str, names: &[&str]) {
        if let Some(name) = names.first() {
            self.tool_names.insert(old_name.to_owned(), (*name).to_owned());
        }
        if let Some(built_in) = &mut self.built_in {
            let new = names.iter().filter(|name| !built_in.iter().any(|other| other == *name));
            let new: Vec<String> = new.map(|name| (*name).to_owned()).collect();
            built_in.extend(new);
        }
    }

    pub(super) fn offer_all_built_in(&mut self) {
        self.built_in = None;
    }

    pub(super) fn tool_name(&self, old_name: &str) -> Option<&str> {
        self.tool_names.get(old_name).map(String::as_str)
    }

    pub(super) fn add_toolset(&mut self, name: String, tools: Vec<String>) {
        self.toolsets.insert(name, json!(tools));
    }

    pub(super) fn add_prompt(&mut self, prompt: Map<String, Value>) {
        self.prompts.push(Value::Object(prompt));
    }

    pub(super) fn allow_host(&mut self, host: &str) {
        if !self.allow_hosts.iter().any(|other| other == host) {
            self.allow_hosts.push(host.to_owned());
        }
    }

    pub(super) fn finish(mut self, format: ForeignFormat) -> ImportedConfig {
        self.left_out.sort_by_key(|(line, _)| *line);
        self.to_check.sort_by_key(|(line, _)| *line);
        let render = |notes: &[(usize, String)], file: &str| -> Vec<String> {
            notes.iter().map(|(line, note)| format!("{file}:{line}: {}", note.replace('\n', " "))).collect()
        };
        let (left_out, to_check) = (render(&self.left_out, &self.file), render(&self.to_check, &self.file));
        let mut yaml = format!(
            "# Converted by tidegate config import from {}, the configuration of {}.\n",
            self.file,
            format.program()
        );
        for (title, notes) in [("Not converted:", &left_out), ("Converted; to be checked:", &to_check)] {
            if !notes.is_empty() {
                let _ = writeln!(yaml, "#\n# {title}");
            }
            for note in notes {
                let _ = writeln!(yaml, "# - {note}");
            }
        }
        let mut config = Map::new();
        let mut add = |name: &str, value: Value, is_empty: bool| {
            if !is_empty {
                config.insert(name.to_owned(), value);
            }
        };
        add("databases", json!(self.databases), self.databases.is_empty());
        add("built_in", json!(self.built_in), self.built_in.is_none());
        add("http", json!({"allow_hosts": self.allow_hosts}), self.allow_hosts.is_empty());
        add("tools", json!(self.tools), self.tools.is_empty());
        add("toolsets", Value::Object(self.toolsets.clone()), self.toolsets.is_empty());
        add("prompts", json!(self.prompts), self.prompts.is_empty());
        for (name, value) in &config {
            yaml.push('\n');
            write_members(&mut yaml, &Map::from_iter([(name.clone(), value.clone())]), 0);
        }
        let left_out = left_out.into_iter().map(|note| format!("not converted: {note}"));
        let to_check = to_check.into_iter().map(|note| format!("to be checked: {note}"));
        ImportedConfig { yaml, notes: left_out.chain(to_check).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_built_in_tools_are_reserved() {
        let mut draft = ConfigDraft::new("tools.yaml");
        for name in ["sql", "server_info", "find_tool"] {
            assert_eq!(draft.name_tool(name, 1), format!("{name}_tool"));
        }
        assert_eq!(draft.name_tool("orders", 1), "orders");
    }
}
