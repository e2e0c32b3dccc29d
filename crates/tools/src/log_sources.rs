//! Log sources: tables with a time, which the log tools search; which of their columns are time, message and severity;
//! and the sources as one call reads them, with their databases and the common names of their columns.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use tidegate_core::{Error, ErrorKind, Principal, nearest_names};
use tidegate_log_formats::{ENTRY_FILE_ID, ENTRY_OFFSET, ENTRY_TEXT, NORMALIZED_SEVERITY_NUMBER, is_time_name};
use tidegate_query::{ColumnEntry, Database, Databases, StableHasher, TableStorage};
use tidegate_telemetry::logs::SourceId;

use crate::source_columns::{ColumnProblem, FieldKind, SourceColumn, TablePresence, recognize_roles};

/// A table of a database whose rows are log entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogSource {
    /// The name in arguments.
    pub name: String,
    /// The database.
    pub database: String,
    /// The table, as its database names it.
    pub table: String,
    /// The column with the time of an entry; `None` to recognise it.
    pub time: Option<String>,
    /// The column with the text of an entry; `None` to recognise it.
    pub message: Option<String>,
    /// The column with the severity of an entry; `None` to recognise it.
    pub severity: Option<String>,
    /// The further columns that can be searched; empty for all columns.
    pub fields: Vec<String>,
    /// Access names that a caller must hold, all of them, besides the right to the database.
    pub access: Vec<String>,
    /// Whether the table exists. Without it, the source does not exist either.
    pub presence: TablePresence,
}

impl LogSource {
    /// The columns of the source for `principal`, with their roles.
    ///
    /// # Errors
    /// The errors of the database, as the outer result. The inner one has the columns that do not exist.
    pub async fn recognize_columns(
        &self,
        database: &dyn Database,
        principal: &Principal,
    ) -> Result<Result<RecognizedColumns, Vec<ColumnProblem>>, Error> {
        let entries = database.columns(&self.table, principal).await?;
        Ok(RecognizedColumns::recognize(self, entries))
    }
}

/// The log sources of a node, in the order of the configuration.
#[derive(Debug, Clone, Default)]
pub struct LogSources(Arc<[LogSource]>);

impl LogSources {
    /// The log sources `sources`; their names must be unique.
    pub fn new(sources: impl IntoIterator<Item = LogSource>) -> Self {
        Self(sources.into_iter().collect())
    }

    /// The same with `more` after them; their names must be unique as well.
    #[must_use]
    pub fn with(&self, more: impl IntoIterator<Item = LogSource>) -> Self {
        Self(self.iter().cloned().chain(more).collect())
    }

    /// The sources in their order, for all callers.
    pub fn iter(&self) -> impl Iterator<Item = &LogSource> {
        self.0.iter()
    }

    /// Whether there is no source.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The sources that `principal` may read. All others do not exist for it.
    pub(crate) fn visible_to(&self, databases: &Databases, principal: &Principal) -> Vec<&LogSource> {
        let names: Vec<&str> = databases.visible_to(principal).map(|database| database.name()).collect();
        let holds_access =
            |source: &&LogSource| source.access.iter().all(|name| principal.grants.access.includes(name));
        let may_query = |source: &&LogSource| names.contains(&source.database.as_str()) && source.presence.exists();
        self.0.iter().filter(holds_access).filter(may_query).collect()
    }
}

/// The error for a source that does not exist for the caller.
pub(crate) fn unknown_source_message(name: &str, visible: &[&LogSource]) -> String {
    let names = || visible.iter().map(|source| source.name.as_str());
    let near = nearest_names(name, names());
    let (lead, choices) = match near.is_empty() {
        true => ("there are", names().take(CHOICES_MAX).map(str::to_owned).collect()),
        false => ("nearest:", near),
    };
    format!("there is no log source {name:?}; {lead} {}", choices.join(", "))
}

/// The maximum number of names in an error.
const CHOICES_MAX: usize = 20;

/// The error of a caller who may read no source, or whose tool list is outdated.
pub(crate) fn no_sources_error() -> Error {
    Error::new(ErrorKind::NotFound, "there are no log sources")
}

/// Columns of log files that entries contain only on request.
const HIDDEN_COLUMNS: [&str; 4] = [ENTRY_TEXT, ENTRY_OFFSET, ENTRY_FILE_ID, NORMALIZED_SEVERITY_NUMBER];
/// Columns with the position of an entry.
const POSITION_COLUMNS: [&str; 2] = [ENTRY_FILE_ID, ENTRY_OFFSET];

