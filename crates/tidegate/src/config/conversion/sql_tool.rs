//! A tool that runs one SQL statement.

use serde_json::{Map, Value, json};
use tidegate_sql::{SqlDialect, SqlTemplate, may_write};

use super::super::yaml_tree::YamlNode;
use super::draft::ConfigDraft;
use super::parameters::Parameters;
use super::statement::name_parameters;

/// An SQL tool of another server.
pub(super) struct SqlTool<'a> {
    pub(super) name: &'a str,
    pub(super) node: &'a YamlNode,
    pub(super) database: &'a str,
    pub(super) dialect: SqlDialect,
}

impl SqlTool<'_> {
    /// The tool with `name`, without its other keys.
    ///
    /// # Errors
    /// Why the tool must be left out.
    pub(super) fn convert(&self, name: &str, draft: &mut ConfigDraft) -> Result<Map<String, Value>, String> {
        let subject = format!("tool {}", self.name);
        let items = |member: &str| self.node.get(member).map(YamlNode::items).unwrap_or_default();
        let statement = self.node.text_of("statement").ok_or("it has no statement")?;
        let (mut parameters, mut templates) = (Parameters::default(), Parameters::default());
        parameters.add_all(items("parameters"), &subject, draft)?;
        templates.add_all(items("templateParameters"), &subject, draft)?;
        let sql = name_parameters(&statement, self.dialect, &parameters, &mut templates)?;
        let writes = may_write(&sql, self.dialect).map_err(|error| error.to_string())?;
        if writes && !self.dialect.can_write() {
            return Err(format!("it writes, and {} databases are read-only here", self.dialect.name()));
        }
        let template = SqlTemplate::parse(&sql, self.dialect).map_err(|error| error.to_string())?;
        let used = template.names();
        let mut inputs = parameters.inputs(|name| used.contains(name));
        for (name, input) in templates.inputs(|name| used.contains(name)) {
            if inputs.insert(name.clone(), input).is_some() {
                return Err(format!("two parameters are called {name}"));
            }
        }
        for parameter in parameters.iter().chain(templates.iter()) {
            if parameter.input.is_some() && !used.contains(parameter.name.as_str()) {
                let message =
                    format!("the parameter {} is left out: the statement does not use it", parameter.old_name);
                draft.note_to_check(self.node.line(), &subject, message);
            }
        }
        let mut tool = Map::new();
        tool.insert("name".to_owned(), name.into());
        tool.insert("description".to_owned(), description(self.node).into());
        tool.insert("database".to_owned(), self.database.into());
        tool.insert("sql".to_owned(), sql.into());
        if !inputs.is_empty() {
            tool.insert("input".to_owned(), Value::Object(inputs));
        }
        if writes {
            tool.insert("transaction".to_owned(), json!({"writes": true}));
            draft.note_to_check(
                self.node.line(),
                &subject,
                "it writes (transaction.writes); consider confirm and access",
            );
        }
        Ok(tool)
    }
}

pub(super) fn description(node: &YamlNode) -> String {
    node.text_of("description").map(|text| text.trim().to_owned()).unwrap_or_default()
}
