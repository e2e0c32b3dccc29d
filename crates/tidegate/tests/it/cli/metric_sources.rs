//! Metric sources: their configuration, and the tools that read them.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use super::ConfiguredFolder;
use super::rmcp_client::serve;
use super::server::{Server, wait_until};

const SOURCE: &str = "databases: [{name: plant, files: shop}]\nmetrics: [{name: plant, table: plant.samples}]\n";
const WINDOW: [&str; 2] = ["after=2026-03-01T12:00:00Z", "before=2026-03-01T12:04:00Z"];

/// Two counters, one of which starts again, and a gauge with a gap; a sample every ten seconds for four minutes.
pub(super) fn samples() -> String {
    let mut csv = "time,metric,host,value\n".to_owned();
    for index in 0..24 {
        let time = format!("2026-03-01 12:{:02}:{:02}", index / 6, index % 6 * 10);
        let restarted = if index < 12 { index * 20 } else { (index - 12) * 20 };
        let _ = writeln!(csv, "{time},requests_total,a,{}\n{time},requests_total,b,{restarted}", index * 10);
        if !(6..12).contains(&index) {
            let _ = writeln!(csv, "{time},temperature,a,{}", 20 + index);
        }
    }
    csv
}

fn folder(configuration: &str) -> ConfiguredFolder {
    let configured = ConfiguredFolder::new(configuration);
    std::fs::write(configured.folder().join("shop/samples.csv"), samples()).unwrap();
    configured
}