/// The columns of a log source, with their roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecognizedColumns {
    /// In the order of entries: those with a role first.
    pub(crate) columns: Vec<SourceColumn>,
    pub(crate) time: String,
    pub(crate) message: Option<String>,
    pub(crate) severity: Option<String>,
    /// The columns with the position of an entry, also if callers do not see them.
    pub(crate) positions: Vec<&'static str>,
}

impl RecognizedColumns {
    /// The columns of `source` among `entries`. What the source does not name is recognised by names and types.
    ///
    /// # Errors
    /// Every column that the source names and that does not exist, and a missing time.
    pub(crate) fn recognize(source: &LogSource, entries: Vec<ColumnEntry>) -> Result<Self, Vec<ColumnProblem>> {
        let columns: Vec<SourceColumn> = entries.into_iter().map(SourceColumn::from).collect();
        let mut problems = Vec::new();
        let mut check = |key: String, column: &str| {
            if !columns.iter().any(|known| known.name == column) {
                problems.push(ColumnProblem::unknown(key, column, &source.table, &columns));
            }
        };
        for (key, column) in [("time", &source.time), ("message", &source.message), ("severity", &source.severity)] {
            if let Some(column) = column {
                check(key.to_owned(), column);
            }
        }
        for (index, column) in source.fields.iter().enumerate() {
            check(format!("fields[{index}]"), column);
        }
        let roles = recognize_roles(&columns);
        let name = |index: usize| columns.get(index).map(|column| column.name.clone());
        // SQLite and files without types have times as text.
        let text_time = || {
            let is_time = |column: &&SourceColumn| column.kind == FieldKind::Text && is_time_name(&column.name);
            columns.iter().find(is_time).map(|column| column.name.clone())
        };
        let time = source.time.clone().or_else(|| roles.time.and_then(name)).or_else(text_time);
        let Some(time) = time else {
            problems.push(ColumnProblem::missing("time", "the time of an entry", &source.table, &columns));
            return Err(problems);
        };
        if !problems.is_empty() {
            return Err(problems);
        }
        let of_file = || columns.iter().find(|column| column.name == ENTRY_TEXT).map(|column| column.name.clone());
        let message = source.message.clone().or_else(|| roles.message.and_then(name)).or_else(of_file);
        let severity = source.severity.clone().or_else(|| roles.severity.and_then(name));
        let is_there = |name: &&str| columns.iter().any(|column| column.name == *name);
        let positions = POSITION_COLUMNS.into_iter().filter(is_there).collect();
        let recognized = Self { columns, time, message, severity, positions };
        Ok(recognized.with_roles_first(&source.fields))
    }

    /// Puts columns with a role first, and removes those that are not in `fields`, unless it is empty.
    fn with_roles_first(mut self, fields: &[String]) -> Self {
        let roles = [Some(self.time.clone()), self.severity.clone(), self.message.clone()];
        let place = |column: &SourceColumn| {
            let role = roles.iter().position(|role| role.as_deref() == Some(column.name.as_str()));
            role.unwrap_or(roles.len())
        };
        self.columns.retain(|column| fields.is_empty() || place(column) < roles.len() || fields.contains(&column.name));
        self.columns.sort_by_key(place);
        self
    }

    /// The name of the role that a column has.
    pub(crate) fn role(&self, column: &str) -> Option<&'static str> {
        match column {
            column if column == self.time => Some("time"),
            column if Some(column) == self.message.as_deref() => Some("message"),
            column if Some(column) == self.severity.as_deref() => Some("severity"),
            _ => None,
        }
    }

    /// Whether entries contain a column only on request.
    pub(crate) fn is_hidden(&self, column: &str) -> bool {
        HIDDEN_COLUMNS.contains(&column) && self.message.as_deref() != Some(column)
    }
}

impl fmt::Display for RecognizedColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = |column: &Option<String>| column.as_deref().unwrap_or("none").to_owned();
        write!(f, "time {}, message {}, severity {}", self.time, role(&self.message), role(&self.severity))?;
        let others = self.columns.iter().filter(|column| self.role(&column.name).is_none()).count();
        write!(f, ", {others} further fields")
    }
}

/// The field with the name of the source, where a call reads several.
pub(crate) const SOURCE_FIELD: &str = "source";

/// How long a database may take to find the size and the indexes of a table. It waits where the table is locked.
const STORAGE_TIMEOUT: Duration = Duration::from_secs(5);

/// A source with its database and columns, as one caller sees them.
#[derive(Clone)]
pub(crate) struct ResolvedSource {
    pub(crate) name: String,
    pub(crate) table: String,
    pub(crate) database: Arc<dyn Database>,
    pub(crate) columns: RecognizedColumns,
}

