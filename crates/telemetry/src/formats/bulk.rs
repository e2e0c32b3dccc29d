//! The bulk API of Elasticsearch: documents for tables, and the answer with one item for each action.
//!
//! Before shippers send documents, they send other requests, which have answers here too.

use std::collections::HashMap;
use std::fmt::Write;

use memchr::memchr;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::formats::error::{FormatError, cut_text};
use crate::formats::limits::TelemetryLimits;
use crate::formats::text::write_string;

/// The longest reason of a failed item, in bytes.
const REASON_BYTES_MAX: usize = 256;
/// The longest name of an index, in bytes, as in Elasticsearch.
const INDEX_NAME_BYTES_MAX: usize = 255;
/// The maximum number of tables of a request.
const TABLES_MAX: usize = 1_000;
const BAD_REQUEST: u16 = 400;

const ILLEGAL_ARGUMENT: &str = "illegal_argument_exception";
const INVALID_INDEX_NAME: &str = "invalid_index_name_exception";
const DOCUMENT_PARSING: &str = "document_parsing_exception";

/// A request of the bulk API.
#[derive(Debug)]
pub struct BulkRequest {
    items: Vec<BulkItem>,
    tables: Vec<BulkTable>,
}

/// An action of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkItem {
    /// What it does.
    pub action: BulkAction,
    /// The index that it names, or that of the path.
    pub index: String,
    /// The line of the body with the action. The first line is 1.
    pub line: u64,
    /// Why its document is not stored.
    pub failure: Option<BulkFailure>,
}

/// Why a document is not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkFailure {
    /// The status of the item: 400 if it is wrong, 429 or 503 if it may be sent again.
    pub status: u16,
    /// The name of the error in Elasticsearch.
    pub error_type: String,
    /// What is wrong.
    pub reason: String,
}

/// The documents for one table.
#[derive(Debug)]
pub struct BulkTable {
    /// The name of the table.
    pub table: String,
    /// One document per line. They are not checked to be JSON.
    pub documents: Vec<u8>,
    /// The item of each line.
    items: Vec<usize>,
}

impl BulkTable {
    /// The number of documents.
    #[must_use]
    pub fn document_count(&self) -> usize {
        self.items.len()
    }
}

impl BulkRequest {
    /// Splits a body into the documents of each table. `path_index` is the index of the path `/{index}/_bulk`, for actions
    /// that name none.
    ///
    /// # Errors
    /// `Malformed` if the body does not consist of lines with actions and documents, or does not end with a line break;
    /// `TooLarge` if it exceeds `limits`.
    pub fn decode(body: &[u8], path_index: Option<&str>, limits: &TelemetryLimits) -> Result<Self, FormatError> {
        limits.check_body(body.len())?;
        if body.last() != Some(&b'\n') {
            let message = if body.is_empty() { "the body is empty" } else { "the body does not end with a line break" };
            return Err(FormatError::Malformed(message.into()));
        }
        let mut splitter = BulkSplitter::new(path_index, limits);
        let mut lines = Lines { rest: body, line: 0 };
        while let Some((number, line)) = lines.next_line() {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let (action, parameters) = parse_action(line).map_err(|reason| {
                let reason = cut_text(&reason, REASON_BYTES_MAX);
                FormatError::Malformed(format!("line {number} is no action: {reason}"))
            })?;
            let document = match action {
                BulkAction::Delete => None,
                _ => match lines.next_line() {
                    Some((_, document)) => Some(document),
                    None => return Err(FormatError::Malformed(format!("the action of line {number} has no document"))),
                },
            };
            splitter.item(action, parameters, number, document)?;
        }
        Ok(Self { items: splitter.items, tables: splitter.tables })
    }

    /// The actions in the order of the body.
    #[must_use]
    pub fn items(&self) -> &[BulkItem] {
        &self.items
    }

    /// The documents of each table, in the order in which the body names the tables first.
    #[must_use]
    pub fn tables(&self) -> &[BulkTable] {
        &self.tables
    }

    /// Marks a document as wrong: `line` is its line within the documents of the table at `table`, from 1, as decoders of
    /// NDJSON report it. Returns false if there is no such document.
    pub fn reject_document(&mut self, table: usize, line: u64, reason: &str) -> bool {
        let index = line.checked_sub(1).and_then(|index| usize::try_from(index).ok());
        let item = index.and_then(|index| self.tables.get(table)?.items.get(index).copied());
        let Some(item) = item.and_then(|item| self.items.get_mut(item)) else { return false };
        item.failure = Some(BulkFailure::new(BAD_REQUEST, DOCUMENT_PARSING, reason));
        true
    }

