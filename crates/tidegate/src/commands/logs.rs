//! `tidegate logs`: entries of a log source, for people.

use std::io::{self, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use clap::Args;
use serde_json::{Map, Value, json};
use tidegate_log_formats::NormalizedSeverity;
use tidegate_telemetry::logs::CodeScale;

use super::call::ToolCaller;
use crate::command_error::CommandError;
use crate::database_argument::DatabaseArgument;
use crate::options::GlobalOptions;
use crate::standard_stream::{StandardStream, standard_output};
use crate::{output, quantity};

/// How often new entries are read with `-f`.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum number of new entries that are printed at once with `-f`.
const FOLLOWED_ENTRIES_MAX: u64 = 1_000;
/// What is missing without a log source.
const NO_SOURCE: &str = "there is no log source: no log file with times in the folder, and none under logs in tidegate.yaml; \
     --path names another folder";
const DIMMED: Style = Style::new().dimmed();

/// Print entries of a log source, the newest last
#[derive(Debug, Args)]
pub(crate) struct LogsCommand {
    /// The log source; `tidegate call list_logs_sources` lists them [default: the only one]
    source: Option<String>,

    /// Full text that entries must match: timeout "a phrase" | or !not field:value
    query: Option<String>,

    /// Search the words of the query in all fields, not only in the message and the line of a log file
    #[arg(long)]
    all_fields: bool,

    /// Only entries from this time on: -15m, today, 2026-03-01T12:00:00Z
    #[arg(long, allow_hyphen_values = true, value_parser = quantity::moment)]
    after: Option<String>,

    /// Only entries before this time
    #[arg(long, allow_hyphen_values = true, value_parser = quantity::moment)]
    before: Option<String>,

    /// The maximum number of entries
    #[arg(long, short = 'n', default_value_t = 50)]
    limit: u64,

    /// Count the values of this field instead; may be repeated
    #[arg(long, value_name = "FIELD")]
    facets: Vec<String>,

    /// Print new entries as they come
    #[arg(long, short, conflicts_with = "facets")]
    follow: bool,

    /// Folder, file, SQLite file, folder of systemd journals or postgres:// address to read, named after it, or NAME; may
    /// be repeated [default: the current folder]
    #[arg(long = "path", value_name = "[NAME=]PATH", value_parser = DatabaseArgument::parse)]
    paths: Vec<DatabaseArgument>,
}

impl LogsCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let caller = ToolCaller::open(&self.paths, options).await?;
        caller.require_source("query_logs", NO_SOURCE)?;
        let printed = self.print(&caller).await;
        caller.close().await;
        printed
    }

    async fn print(&self, caller: &ToolCaller) -> Result<(), CommandError> {
        let mut arguments = self.arguments();
        let mut answer = caller.call_json("query_logs", arguments.clone()).await?;
        if !self.facets.is_empty() {
            return print_facets(&answer);
        }
        print_entries(&answer, true)?;
        print_notes(&answer);
        let mut tail = answer["tail"].as_str().map(str::to_owned);
        arguments.insert("limit".to_owned(), FOLLOWED_ENTRIES_MAX.into());
        while let Some(cursor) = tail.filter(|_| self.follow) {
            if caller.is_stopped_within(FOLLOW_INTERVAL).await {
                return Ok(());
            }
            arguments.insert("cursor".to_owned(), cursor.clone().into());
            answer = caller.call_json("query_logs", arguments.clone()).await?;
            print_entries(&answer, false)?;
            tail = Some(answer["cursor"].as_str().map_or(cursor, str::to_owned));
        }
        Ok(())
    }

    fn arguments(&self) -> Map<String, Value> {
        let mut arguments = Map::new();
        let texts =
            [("source", &self.source), ("query", &self.query), ("after", &self.after), ("before", &self.before)];
        for (name, value) in texts {
            if let Some(value) = value {
                arguments.insert(name.to_owned(), value.clone().into());
            }
        }
        if self.all_fields {
            arguments.insert("all_fields".to_owned(), true.into());
        }
        let limit = if self.facets.is_empty() { self.limit } else { 0 };
        arguments.insert("limit".to_owned(), limit.into());
        if !self.facets.is_empty() {
            arguments.insert("facets".to_owned(), json!(self.facets));
        }
        arguments
    }
}

