//! The bulk API of Elasticsearch: documents for tables, and the answer with one item for each action.

mod action;
mod answer;
mod index_name;
mod probes;

pub use action::BulkAction;
pub use probes::{ELASTIC_VERSION, cluster_health, cluster_info, cluster_license};

use std::collections::HashMap;

use memchr::memchr;

use crate::error::{FormatError, cut_text};
use crate::limits::TelemetryLimits;
use action::{ActionParameters, parse_action};

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
        let position = index_name::table_name(index).and_then(|table| self.table_position(table));
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