    /// Marks all documents of the table at `table` as not stored, except those that are wrong themselves.
    pub fn fail_table(&mut self, table: usize, status: u16, error_type: &str, reason: &str) {
        let Some(table) = self.tables.get(table) else { return };
        for item in &table.items {
            if let Some(item) = self.items.get_mut(*item) {
                item.failure.get_or_insert_with(|| BulkFailure::new(status, error_type, reason));
            }
        }
    }
}

impl BulkFailure {
    fn new(status: u16, error_type: &str, reason: &str) -> Self {
        Self { status, error_type: error_type.to_owned(), reason: cut_text(reason, REASON_BYTES_MAX).to_owned() }
    }
}

/// The lines of a body, without their line breaks.
struct Lines<'a> {
    rest: &'a [u8],
    line: u64,
}

impl<'a> Lines<'a> {
    fn next_line(&mut self) -> Option<(u64, &'a [u8])> {
        let end = memchr(b'\n', self.rest)?;
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default();
        self.line += 1;
        Some((self.line, line.strip_suffix(b"\r").unwrap_or(line)))
    }
}

struct BulkSplitter<'a> {
    path_index: Option<&'a str>,
    limits: &'a TelemetryLimits,
    items: Vec<BulkItem>,
    tables: Vec<BulkTable>,
    /// The position in `tables` for each index, so that a name is converted once.
    positions: HashMap<String, Result<usize, String>>,
}

impl<'a> BulkSplitter<'a> {
    fn new(path_index: Option<&'a str>, limits: &'a TelemetryLimits) -> Self {
        Self { path_index, limits, items: Vec::new(), tables: Vec::new(), positions: HashMap::new() }
    }

    fn item(
        &mut self,
        action: BulkAction,
        parameters: ActionParameters,
        line: u64,
        document: Option<&[u8]>,
    ) -> Result<(), FormatError> {
        let most = self.limits.bulk_items_max;
        if self.items.len() >= most {
            return Err(FormatError::TooLarge(format!("the body has more than {most} actions")));
        }
        let unsupported = parameters.unsupported();
        let index = parameters.index.or_else(|| self.path_index.map(str::to_owned)).unwrap_or_default();
        let position = self.table_for(action, &index, unsupported, document);
        let failure = position.and_then(|position| self.add(position, document.unwrap_or_default())).err();
        let index = cut_text(&index, INDEX_NAME_BYTES_MAX).to_owned();
        self.items.push(BulkItem { action, index, line, failure });
        Ok(())
    }

    /// The position of the table of a document that can be stored.
    fn table_for(
        &mut self,
        action: BulkAction,
        index: &str,
        unsupported: Option<String>,
        document: Option<&[u8]>,
    ) -> Result<usize, BulkFailure> {
        let wrong = |error_type: &str, reason: &str| Err(BulkFailure::new(BAD_REQUEST, error_type, reason));
        if matches!(action, BulkAction::Update | BulkAction::Delete) {
            let name = action.name();
            return wrong(ILLEGAL_ARGUMENT, &format!("the action {name:?} is not supported: rows are only added"));
        }
        if let Some(reason) = unsupported {
            return wrong(ILLEGAL_ARGUMENT, &reason);
        }
        let document = document.unwrap_or_default();
        let most = self.limits.record_bytes_max;
        if document.len() > most {
            let reason = format!("the document has {} bytes; at most {most} are accepted", document.len());
            return wrong(ILLEGAL_ARGUMENT, &reason);
        }
        if document.trim_ascii_start().first() != Some(&b'{') {
            return wrong(DOCUMENT_PARSING, "the document is not an object of JSON");
        }
        self.position(index).or_else(|reason| wrong(INVALID_INDEX_NAME, &reason))
    }

    fn position(&mut self, index: &str) -> Result<usize, String> {
        if index.len() > INDEX_NAME_BYTES_MAX {
            return Err(format!("the name of the index has more than {INDEX_NAME_BYTES_MAX} bytes"));
        }
        if let Some(position) = self.positions.get(index) {
            return position.clone();
        }
        let position = table_name(index).and_then(|table| self.table_position(table));
        self.positions.insert(index.to_owned(), position.clone());
        position
    }

    fn table_position(&mut self, table: String) -> Result<usize, String> {
        if let Some(position) = self.tables.iter().position(|other| other.table == table) {
            return Ok(position);
        }
        if self.tables.len() >= TABLES_MAX {
            return Err(format!("the request has indices for more than {TABLES_MAX} tables"));
        }
        self.tables.push(BulkTable { table, documents: Vec::new(), items: Vec::new() });
        Ok(self.tables.len() - 1)
    }

