//! The metrics of a source: their kinds, units and labels.

use std::collections::{BTreeMap, HashSet};

use super::model::{Labels, MetricKind, TimeWindow};
use super::selection::LabelSelection;

/// The maximum number of metrics in a catalog.
const METRICS_MAX: usize = 50_000;
/// The maximum number of labels that are listed for a metric.
const LABELS_MAX: usize = 64;
/// The number of values of a label that are counted.
const VALUES_COUNTED_MAX: usize = 1_000;
/// The number of values that are counted in all labels together.
const VALUES_COUNTED_TOTAL_MAX: usize = 500_000;

/// One metric of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetricSummary {
    /// Its name.
    pub name: String,
    /// What its samples measure.
    pub kind: MetricKind,
    /// Its unit, if it is known.
    pub unit: Option<String>,
    /// A description, if there is one.
    pub help: Option<String>,
    /// The labels that its series have, sorted by name. `None` if they are not known.
    pub labels: Option<Vec<LabelSummary>>,
    /// The number of its series, if it is known.
    pub series: Option<u64>,
    /// The time from its first to its last sample, if it is known.
    pub covers: Option<TimeWindow>,
}

impl MetricSummary {
    /// The names of its labels, if they are known.
    pub fn label_names(&self) -> Option<Vec<&str>> {
        Some(self.labels.as_ref()?.iter().map(|label| label.name.as_str()).collect())
    }
}

/// One label of a metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSummary {
    /// Its name.
    pub name: String,
    /// The number of its values.
    pub values: usize,
    /// Whether there may be more values, because they are only counted up to a bound.
    pub is_lower_bound: bool,
    /// Its value, if it is known to have only one.
    pub only_value: Option<String>,
}

impl LabelSummary {
    /// A label with this name, whose values are not known.
    pub fn named(name: String) -> Self {
        Self { name, values: 0, is_lower_bound: true, only_value: None }
    }
}

/// Collects the metrics of a source from their series.
#[derive(Debug, Default)]
pub struct CatalogBuilder {
    selection: LabelSelection,
    metrics: BTreeMap<String, CollectedMetric>,
    values_counted: usize,
    left_out: HashSet<u64>,
}

#[derive(Debug, Default)]
struct CollectedMetric {
    kind: MetricKind,
    unit: Option<String>,
    help: Option<String>,
    labels: BTreeMap<String, CollectedLabel>,
    series: u64,
    covers: Option<TimeWindow>,
}

#[derive(Debug, Default)]
struct CollectedLabel {
    values: HashSet<String>,
    is_lower_bound: bool,
}

impl CatalogBuilder {
    /// A builder that counts only series that fulfil the selection.
    pub fn new(selection: LabelSelection) -> Self {
        Self { selection, ..Self::default() }
    }

    /// Adds one series of a metric, with the time from its first to its last sample if that is known.
    pub fn add_series(&mut self, metric: &str, labels: &Labels, covers: Option<TimeWindow>) {
        if !self.selection.accepts(labels) {
            return;
        }
        let mut values_counted = self.values_counted;
        let Some(collected) = self.metric(metric) else { return };
        collected.series += 1;
        collected.covers = match (collected.covers, covers) {
            (Some(first), Some(second)) => Some(first.union(second)),
            (first, second) => first.or(second),
        };
        for (name, value) in labels.iter() {
            if !collected.labels.contains_key(name) {
                if collected.labels.len() >= LABELS_MAX {
                    continue;
                }
                collected.labels.insert(name.to_owned(), CollectedLabel::default());
            }
            let Some(label) = collected.labels.get_mut(name) else { continue };
            if label.values.contains(value) {
                continue;
            }
            if label.values.len() >= VALUES_COUNTED_MAX || values_counted >= VALUES_COUNTED_TOTAL_MAX {
                label.is_lower_bound = true;
            } else {
                label.values.insert(value.to_owned());
                values_counted += 1;
            }
        }
        self.values_counted = values_counted;
    }

    /// Declares the kind, the unit and the description of a metric that has series.
    pub fn describe(&mut self, metric: &str, kind: MetricKind, unit: Option<&str>, help: Option<&str>) {
        let Some(collected) = self.metrics.get_mut(metric) else { return };
        collected.kind = kind;
        collected.unit = unit.map(str::to_owned);
        collected.help = help.map(str::to_owned);
    }

    fn metric(&mut self, name: &str) -> Option<&mut CollectedMetric> {
        if !self.metrics.contains_key(name) {
            if self.metrics.len() >= METRICS_MAX {
                // Hashes suffice to count names, and take a bounded memory.
                if self.left_out.len() < METRICS_MAX {
                    self.left_out.insert(hash(name));
                }
                return None;
            }
            self.metrics.insert(name.to_owned(), CollectedMetric::default());
        }
        self.metrics.get_mut(name)
    }

    /// The metrics sorted by name, and how many are left out because there are too many.
    pub fn finish(self) -> (Vec<MetricSummary>, usize) {
        let metrics = self.metrics.into_iter().map(|(name, collected)| MetricSummary {
            name,
            kind: collected.kind,
            unit: collected.unit,
            help: collected.help,
            labels: Some(collected.labels.into_iter().map(summarize_label).collect()),
            series: Some(collected.series),
            covers: collected.covers,
        });
        (metrics.collect(), self.left_out.len())
    }
}

fn summarize_label((name, label): (String, CollectedLabel)) -> LabelSummary {
    let CollectedLabel { values, is_lower_bound } = label;
    let count = values.len();
    let only_value = values.into_iter().next().filter(|_| count == 1 && !is_lower_bound);
    LabelSummary { name, values: count, is_lower_bound, only_value }
}

fn hash(name: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_values_of_selected_series() {
        let conditions = json!({"job": {"not": "test"}});
        let selection = LabelSelection::parse(conditions.as_object().unwrap(), None).unwrap();
        let mut builder = CatalogBuilder::new(selection);
        for (job, instance) in [("api", "1"), ("api", "2"), ("web", "1"), ("test", "9")] {
            let labels = Labels::new([("job", job), ("instance", instance)]);
            builder.add_series("up", &labels, Some(TimeWindow::new(10, 20)));
        }
        builder.add_series("up", &Labels::default(), Some(TimeWindow::new(5, 15)));
        builder.describe("up", MetricKind::Gauge, Some("1"), None);
        builder.describe("missing", MetricKind::Gauge, None, None);
        let (metrics, left_out) = builder.finish();
        assert_eq!((metrics.len(), left_out), (1, 0));
        assert_eq!((metrics[0].series, metrics[0].covers), (Some(4), Some(TimeWindow::new(5, 20))));
        let labels = metrics[0].labels.clone().unwrap();
        let labels: Vec<_> = labels.iter().map(|label| (label.name.as_str(), label.values)).collect();
        assert_eq!(labels, [("instance", 2), ("job", 2)]);
    }

    #[test]
    fn values_are_counted_up_to_a_bound() {
        let mut builder = CatalogBuilder::default();
        (0..1_500).for_each(|id| builder.add_series("m", &Labels::new([("id", id.to_string())]), None));
        let labels = builder.finish().0[0].labels.clone().unwrap();
        let expected = LabelSummary { name: "id".to_owned(), values: 1_000, is_lower_bound: true, only_value: None };
        assert_eq!(labels, [expected]);
    }
}
