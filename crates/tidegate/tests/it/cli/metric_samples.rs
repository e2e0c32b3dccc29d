//! Points of tables against a computation that collects everything first, whatever the order of the rows; and who sees
//! which samples.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::ConfiguredFolder;

/// The second of the day at which the window begins.
const START_SECONDS: i64 = 12 * 3_600;
const WINDOW: [&str; 2] = ["after=2026-03-01T12:00:00Z", "before=2026-03-01T13:00:00Z"];
const STEP_SECONDS: i64 = 600;
const STEPS: usize = 6;

/// The samples of one series: seconds after the start of the window, and values.
type Series = Vec<(i64, f64)>;

/// A generator of numbers below `bound`, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Counters of six hosts in two zones, with restarts, gaps of up to 20 minutes and uneven times.
fn counters() -> BTreeMap<(String, String), Series> {
    let mut numbers = Numbers(7);
    let mut all = BTreeMap::new();
    for host in 0..6 {
        let (mut time, mut value) = (-30 + numbers.below(20) as i64, 0_u64);
        let mut series = Vec::new();
        while time < 3_600 {
            series.push((time, value as f64));
            let has_gap = numbers.below(40) == 0;
            time += 5 + numbers.below(11) as i64 + if has_gap { numbers.below(1_200) as i64 } else { 0 };
            value = if numbers.below(50) == 0 { numbers.below(5) } else { value + numbers.below(100) };
        }
        all.insert((format!("h{host}"), format!("z{}", host % 2)), series);
    }
    all
}