    /// Adds the document of the item that comes next.
    fn add(&mut self, position: usize, document: &[u8]) -> Result<(), BulkFailure> {
        let item = self.items.len();
        let table = self.tables.get_mut(position);
        let table = table.ok_or_else(|| BulkFailure::new(BAD_REQUEST, ILLEGAL_ARGUMENT, "the table does not exist"))?;
        table.documents.extend_from_slice(document);
        table.documents.push(b'\n');
        table.items.push(item);
        Ok(())
    }
}

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
struct ActionParameters {
    #[serde(rename = "_index")]
    index: Option<String>,
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
    fn unsupported(&self) -> Option<String> {
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
fn parse_action(line: &[u8]) -> Result<(BulkAction, ActionParameters), String> {
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

/// The longest name of a table, in bytes.
const TABLE_NAME_BYTES_MAX: usize = 128;
/// Characters that no name of an index has.
const FORBIDDEN: &[char] = &['\\', '/', '*', '?', '"', '<', '>', '|', ' ', ',', '#', ':'];
/// Dates at the end of names: digits, and the separators between them.
const DATE_FORMS: &[&str] = &["dddd.dd.dd.dd", "dddd.dd.dd", "dddd-dd-dd", "dddd_dd_dd", "dddd.dd", "dddd-dd"];
/// Dates have years of these two centuries, so that other numbers are not taken for dates.
const YEARS: std::ops::RangeInclusive<u32> = 1900..=2099;

/// The name of the table for an index: without a date at its end; each run of other characters than letters and digits
/// of ASCII is one underscore, and there is none at the beginning and the end.
///
/// # Errors
/// The reason, if it is no name of an index, or if nothing or too much remains.
fn table_name(index: &str) -> Result<String, String> {
    if index.is_empty() {
        return Err("the name of the index is empty".to_owned());
    }
    if index.starts_with(['-', '_', '+']) {
        return Err("the name of the index begins with \"-\", \"_\" or \"+\"".to_owned());
    }
    if index.contains(FORBIDDEN) || index.chars().any(char::is_control) {
        return Err("the name of the index contains one of \\ / * ? \" < > | , # : or a blank".to_owned());
    }
    if index.chars().any(char::is_uppercase) {
        return Err("the name of the index contains capital letters".to_owned());
    }
    let mut name = String::new();
    for character in without_date(index).chars() {
        if character.is_ascii_alphanumeric() {
            name.push(character);
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
    }
    let name = name.trim_end_matches('_');
    if !name.starts_with(|character: char| character.is_ascii_lowercase()) {
        return Err("the name of the index does not begin with a letter from a to z".to_owned());
    }
    if name.len() > TABLE_NAME_BYTES_MAX {
        return Err(format!("the name of the table would have {} bytes; at most {TABLE_NAME_BYTES_MAX}", name.len()));
    }
    Ok(name.to_owned())
}

/// Shippers begin an index for each day, hour or month. A table has all of them.
fn without_date(index: &str) -> &str {
    for form in DATE_FORMS {
        let Some(start) = index.len().checked_sub(form.len()).filter(|start| index.is_char_boundary(*start)) else {
            continue;
        };
        let (before, date) = index.split_at(start);
        if !before.ends_with(['-', '_', '.']) || !has_form(date, form) {
            continue;
        }
        let name = before.trim_end_matches(['-', '_', '.']);
        if !name.is_empty() {
            return name;
        }
    }
    index
}

fn has_form(date: &str, form: &str) -> bool {
    let matches = date.bytes().zip(form.bytes()).all(|(byte, expected)| match expected {
        b'd' => byte.is_ascii_digit(),
        _ => byte == expected,
    });
    if !matches {
        return false;
    }
    let mut numbers = date.split(['.', '-', '_']).map_while(|part| part.parse::<u32>().ok());
    let is_within =
        |number: Option<u32>, range: std::ops::RangeInclusive<u32>| number.is_none_or(|number| range.contains(&number));
    is_within(numbers.next(), YEARS)
        && is_within(numbers.next(), 1..=12)
        && is_within(numbers.next(), 1..=31)
        && is_within(numbers.next(), 0..=23)
}

/// An answer with one item of average size, in bytes.
const ITEM_BYTES: usize = 200;

impl BulkRequest {
    /// The answer with status 200, in JSON: an item for each action, in their order. Items without a failure are stored.
    #[must_use]
    pub fn answer(&self, took_ms: u64) -> String {
        let has_errors = self.items.iter().any(|item| item.failure.is_some());
        let mut output = String::with_capacity(self.items.len() * ITEM_BYTES);
        // Writing to a text does not fail.
        _ = write!(output, "{{\"took\":{took_ms},\"errors\":{has_errors},\"items\":[");
        for (index, item) in self.items.iter().enumerate() {
            if index > 0 {
                output.push(',');
            }
            write_item(&mut output, item);
        }
        output.push_str("]}");
        output
    }
}

fn write_item(output: &mut String, item: &BulkItem) {
    // Writing to a text does not fail.
    _ = write!(output, "{{\"{}\":{{\"_index\":", item.action.name());
    write_string(output, &item.index);
    match &item.failure {
        None => output.push_str(
            ",\"_version\":1,\"result\":\"created\",\"_shards\":{\"total\":1,\"successful\":1,\"failed\":0},\"status\":201",
        ),
        Some(BulkFailure { status, error_type, reason }) => {
            _ = write!(output, ",\"status\":{status},\"error\":{{\"type\":");
            write_string(output, error_type);
            output.push_str(",\"reason\":");
            write_string(output, reason);
            output.push('}');
        }
    }
    output.push_str("}}");
}

/// The version of Elasticsearch whose bulk API is implemented. Shippers compare it with theirs.
pub const ELASTIC_VERSION: &str = "8.17.0";

/// The identifier of a cluster or a license, which nothing refers to.
const NO_IDENTIFIER: &str = "00000000-0000-0000-0000-000000000000";

/// `GET /`: the name and the version.
#[must_use]
pub fn cluster_info(node_name: &str) -> Value {
    json!({
        "name": node_name,
        "cluster_name": node_name,
        "cluster_uuid": NO_IDENTIFIER,
        "version": {
            "number": ELASTIC_VERSION,
            "build_flavor": "default",
            "build_type": "tar",
            "build_hash": "unknown",
            "build_date": "2024-12-11T12:08:05.663969764Z",
            "build_snapshot": false,
            "lucene_version": "9.12.0",
            "minimum_wire_compatibility_version": "7.17.0",
            "minimum_index_compatibility_version": "7.0.0",
        },
        "tagline": "You Know, for Search",
    })
}

/// `GET /_license`: a basic license, without which Beats do not send.
#[must_use]
pub fn cluster_license() -> Value {
    json!({
        "license": {
            "status": "active",
            "uid": NO_IDENTIFIER,
            "type": "basic",
            "mode": "basic",
            "issue_date": "1970-01-01T00:00:00.000Z",
            "issue_date_in_millis": 0,
            "max_nodes": null,
            "max_resource_units": null,
            "issued_to": "tidegate",
            "issuer": "tidegate",
            "start_date_in_millis": -1,
        }
    })
}

/// `GET /_cluster/health`: one node that accepts documents.
#[must_use]
pub fn cluster_health(node_name: &str) -> Value {
    json!({
        "cluster_name": node_name,
        "status": "green",
        "timed_out": false,
        "number_of_nodes": 1,
        "number_of_data_nodes": 1,
        "active_primary_shards": 1,
        "active_shards": 1,
        "relocating_shards": 0,
        "initializing_shards": 0,
        "unassigned_shards": 0,
        "delayed_unassigned_shards": 0,
        "number_of_pending_tasks": 0,
        "number_of_in_flight_fetch": 0,
        "task_max_waiting_in_queue_millis": 0,
        "active_shards_percent_as_number": 100.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_indices_become_names_of_tables() {
        for (index, table) in [
            ("logs", "logs"),
            ("logs-generic-default", "logs_generic_default"),
            ("vector-2024.01.15", "vector"),
            ("logstash-2024.01.15.23", "logstash"),
            ("app-2024-01-15", "app"),
            ("app-2024.12", "app"),
            ("filebeat-8.13.0-2024.05.01", "filebeat_8_13_0"),
            ("app-2024.13.45", "app_2024_13_45"),
            ("app-0000.01.01", "app_0000_01_01"),
            ("app2024.01.15", "app2024_01_15"),
            ("a--rejects", "a_rejects"),
            ("a__rejects", "a_rejects"),
            ("a.b__", "a_b"),
            ("café-1", "caf_1"),
            (".kibana", "kibana"),
        ] {
            assert_eq!(table_name(index).as_deref(), Ok(table), "{index}");
        }
        for index in ["", "_all", "-a", "Logs", "a/b", "a*", "日本", "2024.01.15", "a\u{0}", "a,b", "c:a"] {
            assert!(table_name(index).is_err(), "{index}");
        }
        assert!(table_name(&"a".repeat(TABLE_NAME_BYTES_MAX + 1)).is_err());
    }
}
