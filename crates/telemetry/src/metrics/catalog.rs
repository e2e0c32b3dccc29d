//! The metrics of a source: their kinds, units and labels; and their list for a caller, filtered, and grouped by common
//! prefixes when there are too many for a short answer.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};

use tidegate_core::{NamePattern, nearest_names};

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

/// The number of examples of a group.
const EXAMPLES: usize = 3;
/// The characters at which names are divided.
const SEPARATORS: [char; 5] = ['_', '.', ':', '/', '-'];

/// Which metrics a caller requests.
#[derive(Debug, Clone, Default)]
pub struct CatalogFilter {
    pattern: Option<NamePattern>,
    words: Vec<String>,
    label_names: Vec<String>,
}

impl CatalogFilter {
    /// A filter from the text that a caller wrote: a pattern of the whole name if it contains `*` or `?`, and otherwise
    /// words. Each word must occur in the name, the unit or the description, in any case. The metric must have all
    /// labels of `label_names`, if its labels are known.
    pub fn new(text: &str, label_names: Vec<String>) -> Self {
        let pattern = NamePattern::new(text.trim());
        if pattern.is_glob() {
            return Self { pattern: Some(pattern), words: Vec::new(), label_names };
        }
        let words = text.split_whitespace().map(str::to_lowercase).collect();
        Self { pattern: None, words, label_names }
    }

    /// Whether the caller requests the metric.
    pub fn accepts(&self, metric: &MetricSummary) -> bool {
        if self.pattern.as_ref().is_some_and(|pattern| !pattern.matches(&metric.name)) {
            return false;
        }
        let known = metric.labels.as_ref();
        let has_label = |name: &String| known.is_none_or(|labels| labels.iter().any(|label| label.name == *name));
        let has_word = |word: &String| {
            let texts = [Some(&metric.name), metric.unit.as_ref(), metric.help.as_ref()];
            texts.into_iter().flatten().any(|text| text.to_lowercase().contains(word.as_str()))
        };
        self.label_names.iter().all(has_label) && self.words.iter().all(has_word)
    }

    fn text(&self) -> String {
        self.pattern.as_ref().map_or_else(|| self.words.join(" "), |pattern| pattern.as_str().replace(['*', '?'], ""))
    }
}

/// The metrics that fulfil a filter, as a list of bounded length.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricListing {
    /// The number of metrics that fulfil the filter.
    pub matched: usize,
    /// The metrics and groups, sorted by name. Each metric is in exactly one of them, or in the remainder.
    pub entries: Vec<ListingEntry>,
    /// The metrics of the smallest groups, if there are more groups than entries.
    pub remainder: Option<MetricGroup>,
    /// If nothing fulfils the filter: the names that are most similar to it.
    pub nearest: Vec<String>,
}

/// An entry of the list.
#[derive(Debug, Clone, PartialEq)]
pub enum ListingEntry {
    /// One metric.
    Metric(Box<MetricSummary>),
    /// Several metrics with the same prefix.
    Group(MetricGroup),
}

/// Metrics whose names begin alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricGroup {
    /// The pattern that lists them, such as `http_*`; `*` for a remainder.
    pub pattern: String,
    /// Their number.
    pub count: usize,
    /// The names of up to three of them: the first, the middle and the last one.
    pub examples: Vec<String>,
}

impl MetricListing {
    /// The metrics of `catalog` that fulfil the filter, in at most `entries_max` entries. Names must be unique. The
    /// same metrics always give the same list.
    pub fn new(catalog: &[MetricSummary], filter: &CatalogFilter, entries_max: usize) -> Self {
        let mut metrics: Vec<&MetricSummary> = catalog.iter().filter(|metric| filter.accepts(metric)).collect();
        metrics.sort_by(|first, second| first.name.cmp(&second.name));
        let nearest = if metrics.is_empty() {
            nearest_names(&filter.text(), catalog.iter().map(|metric| metric.name.as_str()))
        } else {
            Vec::new()
        };
        let (groups, remainder) = group_by_prefix(&metrics, entries_max.max(1));
        let entries = groups.into_iter().filter_map(|group| entry(&metrics, &group)).collect();
        Self { matched: metrics.len(), entries, remainder: summarize_remainder(&metrics, &remainder), nearest }
    }
}

/// A part of the sorted metrics: those whose names begin with the first `prefix_bytes` bytes of each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PrefixGroup {
    count: usize,
    // Among groups of the same size, the first one is divided first.
    start: Reverse<usize>,
    prefix_bytes: usize,
}

