//! A real Prometheus that scrapes a server's own metrics, as a metric source of that server.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::ConfiguredFolder;
use super::server::{Server, wait_until};
use super::{rmcp_client, tidegate};

/// The samples that exist before anything is compared: those of a few seconds.
const SAMPLES_MIN: u64 = 20;
/// The number of ports that are tried.
const PORTS_MAX: usize = 5;
/// Prometheus needs less time to start on any machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The calls that the scraped counter counts.
const CALLS: u64 = 7;

/// A running Prometheus; it is killed when the test is over.
struct Prometheus {
    child: Child,
    url: String,
    _folder: TempDir,
}

impl Prometheus {
    /// Starts one that scrapes `target` five times a second. `None` if the program is not installed.
    async fn start(target: &Server) -> Option<Self> {
        if Command::new("prometheus").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            let _ = writeln!(std::io::stderr(), "SKIPPED: prometheus is not installed (Debian package prometheus)");
            return None;
        }
        for _ in 0..PORTS_MAX {
            let mut prometheus = Self::start_once(target);
            if prometheus.is_ready().await {
                return Some(prometheus);
            }
        }
        panic!("prometheus does not start");
    }

    /// Starts one on a free port. It ends if another program takes the port first.
    fn start_once(target: &Server) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let configuration = format!(
            "global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}\nscrape_configs:\n  - {{job_name: tidegate, \
             static_configs: [{{targets: ['{}']}}]}}\n",
            target.address()
        );
        std::fs::write(folder.path().join("prometheus.yml"), configuration).unwrap();
        // Prometheus does not say which port it chose.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let child = Command::new("prometheus")
            .current_dir(folder.path())
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--log.level=error"])
            .arg(format!("--web.listen-address={port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, url: format!("http://{port}"), _folder: folder }
    }

    /// Waits until it answers. Returns `false` if it ended instead.
    async fn is_ready(&mut self) -> bool {
        let (url, started) = (format!("{}/-/ready", self.url), Instant::now());
        while self.child.try_wait().unwrap().is_none() {
            // Another program at the address may never answer.
            let request = reqwest::Client::new().get(&url).timeout(Duration::from_secs(5));
            if request.send().await.is_ok_and(|response| response.status().is_success()) {
                return true;
            }
            assert!(started.elapsed() < START_TIMEOUT, "prometheus does not answer");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }

    /// The result of an instant query; an empty list while the server does not answer.
    async fn query(&self, expression: &str) -> Value {
        let url = reqwest::Url::parse_with_params(&format!("{}/api/v1/query", self.url), [("query", expression)]);
        let Ok(response) = reqwest::get(url.unwrap()).await else { return json!([]) };
        let body: Value = response.json().await.unwrap_or_default();
        body["data"]["result"].clone()
    }

    async fn value(&self, expression: &str) -> u64 {
        let result = self.query(expression).await;
        result[0]["value"][1].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn call(configured: &ConfiguredFolder, tool: &str, arguments: &Value) -> Value {
    let words = arguments.as_object().unwrap().iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name}={text}"),
        value => format!("{name}={value}"),
    });
    let ran = tidegate().current_dir(configured.folder()).args(["call", tool]).args(words).output().unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}\n{}", String::from_utf8_lossy(&ran.stderr)))
}

/// The values of one second, computed in the simplest way.
fn aggregate(values: &[f64], aggregation: &str) -> Option<f64> {
    let last = *values.last()?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = 0.9 * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
    Some(match aggregation {
        "average" => values.iter().sum::<f64>() / values.len() as f64,
        "min" => sorted[0],
        "max" => sorted[sorted.len() - 1],
        "sum" => values.iter().sum(),
        "count" => values.len() as f64,
        "p90" => low + (high - low) * rank.fract(),
        _ => last,
    })
}

/// The samples of each second, by its number since 1970.
async fn samples_by_second(prometheus: &Prometheus, metric: &str) -> BTreeMap<i64, Vec<f64>> {
    let result = prometheus.query(&format!("{metric}[1h]")).await;
    let mut seconds: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for sample in result[0]["values"].as_array().unwrap() {
        let value = sample[1].as_str().unwrap().parse().unwrap();
        seconds.entry(sample[0].as_f64().unwrap().floor() as i64).or_default().push(value);
    }
    seconds
}

