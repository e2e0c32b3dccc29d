//! `tidegate metrics`: the metrics of a source, and the points of one, for people.

use std::io::{Stdout, Write as _};

use anstyle::Style;
use clap::Args;
use serde_json::{Map, Value, json};

use super::call::ToolCaller;
use crate::command_error::CommandError;
use crate::options::GlobalOptions;
use crate::standard_stream::{StandardStream, standard_output};
use crate::{output, quantity};

/// Heights of a point in a line of text.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// What is missing without a metric source.
const NO_SOURCE: &str = "there is no metric source; metrics in tidegate.yaml declares them";
const DIMMED: Style = Style::new().dimmed();

/// List the metrics of a source, or print the points of one
#[derive(Debug, Args)]
pub(crate) struct MetricsCommand {
    /// The metric whose points are printed; words or a glob (http_*) list metrics [default: list all]
    metric: Option<String>,

    /// The metric source [default: the only one]
    #[arg(long)]
    source: Option<String>,

    /// The start of the window: -6h, today, 2026-03-01T12:00:00Z [default: an hour before its end]
    #[arg(long, allow_hyphen_values = true, value_parser = quantity::moment)]
    after: Option<String>,

    /// The end of the window [default: now]
    #[arg(long, allow_hyphen_values = true, value_parser = quantity::moment)]
    before: Option<String>,

    /// Only series with this label: method=GET; may be repeated
    #[arg(long, value_name = "LABEL=VALUE")]
    label: Vec<String>,

    /// Add up the series with the same value of this label; may be repeated
    #[arg(long, value_name = "LABEL")]
    by: Vec<String>,

    /// average, min, max, sum, median, p95, rate, increase, last or count [default: rate of counters, else average]
    #[arg(long)]
    aggregation: Option<String>,

    /// Steps of the window, each of which is a point, up to 1,000
    #[arg(long, value_name = "NUMBER", default_value_t = 60)]
    points: u64,

    /// Maximum number of series, up to 1,000; those with the largest values come first
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    series: u64,

    /// Rank what changed most in the window, against the time before it
    #[arg(long, conflicts_with_all = ["by", "aggregation", "points", "series"])]
    compare: bool,
}

impl MetricsCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let mut arguments = self.common_arguments()?;
        let caller = ToolCaller::open(&[], options).await?;
        caller.require_source("list_metrics", NO_SOURCE)?;
        let printed = match &self.metric {
            _ if self.compare => self.compare(&caller, arguments).await,
            Some(metric) if !metric.contains(['*', '?', ' ']) => {
                arguments.insert("metric".to_owned(), metric.clone().into());
                self.query(&caller, arguments).await
            }
            _ => {
                self.add_pattern(&mut arguments);
                let answer = caller.call_json("list_metrics", arguments).await;
                answer.and_then(|answer| print_listing(&answer))
            }
        };
        caller.close().await;
        printed
    }

    fn common_arguments(&self) -> Result<Map<String, Value>, CommandError> {
        let mut arguments = Map::new();
        for (name, value) in [("source", &self.source), ("after", &self.after), ("before", &self.before)] {
            arguments.extend(value.clone().map(|value| (name.to_owned(), value.into())));
        }
        let mut labels: Map<String, Value> = Map::new();
        for label in &self.label {
            let Some((name, value)) = label.split_once('=') else {
                return Err(CommandError::Usage(format!("--label {label}: expected LABEL=VALUE")));
            };
            let values = labels.entry(name).or_insert_with(|| json!([]));
            values.as_array_mut().into_iter().for_each(|values| values.push(value.into()));
        }
        if !labels.is_empty() {
            arguments.insert("labels".to_owned(), labels.into());
        }
        Ok(arguments)
    }

    fn add_pattern(&self, arguments: &mut Map<String, Value>) {
        arguments.extend(self.metric.clone().map(|pattern| ("pattern".to_owned(), pattern.into())));
    }

    async fn query(&self, caller: &ToolCaller, mut arguments: Map<String, Value>) -> Result<(), CommandError> {
        arguments.insert("points".to_owned(), self.points.into());
        arguments.insert("series".to_owned(), self.series.into());
        if !self.by.is_empty() {
            arguments.insert("by".to_owned(), json!(self.by));
        }
        arguments.extend(self.aggregation.clone().map(|text| ("aggregation".to_owned(), text.into())));
        print_points(&caller.call_json("query_metrics", arguments).await?)
    }

    async fn compare(&self, caller: &ToolCaller, mut arguments: Map<String, Value>) -> Result<(), CommandError> {
        self.add_pattern(&mut arguments);
        let answer = caller.call_json("compare_metrics", arguments).await?;
        let mut output = standard_output();
        print_shared_labels(&mut output, &answer)?;
        for series in answer["changed"].as_array().into_iter().flatten() {
            let change = match series["change"].as_f64() {
                Some(change) => format!("{:+.0} %", change * 100.0),
                None => "new".to_owned(),
            };
            let mean = |part: &str| series[part]["mean"].as_f64().map_or("-".to_owned(), |mean| format!("{mean}"));
            let (name, labels) = (text(&series["metric"]), labels(&series["labels"]));
            write!(output, "{change:>10}  {} → {}  {name} ", mean("baseline"), mean("window"))?;
            output.write_styled(DIMMED, labels)?;
            writeln!(output)?;
        }
        writeln!(output, "{} series compared, {} unchanged", answer["compared"], answer["unchanged"])?;
        print_notes(&answer);
        Ok(output.flush()?)
    }
}