impl PrefixGroup {
    fn members<'a, 'b>(&self, metrics: &'a [&'b MetricSummary]) -> &'a [&'b MetricSummary] {
        metrics.get(self.start.0..self.start.0 + self.count).unwrap_or_default()
    }

    /// Its parts: metrics with the same next segment of the name.
    fn divide(&self, metrics: &[&MetricSummary]) -> Vec<Self> {
        let mut start = self.start.0;
        let members = self.members(metrics);
        let parts = members.chunk_by(|first, second| {
            let segment = |metric: &MetricSummary| next_segment_end(&metric.name, self.prefix_bytes);
            let end = segment(first);
            end == segment(second) && first.name.get(..end) == second.name.get(..end)
        });
        let parts = parts.map(|part| {
            let prefix_bytes = common_prefix_bytes(part, self.prefix_bytes);
            let group = Self { count: part.len(), start: Reverse(start), prefix_bytes };
            start += part.len();
            group
        });
        parts.collect()
    }
}

/// The end of the segment of `name` that begins at `from`, with its separator.
fn next_segment_end(name: &str, from: usize) -> usize {
    let rest = name.get(from..).unwrap_or_default();
    rest.find(SEPARATORS).map_or(name.len(), |index| from + index + 1)
}

/// The length of the longest prefix of whole segments that sorted names share.
fn common_prefix_bytes(sorted: &[&MetricSummary], from: usize) -> usize {
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return from };
    let mut prefix_bytes = from;
    while prefix_bytes < first.name.len() {
        let end = next_segment_end(&first.name, prefix_bytes);
        // A segment without a separator is a whole name, of which there is only one.
        let is_shared =
            first.name.get(..end).is_some_and(|prefix| prefix.ends_with(SEPARATORS) && last.name.starts_with(prefix));
        if !is_shared {
            break;
        }
        prefix_bytes = end;
    }
    prefix_bytes
}

/// Divides the largest groups first, as long as all parts fit into `entries_max`. Returns the groups in order of their
/// names, and those that do not fit.
fn group_by_prefix(metrics: &[&MetricSummary], entries_max: usize) -> (Vec<PrefixGroup>, Vec<PrefixGroup>) {
    let whole = PrefixGroup { count: metrics.len(), start: Reverse(0), prefix_bytes: 0 };
    let mut parts = whole.divide(metrics);
    if parts.len() > entries_max {
        // The remainder is an entry too.
        parts.sort_by(|first, second| second.cmp(first));
        let mut remainder = parts.split_off(entries_max.saturating_sub(1));
        parts.sort_by_key(|part| part.start.0);
        remainder.sort_by_key(|part| part.start.0);
        return (parts, remainder);
    }
    let mut entries = parts.len();
    let mut open: BinaryHeap<PrefixGroup> = parts.into_iter().collect();
    let mut closed = Vec::new();
    while let Some(group) = open.pop() {
        let parts = if group.count > 1 { group.divide(metrics) } else { Vec::new() };
        if parts.len() > 1 && entries - 1 + parts.len() <= entries_max {
            entries = entries - 1 + parts.len();
            open.extend(parts);
        } else {
            closed.push(group);
        }
    }
    closed.sort_by_key(|group| group.start.0);
    (closed, Vec::new())
}

fn entry(metrics: &[&MetricSummary], group: &PrefixGroup) -> Option<ListingEntry> {
    let members = group.members(metrics);
    let first = members.first()?;
    if members.len() == 1 {
        return Some(ListingEntry::Metric(Box::new((*first).clone())));
    }
    let pattern = format!("{}*", first.name.get(..group.prefix_bytes)?);
    Some(ListingEntry::Group(MetricGroup { pattern, count: members.len(), examples: examples(members) }))
}

fn summarize_remainder(metrics: &[&MetricSummary], remainder: &[PrefixGroup]) -> Option<MetricGroup> {
    let members: Vec<&MetricSummary> = remainder.iter().flat_map(|group| group.members(metrics)).copied().collect();
    if members.is_empty() {
        return None;
    }
    Some(MetricGroup { pattern: "*".to_owned(), count: members.len(), examples: examples(&members) })
}

