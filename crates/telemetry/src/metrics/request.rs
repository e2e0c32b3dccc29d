//! A request for the points of a metric, and the checked query that it becomes.

use serde_json::{Map, Value};
use tidegate_core::{Error, Violation, nearest_names};

use super::aggregation::{LabelAggregation, TimeAggregation};
use super::catalog::MetricSummary;
use super::model::{MetricKind, TimeWindow, format_time};
use super::selection::{LabelSelection, unknown_label};
use super::time_grid::TimeGrid;

/// The maximum number of points of each series.
pub const POINTS_MAX: usize = 1_000;
/// The number of points if the request names none.
const POINTS_DEFAULT: usize = 60;
/// The maximum number of series in an answer.
pub const SERIES_ANSWERED_MAX: usize = 1_000;
/// The number of series if the request names none.
const SERIES_DEFAULT: usize = 20;
/// The maximum number of labels to group by.
const GROUPING_LABELS_MAX: usize = 16;
/// The times that can be requested lie within this distance of 1970, about 146 years, so that differences of times can
/// be represented.
const TIME_NS_MAX: i64 = i64::MAX / 2;
/// How long before the window the base of a counter is searched at least.
const LOOKBACK_NS_MIN: u64 = 300_000_000_000;

/// The parameters of a request as a caller wrote them, with times already resolved.
#[derive(Debug, Clone, Default)]
pub struct MetricRequest {
    /// The name of the metric.
    pub metric: String,
    /// Conditions on labels; [`super::LabelCondition::parse`] has their forms.
    pub labels: Map<String, Value>,
    /// The start of the window, in nanoseconds since 1970.
    pub after_ns: i64,
    /// The end of the window, which is not part of it.
    pub before_ns: i64,
    /// The number of points of each series, 1 to [`POINTS_MAX`]. `None` is 60.
    pub points: Option<i64>,
    /// The aggregation over time. `None` is `rate` for counters and their increments, and `average` for others.
    pub aggregation: Option<String>,
    /// The labels to group by. `None` groups only if `label_aggregation` is set, and then into one series.
    pub by: Option<Vec<String>>,
    /// The aggregation over series. `None` with `by` is `sum` where sums make sense, and otherwise `average`.
    pub label_aggregation: Option<String>,
    /// The number of series in the answer, 1 to [`SERIES_ANSWERED_MAX`]. `None` is 20.
    pub series: Option<i64>,
}

/// A checked request.
#[derive(Debug, Clone)]
pub struct MetricQuery {
    /// The name of the metric.
    pub metric: String,
    /// The unit of its samples.
    pub unit: Option<String>,
    /// The kind of the metric.
    pub kind: MetricKind,
    /// Which series are read.
    pub selection: LabelSelection,
    /// The buckets.
    pub grid: TimeGrid,
    /// How samples become the value of a bucket.
    pub aggregation: TimeAggregation,
    /// How series become one; `None` keeps each series.
    pub label_aggregation: Option<LabelAggregation>,
    /// The labels to group by; without any, all series become one.
    pub by: Vec<String>,
    /// The maximum number of series in the answer.
    pub series_max: usize,
}

impl MetricQuery {
    /// The times of the samples that the query needs. For counters it begins five minutes, or one step if that is
    /// longer, before the window: the last sample there is the base of the first one in the window.
    pub fn read_window(&self) -> TimeWindow {
        let window = self.grid.window();
        if !self.measures_growth() {
            return window;
        }
        let lookback_ns = i64::try_from(self.grid.step_ns().max(LOOKBACK_NS_MIN)).unwrap_or(i64::MAX);
        TimeWindow { after_ns: window.after_ns.saturating_sub(lookback_ns), before_ns: window.before_ns }
    }

    /// Whether values come from the growth between two samples. Increments are growth already.
    pub fn measures_growth(&self) -> bool {
        self.aggregation.needs_counter() && self.kind != MetricKind::Delta
    }
}

impl MetricRequest {
    /// Checks the request against the metrics that the caller can see. `now_ns` is the present time.
    ///
    /// # Errors
    /// `InvalidArguments` with all violations, with the nearest names and the choices.
    pub fn resolve(&self, metrics: &[MetricSummary], now_ns: i64) -> Result<MetricQuery, Error> {
        let mut violations = Violations::default();
        let metric = metrics.iter().find(|metric| metric.name == self.metric);
        if metric.is_none() {
            violations.add("metric", unknown_metric(&self.metric, metrics));
        }
        let label_names: Option<Vec<&str>> = metric.and_then(MetricSummary::label_names);
        let selection = LabelSelection::parse(&self.labels, label_names.as_deref());
        let selection = selection.unwrap_or_else(|more| {
            violations.0.extend(more);
            LabelSelection::default()
        });
        let kind = metric.map_or(MetricKind::Unknown, |metric| metric.kind);
        let window = self.window(metric, now_ns, &mut violations);
        let points = bounded(self.points, POINTS_DEFAULT, POINTS_MAX, "points", &mut violations);
        let series_max = bounded(self.series, SERIES_DEFAULT, SERIES_ANSWERED_MAX, "series", &mut violations);
        let aggregation = self.time_aggregation(kind, &mut violations);
        let label_aggregation = self.label_aggregation(aggregation, &mut violations);
        let by = self.grouping_labels(label_names.as_deref(), &mut violations);
        if !violations.0.is_empty() {
            return Err(Error::invalid_arguments("the request for the metric is invalid", violations.0));
        }
        let unit = metric.and_then(|metric| metric.unit.clone());
        let grid = TimeGrid::new(window, points);
        let metric = self.metric.clone();
        Ok(MetricQuery { metric, unit, kind, selection, grid, aggregation, label_aggregation, by, series_max })
    }