/// Prints the entries of an answer, the oldest first.
fn print_entries(answer: &Value, is_newest_first: bool) -> Result<(), CommandError> {
    let columns: Vec<&str> =
        answer["entries"]["columns"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut rows: Vec<&Value> = answer["entries"]["rows"].as_array().into_iter().flatten().collect();
    if is_newest_first {
        rows.reverse();
    }
    let rows: Vec<Vec<&Value>> = rows.into_iter().map(|row| row.as_array().into_iter().flatten().collect()).collect();
    let has_severity = has_severity(&columns, &rows);
    let mut output = standard_output();
    for cells in rows {
        print_entry(&mut output, &columns, &cells, has_severity)?;
    }
    Ok(output.flush()?)
}

/// Whether the second column is the severity. A source without one has the message there.
fn has_severity(columns: &[&str], rows: &[Vec<&Value>]) -> bool {
    let Some(column) = columns.get(1) else { return false };
    let cells = || rows.iter().filter_map(|cells| cells.get(1));
    // A message of one word, such as `panic`, is no severity if others have several.
    cells().all(|cell| !text(cell).contains(' ')) && cells().any(|cell| severity_of(column, cell).is_some())
}

/// The severity that a word means, or a number where the name of the column makes its scale clear.
fn severity_of(column: &str, cell: &Value) -> Option<NormalizedSeverity> {
    let value = text(cell);
    let of_number = CodeScale::from_column_name(column).and_then(|scale| scale.severity(&value));
    of_number.or_else(|| NormalizedSeverity::from_word(&value))
}

/// Prints the time, the severity, the message, then the further fields by name. The answer has them in this order.
fn print_entry(
    output: &mut StandardStream<impl Write>,
    columns: &[&str],
    cells: &[&Value],
    has_severity: bool,
) -> io::Result<()> {
    let mut cells = columns.iter().zip(cells);
    if let Some((_, time)) = cells.next() {
        output.write_styled(DIMMED, text(time))?;
    }
    if let Some((column, cell)) = has_severity.then(|| cells.next()).flatten() {
        let severity = severity_of(column, cell);
        // A number is printed by its name.
        let name = severity.filter(|_| cell.is_number()).map_or_else(|| text(cell), |it| it.name().to_owned());
        write!(output, " ")?;
        output.write_styled(severity.map_or(Style::new(), severity_style), format_args!("{name:<7}"))?;
    }
    if let Some((_, message)) = cells.next() {
        write!(output, " {}", text(message))?;
    }
    for (name, cell) in cells.filter(|(_, cell)| !cell.is_null()) {
        write!(output, " ")?;
        output.write_styled(DIMMED, format_args!("{name}="))?;
        write!(output, "{}", text(cell))?;
    }
    writeln!(output)
}

fn severity_style(severity: NormalizedSeverity) -> Style {
    match severity {
        NormalizedSeverity::Trace | NormalizedSeverity::Debug => AnsiColor::Blue.on_default(),
        NormalizedSeverity::Info | NormalizedSeverity::Notice => AnsiColor::Green.on_default(),
        NormalizedSeverity::Warning => AnsiColor::Yellow.on_default(),
        NormalizedSeverity::Error => AnsiColor::Red.on_default(),
        _ => AnsiColor::Red.on_default().bold(),
    }
}

fn text(cell: &Value) -> String {
    match cell {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

fn print_facets(answer: &Value) -> Result<(), CommandError> {
    let mut output = standard_output();
    for (field, facet) in answer["facets"].as_object().into_iter().flatten() {
        writeln!(output, "{field}")?;
        for value in facet["values"].as_array().into_iter().flatten() {
            let name = value[2].as_str().map(|name| format!(" ({name})")).unwrap_or_default();
            writeln!(output, "{:>10}  {}{name}", text(&value[1]), text(&value[0]))?;
        }
        if let Some(rows) = facet["more"]["rows"].as_u64() {
            writeln!(output, "{rows:>10}  in {} further values", text(&facet["more"]["values"]))?;
        }
    }
    output.flush()?;
    print_notes(answer);
    Ok(())
}

fn print_notes(answer: &Value) {
    let notes = answer["notes"].as_array().into_iter().flatten();
    for note in std::iter::once(&answer["reason"]).chain(notes).filter_map(Value::as_str) {
        output::print_note(format_args!("{note}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row of an answer as a line, with styles as `[..]`.
    fn lines(columns: &[&str], rows: Value) -> Vec<String> {
        let rows: Vec<Vec<&Value>> =
            rows.as_array().unwrap().iter().map(|row| row.as_array().unwrap().iter().collect()).collect();
        let has_severity = has_severity(columns, &rows);
        let line = |cells: &Vec<&Value>| {
            let mut bytes = Vec::new();
            let mut output = StandardStream::new(&mut bytes, true, true);
            print_entry(&mut output, columns, cells, has_severity).unwrap();
            String::from_utf8(bytes).unwrap().trim_end_matches('\n').replace("\x1b[", "[")
        };
        rows.iter().map(line).collect()
    }

    #[test]
    fn severities_have_colors() {
        let rows = json!([["t1", "error", "lost", null], ["t2", "INFO", "ok", 7], ["t3", null, "unknown", null]]);
        let expected =
            ["[2mt1[0m [31merror  [0m lost", "[2mt2[0m [32mINFO   [0m ok [2mid=[0m7", "[2mt3[0m -       unknown"];
        assert_eq!(lines(&["time", "level", "message", "id"], rows), expected);
    }

    #[test]
    fn numbers_of_a_known_scale_are_severities() {
        let rows = json!([["t1", 3, "lost"], ["t2", 6, "ok"], ["t3", null, "unknown"]]);
        let expected = ["[2mt1[0m [31merror  [0m lost", "[2mt2[0m [32minfo   [0m ok", "[2mt3[0m -       unknown"];
        assert_eq!(lines(&["time", "priority", "message"], rows), expected);
        let rows = json!([["t1", 21, "down"]]);
        assert_eq!(lines(&["time", "severity_number", "body"], rows), ["[2mt1[0m [1m[31mcritical[0m down"]);
    }

    #[test]
    fn a_source_without_severity_has_its_message_there() {
        let rows = json!([["t1", "GET /", 200], ["t2", "POST /", 500]]);
        let expected = ["[2mt1[0m GET / [2mstatus=[0m200", "[2mt2[0m POST / [2mstatus=[0m500"];
        assert_eq!(lines(&["time", "request", "status"], rows), expected);
        let rows = json!([["t1", "panic"], ["t2", "at line 7"]]);
        assert_eq!(lines(&["time", "message"], rows), ["[2mt1[0m panic", "[2mt2[0m at line 7"]);
    }
}
