//! Metrics, series and samples.

use std::fmt;

use chrono::{DateTime, SecondsFormat};

/// What the samples of a metric measure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetricKind {
    /// A value that goes up and down, such as a temperature.
    Gauge,
    /// A total that only grows until its process restarts. The sum, the count and the buckets of a histogram are
    /// counters too.
    Counter,
    /// The growth since the sample before, as OpenTelemetry sends it with the temporality `DELTA`.
    Delta,
    /// The family of a histogram, whose series are counters.
    Histogram,
    /// The family of a summary: its quantiles are gauges, its sum and its count are counters.
    Summary,
    /// Not declared.
    #[default]
    Unknown,
}

impl MetricKind {
    /// The name, as used in answers and in the exposition format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Delta => "delta",
            Self::Histogram => "histogram",
            Self::Summary => "summary",
            Self::Unknown => "unknown",
        }
    }

    /// The kind that `name` declares. OpenMetrics' `stateset` and `info` are gauges.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "gauge" | "stateset" | "info" => Some(Self::Gauge),
            "counter" => Some(Self::Counter),
            "histogram" | "gaugehistogram" => Some(Self::Histogram),
            "summary" => Some(Self::Summary),
            "unknown" | "untyped" => Some(Self::Unknown),
            _ => None,
        }
    }

    /// The kind of the samples named `sample` in the family `family` of this kind.
    #[must_use]
    pub fn of_samples(self, family: &str, sample: &str) -> Self {
        let suffix = sample.strip_prefix(family).unwrap_or_default();
        match (self, suffix) {
            (Self::Histogram, "_bucket" | "_sum" | "_count") | (Self::Summary, "_sum" | "_count") => Self::Counter,
            (Self::Histogram | Self::Summary, _) | (_, "_created") => Self::Gauge,
            (kind, _) => kind,
        }
    }
}

/// The labels of a series, sorted by name. A label with an empty value is the same as no label.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(Vec<(String, String)>);

impl Labels {
    /// Sorts `pairs`. If a name occurs twice, its last value counts.
    pub fn new<N: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut pairs: Vec<(String, String)> =
            pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        pairs.reverse();
        pairs.sort_by(|(first, _), (second, _)| first.cmp(second));
        pairs.dedup_by(|(later, _), (earlier, _)| later == earlier);
        pairs.retain(|(_, value)| !value.is_empty());
        Self(pairs)
    }

    /// The value of a label, if the series has it.
    pub fn get(&self, name: &str) -> Option<&str> {
        let index = self.0.binary_search_by(|(other, _)| other.as_str().cmp(name)).ok()?;
        self.0.get(index).map(|(_, value)| value.as_str())
    }

    /// Names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The number of labels.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Only the labels with one of `names`.
    #[must_use]
    pub fn restricted_to(&self, names: &[String]) -> Self {
        Self(self.0.iter().filter(|(name, _)| names.contains(name)).cloned().collect())
    }

    /// The memory that the names and values take, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let texts: usize = self.0.iter().map(|(name, value)| name.len() + value.len()).sum();
        texts + self.0.len() * size_of::<(String, String)>()
    }
}

impl fmt::Display for Labels {
    /// The form `{method="GET", status="200"}`, with `\`, `"` and line feeds escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (index, (name, value)) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(f, "{separator}{name}=\"{value}\"")?;
        }
        f.write_str("}")
    }
}

/// One measured value of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Nanoseconds since 1970-01-01 UTC.
    pub time_ns: i64,
    /// The value. `NaN` counts as no value.
    pub value: f64,
}

/// A period of time that contains its start and not its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeWindow {
    /// The first nanosecond.
    pub after_ns: i64,
    /// The nanosecond behind the last one.
    pub before_ns: i64,
}

impl TimeWindow {
    /// The window from `after_ns` to `before_ns`, empty if they are the wrong way round.
    pub fn new(after_ns: i64, before_ns: i64) -> Self {
        Self { after_ns, before_ns: before_ns.max(after_ns) }
    }

    /// Whether the window contains the time.
    pub fn contains(&self, time_ns: i64) -> bool {
        self.after_ns <= time_ns && time_ns < self.before_ns
    }

    /// The length in nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.before_ns.abs_diff(self.after_ns)
    }

    /// The smallest window that contains both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self { after_ns: self.after_ns.min(other.after_ns), before_ns: self.before_ns.max(other.before_ns) }
    }
}

impl fmt::Display for TimeWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", format_time(self.after_ns), format_time(self.before_ns))
    }
}

/// A time as RFC 3339 in UTC, with as many digits of the second as it needs.
pub fn format_time(time_ns: i64) -> String {
    DateTime::from_timestamp_nanos(time_ns).to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_sorted_and_unique_and_an_empty_value_is_no_label() {
        let labels = Labels::new([("b", "1"), ("a", "x"), ("b", "2"), ("c", "")]);
        assert_eq!(labels.to_string(), r#"{a="x", b="2"}"#);
        assert_eq!((labels.get("b"), labels.get("c"), labels.len()), (Some("2"), None, 2));
        assert_eq!(Labels::new([("a", "x"), ("a", "")]), Labels::default());
        assert_eq!(labels.restricted_to(&["a".to_owned(), "z".to_owned()]), Labels::new([("a", "x")]));
        assert_eq!(Labels::new([("a", "q\"\\\n")]).to_string(), r#"{a="q\"\\\n"}"#);
    }

    #[test]
    fn samples_of_a_family_have_their_own_kind() {
        let kind = |kind: MetricKind, sample: &str| kind.of_samples("t", sample);
        assert_eq!(kind(MetricKind::Histogram, "t_bucket"), MetricKind::Counter);
        assert_eq!(kind(MetricKind::Summary, "t"), MetricKind::Gauge);
        assert_eq!(kind(MetricKind::Summary, "t_sum"), MetricKind::Counter);
        assert_eq!(kind(MetricKind::Counter, "t_created"), MetricKind::Gauge);
        assert_eq!(kind(MetricKind::Counter, "t_total"), MetricKind::Counter);
    }

    #[test]
    fn windows_exclude_their_end() {
        let window = TimeWindow::new(10, 20);
        assert!(window.contains(10) && window.contains(19) && !window.contains(20) && !window.contains(9));
        assert_eq!(TimeWindow::new(20, 10).length_ns(), 0);
        assert_eq!(TimeWindow::new(i64::MIN, i64::MAX).length_ns(), u64::MAX);
        assert_eq!(TimeWindow::new(0, 1_500_000_000).to_string(), "1970-01-01T00:00:00Z to 1970-01-01T00:00:01.500Z");
    }
}
