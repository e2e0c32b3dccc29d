//! Requests to a server with the HTTP API of Prometheus, for one call, and its client, which is bounded in bytes and
//! time.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use reqwest::{Client, Url};
use tidegate_core::{Error, ErrorKind};
use tidegate_http_client::{client_builder, innermost_cause, read_body};
use tidegate_telemetry::metrics::prometheus::{
    BODY_BYTES_MAX, PrometheusOptions, PrometheusRequest, parse_label_values, parse_metadata, parse_range,
    parse_series, render_selector, to_metric_answer,
};
use tidegate_telemetry::metrics::{
    CatalogBuilder, LabelSelection, LabelSummary, MetricAnswer, MetricQuery, MetricRequest, MetricSummary, TimeWindow,
    window_violation,
};

use super::{MetricApi, guess_kind};

/// The maximum number of names that a server is asked for.
const NAMES_MAX: usize = 20_000;
/// The maximum number of series that a server is asked for.
const SERIES_MAX: usize = 20_000;
/// Metrics whose series are listed with their labels; of more, only the names are.
const DETAILED_METRICS_MAX: usize = 50;
/// How long before now samples are searched: ten years.
const SEARCHED_SECONDS: i64 = 3_653 * 86_400;
const SECOND_NS: i64 = 1_000_000_000;
/// The API has times to the millisecond.
const MILLISECOND_NS: i64 = 1_000_000;
/// The metric that Prometheus records for each target.
const UP: &str = "up";
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

    /// The points of a request. The time that the metric covers is only searched if it has no samples in the window.
    pub(crate) async fn query(&self, request: &MetricRequest, now: i64) -> Result<MetricAnswer, Error> {
        let mut window = TimeWindow::new(request.after_ns, request.before_ns);
        let is_valid = window_violation(request.after_ns, request.before_ns, now).is_none();
        if is_valid && let Some(metric) = self.describe(&request.metric, window).await? {
            return self.evaluate(request.resolve(&[metric], now)?).await;
        }
        // Without it, the error or the answer is still right.
        let covers = self.covered_time(&request.metric, now).await.ok().flatten();
        window = covers.unwrap_or(if is_valid { window } else { searched_window(now) });
        let known = match self.describe(&request.metric, window).await? {
            Some(metric) => vec![MetricSummary { covers, ..metric }],
            None => self.catalog(&LabelSelection::default(), window, |_| false).await?.0,
        };
        let mut answer = self.evaluate(request.resolve(&known, now)?).await?;
        answer.notes.extend(covers.map(|covers| format!("The metric has samples from {covers}.")));
        Ok(answer)
    }

    /// The time from the first to the last sample of `metric`, to the second, as far as the series of the server show it.
    pub(crate) async fn covered_time(&self, metric: &str, now: i64) -> Result<Option<TimeWindow>, Error> {
        let now = now.div_euclid(SECOND_NS).saturating_add(1);
        let (start, end) = (now.saturating_sub(SEARCHED_SECONDS), now);
        if !self.has_series(metric, (start, end)).await? {
            return Ok(None);
        }
        // Both ends are found by bisection: a window that contains one with samples has samples, too.
        let first = async {
            let (mut without, mut with) = (start, end);
            while with - without > 1 {
                let middle = without + (with - without) / 2;
                let has_series = self.has_series(metric, (start, middle)).await?;
                (without, with) = if has_series { (without, middle) } else { (middle, with) };
            }
            Ok::<_, Error>(without)
        };
        let last = async {
            let (mut with, mut without) = (start, end);
            while without - with > 1 {
                let middle = with + (without - with) / 2;
                let has_series = self.has_series(metric, (middle, end)).await?;
                (with, without) = if has_series { (middle, without) } else { (with, middle) };
            }
            Ok(without)
        };
        let (first, last) = futures::try_join!(first, last)?;
        Ok(Some(TimeWindow::new(first.saturating_mul(SECOND_NS), last.saturating_mul(SECOND_NS))))
    }

    /// The time that the server covers, by the metric of its name: one that each scraped target has, or else any.
    pub(crate) async fn covered_time_of_any(&self, now: i64) -> Result<Option<(String, TimeWindow)>, Error> {
        let request = PrometheusRequest::label_values(NAME_LABEL, Vec::new(), searched_window(now), NAMES_MAX);
        let names = parse_label_values(&self.api.get(&request).await?)?.data;
        let Some(name) = names.iter().find(|name| *name == UP).or_else(|| names.first()) else { return Ok(None) };
        Ok(self.covered_time(name, now).await?.map(|window| (name.clone(), window)))
    }

    /// Whether `metric` has samples from one second to before another.
    async fn has_series(&self, metric: &str, (start, end): (i64, i64)) -> Result<bool, Error> {
        let selector = vec![render_selector(Some(metric), &LabelSelection::default())];
        // The server includes the end.
        let before_ns = end.saturating_mul(SECOND_NS).saturating_sub(MILLISECOND_NS);
        let window = TimeWindow::new(start.saturating_mul(SECOND_NS), before_ns);
        let body = self.api.get(&PrometheusRequest::series(selector, window, 1)).await?;
        Ok(!parse_series(&body)?.data.is_empty())
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
            labels: Some(labels.map(LabelSummary::named).collect()),
            ..MetricSummary::default()
        }))
    }
}

