//! Reads the samples of a table, for one call: the conditions of its statement, and the time that a group of samples
//! covers, and its units.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{Array, Int64Array, RecordBatch};
use futures::StreamExt;
use futures::stream::BoxStream;
use tidegate_core::{Error, ErrorKind, Violation};
use tidegate_query::{
    AggregateFunction, ComparisonOperator, Database, GroupKey, Operand, QueryCondition, QuerySpec, Selection, SortKey,
};
use tidegate_runtime::Job;
use tidegate_sql::Parameter;
use tidegate_telemetry::logs::{TimeRange, display_value, time_column};
use tidegate_telemetry::metrics::{
    CatalogBuilder, LabelCondition, LabelSelection, LabelSummary, Labels, MetricAnswer, MetricEvaluator, MetricKind,
    MetricQuery, MetricRequest, MetricSummary, SampleColumns, SampleRows, SampleSink, TimeWindow, window_violation,
};

use super::columns::{DeclaredKind, MetricColumns, SampleKinds, TableShape};
use super::{MetricSource, MetricTable};
use crate::source_columns::{ColumnProblem, FIRST_TIME, FieldKind, LAST_TIME, first_and_last, time_conditions};
use crate::tool_services::ToolServices;
use crate::typed_rows::{MixedNumbers, open_typed_rows};

/// The maximum number of series that are listed, over all metrics.
const SERIES_LISTED_MAX: u64 = 100_000;

/// A table of samples, as the caller of one call sees it.
pub(crate) struct TableMetrics<'a> {
    services: &'a ToolServices,
    job: &'a Arc<Job>,
    database: Arc<dyn Database>,
    table: &'a MetricTable,
    pub(crate) columns: MetricColumns,
}

/// In which order samples are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SampleOrder {
    /// As the database returns them.
    Any,
    /// By time, which counters need.
    Time,
}

impl<'a> TableMetrics<'a> {
    /// # Errors
    /// `Unavailable` if the columns of the table do not fit the source.
    pub(crate) async fn open(
        source: &MetricSource,
        table: &'a MetricTable,
        services: &'a ToolServices,
        job: &'a Arc<Job>,
    ) -> Result<Self, Error> {
        let database = services.databases.get(Some(&table.database), job.principal())?.clone();
        let columns = table.recognize_columns(&*database, job.principal()).await?.map_err(|problems| {
            let problems = ColumnProblem::join(problems);
            Error::new(
                ErrorKind::Unavailable,
                format!("the metric source {:?} cannot be read: {problems}", source.name),
            )
        })?;
        Ok(Self { services, job, database, table, columns })
    }

    /// The metrics with their labels and the time that they cover, and how many are left out.
    pub(crate) async fn catalog(
        &self,
        selection: &LabelSelection,
        window: Option<TimeWindow>,
    ) -> Result<(Vec<MetricSummary>, usize), Error> {
        let names: &[String] = match &self.columns.shape {
            TableShape::Narrow { .. } => &[],
            TableShape::Wide { columns } => columns,
        };
        let (name_column, kind) = (self.columns.name_column(), &self.columns.kind);
        let labels = self.columns.labels_with_kind().unwrap_or_else(|| self.columns.labels.clone());
        let with_members = self.table.json_labels.iter().map(|labels| labels.column.clone());
        let keys: Vec<String> = name_column.cloned().into_iter().chain(labels).chain(with_members).collect();
        let mut spec = self.filtered(None, selection, window);
        spec.select = keys.iter().map(Selection::column).collect();
        spec.select.extend(first_and_last(&self.columns.time));
        spec.select.extend(self.columns.unit.as_deref().map(unit_bounds).into_iter().flatten());
        spec.select.extend(kind.selection());
        // Each series is a group of rows with the same labels.
        spec.group_by = keys.into_iter().map(GroupKey::Column).collect();
        spec.limit = SERIES_LISTED_MAX;
        let mut builder = CatalogBuilder::new(selection.clone());
        let mut declared: HashMap<String, (Units, SampleKinds)> = HashMap::new();
        let mut rows = self.open_rows(&spec).await?;
        while let Some(batch) = rows.next().await.transpose()? {
            let times = RowTimes::new(&batch);
            for row in 0..batch.num_rows() {
                let (labels, covers) = (self.labels(&batch, row), times.window(row));
                if !selection.accepts(&labels) {
                    continue;
                }
                let names: Vec<String> = match name_column {
                    Some(column) => text(&batch, column, row).into_iter().collect(),
                    None => names.to_vec(),
                };
                for name in names {
                    builder.add_series(&name, &labels, covers);
                    let of_group = kind.of_group(&name, &batch, row);
                    let (units, kinds) = declared.entry(name).or_default();
                    kinds.add(of_group);
                    units.add(&batch, row);
                }
            }
        }
        let (mut metrics, left_out) = builder.finish();
        for metric in &mut metrics {
            let Some((units, kinds)) = declared.get(&metric.name) else { continue };
            metric.kind = kinds.common().unwrap_or_default();
            metric.unit = units.name();
        }
        Ok((metrics, left_out))
    }

