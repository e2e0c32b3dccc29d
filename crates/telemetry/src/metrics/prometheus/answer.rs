//! The answers of a server.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use tidegate_core::{Error, ErrorKind, shorten};

use super::super::answer::{MetricAnswer, SampleCounts};
use super::super::exposition::MetricFamilies;
use super::super::label_groups::SeriesCollector;
use super::super::model::{Labels, MetricKind};
use super::super::request::{MetricQuery, POINTS_MAX};
use super::request::{first_evaluation_ms, step_ms};

/// The maximum size of an answer that is parsed, in bytes.
pub const BODY_BYTES_MAX: usize = 32 << 20;
/// The maximum number of series, names or values of an answer.
const ITEMS_MAX: usize = 100_000;
/// The number of warnings that are kept.
const WARNINGS_MAX: usize = 20;
/// The length to which texts of the server are cut, in characters.
const MESSAGE_CHARACTERS_MAX: usize = 500;
/// The label with the name of the metric.
const NAME_LABEL: &str = "__name__";

/// The data of a successful answer.
#[derive(Debug, Clone, PartialEq)]
pub struct PrometheusAnswer<T> {
    /// The data.
    pub data: T,
    /// Warnings of the server, for example that the answer is incomplete.
    pub warnings: Vec<String>,
}

/// The name and the labels of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrometheusSeries {
    /// The name of the metric; empty if a function removed it.
    pub metric: String,
    /// The other labels.
    pub labels: Labels,
}