/// The time in which samples are searched, if a call names none.
fn searched_window(now: i64) -> TimeWindow {
    TimeWindow::new(now.saturating_sub(SEARCHED_SECONDS * SECOND_NS), now)
}

/// The time limit of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Idle connections that are kept.
const IDLE_CONNECTIONS_MAX: usize = 4;

/// A server with the HTTP API of Prometheus, at the base URL under which `/api/v1` is.
pub struct PrometheusServer {
    base: Url,
    authorization: Option<HeaderValue>,
    /// Created with the first request, because reading the system's root certificates takes time.
    client: OnceLock<Option<Client>>,
}

impl PrometheusServer {
    /// The server at `url` (`http` or `https`), which receives `token` as a bearer token.
    ///
    /// # Errors
    /// What is wrong with the URL or the token.
    pub fn new(url: &str, token: Option<&str>) -> Result<Self, String> {
        let mut base = Url::parse(url).map_err(|error| format!("{url:?} is no URL: {error}"))?;
        if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() || base.host().is_none() {
            return Err(format!("{url:?} is no URL of a server; expected http://HOST:PORT or https://HOST"));
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(format!("{url:?} has a query or a fragment; write only the base URL, without /api/v1"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err("the URL contains a password; write it as token".to_owned());
        }
        if !base.path().ends_with('/') {
            let path = format!("{}/", base.path());
            base.set_path(&path);
        }
        let header = |token: &str| {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| "the token has characters that a header cannot contain".to_owned())?;
            value.set_sensitive(true);
            Ok::<_, String>(value)
        };
        Ok(Self { base, authorization: token.map(header).transpose()?, client: OnceLock::new() })
    }

    fn unavailable(&self, reason: &str) -> Error {
        let host = self.base.host_str().unwrap_or_default();
        Error::new(ErrorKind::Unavailable, format!("the Prometheus server {host} {reason}"))
    }
}

#[async_trait]
impl MetricApi for PrometheusServer {
    async fn get(&self, request: &PrometheusRequest) -> Result<Vec<u8>, Error> {
        let client = self.client.get_or_init(build_client).as_ref();
        let client = client.ok_or_else(|| self.unavailable("cannot be asked: TLS cannot be set up on this machine"))?;
        let path = request.path_and_query();
        let url = self.base.join(path.trim_start_matches('/'));
        let url = url.map_err(|error| Error::internal(format!("the path {path:?}: {error}")))?;
        let mut builder = client.get(url).header(ACCEPT, "application/json");
        if let Some(authorization) = &self.authorization {
            builder = builder.header(AUTHORIZATION, authorization.clone());
        }
        let failed = |error: reqwest::Error| {
            let reason = if error.is_timeout() { "does not answer in time" } else { "cannot be reached" };
            self.unavailable(reason).with_detail(innermost_cause(&error))
        };
        let response = builder.send().await.map_err(failed)?;
        let status = response.status();
        // Errors of the API have a body that says what is wrong.
        if !(status.is_success() || matches!(status.as_u16(), 400 | 422 | 503)) {
            return Err(self.unavailable(&format!("answers with the status {}", status.as_u16())));
        }
        // The parser refuses a body that is too large, with advice.
        let (body, _) = read_body(response, BODY_BYTES_MAX + 1).await.map_err(failed)?;
        Ok(body)
    }
}

fn build_client() -> Option<Client> {
    let built = client_builder()
        .timeout(REQUEST_TIMEOUT)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .build();
    built.ok()
}

impl fmt::Debug for PrometheusServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PrometheusServer").field(&self.base.host_str()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_base_urls_are_accepted() {
        for url in ["localhost:9090", "ftp://host", "not a url", "http://h/?q=1", "http://me:pw@h/", "file:///etc"] {
            assert!(PrometheusServer::new(url, None).is_err(), "{url}");
        }
        let server = PrometheusServer::new("http://127.0.0.1:9090/prom", None).unwrap();
        assert_eq!(server.base.join("api/v1/labels").unwrap().path(), "/prom/api/v1/labels");
    }
}