    /// The time from the first to the last sample.
    pub(crate) async fn covered_time(&self) -> Result<Option<TimeWindow>, Error> {
        let mut spec = self.filtered(None, &LabelSelection::default(), None);
        spec.select = first_and_last(&self.columns.time).into();
        let mut rows = self.open_rows(&spec).await?;
        Ok(rows.next().await.transpose()?.and_then(|batch| RowTimes::new(&batch).window(0)))
    }

    /// The unit of the samples of a query, if they have one.
    async fn unit(&self, query: &MetricQuery) -> Result<Option<String>, Error> {
        let Some(unit) = &self.columns.unit else { return Ok(None) };
        let mut spec = self.filtered(Some(&query.metric), &query.selection, Some(query.grid.window()));
        spec.select = unit_bounds(unit);
        let mut rows = self.open_rows(&spec).await?;
        let mut units = Units::default();
        if let Some(batch) = rows.next().await.transpose()? {
            units.add(&batch, 0);
        }
        Ok(units.name())
    }

    /// The kind that the samples of a query declare.
    ///
    /// # Errors
    /// `InvalidArguments` if they are totals and increments, which no aggregation can combine.
    async fn declared_kind(&self, query: &MetricQuery) -> Result<MetricKind, Error> {
        let (kind, name, selection) = (&self.columns.kind, &query.metric, &query.selection);
        let mut spec = self.filtered(Some(name), selection, Some(query.grid.window()));
        let keys: Vec<String> = kind.grouping_columns().into_iter().cloned().collect();
        let columns = keys.iter().map(Selection::column);
        spec.select = columns.chain(kind.selection()).collect();
        spec.group_by = keys.iter().cloned().map(GroupKey::Column).collect();
        let mut rows = self.open_rows(&spec).await?;
        let mut kinds = SampleKinds::default();
        while let Some(batch) = rows.next().await.transpose()? {
            let is_selected = |row: usize| {
                let accepts = |(label, condition): &(String, LabelCondition)| {
                    !keys.contains(label) || condition.accepts(text(&batch, label, row).as_deref())
                };
                selection.conditions().iter().all(accepts)
            };
            let selected = (0..batch.num_rows()).filter(|row| is_selected(*row));
            selected.for_each(|row| kinds.add(kind.of_group(name, &batch, row)));
        }
        match kinds.common().ok_or_else(|| mixed_kinds(name, kind))? {
            MetricKind::Unknown => Ok(kind.without_rows(name)),
            declared => Ok(declared),
        }
    }

    /// The points of a request. The names of metrics are only listed if the request names one without samples.
    pub(crate) async fn query(&self, request: &MetricRequest, now: i64) -> Result<MetricAnswer, Error> {
        let mut possible = self.possible_metrics(&request.metric);
        if window_violation(request.after_ns, request.before_ns, now).is_some() {
            // The error says what the metric covers, as far as that can be read.
            let listed = self.catalog(&LabelSelection::default(), None).await;
            possible = listed.map(|(metrics, _)| metrics).unwrap_or(possible);
        }
        let mut query = request.resolve(&possible, now)?;
        if self.columns.kind.is_in_rows() {
            let kind = self.declared_kind(&query).await?;
            possible.iter_mut().for_each(|metric| metric.kind = kind);
            query = request.resolve(&possible, now)?;
        }
        let (metric, with_unit) = (query.metric.clone(), query.clone());
        let mut answer = match self.evaluate(query.clone(), SampleOrder::Any).await {
            // Sorting takes longer than everything else, and most tables are in order already.
            Ok(answer) if answer.counts.out_of_order > 0 => self.evaluate(query, SampleOrder::Time).await?,
            Err(error) if error.kind() == ErrorKind::TooLarge && query.aggregation.percentage().is_some() => {
                self.evaluate(query, SampleOrder::Time).await?
            }
            answered => answered?,
        };
        if answer.counts.samples == 0 {
            let (metrics, _) = self.catalog(&LabelSelection::default(), None).await?;
            // Fails with the nearest names if there is no such metric.
            request.resolve(&metrics, now)?;
            let covers = metrics.iter().find(|known| known.name == metric).and_then(|known| known.covers);
            answer.notes.extend(covers.map(|covers| format!("The metric has samples from {covers}.")));
        } else {
            answer.unit = self.unit(&with_unit).await?;
        }
        if answer.counts.with_simultaneous > 0 {
            answer.notes.push(simultaneous_samples(answer.counts.with_simultaneous));
        }
        // Merged series need not have samples of the same time.
        answer.notes.extend(self.columns.note_without_role());
        Ok(answer)
    }

