//! `query_metrics`: the points of a metric over time.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::Error;
use tidegate_runtime::{Answer, RunningCall, Tool};
use tidegate_telemetry::metrics::{
    LabelSelection, MetricAnswer, MetricRequest, MetricSummary, POINTS_MAX, SERIES_ANSWERED_MAX,
};

use super::answer::points_json;
use super::{MetricContext, labels_schema, read_window, reject, with_source_and_time};
use crate::arguments::{now_nanos, parse_arguments};
use crate::metric_sources::{MetricSourceKind, PrometheusMetrics, TableMetrics};
use crate::tool_definition::{InputSchemaBuilder, context_handler, read_only_tool};

/// The window, if the call names none.
const WINDOW_NS: i64 = 3_600_000_000_000;

pub(super) fn tool(context: &Arc<MetricContext>) -> Tool {
    let schema = with_source_and_time(InputSchemaBuilder::new())
        .with_required("metric", json!({"type": "string"}))
        .with("labels", labels_schema())
        .with("points", json!({"type": "integer", "minimum": 1, "maximum": POINTS_MAX}))
        .with(
            "aggregation",
            json!({"type": "string", "description":
                "Over time: average, min, max, sum, median, p95, rate, increase, last, count"}),
        )
        .with("by", json!({"type": "array", "items": {"type": "string"}, "description": "Labels to group by"}))
        .with("label_aggregation", json!({"type": "string", "description": "Over series: sum, average, min, max, p95"}))
        .with("series", json!({"type": "integer", "minimum": 1, "maximum": SERIES_ANSWERED_MAX}));
    read_only_tool(
        "query_metrics",
        "Query a metric",
        "Points of a metric over time, each series with its labels; null is a gap.",
        schema,
        context_handler(context, handle),
    )
}

#[derive(Debug, Deserialize)]
struct Arguments {
    source: Option<String>,
    after: Option<Value>,
    before: Option<Value>,
    metric: String,
    #[serde(default)]
    labels: Map<String, Value>,
    points: Option<i64>,
    aggregation: Option<String>,
    by: Option<Vec<String>>,
    label_aggregation: Option<String>,
    series: Option<i64>,
}

async fn handle(context: Arc<MetricContext>, call: RunningCall) -> Result<Answer, Error> {
    let arguments: Arguments = parse_arguments(&call)?;
    let source = context.sources.find(arguments.source.as_deref(), &context.services.databases, call.principal())?;
    let now = now_nanos();
    let mut violations = Vec::new();
    let (after, before) = read_window(&arguments.after, &arguments.before, (now, WINDOW_NS), &mut violations);
    reject(violations)?;
    let request = MetricRequest {
        metric: arguments.metric,
        labels: arguments.labels,
        after_ns: after,
        before_ns: before,
        points: arguments.points,
        aggregation: arguments.aggregation,
        by: arguments.by,
        label_aggregation: arguments.label_aggregation,
        series: arguments.series,
    };
    let answer: MetricAnswer = match &source.kind {
        MetricSourceKind::Table(table) => {
            TableMetrics::open(source, table, &context.services, call.job()).await?.query(&request, now).await?
        }
        MetricSourceKind::Prometheus(api) => PrometheusMetrics::new(&**api).query(&request, now).await?,
        MetricSourceKind::Node(recorder) => {
            let recorder = recorder.read();
            let metrics: Vec<MetricSummary> = recorder.store().catalog(LabelSelection::default());
            let mut answer = recorder.evaluate(request.resolve(&metrics, now)?)?;
            if answer.counts.samples == 0 {
                let covers = metrics.iter().find(|metric| metric.name == answer.metric).and_then(|found| found.covers);
                answer.notes.extend(covers.map(|covers| format!("The metric has samples from {covers}.")));
            }
            answer
        }
    };
    Ok(Answer::json(points_json(&answer)))
}
