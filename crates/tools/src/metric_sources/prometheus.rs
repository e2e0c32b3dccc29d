//! Asks a server with the HTTP API of Prometheus, for one call.

use tidegate_core::Error;
use tidegate_telemetry::metrics::prometheus::{
    PrometheusOptions, PrometheusRequest, parse_label_values, parse_metadata, parse_range, parse_series,
    render_selector, to_metric_answer,
};
use tidegate_telemetry::metrics::{
    CatalogBuilder, LabelSelection, LabelSummary, MetricAnswer, MetricQuery, MetricRequest, MetricSummary, TimeWindow,
};

use super::{MetricApi, guess_kind};

/// The maximum number of names that a server is asked for.
const NAMES_MAX: usize = 20_000;
/// The maximum number of series that a server is asked for.
const SERIES_MAX: usize = 20_000;
/// Metrics whose series are listed with their labels; of more, only the names are.
const DETAILED_METRICS_MAX: usize = 50;
/// The name of a metric as a label.
const NAME_LABEL: &str = "__name__";

/// A server with the API of Prometheus, as one call uses it.
pub(crate) struct PrometheusMetrics<'a> {
    api: &'a dyn MetricApi,
    options: PrometheusOptions,
}

impl<'a> PrometheusMetrics<'a> {
    pub(crate) fn new(api: &'a dyn MetricApi) -> Self {
        Self { api, options: PrometheusOptions::default() }
    }

    /// The metrics that have samples in `window`. Only few metrics have their labels and series. `is_requested` selects them.
    pub(crate) async fn catalog(
        &self,
        selection: &LabelSelection,
        window: TimeWindow,
        is_requested: impl Fn(&MetricSummary) -> bool,
    ) -> Result<(Vec<MetricSummary>, Vec<String>), Error> {
        let selectors = match selection.conditions() {
            [] => Vec::new(),
            _ => vec![render_selector(None, selection)],
        };
        let request = PrometheusRequest::label_values(NAME_LABEL, selectors, window, NAMES_MAX);
        let names = parse_label_values(&self.api.get(&request).await?)?;
        let mut warnings = names.warnings;
        let families = parse_metadata(&self.api.get(&PrometheusRequest::metadata(None, NAMES_MAX)).await?)?.data;
        let summary = |name: String| {
            let family = families.family_of(&name);
            MetricSummary {
                kind: family.map_or_else(|| guess_kind(&name), |_| families.kind_of(&name)),
                unit: family.and_then(|family| family.unit.clone()),
                help: family.and_then(|family| family.help.clone()),
                name,
                ..MetricSummary::default()
            }
        };
        let mut metrics: Vec<MetricSummary> = names.data.into_iter().map(summary).collect();
        let requested: Vec<&MetricSummary> = metrics.iter().filter(|metric| is_requested(metric)).collect();
        if requested.is_empty() || requested.len() > DETAILED_METRICS_MAX {
            return Ok((metrics, warnings));
        }
        let selectors = requested.iter().map(|metric| render_selector(Some(&metric.name), selection)).collect();
        let found = self.api.get(&PrometheusRequest::series(selectors, window, SERIES_MAX)).await?;
        let found = parse_series(&found)?;
        warnings.extend(found.warnings);
        let mut builder = CatalogBuilder::default();
        found.data.iter().for_each(|series| builder.add_series(&series.metric, &series.labels, None));
        for detailed in builder.finish().0 {
            if let Some(metric) = metrics.iter_mut().find(|metric| metric.name == detailed.name) {
                (metric.labels, metric.series) = (detailed.labels, detailed.series);
            }
        }
        Ok((metrics, warnings))
    }

    /// The points of a request.
    pub(crate) async fn query(&self, request: &MetricRequest, now: i64) -> Result<MetricAnswer, Error> {
        let window = TimeWindow::new(request.after_ns, request.before_ns);
        let known = match self.describe(&request.metric, window).await? {
            Some(metric) => vec![metric],
            None => self.catalog(&LabelSelection::default(), window, |_| false).await?.0,
        };
        self.evaluate(request.resolve(&known, now)?).await
    }

    /// The points of a checked query.
    pub(crate) async fn evaluate(&self, query: MetricQuery) -> Result<MetricAnswer, Error> {
        let body = self.api.get(&PrometheusRequest::range(&query, &self.options)).await?;
        Ok(to_metric_answer(&query, parse_range(&body)?))
    }

    /// What the server knows of a metric; `None` if no series has that name.
    async fn describe(&self, metric: &str, window: TimeWindow) -> Result<Option<MetricSummary>, Error> {
        let selector = vec![render_selector(Some(metric), &LabelSelection::default())];
        let body = self.api.get(&PrometheusRequest::label_names(selector, window, NAMES_MAX)).await?;
        let names = parse_label_values(&body)?.data;
        if names.is_empty() {
            return Ok(None);
        }
        let families = parse_metadata(&self.api.get(&PrometheusRequest::metadata(None, NAMES_MAX)).await?)?.data;
        let family = families.family_of(metric);
        let labels = names.into_iter().filter(|name| name != NAME_LABEL);
        Ok(Some(MetricSummary {
            name: metric.to_owned(),
            kind: family.map_or_else(|| guess_kind(metric), |_| families.kind_of(metric)),
            unit: family.and_then(|family| family.unit.clone()),
            labels: Some(labels.map(|name| LabelSummary { name, values: 0, is_lower_bound: true }).collect()),
            ..MetricSummary::default()
        }))
    }
}
