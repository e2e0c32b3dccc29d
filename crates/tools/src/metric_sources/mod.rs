//! Metric sources: tables with samples, servers with the API of Prometheus, and the recorder of the node itself.

mod columns;
mod prometheus;
mod table;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::RwLock;
use tidegate_core::{Error, ErrorKind, Principal, nearest_names};
use tidegate_query::{Database, Databases};
use tidegate_telemetry::metrics::JsonLabels;
use tidegate_telemetry::metrics::prometheus::PrometheusRequest;
use tidegate_telemetry::metrics::recorder::Recorder;

pub(crate) use self::columns::guess_kind;
pub use self::columns::{DeclaredKind, MetricColumns};
pub(crate) use self::prometheus::PrometheusMetrics;
pub use self::prometheus::PrometheusServer;
pub(crate) use self::table::{SampleOrder, TableMetrics};

use crate::source_columns::{ColumnProblem, TablePresence};

/// The maximum number of names in an error.
const CHOICES_MAX: usize = 20;

/// A source of metrics.
#[derive(Debug, Clone)]
pub struct MetricSource {
    /// The name in arguments.
    pub name: String,
    /// Access names that a caller must hold, all of them, besides the right to the database.
    pub access: Vec<String>,
    /// Where the samples are.
    pub kind: MetricSourceKind,
}

/// Where the samples of a source are.
#[derive(Debug, Clone)]
pub enum MetricSourceKind {
    /// A table of a database.
    Table(Box<MetricTable>),
    /// A server with the HTTP API of Prometheus.
    Prometheus(Arc<dyn MetricApi>),
    /// The node's own metrics.
    Node(Arc<RwLock<Recorder>>),
}

impl MetricSourceKind {
    /// The name in answers.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Table(_) => "table",
            Self::Prometheus(_) => "prometheus",
            Self::Node(_) => "node",
        }
    }
}

/// A table whose rows are samples: a row for each sample, or a row for each time with a column for each metric.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetricTable {
    /// The database.
    pub database: String,
    /// The table, as its database names it.
    pub table: String,
    /// The column with the time of a sample; `None` to recognise it.
    pub time: Option<String>,
    /// The column with the name of the metric; `None` to recognise it.
    pub metric: Option<String>,
    /// The column with the value of a sample; `None` to recognise it.
    pub value: Option<String>,
    /// The column with the unit of the metric; `None` to recognise it.
    pub unit: Option<String>,
    /// Whether the column with the unit belongs to another value of the row.
    pub has_other_unit: bool,
    /// The columns that are metrics, if each metric has a column of its own; empty to recognise them.
    pub columns: Vec<String>,
    /// The columns that are labels; empty for those with text and those with numbers that distinguish series, or for none
    /// beside `json_labels`.
    pub labels: Vec<String>,
    /// Columns with JSON objects whose members are labels.
    pub json_labels: Vec<JsonLabels>,
    /// Where the kind of the metrics is.
    pub kind: DeclaredKind,
    /// Whether the table exists. Without it, the source does not exist either.
    pub presence: TablePresence,
}

impl MetricTable {
    /// The columns of the table for `principal`, with their roles.
    ///
    /// # Errors
    /// The errors of the database, as the outer result. The inner one has the columns that do not exist.
    pub async fn recognize_columns(
        &self,
        database: &dyn Database,
        principal: &Principal,
    ) -> Result<Result<MetricColumns, Vec<ColumnProblem>>, Error> {
        let entries = database.columns(&self.table, principal).await?;
        Ok(MetricColumns::recognize(self, entries))
    }
}

/// A server with the HTTP API of Prometheus.
#[async_trait]
pub trait MetricApi: fmt::Debug + Send + Sync {
    /// The body of the answer to `request`, which may be an error of the API.
    ///
    /// # Errors
    /// `Unavailable` if the server does not answer, `TooLarge` if the body exceeds the maximum.
    async fn get(&self, request: &PrometheusRequest) -> Result<Vec<u8>, Error>;
}

/// The metric sources of a node, in the order of the configuration.
#[derive(Debug, Clone, Default)]
pub struct MetricSources(Arc<[MetricSource]>);

impl MetricSources {
    /// The metric sources `sources`; their names must be unique.
    pub fn new(sources: impl IntoIterator<Item = MetricSource>) -> Self {
        Self(sources.into_iter().collect())
    }

    /// The same with `more` after them; their names must be unique as well.
    #[must_use]
    pub fn with(&self, more: impl IntoIterator<Item = MetricSource>) -> Self {
        Self(self.iter().cloned().chain(more).collect())
    }

    /// The sources in their order, for all callers.
    pub fn iter(&self) -> impl Iterator<Item = &MetricSource> {
        self.0.iter()
    }

    /// Whether there is no source.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The sources that `principal` may read. All others do not exist for it.
    pub(crate) fn visible_to(&self, databases: &Databases, principal: &Principal) -> Vec<&MetricSource> {
        let names: Vec<&str> = databases.visible_to(principal).map(|database| database.name()).collect();
        let holds_access =
            |source: &&MetricSource| source.access.iter().all(|name| principal.grants.access.includes(name));
        let may_query = |source: &&MetricSource| match &source.kind {
            MetricSourceKind::Table(table) => names.contains(&table.database.as_str()) && table.presence.exists(),
            MetricSourceKind::Prometheus(_) | MetricSourceKind::Node(_) => true,
        };
        self.0.iter().filter(holds_access).filter(may_query).collect()
    }

    /// The source called `name` for `principal`; without a name, the only one.
    ///
    /// # Errors
    /// `InvalidArguments` with the names.
    pub(crate) fn find(
        &self,
        name: Option<&str>,
        databases: &Databases,
        principal: &Principal,
    ) -> Result<&MetricSource, Error> {
        let visible = self.visible_to(databases, principal);
        let names = || visible.iter().map(|source| source.name.as_str());
        let choices = |names: Vec<String>| names.into_iter().take(CHOICES_MAX).collect::<Vec<_>>();
        let all = || choices(names().map(str::to_owned).collect());
        match (name, visible.as_slice()) {
            (_, []) => Err(Error::new(ErrorKind::NotFound, "there are no metric sources")),
            (None, [only]) => Ok(only),
            (None, _) => {
                let message = "source is missing, because there are several metric sources";
                Err(Error::new(ErrorKind::InvalidArguments, message).with_choices(all()))
            }
            (Some(name), visible) => visible.iter().find(|source| source.name == name).copied().ok_or_else(|| {
                let near = nearest_names(name, names());
                let message = format!("there is no metric source {name:?}");
                let listed = if near.is_empty() { all() } else { near };
                Error::new(ErrorKind::InvalidArguments, message).with_choices(listed)
            }),
        }
    }
}