/// The labels that each line below has.
fn print_shared_labels(output: &mut StandardStream<Stdout>, answer: &Value) -> Result<(), CommandError> {
    let shared = labels(&answer["shared_labels"]);
    if !shared.is_empty() {
        output.write_styled(DIMMED, format_args!("all: {shared}"))?;
        writeln!(output)?;
    }
    Ok(())
}

fn print_listing(answer: &Value) -> Result<(), CommandError> {
    let mut output = standard_output();
    for source in answer["sources"].as_array().into_iter().flatten() {
        write!(output, "{} ({})", text(&source["name"]), text(&source["kind"]))?;
        if let Some(table) = source["table"].as_str() {
            output.write_styled(DIMMED, format_args!(" {table}"))?;
        }
        writeln!(output)?;
    }
    print_shared_labels(&mut output, answer)?;
    for metric in answer["metrics"].as_array().into_iter().flatten() {
        let parts = [("kind", ""), ("unit", ""), ("series", " series")];
        let parts = parts.into_iter().filter(|(name, _)| !metric[name].is_null());
        let parts: Vec<String> = parts.map(|(name, suffix)| format!("{}{suffix}", text(&metric[name]))).collect();
        let labels = metric["labels"].as_object().into_iter().flatten();
        let labels: Vec<String> = labels.map(|(name, values)| format!("{name}({})", text(values))).collect();
        write!(output, "{} ", text(&metric["name"]))?;
        output.write_styled(DIMMED, format_args!("{} {}", parts.join(", "), labels.join(" ")))?;
        writeln!(output)?;
    }
    let more = answer.get("more").into_iter();
    for group in answer["groups"].as_array().into_iter().flatten().chain(more) {
        write!(output, "{} ", text(&group["pattern"]))?;
        output.write_styled(DIMMED, format_args!("{} metrics", group["count"]))?;
        writeln!(output)?;
    }
    if let Some(nearest) = answer["nearest"].as_array() {
        let nearest: Vec<String> = nearest.iter().map(text).collect();
        output::print_note(format_args!("no metric matches; nearest: {}\n", nearest.join(", ")));
    }
    print_notes(answer);
    Ok(output.flush()?)
}

fn print_points(answer: &Value) -> Result<(), CommandError> {
    let mut output = standard_output();
    let unit = answer["unit"].as_str().map(|unit| format!(" ({unit})")).unwrap_or_default();
    writeln!(output, "{}{unit}, every {}", text(&answer["computed"]), text(&answer["step"]))?;
    output.write_styled(DIMMED, format_args!("{} to {}", text(&answer["from"]), text(&answer["to"])))?;
    writeln!(output)?;
    print_shared_labels(&mut output, answer)?;
    let series: Vec<&Value> = answer["series"].as_array().into_iter().flatten().collect();
    for series in &series {
        let values: Vec<Option<f64>> = series["values"].as_array().into_iter().flatten().map(Value::as_f64).collect();
        let present = || values.iter().flatten().copied();
        let (low, high) = (present().fold(f64::INFINITY, f64::min), present().fold(f64::NEG_INFINITY, f64::max));
        let last = present().next_back().map_or("-".to_owned(), short);
        let line: String = values.iter().map(|value| height(*value, low, high)).collect();
        let range = if low <= high { format!("{} to {}", short(low), short(high)) } else { "no values".to_owned() };
        write!(output, "{line}  {range}, last {last}  ")?;
        output.write_styled(DIMMED, labels(&series["labels"]))?;
        writeln!(output)?;
    }
    if series.is_empty() {
        writeln!(output, "no samples")?;
    }
    if let Some(count) = answer["left_out"]["series"].as_u64() {
        writeln!(output, "{count} smaller series are left out")?;
    }
    print_notes(answer);
    Ok(output.flush()?)
}

/// A gap is a blank.
fn height(value: Option<f64>, low: f64, high: f64) -> char {
    let Some(value) = value else { return ' ' };
    let share = if high > low { (value - low) / (high - low) } else { 0.0 };
    let index = (share * (HEIGHTS.len() - 1) as f64).round() as usize;
    HEIGHTS.get(index).copied().unwrap_or('█')
}

fn short(value: f64) -> String {
    let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    rounded.to_string()
}

fn labels(labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    labels.map(|(name, value)| format!("{name}={}", text(value))).collect::<Vec<_>>().join(" ")
}

fn print_notes(answer: &Value) {
    for note in answer["notes"].as_array().into_iter().flatten() {
        output::print_note(format_args!("{}\n", text(note)));
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}