impl ResolvedSource {
    pub(crate) async fn resolve(
        source: &LogSource,
        databases: &Databases,
        principal: &Principal,
    ) -> Result<Self, Error> {
        let database = databases.get(Some(&source.database), principal)?.clone();
        let columns = source.recognize_columns(&*database, principal).await?;
        let columns = columns.map_err(|problems| Error::new(ErrorKind::Unavailable, ColumnProblem::join(problems)))?;
        Ok(Self { name: source.name.clone(), table: source.table.clone(), database, columns })
    }

    /// How the table is stored; nothing is known of it if the database does not answer in time.
    ///
    /// # Errors
    /// If the call was cancelled.
    pub(crate) async fn storage(&self, principal: &Principal) -> Result<TableStorage, Error> {
        let storage = self.database.table_storage(&self.table, principal);
        match tokio::time::timeout(STORAGE_TIMEOUT, storage).await {
            Ok(Err(error)) if error.kind() == ErrorKind::Cancelled => Err(error),
            Ok(storage) => Ok(storage.unwrap_or_default()),
            Err(_) => Ok(TableStorage::default()),
        }
    }

    /// The identity of the source in cursors.
    pub(crate) fn id(&self) -> SourceId {
        let mut hasher = StableHasher::default();
        hasher.add(&self.name);
        SourceId(hasher.finish())
    }
}

/// The sources of one call. If their columns with a role have different names, they are `time`, `message` and `severity`
/// for the whole call.
pub(crate) struct SourceSet {
    pub(crate) sources: Vec<ResolvedSource>,
    pub(crate) time: String,
    pub(crate) message: Option<String>,
    pub(crate) severity: Option<String>,
}

impl SourceSet {
    pub(crate) fn new(sources: Vec<ResolvedSource>) -> Self {
        let common = |role: &str, name: &dyn Fn(&RecognizedColumns) -> Option<String>| {
            let mut names = sources.iter().filter_map(|source| name(&source.columns));
            let first = names.next()?;
            let is_common = names.all(|name| name == first);
            Some(if is_common { first } else { role.to_owned() })
        };
        Self {
            time: common("time", &|columns| Some(columns.time.clone())).unwrap_or_default(),
            message: common("message", &|columns| columns.message.clone()),
            severity: common("severity", &|columns| columns.severity.clone()),
            sources,
        }
    }

    pub(crate) fn is_single(&self) -> bool {
        self.sources.len() == 1
    }

    /// The name of a column of `source` in the call; `None` if it gives way to a role of the same name.
    fn field_name<'a>(&'a self, source: &ResolvedSource, column: &'a str) -> Option<&'a str> {
        match source.columns.role(column) {
            Some("time") => Some(&self.time),
            Some("message") => self.message.as_deref(),
            Some(_) => self.severity.as_deref(),
            None => {
                let taken = [Some(self.time.as_str()), self.message.as_deref(), self.severity.as_deref()];
                let is_source = !self.is_single() && column == SOURCE_FIELD;
                (!is_source && !taken.contains(&Some(column))).then_some(column)
            }
        }
    }

    /// The columns of `source` with their names in the call.
    pub(crate) fn fields<'a>(
        &'a self,
        source: &'a ResolvedSource,
    ) -> impl Iterator<Item = (&'a str, &'a SourceColumn)> + 'a {
        source.columns.columns.iter().filter_map(|column| Some((self.field_name(source, &column.name)?, column)))
    }

    /// The names of all fields, each once.
    pub(crate) fn field_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for source in &self.sources {
            for (name, _) in self.fields(source) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        if !self.is_single() {
            names.push(SOURCE_FIELD);
        }
        names
    }

    /// `batch` of `source` with the names of the call, and the name of the source where there are several.
    pub(crate) fn rename(&self, source: &ResolvedSource, batch: &RecordBatch) -> Result<RecordBatch, Error> {
        let mut fields: Vec<Arc<Field>> = Vec::with_capacity(batch.num_columns() + 1);
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(batch.num_columns() + 1);
        for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            if let Some(name) = self.field_name(source, field.name()) {
                fields.push(Arc::new(field.as_ref().clone().with_name(name)));
                columns.push(column.clone());
            }
        }
        if !self.is_single() {
            fields.push(Arc::new(Field::new(SOURCE_FIELD, DataType::Utf8, false)));
            columns.push(Arc::new(StringArray::from_iter_values(std::iter::repeat_n(&source.name, batch.num_rows()))));
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
            .map_err(|error| Error::internal(format!("a batch of a log source: {error}")))
    }
}