/// The rows as CSV, in an order without any relation to time.
fn shuffled_rows(counters: &BTreeMap<(String, String), Series>) -> String {
    let mut rows = Vec::new();
    for ((host, zone), series) in counters {
        for (time, value) in series {
            let second = START_SECONDS + time;
            let time = format!("{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60);
            rows.push(format!("2026-03-01 {time},jobs_total,{host},{zone},{value}"));
        }
    }
    let mut numbers = Numbers(11);
    for index in (1..rows.len()).rev() {
        rows.swap(index, numbers.below(index as u64 + 1) as usize);
    }
    let mut csv = "time,metric,host,zone,value\n".to_owned();
    rows.iter().for_each(|row| writeln!(csv, "{row}").unwrap());
    csv
}

fn percentile(mut values: Vec<f64>, percentage: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = percentage / 100.0 * (values.len() - 1) as f64;
    let (low, high) = (values[rank.floor() as usize], values[rank.ceil() as usize]);
    low + (high - low) * rank.fract()
}

/// The value of the step that begins at `start`, in the simplest way.
fn expected(series: &Series, start: i64, aggregation: &str) -> Option<f64> {
    let is_inside = |time: i64| (start..start + STEP_SECONDS).contains(&time);
    if matches!(aggregation, "increase" | "rate") {
        let pairs: Vec<_> = series.windows(2).filter(|pair| is_inside(pair[1].0)).collect();
        let growth = |before: f64, after: f64| if after >= before { after - before } else { after };
        let increase: f64 = pairs.iter().map(|pair| growth(pair[0].1, pair[1].1)).sum();
        let seconds: i64 = pairs.iter().map(|pair| pair[1].0 - pair[0].0).sum();
        return (!pairs.is_empty()).then_some(if aggregation == "rate" { increase / seconds as f64 } else { increase });
    }
    let inside: Vec<f64> = series.iter().filter(|(time, _)| is_inside(*time)).map(|(_, value)| *value).collect();
    let last = *inside.last()?;
    Some(match aggregation {
        "average" => inside.iter().sum::<f64>() / inside.len() as f64,
        "max" => inside.into_iter().fold(f64::NEG_INFINITY, f64::max),
        "count" => inside.len() as f64,
        "p90" => percentile(inside, 90.0),
        _ => last,
    })
}

fn folder(configuration: &str, rows: &str) -> ConfiguredFolder {
    let configured = ConfiguredFolder::new(configuration);
    std::fs::write(configured.folder().join("shop/samples.csv"), rows).unwrap();
    configured
}

fn query(configured: &ConfiguredFolder, arguments: &[&str]) -> Value {
    let ran = configured.run(&[&["call", "query_metrics"], &WINDOW[..], arguments].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

fn is_near(value: &Value, expected: Option<f64>) -> bool {
    match (value.as_f64(), expected) {
        (Some(value), Some(expected)) => (value - expected).abs() <= 1e-9 * (1.0 + expected.abs()),
        (value, expected) => value == expected,
    }
}

#[test]
fn points_do_not_depend_on_the_order_of_rows() {
    let counters = counters();
    let source = "databases: [{name: plant, files: shop}]\nmetrics: [{name: plant, table: plant.samples}]\n";
    let configured = folder(source, &shuffled_rows(&counters));
    for aggregation in ["average", "max", "count", "p90", "last", "increase", "rate"] {
        let requested = format!("aggregation={aggregation}");
        let answer = query(&configured, &["metric=jobs_total", "points=6", &requested]);
        assert_eq!((&answer["step"], answer["series"].as_array().unwrap().len()), (&json!("10m"), 6), "{answer}");
        for series in answer["series"].as_array().unwrap() {
            let text = |name: &str| series["labels"][name].as_str().unwrap().to_owned();
            let samples = &counters[&(text("host"), text("zone"))];
            for step in 0..STEPS {
                let expected = expected(samples, step as i64 * STEP_SECONDS, aggregation);
                let value = &series["values"][step];
                assert!(is_near(value, expected), "{aggregation} of {series}, step {step}: {expected:?}");
            }
        }
    }
    let by_zone = ["metric=jobs_total", "points=6", "aggregation=increase", r#"by=["zone"]"#];
    for series in query(&configured, &by_zone)["series"].as_array().unwrap() {
        let of_zone = counters.iter().filter(|((_, zone), _)| series["labels"]["zone"] == **zone);
        let of_zone: Vec<&Series> = of_zone.map(|(_, samples)| samples).collect();
        for step in 0..STEPS {
            let values = of_zone.iter().filter_map(|series| expected(series, step as i64 * STEP_SECONDS, "increase"));
            let values: Vec<f64> = values.collect();
            let expected = (!values.is_empty()).then(|| values.iter().sum());
            assert!(is_near(&series["values"][step], expected), "{series}, step {step}: {expected:?}");
        }
    }
}

#[test]
fn a_caller_sees_only_the_samples_that_row_policies_allow() {
    let configuration = "databases:
  - {name: plant, files: shop, policies: [{table: samples, rows: \"zone = 'z0'\", except_roles: [admin]}]}
metrics: [{name: plant, table: plant.samples}, {name: hidden, table: plant.samples, access: [metrics.all]}]
roles:
  - {name: admin, toolsets: ['*'], databases: ['*'], access: ['*']}
  - {name: reader, toolsets: ['*'], databases: ['*']}
";
    let configured = folder(configuration, &shuffled_rows(&counters()));
    for role in ["admin", "reader"] {
        let local = format!("{configuration}auth: {{local: [{role}]}}\n");
        std::fs::write(configured.folder().join(format!("{role}.yaml")), local).unwrap();
    }
    let call = |role: &str, arguments: &[&str]| {
        configured.run(&[&["--config", &format!("{role}.yaml"), "call"], arguments].concat())
    };
    let count = |role: &str, source: &str| -> Value {
        let requested = ["query_metrics", source, "metric=jobs_total", "points=1", WINDOW[0], WINDOW[1]];
        let ran = call(role, &requested);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        serde_json::from_str::<Value>(&ran.stdout).unwrap()["read"]["series"].clone()
    };
    assert_eq!([count("admin", "source=plant"), count("admin", "source=hidden")], [json!(6), json!(6)]);
    assert_eq!(count("reader", "source=plant"), 3);
    let listed: Value = serde_json::from_str(&call("reader", &["list_metrics"]).stdout).unwrap();
    assert_eq!(listed["metrics"][0]["labels"], json!({"host": 3, "zone": 1}), "{listed}");
    // A source without the right to it is answered like one that does not exist.
    let refused = |source: &str| {
        let ran = call("reader", &["query_metrics", &format!("source={source}"), "metric=jobs_total"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        // A log line before it has a time.
        ran.stderr.lines().skip_while(|line| !line.starts_with("error: ")).collect::<String>().replace(source, "NAME")
    };
    assert_eq!(refused("hidden"), refused("absent"));
}