fn call(configured: &ConfiguredFolder, arguments: &[&str]) -> Value {
    let ran = configured.run(&[&["call"], arguments].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

fn query(configured: &ConfiguredFolder, arguments: &[&str]) -> Value {
    call(configured, &[&["query_metrics"], &WINDOW[..], arguments].concat())
}

#[test]
fn points_are_those_of_the_samples() {
    let configured = folder(SOURCE);
    let rates = query(&configured, &["metric=requests_total", "points=4", "aggregation=increase"]);
    // The first sample of a counter has nothing before it; at a restart, the new value is the growth.
    assert_eq!(rates["series"][0], json!({"labels": {"host": "b"}, "values": [100, 120, 100, 120]}));
    assert_eq!(rates["series"][1], json!({"labels": {"host": "a"}, "values": [50, 60, 60, 60]}));
    assert_eq!((&rates["step"], &rates["read"]), (&json!("1m"), &json!({"series": 2, "samples": 48})));
    let summed = query(&configured, &["metric=requests_total", "points=4", "aggregation=increase", "by=[]"]);
    assert_eq!(summed["series"], json!([{"labels": {}, "values": [150, 180, 160, 180]}]));
    let gauge = query(&configured, &["metric=temperature", "points=4", "aggregation=max"]);
    assert_eq!(gauge["series"], json!([{"labels": {"host": "a"}, "values": [25, null, 37, 43]}]), "a gap is null");
    let one = query(&configured, &["metric=requests_total", "points=1", "aggregation=last", r#"labels={"host": "a"}"#]);
    assert_eq!(one["series"], json!([{"labels": {"host": "a"}, "values": [230]}]));
}

#[test]
fn the_same_points_come_from_sqlite() {
    let configured =
        folder("databases: [{name: plant, sqlite: plant.db}]\nmetrics: [{name: plant, table: plant.samples}]\n");
    let lite = rusqlite::Connection::open(configured.folder().join("plant.db")).unwrap();
    lite.execute_batch("CREATE TABLE samples (time TEXT, metric TEXT, host TEXT, value REAL)").unwrap();
    for line in samples().lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        lite.execute("INSERT INTO samples VALUES (?, ?, ?, ?)", rusqlite::params_from_iter(cells)).unwrap();
    }
    let from_files = folder(SOURCE);
    for question in [["metric=requests_total", "points=8"], ["metric=temperature", "aggregation=p95"]] {
        let (lite, files) = (query(&configured, &question), query(&from_files, &question));
        assert_eq!(lite["series"], files["series"]);
        assert_ne!(lite["series"], json!([]));
    }
    assert_eq!(call(&configured, &["list_metrics"]), call(&from_files, &["list_metrics"]));
}

#[test]
fn metrics_are_listed_with_their_labels() {
    let configured = folder(SOURCE);
    let listed = call(&configured, &["list_metrics"]);
    let expected = json!({"name": "temperature", "labels": {"host": 1}, "series": 1,
        "from": "2026-03-01T12:00:00Z", "to": "2026-03-01T12:03:50Z"});
    assert_eq!((&listed["matched"], &listed["metrics"][1]), (&json!(2), &expected));
    assert_eq!(listed["metrics"][0]["kind"], "counter");
    assert_eq!(call(&configured, &["list_metrics", "pattern=temp*"])["matched"], 1);
    let none = call(&configured, &["list_metrics", "pattern=temperatur_max"]);
    assert_eq!((&none["matched"], &none["nearest"][0]), (&json!(0), &json!("temperature")));
    let ran = configured.run(&[
        "metrics",
        "temperature",
        "--after",
        "2026-03-01T12:00:00Z",
        "--before",
        "2026-03-01T12:04:00Z",
    ]);
    assert!(ran.stdout.contains("20 to 43, last 43") && ran.stdout.contains("host=a"), "{ran:?}");
}

#[test]
fn the_series_that_changed_most_come_first() {
    let configured = folder(SOURCE);
    let windows = ["after=2026-03-01T12:03:00Z", "before=2026-03-01T12:04:00Z", "baseline_after=2026-03-01T12:00:00Z"];
    let compared = call(&configured, &[&["compare_metrics"], &windows[..]].concat());
    assert_eq!(compared["changed"][0]["metric"], "temperature");
    assert_eq!(compared["changed"][0]["window"]["mean"], 40.5);
    assert_eq!((&compared["compared"], &compared["unchanged"]), (&json!(3), &json!(2)), "{compared}");
}

#[test]
fn totals_and_increments_of_one_metric_are_compared_each_by_its_kind() {
    let mut rows = "time,metric,site,is_monotonic,aggregation_temporality,value\n".to_owned();
    for index in 0..120 {
        let time = format!("2026-03-01 12:{:02}:{:02}", index / 6, index % 6 * 10);
        for site in ["north", "south"] {
            let _ = writeln!(rows, "{time},requests,{site},true,CUMULATIVE,{}", index * 7);
            let _ = writeln!(rows, "{time},requests,{site},true,DELTA,7");
        }
    }
    let windows = ["after=2026-03-01T12:15:00Z", "before=2026-03-01T12:20:00Z", "baseline_after=2026-03-01T12:00:00Z"];
    for labels in ["", ", labels: [site]"] {
        let source = format!("{{name: sums, table: plant.sums{labels}}}");
        let configured = folder(&format!("databases: [{{name: plant, files: shop}}]\nmetrics: [{source}]\n"));
        std::fs::write(configured.folder().join("shop/sums.csv"), &rows).unwrap();
        let compare = |more: &[&str]| call(&configured, &[&["compare_metrics"], &windows[..], more].concat());
        let all = compare(&[]);
        assert_eq!((&all["changed"], &all["compared"]), (&json!([]), &json!(4)), "a steady rate is no change: {all}");
        // The database does not check this condition.
        let south = compare(&[r#"labels={"site": {"matches": "so.*"}}"#]);
        assert_eq!(south["compared"], 2, "{south}");
    }
}

#[test]
fn each_column_of_a_wide_table_is_a_metric() {
    let configured =
        folder("databases: [{name: plant, files: shop}]\nmetrics: [{name: wide, table: plant.machines}]\n");
    let table = "at,site,power,speed\n2026-03-01 12:00:00,north,5,1.5\n2026-03-01 12:00:30,south,7,\n";
    std::fs::write(configured.folder().join("shop/machines.csv"), table).unwrap();
    let listed = call(&configured, &["list_metrics"]);
    let names: Vec<&Value> = listed["metrics"].as_array().unwrap().iter().map(|metric| &metric["name"]).collect();
    assert_eq!(names, ["power", "speed"]);
    let points = query(&configured, &["metric=speed", "points=4", "aggregation=average"]);
    assert_eq!(points["series"], json!([{"labels": {"site": "north"}, "values": [1.5, null, null, null]}]));
}

/// Whole numbers distinguish series. Other numbers may, and are named.
#[test]
fn columns_with_numbers_are_labels_or_are_named() {
    let configured = folder(SOURCE);
    let mut csv = "time,metric,host,http_status,quality,value\n".to_owned();
    for second in [10, 20] {
        let time = format!("2026-03-01 12:00:{second}");
        let _ = writeln!(csv, "{time},requests,a,200,0.5,7\n{time},requests,a,500,0.25,1");
    }
    std::fs::write(configured.folder().join("shop/samples.csv"), &csv).unwrap();
    let listed = call(&configured, &["list_metrics"]);
    assert_eq!(listed["metrics"][0]["labels"], json!({"host": 1, "http_status": 2}), "{listed}");
    let note = listed["notes"][0].as_str().unwrap();
    assert!(
        note.starts_with("These columns are no labels: quality.") && note.contains("labels of the metric"),
        "{note}"
    );
    let sums = query(&configured, &["metric=requests", "points=1", "aggregation=sum"]);
    let series = |status: &str, sum: u64| json!({"labels": {"http_status": status}, "values": [sum]});
    assert_eq!((&sums["series"], &sums["notes"]), (&json!([series("200", 14), series("500", 2)]), &listed["notes"]));
    let compared = call(&configured, &["compare_metrics", "after=2026-03-01T12:00:15Z", "before=2026-03-01T12:00:30Z"]);
    assert_eq!(compared["notes"], listed["notes"], "{compared}");
    for condition in [json!(500), json!("500"), json!(["500", "none"]), json!({"matches": "5.."})] {
        let labels = format!("labels={}", json!({"http_status": condition}));
        let failed = query(&configured, &["metric=requests", "points=1", "aggregation=sum", &labels]);
        let expected = json!([{"labels": {"host": "a", "http_status": "500"}, "values": [2]}]);
        assert_eq!(failed["series"], expected, "{condition}");
    }
    // Nulls make decimals of whole numbers.
    let decimals = csv.replace(",200,", ",200.0,").replace(",500,", ",500.0,");
    std::fs::write(configured.folder().join("shop/samples.csv"), decimals).unwrap();
    let sums = query(&configured, &["metric=requests", "points=1", "aggregation=sum"]);
    assert_eq!(sums["series"], json!([series("200.0", 14), series("500.0", 2)]), "{sums}");
    // Declared labels may be too few: two samples of one series then have the same time.
    configured.write(&SOURCE.replace("samples}", "samples, labels: [host]}"));
    let merged = query(&configured, &["metric=requests", "points=1", "aggregation=sum"]);
    assert_eq!(merged["series"][0]["values"], json!([16]), "{merged}");
    let note = merged["notes"].to_string();
    assert!(note.contains("In 1 of the series, several samples have the same time."), "{note}");
}

#[test]
fn errors_contain_the_nearest_names() {
    let configured = folder(SOURCE);
    let failed = |arguments: &[&str]| {
        let ran = configured.run(&[&["call", "query_metrics"], arguments].concat());
        assert_ne!(ran.code, Some(0), "{ran:?}");
        ran.stderr
    };
    let unknown = failed(&["metric=requests_totl"]);
    assert!(
        unknown.contains("there is no metric \"requests_totl\"; the nearest names are requests_total"),
        "{unknown}"
    );
    let wrong = failed(&["metric=temperature", r#"labels={"hots": "a"}"#, "aggregation=avrage", r#"by=["hst"]"#]);
    for part in ["labels.hots: ", "aggregation: ", "by.0: ", "host"] {
        assert!(wrong.contains(part), "{part}\n{wrong}");
    }
    let reversed = failed(&["metric=temperature", "after=2026-03-01T12:04:00Z", "before=2026-03-01T12:00:00Z"]);
    assert!(reversed.contains("not after its start"), "{reversed}");
    let covered = "; the metric has samples from 2026-03-01T12:00:00Z to 2026-03-01T12:03:50";
    assert!(reversed.contains(covered), "{reversed}");
    let future = failed(&["metric=temperature", "after=2100-01-01", "before=2100-01-02"]);
    assert!(future.contains("in the future") && future.contains(covered), "{future}");
    let source = failed(&["metric=temperature", "source=plnt"]);
    assert!(source.contains("there is no metric source \"plnt\"") && source.contains("plant"), "{source}");
}

/// The windows of `list_metrics` and `compare_metrics` that have no samples.
#[test]
fn wrong_windows_are_refused_with_the_time_that_the_source_covers() {
    let configured = folder(SOURCE);
    let covered = "; the source has samples from 2026-03-01T12:00:00Z to 2026-03-01T12:03:50";
    for tool in ["list_metrics", "compare_metrics"] {
        for (window, problem) in [
            (["after=2026-03-01T12:04:00Z", "before=2026-03-01T12:00:00Z"], "before: the window ends at"),
            (
                ["after=2100-01-01", "before=2100-01-02"],
                "after: the window begins at 2100-01-01T00:00:00Z, in the future",
            ),
            (["after=2100-01-01", "before=2099-01-01"], "in the future"),
        ] {
            let ran = configured.run(&[&["call", tool], &window[..]].concat());
            assert_ne!(ran.code, Some(0), "{ran:?}");
            assert!(ran.stderr.contains(problem) && ran.stderr.contains(covered), "{tool} {window:?}: {}", ran.stderr);
        }
        let empty = call(&configured, &[tool, "after=2020-01-01", "before=2020-01-02"]);
        assert!(empty["notes"][0].as_str().unwrap().contains(covered), "{empty}");
    }
    let baseline = ["after=2026-03-01T12:03:00Z", "before=2026-03-01T12:04:00Z", "baseline_after=2026-03-01T12:05:00Z"];
    let ran = configured.run(&[&["call", "compare_metrics"], &baseline[..]].concat());
    assert!(ran.stderr.contains("baseline_before: the window ends at") && ran.stderr.contains(covered), "{ran:?}");
    let unknown =
        configured.run(&["call", "query_metrics", "metric=temperatur", "after=2100-01-01", "before=2100-01-02"]);
    assert!(
        unknown.stderr.contains("the nearest names are temperature") && unknown.stderr.contains("future"),
        "{unknown:?}"
    );
}

#[test]
fn units_come_from_a_column() {
    let rows = "time,metric,site,unit,value\n2026-03-01 12:00:00,power,north,kW,5\n2026-03-01 12:00:10,power,south,kW,6
2026-03-01 12:00:20,flow,north,l/s,7\n2026-03-01 12:00:30,flow,south,m3/h,8\n2026-03-01 12:00:40,level,north,,9\n";
    let check = |configuration: &str, rows: &str| {
        let configured = folder(configuration);
        std::fs::write(configured.folder().join("shop/meters.csv"), rows).unwrap();
        let listed = call(&configured, &["list_metrics"]);
        let metrics = listed["metrics"].as_array().unwrap().iter();
        let units: Vec<(Value, Value, Value)> =
            metrics.map(|metric| (metric["name"].clone(), metric["unit"].clone(), metric["labels"].clone())).collect();
        let sites = |count: u64| json!({"site": count});
        let expected = vec![
            (json!("flow"), json!("l/s, m3/h"), sites(2)),
            (json!("level"), Value::Null, sites(1)),
            (json!("power"), json!("kW"), sites(2)),
        ];
        assert_eq!(units, expected);
        let unit = |labels: &str| query(&configured, &["metric=flow", "aggregation=max", labels])["unit"].clone();
        assert_eq!(unit("labels={}"), "l/s, m3/h");
        assert_eq!(unit(r#"labels={"site": "south"}"#), "m3/h");
        assert_eq!(query(&configured, &["metric=level"])["unit"], Value::Null);
    };
    let declared = "databases: [{name: plant, files: shop}]\nmetrics: [{name: m, table: plant.meters}]\n";
    check(declared, rows);
    check(&declared.replace("meters}", "meters, unit: measured_in}"), &rows.replace("unit", "measured_in"));
}

#[test]
fn the_command_lists_compares_and_selects() {
    let configured = folder(SOURCE);
    let run = |arguments: &[&str]| {
        let ran = configured.run(&[&["metrics"], arguments].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout
    };
    assert_eq!(run(&[]), "requests_total counter, 2 series host(2)\ntemperature 1 series host(1)\n");
    assert_eq!(run(&["temp*"]), "temperature 1 series host(1)\n");
    let window = ["--after", "2026-03-01T12:00:00Z", "--before", "2026-03-01T12:04:00Z"];
    let points = |more: &[&str]| {
        let text = run(&[&["requests_total", "--aggregation", "last"], &window[..], more].concat());
        // Two lines are above those of the series, which begin with bars.
        let without_bars = |line: &str| line.trim_start_matches(|part: char| !part.is_ascii_digit()).to_owned();
        text.lines().skip(2).map(without_bars).collect::<Vec<_>>()
    };
    let (a, b) = ("0 to 230, last 230  host=a", "0 to 220, last 220  host=b");
    assert_eq!(points(&[]), [a, b]);
    assert_eq!(points(&["--label", "host=a"]), [a]);
    assert_eq!(points(&["--label", "host=a", "--label", "host=b"]), [a, b]);
    assert_eq!(points(&["--by", "host"]), [a, b]);
    assert_eq!(points(&["--series", "1"]), [a, "1 smaller series are left out"]);
    // The advice about gaps, followed.
    let sparse =
        ["temperature", "--points", "60", "--after", "2026-03-01T12:00:00Z", "--before", "2026-03-01T12:04:00Z"];
    let ran = configured.run(&[&["metrics"], &sparse[..]].concat());
    assert!(ran.stderr.contains("request at most 17 points"), "{ran:?}");
    let ran = configured.run(&[&["metrics"], &sparse[..1], &["--points", "17"], &sparse[3..]].concat());
    assert!(ran.code == Some(0) && !ran.stderr.contains("points"), "{ran:?}");
    let many = configured.run(&["metrics", "temperature", "--points", "5000"]);
    assert!(many.code != Some(0) && many.stderr.contains("points"), "{many:?}");
    let compared = run(&["--compare", "--after", "2026-03-01T12:03:00Z", "--before", "2026-03-01T12:04:00Z"]);
    let lines: Vec<&str> = compared.lines().map(str::trim).collect();
    assert_eq!(lines, ["+42 %  28.5 → 40.5  temperature host=a", "3 series compared, 2 unchanged"]);
    let only = run(&["requests_*", "--compare", "--after", "2026-03-01T12:03:00Z", "--before", "2026-03-01T12:04:00Z"]);
    assert_eq!(only, "2 series compared, 2 unchanged\n");
    let wrong = configured.run(&["metrics", "--label", "host"]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("--label host: expected LABEL=VALUE"), "{wrong:?}");
}

/// Starts a server whose own metrics are a source, and waits for a recording after `previous`; the first metric of the list.
async fn recorded_metric(configured: &ConfiguredFolder, previous: &str) -> (Server, Value) {
    let server = serve(configured);
    let url = server.url.replace("/mcp", "/rest/tools/list_metrics/call");
    let list = async || {
        let answer =
            reqwest::Client::new().post(&url).json(&json!({"pattern": "tidegate_jobs_open"})).send().await.unwrap();
        answer.json::<Value>().await.unwrap()["metrics"][0].clone()
    };
    wait_until(async || list().await["to"].as_str().is_some_and(|time| time > previous)).await;
    let metric = list().await;
    (server, metric)
}

#[tokio::test]
async fn a_server_records_its_own_metrics() {
    let configured = folder("metrics: [{name: self, node: {}}]\n");
    let (server, metric) = recorded_metric(&configured, "").await;
    assert_eq!(metric["name"], "tidegate_jobs_open", "{metric}");
    server.signal("TERM");
    assert_eq!(server.wait_for_exit().0.code(), Some(0));
    // Memory ends with the process.
    assert_eq!(call(&configured, &["list_metrics"])["matched"], 0);
}

#[tokio::test]
async fn recorded_metrics_remain_after_a_restart() {
    let configured = folder("metrics: [{name: self, node: {folder: recorded}}]\n");
    let (server, first) = recorded_metric(&configured, "").await;
    server.signal("TERM");
    assert_eq!(server.wait_for_exit().0.code(), Some(0));
    let (from, to) = (first["from"].as_str().unwrap(), first["to"].as_str().unwrap());
    // The command reads the folder.
    let stored = call(&configured, &["list_metrics", "pattern=tidegate_jobs_open"]);
    assert_eq!(stored["metrics"][0]["from"], from, "{stored}");
    let (server, second) = recorded_metric(&configured, to).await;
    assert_eq!(second["from"], from);
    let url = server.url.replace("/mcp", "/rest/tools/query_metrics/call");
    let arguments = json!({"metric": "tidegate_jobs_open", "after": from, "points": 1, "aggregation": "count"});
    let points: Value = reqwest::Client::new().post(url).json(&arguments).send().await.unwrap().json().await.unwrap();
    assert!(points["series"][0]["values"][0].as_u64().unwrap() >= 2, "{points}");
}

#[test]
fn config_check_says_what_is_recognised_and_what_is_wrong() {
    let ran = folder(SOURCE).run(&["config", "check"]);
    let expected = "metric source plant: time time, metric metric, value value, labels host\n";
    assert!(ran.code == Some(0) && ran.stdout.starts_with(expected), "{ran:?}");
    let wrong = "databases: [{name: plant, files: shop}]\nmetrics:
  - {name: a, table: plant.samples, value: vale}
  - {name: b, prometheus: 'localhost:9090'}
  - {name: c}
  - {name: c, node: {}}
  - {name: d, node: {}}\n";
    let text = folder(wrong).usage_error(&["config", "check"]);
    for part in [
        "metrics[0].value: there is no column \"vale\" in the table \"samples\"; nearest: value",
        "metrics[1].prometheus: \"localhost:9090\" is no URL of a server",
        "metrics[2]: needs exactly one of table, prometheus and node",
        "metrics[3].name: c is the name of another",
        "metrics[4]: is a second source of the server's own metrics",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn only_callers_who_may_read_a_source_have_the_tools() {
    let configuration = "databases: [{name: plant, files: shop}]
metrics: [{name: plant, table: plant.samples}, {name: self, node: {}, access: [operator]}]
roles: [{name: reader, toolsets: ['*'], databases: [plant]}, {name: guest, toolsets: ['*']},
  {name: watcher, toolsets: ['*'], access: [operator]}]
auth: {keys: keys.json}\n";
    let configured = folder(configuration);
    let may_query = |role: &str| {
        let ran = configured.run(&["access", "explain", "--role", role, "query_metrics"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout.contains("yes  tool query_metrics")
    };
    assert!(may_query("reader") && may_query("watcher") && !may_query("guest"));
}

/// Answers requests of the API of Prometheus with fixed bodies, by path.
fn serve_api(answers: &'static [(&'static str, &'static str)]) -> String {
    serve_answers(|request| answers.iter().find(|(path, _)| request.contains(path)).map_or("{}", |(_, body)| body))
}

/// Answers requests of the API of Prometheus, by their first line.
fn serve_answers(answer: impl Fn(&str) -> &'static str + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let request = lines.next().unwrap_or_default();
            let _ = lines.take_while(|line| !line.is_empty()).count();
            let body = answer(&request);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
            let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    format!("http://{address}")
}

#[test]
fn a_server_with_the_api_of_prometheus_answers() {
    let url = serve_api(&[
        ("/api/v1/label/__name__/values", r#"{"status": "success", "data": ["up", "requests_total"]}"#),
        ("/api/v1/labels", r#"{"status": "success", "data": ["__name__", "job"]}"#),
        (
            "/api/v1/metadata",
            r#"{"status": "success", "data": {"requests_total": [{"type": "counter", "help": "Requests", "unit": ""}]}}"#,
        ),
        (
            "/api/v1/series",
            r#"{"status": "success", "data": [{"__name__": "up", "job": "a"}, {"__name__": "up", "job": "b"}]}"#,
        ),
        (
            "/api/v1/query_range",
            r#"{"status": "success", "data": {"resultType": "matrix", "result": [
            {"metric": {"__name__": "up", "job": "a"}, "values": [[1772366460, "1"], [1772366640, "0"]]}]}}"#,
        ),
    ]);
    let configured = ConfiguredFolder::new(&format!("metrics: [{{name: prom, prometheus: '{url}'}}]\n"));
    let listed = call(&configured, &["list_metrics"]);
    assert_eq!(listed["metrics"][0]["kind"], "counter");
    assert_eq!(listed["metrics"][1], json!({"name": "up", "labels": {"job": 2}, "series": 2}));
    let points = query(&configured, &["metric=up", "points=4"]);
    assert_eq!(points["series"][0]["labels"], json!({"job": "a"}));
    assert_eq!(points["series"][0]["values"], json!([1, null, null, 0]));
    let gone = ConfiguredFolder::new("metrics: [{name: prom, prometheus: 'http://127.0.0.1:1'}]\n");
    let ran = gone.run(&["call", "list_metrics"]);
    assert!(ran.stderr.contains("the Prometheus server 127.0.0.1 cannot be reached"), "{ran:?}");
}

/// A server whose metric `up` has samples from 12:00:30 to 12:10:30.
fn covering_server() -> String {
    const FIRST: f64 = 1_772_366_430.0;
    const LAST: f64 = 1_772_367_030.0;
    serve_answers(|request| {
        let parameter = |name: &str| -> Option<f64> {
            let value = request.split(['?', '&', ' ']).find_map(|part| part.strip_prefix(name))?;
            value.strip_prefix('=')?.parse().ok()
        };
        let (start, end) = (parameter("start").unwrap_or(0.0), parameter("end").unwrap_or(f64::MAX));
        let is_covered = start <= LAST && end >= FIRST && (!request.contains("match") || request.contains("=up&"));
        match request {
            _ if start > end => r#"{"status": "error", "errorType": "bad_data", "error": "end before start"}"#,
            request if request.contains("/api/v1/metadata") => r#"{"status": "success", "data": {}}"#,
            request if request.contains("/api/v1/query_range") => {
                r#"{"status": "success", "data": {"resultType": "matrix", "result": []}}"#
            }
            _ if !is_covered => r#"{"status": "success", "data": []}"#,
            request if request.contains("/api/v1/series") => {
                r#"{"status": "success", "data": [{"__name__": "up", "job": "a"}]}"#
            }
            request if request.contains("/api/v1/labels") => r#"{"status": "success", "data": ["__name__", "job"]}"#,
            _ => r#"{"status": "success", "data": ["zebra", "up"]}"#,
        }
    })
}

#[test]
fn the_time_that_a_server_covers_is_searched_only_for_wrong_windows() {
    let url = covering_server();
    let configured = ConfiguredFolder::new(&format!("metrics: [{{name: prom, prometheus: '{url}'}}]\n"));
    let covered = "samples from 2026-03-01T12:00:30Z to 2026-03-01T12:10:31Z";
    for window in [["after=2100-01-01", "before=2100-01-02"], ["after=2026-03-02", "before=2026-03-01"]] {
        for (tool, prefix) in
            [("query_metrics", "the metric has"), ("list_metrics", "\"up\" has"), ("compare_metrics", "\"up\" has")]
        {
            let mut arguments = vec!["call", tool, window[0], window[1]];
            arguments.extend((tool == "query_metrics").then_some("metric=up"));
            let ran = configured.run(&arguments);
            assert_ne!(ran.code, Some(0), "{ran:?}");
            assert!(ran.stderr.contains(&format!("{prefix} {covered}")), "{tool}: {}", ran.stderr);
        }
    }
    let early = ["after=2020-01-01", "before=2020-01-02"];
    let empty = call(&configured, &["query_metrics", "metric=up", early[0], early[1]]);
    assert_eq!((&empty["series"], &empty["notes"]), (&json!([]), &json!([format!("The metric has {covered}.")])));
    let listed = call(&configured, &["list_metrics", early[0], early[1]]);
    assert!(listed["notes"][0].as_str().unwrap().contains(covered), "{listed}");
    let unknown = configured.run(&["call", "query_metrics", "metric=upp", "after=2100-01-01", "before=2100-01-02"]);
    assert!(unknown.stderr.contains("the nearest names are up"), "{unknown:?}");
}