fn examples(members: &[&MetricSummary]) -> Vec<String> {
    let mut indexes = vec![0, members.len() / 2, members.len().saturating_sub(1)];
    indexes.dedup();
    let names = indexes.into_iter().filter_map(|index| members.get(index)).map(|metric| metric.name.clone());
    names.take(EXAMPLES).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
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

    fn catalog<T: AsRef<str>>(names: &[T]) -> Vec<MetricSummary> {
        names.iter().map(|name| MetricSummary { name: name.as_ref().to_owned(), ..MetricSummary::default() }).collect()
    }

    fn lines(listing: &MetricListing) -> Vec<String> {
        let line = |entry: &ListingEntry| match entry {
            ListingEntry::Metric(metric) => metric.name.clone(),
            ListingEntry::Group(group) => format!("{}: {} ({})", group.pattern, group.count, group.examples.join(", ")),
        };
        listing.entries.iter().map(line).collect()
    }

    #[test]
    fn the_largest_groups_are_divided_first() {
        let names = [
            "http_server_a",
            "http_server_b",
            "http_client_a",
            "http_client_b",
            "http_client_c",
            "up",
            "go_gc_count",
            "go_gc_seconds",
        ];
        let listing = |max: usize| lines(&MetricListing::new(&catalog(&names), &CatalogFilter::default(), max));
        assert_eq!(
            listing(3),
            [
                "go_gc_*: 2 (go_gc_count, go_gc_seconds)",
                "http_*: 5 (http_client_a, http_client_c, http_server_b)",
                "up"
            ]
        );
        assert_eq!(
            listing(4),
            [
                "go_gc_*: 2 (go_gc_count, go_gc_seconds)",
                "http_client_*: 3 (http_client_a, http_client_b, http_client_c)",
                "http_server_*: 2 (http_server_a, http_server_b)",
                "up"
            ]
        );
        assert_eq!(listing(8).len(), 8);
    }

    #[test]
    fn words_patterns_and_labels_filter() {
        let mut metrics = catalog(&["http_errors_total", "http_requests_total", "disk_errors"]);
        metrics[2].help = Some("Failed writes".to_owned());
        let names = |text: &str| lines(&MetricListing::new(&metrics, &CatalogFilter::new(text, Vec::new()), 10));
        assert_eq!(names("ERRORS http"), ["http_errors_total"]);
        assert_eq!(names("failed"), ["disk_errors"]);
        assert_eq!(names("http_*"), ["http_errors_total", "http_requests_total"]);
        assert_eq!(names("").len(), 3);
        let missing = MetricListing::new(&metrics, &CatalogFilter::new("http_eror_total", Vec::new()), 10);
        assert_eq!((missing.matched, missing.nearest[0].as_str()), (0, "http_errors_total"));
        metrics[0].labels = Some(Vec::new());
        let labelled = MetricListing::new(&metrics, &CatalogFilter::new("", vec!["job".to_owned()]), 10);
        assert_eq!(labelled.matched, 2);
    }

    proptest! {
        /// Each metric is in exactly one entry, patterns match exactly what they count unless a longer one does, and the
        /// order of the catalog does not matter.
        #[test]
        fn entries_partition_the_metrics(names in prop::collection::btree_set("[ab]{1,2}(_[abc]){0,3}_?", 0..60), max in 1_usize..20) {
            let names: Vec<String> = names.into_iter().collect();
            let listing = MetricListing::new(&catalog(&names), &CatalogFilter::default(), max);
            let reversed: Vec<String> = names.iter().rev().cloned().collect();
            prop_assert_eq!(&MetricListing::new(&catalog(&reversed), &CatalogFilter::default(), max), &listing);
            prop_assert!(listing.entries.len() + usize::from(listing.remainder.is_some()) <= max);
            let mut counted = listing.remainder.as_ref().map_or(0, |group| group.count);
            for entry in &listing.entries {
                match entry {
                    ListingEntry::Metric(metric) => {
                        prop_assert!(names.contains(&metric.name));
                        counted += 1;
                    }
                    ListingEntry::Group(group) => {
                        let pattern = NamePattern::new(group.pattern.as_str());
                        prop_assert_eq!(names.iter().filter(|name| pattern.matches(name)).count(), group.count);
                        prop_assert!(group.examples.iter().all(|name| pattern.matches(name)));
                        counted += group.count;
                    }
                }
            }
            prop_assert_eq!(counted, names.len());
            prop_assert!(names.len() > max || listing.entries.len() == names.len());
        }
    }
}
