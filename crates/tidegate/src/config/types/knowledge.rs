//! What a configuration, or a file beside the data, says about the meaning of a database.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The keys about meaning, which databases of all kinds have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct KnowledgeConfig {
    /// Markdown for models about the whole database, up to 4 KB, or {file: PATH}. Default: none.
    pub(crate) notes: Option<NotesConfig>,
    /// What tables and columns mean, by the names of list_tables and get_schema. Default: none.
    pub(crate) tables: BTreeMap<String, DescribedTableConfig>,
    /// Questions with the statements that answer them. Callers receive those that they may run. Default: none.
    pub(crate) examples: Vec<ExampleConfig>,
    /// Columns over which tables join. Default: none.
    pub(crate) relationships: Vec<RelationshipConfig>,
    /// Named expressions, which query accepts as {measure: NAME}. Default: none.
    pub(crate) measures: Vec<MeasureConfig>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum NotesConfig {
    /// The text.
    Text(String),
    /// A file with the text.
    File(NotesFileConfig),
}

/// A file with notes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NotesFileConfig {
    /// Path of a file with the text.
    pub(crate) file: String,
}

/// What a table means.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct DescribedTableConfig {
    /// What its rows are. Default: the comment of the database.
    pub(crate) description: Option<String>,
    /// What its columns mean. Default: none.
    pub(crate) columns: BTreeMap<String, ColumnConfig>,
}

/// The type of a column, or what it means.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ColumnConfig {
    /// Its type.
    Type(String),
    /// What it means.
    Described(DescribedColumnConfig),
}

/// What a column means.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct DescribedColumnConfig {
    /// Type, in files and tables that take rows. Default: detected.
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    /// What its values mean. Default: the comment of the database.
    pub(crate) description: Option<String>,
    /// Unit of its values: EUR, km/h. Default: none.
    pub(crate) unit: Option<String>,
    /// Meanings of values: {1: paid, 2: open}. Default: none.
    pub(crate) values: BTreeMap<String, ScalarText>,
    /// Other words for the column: [revenue, turnover]. Default: none.
    pub(crate) synonyms: Vec<String>,
    /// A typical value. Default: none.
    pub(crate) example: Option<ScalarText>,
}

/// A question with the statement that answers it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExampleConfig {
    /// The question in plain words.
    pub(crate) question: String,
    /// The statement, which only reads.
    pub(crate) sql: String,
}

/// Two columns with the same values.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RelationshipConfig {
    /// The referencing column: orders.customer_id.
    pub(crate) from: String,
    /// The referenced column: customers.id.
    pub(crate) to: String,
}

/// A named expression over the rows of a table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MeasureConfig {
    /// Name, which is also that of its column.
    pub(crate) name: String,
    /// Table as in list_tables.
    pub(crate) table: String,
    /// Expression: sum(amount) FILTER (WHERE state = 1).
    pub(crate) sql: String,
    /// What it means. Default: none.
    pub(crate) description: Option<String>,
    /// Unit of its value. Default: none.
    pub(crate) unit: Option<String>,
}

/// A text, a number or a truth value, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScalarText(pub(crate) String);

impl<'de> Deserialize<'de> for ScalarText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(text)),
            value @ (Value::Number(_) | Value::Bool(_)) => Ok(Self(value.to_string())),
            Value::Null | Value::Array(_) | Value::Object(_) => Err(D::Error::custom("expected a text or a number")),
        }
    }
}

impl JsonSchema for ScalarText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ScalarText".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "number", "boolean"]})
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum AboutConfig {
    #[default]
    Data,
    Trusted,
    Ignored,
}