    fn window(&self, metric: Option<&MetricSummary>, now_ns: i64, violations: &mut Violations) -> TimeWindow {
        if let Some(mut violation) = window_violation(self.after_ns, self.before_ns, now_ns) {
            let covered = metric.and_then(|metric| metric.covers);
            violation.message.extend(covered.map(|covered| format!("; the metric has samples from {covered}")));
            violations.0.push(violation);
        }
        TimeWindow::new(self.after_ns, self.before_ns)
    }

    fn time_aggregation(&self, kind: MetricKind, violations: &mut Violations) -> TimeAggregation {
        let default = TimeAggregation::default_for(kind);
        let Some(text) = &self.aggregation else { return default };
        match TimeAggregation::parse(text) {
            Ok(aggregation) if aggregation.needs_counter() && kind == MetricKind::Gauge => {
                let message = format!(
                    "{aggregation} needs a counter, and {:?} is a gauge; choose for example average, min, max or last",
                    self.metric
                );
                violations.add("aggregation", message);
                default
            }
            Ok(aggregation) => aggregation,
            Err(message) => {
                violations.add("aggregation", message);
                default
            }
        }
    }

    fn label_aggregation(&self, time: TimeAggregation, violations: &mut Violations) -> Option<LabelAggregation> {
        let Some(text) = &self.label_aggregation else {
            return self.by.as_ref().map(|_| LabelAggregation::default_for(time));
        };
        match LabelAggregation::parse(text) {
            Ok(aggregation) => Some(aggregation),
            Err(message) => violations.add_for_default("label_aggregation", message),
        }
    }

    fn grouping_labels(&self, known: Option<&[&str]>, violations: &mut Violations) -> Vec<String> {
        let by = self.by.clone().unwrap_or_default();
        if by.len() > GROUPING_LABELS_MAX {
            let message = format!("has {} labels; the maximum is {GROUPING_LABELS_MAX}", by.len());
            return violations.add_for_default("by", message);
        }
        for (index, name) in by.iter().enumerate() {
            if let Some(message) = known.and_then(|known| unknown_label(name, known)) {
                violations.add(&format!("by.{index}"), message);
            }
        }
        by
    }
}

/// Why no metric can have samples in the window from `after_ns` to `before_ns`, if it is the wrong way round, in the future,
/// or too far away.
pub fn window_violation(after_ns: i64, before_ns: i64, now_ns: i64) -> Option<Violation> {
    let is_representable = |time_ns: i64| (-TIME_NS_MAX..=TIME_NS_MAX).contains(&time_ns);
    let (after, before) = (format_time(after_ns), format_time(before_ns));
    let (path, message) = if !is_representable(after_ns) || !is_representable(before_ns) {
        ("after", "the window must lie between the years 1824 and 2116".to_owned())
    } else if after_ns > now_ns {
        let now = format_time(now_ns);
        ("after", format!("the window begins at {after}, in the future; it is {now} now"))
    } else if after_ns >= before_ns {
        ("before", format!("the window ends at {before}, not after its start at {after}"))
    } else {
        return None;
    };
    Some(Violation { path: path.to_owned(), message })
}

/// Collects the problems of a request, and gives a default in place of each invalid part.
#[derive(Debug, Default)]
struct Violations(Vec<Violation>);

impl Violations {
    fn add(&mut self, path: &str, message: impl Into<String>) {
        self.0.push(Violation { path: path.to_owned(), message: message.into() });
    }

    fn add_for_default<T: Default>(&mut self, path: &str, message: impl Into<String>) -> T {
        self.add(path, message);
        T::default()
    }
}

fn bounded(number: Option<i64>, default: usize, max: usize, path: &str, violations: &mut Violations) -> usize {
    let Some(number) = number else { return default };
    let accepted = usize::try_from(number).ok().filter(|number| (1..=max).contains(number));
    accepted.unwrap_or_else(|| {
        violations.add(path, format!("is {number}; expected 1 to {max}"));
        default
    })
}

fn unknown_metric(name: &str, metrics: &[MetricSummary]) -> String {
    let nearest = nearest_names(name, metrics.iter().map(|metric| metric.name.as_str()));
    match (nearest.as_slice(), metrics.len()) {
        (_, 0) => format!("there is no metric {name:?}; the source has no metrics"),
        ([], count) => format!("there is no metric {name:?}; list_metrics lists the {count} metrics"),
        (nearest, _) => format!("there is no metric {name:?}; the nearest names are {}", nearest.join(", ")),
    }
}
