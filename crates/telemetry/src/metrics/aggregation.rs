//! How the samples of a bucket become one value, and how the values of several series become one.

use std::fmt;

use tidegate_core::nearest_names;

use super::model::MetricKind;

/// The names of aggregations over time, for messages.
const TIME_NAMES: [&str; 10] =
    ["average", "min", "max", "sum", "median", "percentile(P)", "rate", "increase", "last", "count"];
/// The names of aggregations over series, for messages.
const LABEL_NAMES: [&str; 6] = ["sum", "average", "min", "max", "median", "percentile(P)"];

/// How the samples of a series within one bucket become one value. A bucket without samples has no value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TimeAggregation {
    /// The sum of the values divided by their number. It is not weighted by time.
    Average,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The sum of the values.
    Sum,
    /// The percentile 50.
    Median,
    /// The value below which this percentage (0 to 100) of the values lie, interpolated linearly between the two
    /// nearest values.
    Percentile(f64),
    /// The increase of a counter divided by the seconds in which it was measured: from the sample before the first one
    /// of the bucket to the last one of the bucket. Nothing is extrapolated to the ends of the bucket. Of increments: their
    /// sum divided by the seconds of the bucket.
    Rate,
    /// The growth of a counter. Each sample adds its difference to the sample before it, also if that lies in an
    /// earlier bucket. So the increases of all buckets add up to the increase of the window, whatever gaps there are.
    /// A value below the one before it is a reset: the counter began again at zero, and the sample adds its value. The
    /// first sample of a series adds nothing, and a bucket that contains only that sample has no value. Increments are
    /// added as they are.
    Increase,
    /// The value of the latest sample.
    Last,
    /// The number of samples.
    Count,
}

impl TimeAggregation {
    /// Reads a name, such as `average`, `p95` or `percentile(99.9)`.
    ///
    /// # Errors
    /// The nearest name, or all of them.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(percentage) = parse_percentile(text)? {
            return Ok(Self::Percentile(percentage));
        }
        match text.trim().to_lowercase().as_str() {
            "average" | "avg" | "mean" => Ok(Self::Average),
            "min" | "minimum" => Ok(Self::Min),
            "max" | "maximum" => Ok(Self::Max),
            "sum" | "total" => Ok(Self::Sum),
            "median" => Ok(Self::Median),
            "rate" | "per_second" => Ok(Self::Rate),
            "increase" | "delta" | "increment" => Ok(Self::Increase),
            "last" | "latest" => Ok(Self::Last),
            "count" => Ok(Self::Count),
            _ => Err(unknown_aggregation(text, &TIME_NAMES)),
        }
    }

    /// The aggregation that suits a kind of metric: the rate of a counter or of its increments, and the average of all
    /// others.
    pub fn default_for(kind: MetricKind) -> Self {
        if matches!(kind, MetricKind::Counter | MetricKind::Delta) { Self::Rate } else { Self::Average }
    }

    /// Whether it is defined for counters and their increments only.
    pub fn needs_counter(self) -> bool {
        matches!(self, Self::Rate | Self::Increase)
    }

    /// Whether the values of several series or buckets can be added.
    pub fn is_additive(self) -> bool {
        matches!(self, Self::Sum | Self::Rate | Self::Increase | Self::Count)
    }

    /// The percentage, if it is a percentile.
    pub fn percentage(self) -> Option<f64> {
        match self {
            Self::Median => Some(50.0),
            Self::Percentile(percentage) => Some(percentage),
            _ => None,
        }
    }
}

impl fmt::Display for TimeAggregation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Average => "average",
            Self::Min => "min",
            Self::Max => "max",
            Self::Sum => "sum",
            Self::Median => "median",
            Self::Rate => "rate",
            Self::Increase => "increase",
            Self::Last => "last",
            Self::Count => "count",
            Self::Percentile(percentage) => return write!(f, "percentile({percentage})"),
        })
    }
}

/// How the values that several series have in the same bucket become one. Series without a value there do not count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LabelAggregation {
    /// The sum.
    Sum,
    /// The sum divided by the number of series with a value.
    Average,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The value below which this percentage (0 to 100) of the series lie.
    Percentile(f64),
}

impl LabelAggregation {
    /// Reads a name, such as `sum`, `median` or `p95`.
    ///
    /// # Errors
    /// The nearest name, or all of them.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(percentage) = parse_percentile(text)? {
            return Ok(Self::Percentile(percentage));
        }
        match text.trim().to_lowercase().as_str() {
            "sum" | "total" => Ok(Self::Sum),
            "average" | "avg" | "mean" => Ok(Self::Average),
            "min" | "minimum" => Ok(Self::Min),
            "max" | "maximum" => Ok(Self::Max),
            "median" => Ok(Self::Percentile(50.0)),
            _ => Err(unknown_aggregation(text, &LABEL_NAMES)),
        }
    }

    /// The aggregation that suits values of `time`: sums are added, all others averaged.
    pub fn default_for(time: TimeAggregation) -> Self {
        if time.is_additive() { Self::Sum } else { Self::Average }
    }
}

impl fmt::Display for LabelAggregation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sum => "sum",
            Self::Average => "average",
            Self::Min => "min",
            Self::Max => "max",
            Self::Percentile(percentage) => return write!(f, "percentile({percentage})"),
        })
    }
}

/// `p95`, `percentile(95)` and `percentile95`; `None` if the text is something else.
fn parse_percentile(text: &str) -> Result<Option<f64>, String> {
    let lowered = text.trim().to_lowercase();
    let digits = lowered.strip_prefix("percentile").or_else(|| lowered.strip_prefix('p')).unwrap_or_default();
    let digits = digits.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).unwrap_or(digits).trim();
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '-' || first == '.') {
        return Ok(None);
    }
    match digits.parse::<f64>() {
        Ok(percentage) if (0.0..=100.0).contains(&percentage) => Ok(Some(percentage)),
        _ => Err(format!(
            "{text:?} is not a percentile from 0 to 100; write for example \"p95\" or \"percentile(99.9)\""
        )),
    }
}

fn unknown_aggregation(text: &str, names: &[&str]) -> String {
    let nearest = nearest_names(text, names.iter().copied());
    let choices = names.join(", ");
    match nearest.first() {
        Some(nearest) => format!("{text:?} is unknown; did you mean {nearest:?}? The choices are {choices}"),
        None => format!("{text:?} is unknown; the choices are {choices}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_and_without_percentages() {
        for (text, expected) in [
            ("avg", TimeAggregation::Average),
            ("p95", TimeAggregation::Percentile(95.0)),
            ("Percentile(99.9)", TimeAggregation::Percentile(99.9)),
            ("percentile50", TimeAggregation::Percentile(50.0)),
            ("per_second", TimeAggregation::Rate),
        ] {
            assert_eq!(TimeAggregation::parse(text), Ok(expected));
            assert_eq!(TimeAggregation::parse(&expected.to_string()), Ok(expected));
        }
        assert!(TimeAggregation::parse("p101").unwrap_err().contains("0 to 100"));
        assert!(TimeAggregation::parse("percentile(-1)").unwrap_err().contains("0 to 100"));
        assert!(TimeAggregation::parse("avrage").unwrap_err().contains("did you mean \"average\"?"));
        assert!(LabelAggregation::parse("rate").unwrap_err().contains("sum, average, min, max, median, percentile(P)"));
        assert_eq!(LabelAggregation::parse("median"), Ok(LabelAggregation::Percentile(50.0)));
    }
}