    async fn evaluate(&self, query: MetricQuery, order: SampleOrder) -> Result<MetricAnswer, Error> {
        let (metric, selection, window) = (query.metric.clone(), query.selection.clone(), query.read_window());
        let mut evaluator = MetricEvaluator::new(query);
        let labels = &self.columns.labels;
        self.read_samples(&metric, &selection, (window, order), labels, &mut evaluator).await?;
        evaluator.finish()
    }

    /// What `metric` would be, without reading rows.
    fn possible_metrics(&self, metric: &str) -> Vec<MetricSummary> {
        let names: Vec<&str> = match &self.columns.shape {
            TableShape::Narrow { .. } => vec![metric],
            TableShape::Wide { columns } => columns.iter().map(String::as_str).collect(),
        };
        let labels: Vec<_> = self.columns.labels.iter().cloned().map(LabelSummary::named).collect();
        let summary = |name: &&str| MetricSummary {
            name: (*name).to_owned(),
            kind: self.columns.kind.without_rows(name),
            // The members of JSON objects are only known from rows.
            labels: self.table.json_labels.is_empty().then(|| labels.clone()),
            ..MetricSummary::default()
        };
        names.iter().map(summary).collect()
    }

    /// Passes the samples of `metric` in `window` to `sink`, as series with these `labels`. `sink` checks the selection.
    pub(crate) async fn read_samples<S: SampleSink>(
        &self,
        metric: &str,
        selection: &LabelSelection,
        (window, order): (TimeWindow, SampleOrder),
        labels: &[String],
        sink: &mut S,
    ) -> Result<(), Error> {
        let Some(value) = self.columns.value_column(metric) else { return Ok(()) };
        let columns = SampleColumns {
            time: self.columns.time.clone(),
            metric: self.columns.name_column().cloned(),
            value: value.to_owned(),
            labels: labels.to_vec(),
            json_labels: self.table.json_labels.clone(),
        };
        let mut spec = self.filtered(Some(metric), selection, Some(window));
        let SampleColumns { time, metric, value, labels, json_labels } = &columns;
        let with_members = json_labels.iter().map(|labels| &labels.column);
        let names = [time, value].into_iter().chain(metric).chain(labels).chain(with_members);
        spec.select = names.map(Selection::column).collect();
        spec.limit = QuerySpec::UNLIMITED;
        if order == SampleOrder::Time {
            spec.order_by = vec![SortKey { column: columns.time.clone(), descending: Some(false) }];
        }
        let mut rows = self.open_rows(&spec).await?;
        let mut samples = SampleRows::new(columns);
        while let Some(batch) = rows.next().await.transpose()? {
            samples.push(&batch, sink)?;
        }
        Ok(())
    }

    fn labels(&self, batch: &RecordBatch, row: usize) -> Labels {
        let value = |name: &String| Some((name.clone(), text(batch, name, row)?));
        let own = &self.columns.labels;
        let members = self.table.json_labels.iter().filter_map(|json| Some((json, value(&json.column)?)));
        let members = members.flat_map(|(json, (_, text))| json.expand(&text, own));
        Labels::new(own.iter().filter_map(value).chain(members))
    }

    async fn open_rows(&self, spec: &QuerySpec) -> Result<BoxStream<'static, Result<RecordBatch, Error>>, Error> {
        open_typed_rows(self.services, &*self.database, spec, self.job, MixedNumbers::Floats).await
    }

    /// The query for the rows of `metric`, or of all metrics, that may be selected. Conditions on labels are checked again.
    fn filtered(&self, metric: Option<&str>, selection: &LabelSelection, window: Option<TimeWindow>) -> QuerySpec {
        let mut conditions = Vec::new();
        if let (Some(metric), Some(column)) = (metric, self.columns.name_column()) {
            let name = Operand::One(Parameter::Text(metric.to_owned()));
            conditions.push(QueryCondition::compare(column, ComparisonOperator::Equal, name));
        }
        if let Some(TimeWindow { after_ns, before_ns }) = window {
            let range = TimeRange { start: Some(after_ns), end: Some(before_ns) };
            let (time, kind) = (&self.columns.time, self.columns.time_kind);
            conditions.extend(time_conditions(time, kind, self.database.dialect(), range));
        }
        // Other labels are members of JSON objects.
        let is_column =
            |label: &str| self.table.json_labels.is_empty() || self.columns.labels.iter().any(|name| name == label);
        let selected = selection.conditions().iter().filter(|(label, _)| is_column(label));
        let kind = |label: &str| self.columns.label_kind(label);
        conditions.extend(selected.filter_map(|(label, condition)| push_down(label, condition, kind(label))));
        QuerySpec { filter: QueryCondition::all(conditions), ..QuerySpec::new(&self.table.table) }
    }
}

