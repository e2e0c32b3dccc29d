//! Answers of metric tools as JSON.

use serde_json::{Map, Value, json};
use tidegate_telemetry::metrics::{
    ComparedSeries, ComparisonAnswer, DistributionSummary, LabelSummary, Labels, ListingEntry, MetricAnswer,
    MetricGroup, MetricListing, MetricSummary, TimeWindow, format_time,
};

/// The maximum number of characters of a description.
const HELP_CHARACTERS_MAX: usize = 120;

/// The member with the labels that are the same everywhere, such as those of the resource of OpenTelemetry.
const SHARED_LABELS: &str = "shared_labels";

/// A list of metrics and groups.
pub(super) fn listing_json(listing: &MetricListing) -> Map<String, Value> {
    let (mut metrics, mut groups) = (Vec::new(), Vec::new());
    for entry in &listing.entries {
        match entry {
            ListingEntry::Metric(metric) => metrics.push(&**metric),
            ListingEntry::Group(group) => groups.push(group_json(group)),
        }
    }
    let shared = shared_values(&metrics);
    let metrics: Vec<Value> = metrics.into_iter().map(|metric| summary_json(metric, &shared)).collect();
    let mut json = Map::new();
    json.insert("matched".to_owned(), listing.matched.into());
    insert_shared(&mut json, &shared);
    json.insert("metrics".to_owned(), metrics.into());
    if !groups.is_empty() {
        json.insert("groups".to_owned(), groups.into());
    }
    if let Some(remainder) = &listing.remainder {
        json.insert("more".to_owned(), group_json(remainder));
    }
    if !listing.nearest.is_empty() {
        json.insert("nearest".to_owned(), listing.nearest.clone().into());
    }
    json
}

/// The labels that all `metrics` have, with the only value that each of them has. One metric shares nothing.
fn shared_values(metrics: &[&MetricSummary]) -> Labels {
    let [first, others @ ..] = metrics else { return Labels::default() };
    let is_shared = |label: &&LabelSummary| {
        label.only_value.is_some()
            && !others.is_empty()
            && others.iter().all(|other| other.labels.iter().flatten().any(|theirs| theirs == *label))
    };
    let shared = first.labels.iter().flatten().filter(is_shared);
    Labels::new(shared.filter_map(|label| Some((label.name.clone(), label.only_value.clone()?))))
}

/// The labels that all of `series` have, with the same value. One series shares nothing.
fn shared_labels<'a>(series: impl Iterator<Item = &'a Labels> + Clone) -> Labels {
    let mut others = series;
    let Some(first) = others.next() else { return Labels::default() };
    if others.clone().next().is_none() {
        return Labels::default();
    }
    let is_shared = |(name, value): &(&str, &str)| others.clone().all(|other| other.get(name) == Some(*value));
    Labels::new(first.iter().filter(is_shared))
}

fn insert_shared(json: &mut Map<String, Value>, shared: &Labels) {
    if !shared.is_empty() {
        json.insert(SHARED_LABELS.to_owned(), labels_json(shared, &Labels::default()));
    }
}

fn summary_json(metric: &MetricSummary, shared: &Labels) -> Value {
    let mut json = Map::from_iter([("name".to_owned(), metric.name.clone().into())]);
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            json.insert(name.to_owned(), value);
        }
    };
    set("kind", (metric.kind.name() != "unknown").then(|| metric.kind.name().into()));
    set("unit", metric.unit.clone().map(Value::from));
    set("help", metric.help.as_ref().map(|help| help.chars().take(HELP_CHARACTERS_MAX).collect::<String>().into()));
    let labels = metric.labels.iter().flatten().filter(|label| shared.get(&label.name).is_none());
    let labels: Map<String, Value> = labels.map(label_count).collect();
    set("labels", Some(labels).filter(|labels| !labels.is_empty()).map(Value::Object));
    set("series", metric.series.map(Value::from));
    set("from", metric.covers.map(|covers| format_time(covers.after_ns).into()));
    set("to", metric.covers.map(|covers| format_time(covers.before_ns.saturating_sub(1)).into()));
    Value::Object(json)
}

/// A label with the number of its values; `1000+` where there may be more.
fn label_count(label: &LabelSummary) -> (String, Value) {
    let count = match label.is_lower_bound {
        true => Value::from(format!("{}+", label.values)),
        false => Value::from(label.values),
    };
    (label.name.clone(), count)
}

fn group_json(group: &MetricGroup) -> Value {
    json!({"pattern": group.pattern, "count": group.count, "examples": group.examples})
}