async fn scraped_node() -> Option<(ConfiguredFolder, Server, Prometheus)> {
    let configured = ConfiguredFolder::new("databases: [{name: shop, files: shop}]\n");
    let server = rmcp_client::serve(&configured);
    let prometheus = Prometheus::start(&server).await?;
    let tool = format!("{}/rest/tools/list_databases/call", server.url.strip_suffix("/mcp").unwrap());
    for _ in 0..CALLS {
        let answer = reqwest::Client::new().post(&tool).json(&json!({})).send().await.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
    }
    let count = r#"tidegate_calls_total{name="list_databases"}"#;
    wait_until(async || prometheus.value(count).await == CALLS).await;
    wait_until(async || prometheus.value("count_over_time(tidegate_jobs_open[1h])").await >= SAMPLES_MIN).await;
    configured.write(&format!(
        "databases: [{{name: shop, files: shop}}]\nmetrics: [{{name: prom, prometheus: '{}'}}]\n",
        prometheus.url
    ));
    Some((configured, server, prometheus))
}

#[tokio::test]
async fn a_real_prometheus_answers_all_tools() {
    let Some((configured, _server, prometheus)) = scraped_node().await else { return };
    let listed = call(&configured, "list_metrics", &json!({"pattern": "tidegate_calls_total"}));
    let metric = &listed["metrics"][0];
    let future = configured.run(&[
        "call",
        "query_metrics",
        "metric=tidegate_jobs_open",
        "after=2100-01-01",
        "before=2100-01-02",
    ]);
    let first = *samples_by_second(&prometheus, "tidegate_jobs_open").await.keys().next().unwrap();
    let clock = format!("{:02}:{:02}:{:02}Z to ", first / 3_600 % 24, first / 60 % 60, first % 60);
    let covered = future.stderr.split("the metric has samples from ").nth(1).unwrap_or_else(|| panic!("{future:?}"));
    assert!(covered.get(11..).unwrap().starts_with(&clock), "{covered} does not begin at {clock}");
    assert_eq!((&metric["name"], &metric["kind"]), (&json!("tidegate_calls_total"), &json!("counter")), "{listed}");
    assert!(metric["labels"]["transport"].as_u64() >= Some(1), "{listed}");

    let question = json!({"metric": "tidegate_calls_total", "aggregation": "last", "points": 1, "after": "-1m",
        "labels": {"name": {"matches": "list_data.*"}}, "by": ["name"], "label_aggregation": "sum"});
    let answer = call(&configured, "query_metrics", &question);
    assert_eq!(answer["series"], json!([{"labels": {"name": "list_databases"}, "values": [CALLS]}]), "{answer}");
    let compared = call(&configured, "compare_metrics", &json!({"pattern": "tidegate_calls*", "after": "-10s"}));
    assert!(compared["compared"].is_u64(), "{compared}");

    // Seconds that are over, so that no sample is added to them.
    let seconds = samples_by_second(&prometheus, "scrape_duration_seconds").await;
    let end = *seconds.keys().next_back().unwrap();
    let start = end - 8;
    for aggregation in ["average", "min", "max", "sum", "count", "last", "p90"] {
        let question = json!({"metric": "scrape_duration_seconds", "aggregation": aggregation, "points": 8,
            "after": start, "before": end});
        let answer = call(&configured, "query_metrics", &question);
        assert_eq!(answer["step"], "1s", "{answer}");
        let values = answer["series"][0]["values"].as_array().unwrap();
        for (second, value) in (start..end).zip(values) {
            let expected = seconds.get(&second).and_then(|values| aggregate(values, aggregation));
            let is_near = match (value.as_f64(), expected) {
                (Some(value), Some(expected)) => (value - expected).abs() <= 1e-9 * (1.0 + expected.abs()),
                (value, expected) => value == expected,
            };
            assert!(is_near, "{aggregation} of {second}: {value} instead of {expected:?}");
        }
    }
}

#[tokio::test]
async fn a_real_prometheus_reports_wrong_names() {
    let Some((configured, _server, _prometheus)) = scraped_node().await else { return };
    let failed = |arguments: &[&str]| configured.run(&[&["call", "query_metrics"], arguments].concat()).stderr;
    let unknown = failed(&["metric=tidegate_call_total"]);
    assert!(
        unknown.contains("there is no metric \"tidegate_call_total\"") && unknown.contains("tidegate_calls_total"),
        "{unknown}"
    );
    let wrong = failed(&["metric=tidegate_calls_total", r#"labels={"nam": "x"}"#, "aggregation=avrage"]);
    assert!(wrong.contains("did you mean \"name\"?") && wrong.contains("did you mean \"average\"?"), "{wrong}");
    let gauge = failed(&["metric=tidegate_jobs_open", "aggregation=rate"]);
    assert!(gauge.contains("rate needs a counter"), "{gauge}");
}
