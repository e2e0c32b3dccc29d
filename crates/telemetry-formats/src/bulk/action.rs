//! The line of an action.

use serde::Deserialize;
use serde::de::IgnoredAny;

/// What an action does with its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BulkAction {
    /// Adds the document. An existing one with the same identifier would be replaced, which is not supported.
    Index,
    /// Adds the document.
    Create,
    /// Changes a document, which is not supported.
    Update,
    /// Removes a document, which is not supported.
    Delete,
}

impl BulkAction {
    /// The name, as in the request and the answer.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

/// The line of an action: an object with one member.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ActionLine {
    index: Option<ActionParameters>,
    create: Option<ActionParameters>,
    update: Option<ActionParameters>,
    delete: Option<ActionParameters>,
}

/// The parameters of an action. Those that do not change what is stored are ignored.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ActionParameters {
    #[serde(rename = "_index")]
    pub(super) index: Option<String>,
    #[serde(rename = "_id")]
    id: Option<IgnoredAny>,
    #[serde(rename = "_type")]
    _document_type: Option<IgnoredAny>,
    #[serde(alias = "_routing", rename = "routing")]
    _routing: Option<IgnoredAny>,
    pipeline: Option<String>,
    require_alias: Option<bool>,
    #[serde(rename = "require_data_stream")]
    _require_data_stream: Option<bool>,
    #[serde(rename = "dynamic_templates")]
    _dynamic_templates: Option<IgnoredAny>,
    #[serde(rename = "list_executed_pipelines")]
    _list_executed_pipelines: Option<bool>,
    #[serde(rename = "retry_on_conflict")]
    _retry_on_conflict: Option<IgnoredAny>,
    #[serde(alias = "_version")]
    version: Option<IgnoredAny>,
    #[serde(alias = "_version_type")]
    version_type: Option<IgnoredAny>,
    if_seq_no: Option<IgnoredAny>,
    if_primary_term: Option<IgnoredAny>,
}

impl ActionParameters {
    /// Why a document with these parameters cannot be added.
    pub(super) fn unsupported(&self) -> Option<String> {
        if self.id.is_some() {
            return Some("\"_id\" is not supported, because rows are only added; send documents without it".to_owned());
        }
        let versions = [&self.version, &self.version_type, &self.if_seq_no, &self.if_primary_term];
        if versions.into_iter().any(Option::is_some) {
            return Some("versions of documents are not supported, because rows are only added".to_owned());
        }
        if let Some(pipeline) = self.pipeline.as_deref().filter(|pipeline| !matches!(*pipeline, "" | "_none")) {
            return Some(format!("the pipeline {pipeline:?} does not exist"));
        }
        if self.require_alias == Some(true) {
            return Some("aliases are not supported".to_owned());
        }
        None
    }
}

/// The action of a line.
///
/// # Errors
/// What is wrong with the line.
pub(super) fn parse_action(line: &[u8]) -> Result<(BulkAction, ActionParameters), String> {
    let parsed: ActionLine = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let mut actions = [
        parsed.index.map(|parameters| (BulkAction::Index, parameters)),
        parsed.create.map(|parameters| (BulkAction::Create, parameters)),
        parsed.update.map(|parameters| (BulkAction::Update, parameters)),
        parsed.delete.map(|parameters| (BulkAction::Delete, parameters)),
    ]
    .into_iter()
    .flatten();
    match (actions.next(), actions.next()) {
        (Some(action), None) => Ok(action),
        (None, _) => Err("it has no action".to_owned()),
        (Some(_), Some(_)) => Err("it has more than one action".to_owned()),
    }
}
