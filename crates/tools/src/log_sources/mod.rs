//! Log sources: tables with a time, which the log tools search.

mod columns;
mod resolved;

use std::sync::Arc;

use tidegate_core::{Error, ErrorKind, Principal, nearest_names};
use tidegate_query::{Database, Databases};

pub use columns::RecognizedColumns;
pub(crate) use resolved::{ResolvedSource, SOURCE_FIELD, SourceSet};

use crate::source_columns::{ColumnProblem, TablePresence};

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