/// The note for series that may be several ones.
fn simultaneous_samples(series: u64) -> String {
    format!(
        "In {series} of the series, several samples have the same time. If a column distinguishes these samples, it must \
         be in labels of the metric source."
    )
}

/// The error for a metric that some programs send as totals and others as increments.
fn mixed_kinds(metric: &str, kind: &DeclaredKind) -> Error {
    let column = kind.grouping_columns().last().map_or("", |column| column.as_str());
    let message = format!(
        "{metric:?} has totals and increments in this window, which cannot be combined; select one of them by \
         {{{column:?}: \"CUMULATIVE\"}} or {{{column:?}: \"DELTA\"}}"
    );
    let violation = Violation { path: "labels".to_owned(), message };
    Error::invalid_arguments("the arguments do not fit the metric source:", vec![violation])
}

const FIRST_UNIT: &str = "first_unit";
const LAST_UNIT: &str = "last_unit";
/// The maximum number of units of one metric in an answer.
const UNITS_NAMED_MAX: usize = 4;

/// The times from the first to the last sample, for each row of a batch.
struct RowTimes {
    first: Option<Int64Array>,
    last: Option<Int64Array>,
}

impl RowTimes {
    fn new(batch: &RecordBatch) -> Self {
        let times = |name: &str| batch.column_by_name(name).and_then(|column| time_column(column.as_ref()));
        Self { first: times(FIRST_TIME), last: times(LAST_TIME) }
    }

    fn window(&self, row: usize) -> Option<TimeWindow> {
        let bound = |times: &Option<Int64Array>| {
            times.as_ref().filter(|times| row < times.len() && times.is_valid(row)).map(|times| times.value(row))
        };
        let (first, last) = (bound(&self.first)?, bound(&self.last)?);
        Some(TimeWindow::new(first, last.saturating_add(1)))
    }
}

/// The units of a metric.
#[derive(Debug, Default)]
struct Units(BTreeSet<String>);

impl Units {
    /// Adds the first and the last unit of a row in the order of texts. They differ if there are several.
    fn add(&mut self, batch: &RecordBatch, row: usize) {
        let found = [FIRST_UNIT, LAST_UNIT].into_iter().filter_map(|name| text(batch, name, row));
        self.0.extend(found.filter(|unit| !unit.is_empty()));
    }

    /// Several units are all named, because values of different units cannot be compared.
    fn name(&self) -> Option<String> {
        let units: Vec<&str> = self.0.iter().take(UNITS_NAMED_MAX).map(String::as_str).collect();
        (!units.is_empty()).then(|| units.join(", "))
    }
}

/// The first and the last unit of a group of samples.
fn unit_bounds(unit: &str) -> Vec<Selection> {
    let aggregate = |function, alias| Selection::aggregate(function, unit, alias);
    vec![aggregate(AggregateFunction::Min, FIRST_UNIT), aggregate(AggregateFunction::Max, LAST_UNIT)]
}

/// A value as text; `None` if there is none.
pub(super) fn text(batch: &RecordBatch, column: &str, row: usize) -> Option<String> {
    let column = batch.column_by_name(column).filter(|column| row < column.len() && column.is_valid(row))?;
    Some(display_value(column.as_ref(), row))
}

/// The values of a condition that become a part of the statement.
const PUSHED_VALUES_MAX: usize = 200;

/// The condition as a part of the statement, if it selects values that a label of this type has.
fn push_down(label: &str, condition: &LabelCondition, kind: FieldKind) -> Option<QueryCondition> {
    let values = match condition {
        LabelCondition::Equals(value) => std::slice::from_ref(value),
        LabelCondition::OneOf(values) => values,
        _ => return None,
    };
    // A missing label has the empty value.
    if values.len() > PUSHED_VALUES_MAX || values.iter().any(String::is_empty) {
        return None;
    }
    let list = values.iter().map(|value| typed(value, kind)).collect::<Option<Vec<Parameter>>>()?;
    Some(QueryCondition::compare(label, ComparisonOperator::In, Operand::List(list)))
}

/// A value as the database compares it. `None` where numbers have several texts, and so several series.
fn typed(value: &str, kind: FieldKind) -> Option<Parameter> {
    match kind {
        FieldKind::Text => Some(Parameter::Text(value.to_owned())),
        FieldKind::Integer => value.parse().ok().map(Parameter::Integer),
        _ => None,
    }
}