/// A series with its values.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeSeries {
    /// The series.
    pub series: PrometheusSeries,
    /// Times in milliseconds since 1970, and values.
    pub values: Vec<(i64, f64)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<T> {
    status: String,
    data: Option<T>,
    error_type: Option<String>,
    error: Option<String>,
    warnings: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RangeData {
    result_type: String,
    result: BoundedList<RawSeries>,
}

#[derive(Deserialize)]
struct RawSeries {
    metric: BTreeMap<String, String>,
    #[serde(default)]
    values: Vec<RawValue>,
}

struct RawValue(i64, f64);

/// A list that is refused when it becomes too long, and not when it is in memory.
struct BoundedList<T>(Vec<T>);

#[derive(Deserialize)]
struct RawMetadata {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    help: String,
    #[serde(default)]
    unit: String,
}

/// Parses the answer of `query_range`.
///
/// # Errors
/// The error that the server reports, or that the answer has another form or is too large.
pub fn parse_range(body: &[u8]) -> Result<PrometheusAnswer<Vec<RangeSeries>>, Error> {
    let answer: PrometheusAnswer<RangeData> = parse(body)?;
    if answer.data.result_type != "matrix" {
        let result_type = shorten_message(answer.data.result_type);
        let message = format!("the Prometheus server returned a {result_type:?}, not a matrix");
        return Err(Error::new(ErrorKind::Unavailable, message));
    }
    let series = answer.data.result.0.into_iter().map(|raw| RangeSeries {
        series: split_name(raw.metric),
        values: raw.values.into_iter().map(|RawValue(time_ms, value)| (time_ms, value)).collect(),
    });
    Ok(PrometheusAnswer { data: series.collect(), warnings: answer.warnings })
}

/// Parses the answer of `series`.
///
/// # Errors
/// As [`parse_range`].
pub fn parse_series(body: &[u8]) -> Result<PrometheusAnswer<Vec<PrometheusSeries>>, Error> {
    let answer: PrometheusAnswer<BoundedList<BTreeMap<String, String>>> = parse(body)?;
    let series = answer.data.0.into_iter().map(split_name).collect();
    Ok(PrometheusAnswer { data: series, warnings: answer.warnings })
}

/// Parses the answers of `labels` and `label/…/values`.
///
/// # Errors
/// As [`parse_range`].
pub fn parse_label_values(body: &[u8]) -> Result<PrometheusAnswer<Vec<String>>, Error> {
    let answer: PrometheusAnswer<BoundedList<String>> = parse(body)?;
    Ok(PrometheusAnswer { data: answer.data.0, warnings: answer.warnings })
}

/// Parses the answer of `metadata`. If targets disagree about a metric, the first one counts.
///
/// # Errors
/// As [`parse_range`].
pub fn parse_metadata(body: &[u8]) -> Result<PrometheusAnswer<MetricFamilies>, Error> {
    let answer: PrometheusAnswer<BTreeMap<String, Vec<RawMetadata>>> = parse(body)?;
    let mut families = MetricFamilies::default();
    for (name, declarations) in answer.data {
        let Some(declared) = declarations.into_iter().next() else { continue };
        let family = families.family_mut(&name);
        family.kind = MetricKind::from_name(&declared.kind).unwrap_or_default();
        family.help = Some(declared.help).filter(|help| !help.is_empty());
        family.unit = Some(declared.unit).filter(|unit| !unit.is_empty()).or(family.unit.take());
    }
    Ok(PrometheusAnswer { data: families, warnings: answer.warnings })
}

/// The points of a query from the answer to its [`super::PrometheusRequest::range`].
pub fn to_metric_answer(query: &MetricQuery, answer: PrometheusAnswer<Vec<RangeSeries>>) -> MetricAnswer {
    let (first_ms, step_ms) = (first_evaluation_ms(query), i128::from(step_ms(query)));
    // The server has aggregated over labels.
    let mut collector = SeriesCollector::new(None, query.series_max);
    let mut counts = SampleCounts::default();
    for RangeSeries { series, values } in answer.data {
        counts.series += 1;
        let mut points = vec![None; query.grid.len()];
        for (time_ms, value) in values {
            let index = (i128::from(time_ms) - first_ms + step_ms / 2).div_euclid(step_ms);
            let point = usize::try_from(index).ok().and_then(|index| points.get_mut(index));
            if let Some(point) = point.filter(|_| !value.is_nan()) {
                *point = Some(value);
            }
        }
        if points.iter().any(Option::is_some) {
            collector.add(series.labels, points);
        }
    }
    let (series, left_out, _) = collector.finish();
    MetricAnswer {
        metric: query.metric.clone(),
        unit: query.unit.clone(),
        aggregation: query.aggregation,
        label_aggregation: query.label_aggregation,
        grid: query.grid,
        series,
        left_out,
        counts,
        is_approximate: false,
        notes: answer.warnings.into_iter().map(|warning| format!("the Prometheus server warns: {warning}")).collect(),
    }
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<PrometheusAnswer<T>, Error> {
    if body.len() > BODY_BYTES_MAX {
        let message = format!("the answer of the Prometheus server has more than {} MiB", BODY_BYTES_MAX >> 20);
        return Err(Error::new(ErrorKind::TooLarge, message).with_hint("Request fewer points or fewer series."));
    }
    let envelope: Envelope<T> = match serde_json::from_slice(body) {
        Ok(envelope) => envelope,
        // An error may have data of another form.
        Err(error) => match serde_json::from_slice::<Envelope<IgnoredAny>>(body) {
            Ok(Envelope { status, error_type, error, .. }) if status == "error" => {
                return Err(server_error(error_type, error));
            }
            _ => return Err(form_error(&error)),
        },
    };
    match (envelope.status.as_str(), envelope.data) {
        ("success", Some(data)) => {
            let warnings = envelope.warnings.unwrap_or_default().into_iter().take(WARNINGS_MAX);
            Ok(PrometheusAnswer { data, warnings: warnings.map(shorten_message).collect() })
        }
        ("success", None) => Err(Error::new(ErrorKind::Unavailable, "the answer of the Prometheus server has no data")),
        _ => Err(server_error(envelope.error_type, envelope.error)),
    }
}

fn server_error(error_type: Option<String>, message: Option<String>) -> Error {
    let error_type = error_type.unwrap_or_else(|| "an error".to_owned());
    let kind = match error_type.as_str() {
        "timeout" => ErrorKind::TimedOut,
        "unavailable" | "internal" => ErrorKind::Unavailable,
        "not_found" => ErrorKind::NotFound,
        _ => ErrorKind::Failed,
    };
    let message = message.unwrap_or_else(|| "no message".to_owned());
    let (error_type, message) = (shorten_message(error_type), shorten_message(message));
    Error::new(kind, format!("the Prometheus server reports {error_type}: {message}"))
}

fn form_error(error: &serde_json::Error) -> Error {
    let message = "the answer is not one of the Prometheus HTTP API; check the URL of the source";
    Error::new(ErrorKind::Unavailable, format!("{message} ({})", shorten_message(error.to_string())))
}

fn shorten_message(text: String) -> String {
    shorten(text, MESSAGE_CHARACTERS_MAX)
}

fn split_name(mut labels: BTreeMap<String, String>) -> PrometheusSeries {
    let metric = labels.remove(NAME_LABEL).unwrap_or_default();
    PrometheusSeries { metric, labels: Labels::new(labels) }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for BoundedList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
            type Value = BoundedList<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of at most {ITEMS_MAX} items")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    if list.len() >= ITEMS_MAX {
                        return Err(A::Error::custom(format!("more than {ITEMS_MAX} items")));
                    }
                    list.push(item);
                }
                Ok(BoundedList(list))
            }
        }

        deserializer.deserialize_seq(ListVisitor(std::marker::PhantomData))
    }
}

