//! Log sources as one call reads them: their databases, and the common names of their columns.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{Database, Databases, StableHasher, TableStorage};
use tidegate_telemetry::logs::SourceId;

use super::{LogSource, RecognizedColumns};
use crate::source_columns::{ColumnProblem, SourceColumn};

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
    pub(crate) fn field_name<'a>(&'a self, source: &ResolvedSource, column: &'a str) -> Option<&'a str> {
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