/// The points of series. A value of `null` is a gap.
pub(super) fn points_json(answer: &MetricAnswer) -> Map<String, Value> {
    let window = answer.grid.window();
    let largest = answer.left_out.iter().flat_map(|left_out| &left_out.largest);
    let named = answer.series.iter().map(|series| &series.labels).chain(largest);
    // Those that the call groups by are what it asked for.
    let shared = if answer.label_aggregation.is_none() { shared_labels(named) } else { Labels::default() };
    let series: Vec<Value> = answer
        .series
        .iter()
        .map(|series| json!({"labels": labels_json(&series.labels, &shared), "values": numbers(&series.values)}))
        .collect();
    let mut json = Map::new();
    json.insert("computed".to_owned(), description(answer).into());
    if let Some(unit) = &answer.unit {
        json.insert("unit".to_owned(), unit.clone().into());
    }
    json.insert("from".to_owned(), format_time(window.after_ns).into());
    json.insert("to".to_owned(), format_time(window.before_ns).into());
    json.insert("step".to_owned(), answer.grid.step_text().into());
    insert_shared(&mut json, &shared);
    json.insert("series".to_owned(), series.into());
    if let Some(left_out) = &answer.left_out {
        let largest: Vec<Value> = left_out.largest.iter().map(|labels| labels_json(labels, &shared)).collect();
        json.insert(
            "left_out".to_owned(),
            json!({"series": left_out.count, "share": rounded(left_out.share), "largest": largest}),
        );
    }
    let counts = answer.counts;
    json.insert("read".to_owned(), json!({"series": counts.series, "samples": counts.samples}));
    if answer.is_approximate {
        json.insert("approximate".to_owned(), true.into());
    }
    let mut notes = answer.notes.clone();
    if counts.nan > 0 {
        notes.push(format!("{} samples are no numbers and are not counted.", counts.nan));
    }
    if counts.out_of_order > 0 {
        notes.push(format!("{} samples came too late to be ordered and are not counted.", counts.out_of_order));
    }
    if !notes.is_empty() {
        json.insert("notes".to_owned(), notes.into());
    }
    json
}

/// What was computed, such as `rate of http_requests_total, sum over series`.
fn description(answer: &MetricAnswer) -> String {
    let over_series = answer.label_aggregation.map(|aggregation| format!(", {aggregation} over series"));
    format!("{} of {}{}", answer.aggregation, answer.metric, over_series.unwrap_or_default())
}

/// The series that changed most.
pub(super) fn comparison_json(answer: &ComparisonAnswer) -> Map<String, Value> {
    let mut json = Map::new();
    let shared = shared_labels(answer.ranked.iter().map(|series| &series.labels));
    json.insert("window".to_owned(), window_json(answer.options.interest));
    json.insert("baseline".to_owned(), window_json(answer.options.baseline));
    insert_shared(&mut json, &shared);
    json.insert("changed".to_owned(), answer.ranked.iter().map(|series| compared_json(series, &shared)).collect());
    json.insert("compared".to_owned(), answer.compared.into());
    json.insert("unchanged".to_owned(), answer.unchanged.into());
    if answer.left_out > 0 {
        json.insert("left_out".to_owned(), answer.left_out.into());
    }
    if answer.not_compared > 0 {
        json.insert("not_compared".to_owned(), answer.not_compared.into());
    }
    json
}

fn compared_json(series: &ComparedSeries, shared: &Labels) -> Value {
    let summary = |summary: &Option<DistributionSummary>| match summary {
        Some(DistributionSummary { count, mean, min, median, max }) => json!({"values": count, "mean": rounded(*mean),
            "min": rounded(*min), "median": rounded(*median), "max": rounded(*max)}),
        None => Value::Null,
    };
    let mut json = Map::from_iter([
        ("metric".to_owned(), series.metric.clone().into()),
        ("labels".to_owned(), labels_json(&series.labels, shared)),
        ("score".to_owned(), rounded(series.score)),
    ]);
    json.insert("change".to_owned(), series.relative_change.map_or(Value::Null, rounded));
    json.insert("baseline".to_owned(), summary(&series.baseline));
    json.insert("window".to_owned(), summary(&series.interest));
    if let Some(note) = &series.note {
        json.insert("note".to_owned(), note.clone().into());
    }
    Value::Object(json)
}

fn window_json(window: TimeWindow) -> Value {
    json!({"from": format_time(window.after_ns), "to": format_time(window.before_ns)})
}

/// The labels without those of `shared`.
fn labels_json(labels: &Labels, shared: &Labels) -> Value {
    let own = labels.iter().filter(|(name, _)| shared.get(name).is_none());
    Value::Object(own.map(|(name, value)| (name.to_owned(), value.into())).collect())
}

fn numbers(values: &[Option<f64>]) -> Value {
    values.iter().map(|value| value.map_or(Value::Null, number)).collect()
}

/// JSON has no infinite numbers; they are text.
fn number(value: f64) -> Value {
    match serde_json::Number::from_f64(value) {
        Some(_) if value.fract() == 0.0 && value.abs() < MAX_EXACT_INTEGER => Value::from(value as i64),
        Some(number) => Value::Number(number),
        None => value.to_string().into(),
    }
}

/// Beyond it, not every whole number is a 64-bit float.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Statistics to four significant digits.
fn rounded(value: f64) -> Value {
    if value == 0.0 || !value.is_finite() {
        return number(value);
    }
    format!("{value:.3e}").parse().map_or_else(|_| number(value), number)
}