impl<'de> Deserialize<'de> for RawValue {
    /// `[1435781430.781, "1.5"]`
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (seconds, value) = <(f64, std::borrow::Cow<'de, str>)>::deserialize(deserializer)?;
        let value: f64 = value.parse().map_err(|_| D::Error::custom(format!("{value:?} is not a number")))?;
        Ok(Self((seconds * 1e3).round() as i64, value))
    }
}

/// The number of points that a server may return for a series is that of the request.
const _: () = assert!(POINTS_MAX < ITEMS_MAX);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::aggregation::TimeAggregation;
    use super::super::super::model::TimeWindow;
    use super::super::super::selection::LabelSelection;
    use super::super::super::time_grid::TimeGrid;
    use super::*;

    fn query() -> MetricQuery {
        MetricQuery {
            metric: "up".to_owned(),
            unit: None,
            kind: MetricKind::Gauge,
            selection: LabelSelection::default(),
            grid: TimeGrid::new(TimeWindow::new(0, 180_000_000_000), 3),
            aggregation: TimeAggregation::Last,
            label_aggregation: None,
            by: Vec::new(),
            series_max: 1,
        }
    }

    #[test]
    fn a_matrix_becomes_points() {
        let body = br#"{"status":"success","warnings":["partial"],"data":{"resultType":"matrix","result":[
            {"metric":{"__name__":"up","job":"a"},"values":[[59.999,"1"],[179.999,"+Inf"]]},
            {"metric":{"job":"b"},"values":[[119.999,"2.5"],[179.999,"NaN"]]},
            {"metric":{"job":"c"},"values":[[59.999,"NaN"]]}]}}"#;
        let answer = to_metric_answer(&query(), parse_range(body).unwrap());
        assert_eq!(answer.series[0].values, [Some(1.0), None, Some(f64::INFINITY)]);
        assert_eq!(answer.left_out.unwrap().largest, [Labels::new([("job", "b")])]);
        assert_eq!(answer.notes, ["the Prometheus server warns: partial"]);
    }

    #[test]
    fn catalog_answers() {
        let series = parse_series(br#"{"status":"success","data":[{"__name__":"up","job":"a"}]}"#).unwrap().data;
        assert_eq!(series, [PrometheusSeries { metric: "up".to_owned(), labels: Labels::new([("job", "a")]) }]);
        assert_eq!(parse_label_values(br#"{"status":"success","data":["a","b"]}"#).unwrap().data, ["a", "b"]);
        let metadata = br#"{"status":"success","data":{"x_seconds":[{"type":"histogram","help":"H","unit":""}]}}"#;
        let families = parse_metadata(metadata).unwrap().data;
        assert_eq!(families.kind_of("x_seconds_bucket"), MetricKind::Counter);
        assert_eq!(families.family_of("x_seconds").unwrap().unit.as_deref(), Some("seconds"));
    }

    #[test]
    fn errors_are_those_of_the_server() {
        let message = |body: &str| {
            let error = parse_range(body.as_bytes()).unwrap_err();
            (error.kind(), error.message().to_owned())
        };
        let bad = r#"{"status":"error","errorType":"bad_data","error":"parse error at char 3"}"#;
        assert_eq!(
            message(bad),
            (ErrorKind::Failed, "the Prometheus server reports bad_data: parse error at char 3".to_owned())
        );
        let timeout = r#"{"status":"error","data":"x","errorType":"timeout","error":"too slow"}"#;
        assert_eq!(message(timeout).0, ErrorKind::TimedOut);
        assert!(message("<html>").1.contains("check the URL of the source"));
        assert!(message(r#"{"status":"success"}"#).1.contains("has no data"));
        assert!(
            message(r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#).1.contains("not a matrix")
        );
        let value =
            r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"x"]]}]}}"#;
        assert!(message(value).1.contains("\"x\" is not a number"));
        let many = format!(r#"{{"status":"success","data":[{}"a"]}}"#, "\"a\",".repeat(100_000));
        assert!(parse_label_values(many.as_bytes()).unwrap_err().message().contains("more than 100000 items"));
    }

    proptest! {
        #[test]
        fn arbitrary_bodies_never_panic(body in r#"([{}\[\],:]|"(status|success|data|result|matrix|values|metric|x)"|[0-9]{1,20}|1e999|null){0,40}"#) {
            let _ = parse_range(body.as_bytes()).map(|answer| to_metric_answer(&query(), answer));
            let _ = (parse_series(body.as_bytes()), parse_label_values(body.as_bytes()), parse_metadata(body.as_bytes()));
        }
    }
}
