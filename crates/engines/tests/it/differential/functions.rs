//! Each function that the engine offers is run with columns, literals and NULL: none may end in an internal error.
//!
//! Which arguments a function takes is found by trying; `tests/differential/calls.txt` has calls of those that take
//! what cannot be found so.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use arrow::array::RecordBatch;
use futures::{StreamExt, stream};
use tidegate_core::{ErrorKind, Principal};
use tidegate_engines::FileLimits;
use tidegate_engines::embedded::{EngineFunction, FunctionKind};
use tidegate_query::{Database, Statement};

use super::columns::array_of;
use super::compare::Ours;
use super::{PARALLEL, ask_ours, corpus, publish, setting};
use crate::support::{Folder, Node, small_options, write_parquet};

/// A column of the table `t`, its type, its rows, and a literal of the type.
struct Argument {
    column: &'static str,
    of: &'static str,
    rows: [Option<&'static str>; 3],
    literal: &'static str,
    null: &'static str,
}

const fn argument(
    column: &'static str,
    of: &'static str,
    rows: [Option<&'static str>; 3],
    literal: &'static str,
    null: &'static str,
) -> Argument {
    Argument { column, of, rows, literal, null }
}

/// In the order in which they are tried.
const ARGUMENTS: &[Argument] = &[
    argument("s", "text", [Some("abc"), None, Some("")], "'abc'", "NULL::text"),
    argument("i", "bigint", [Some("2"), None, Some("-1")], "2", "NULL::bigint"),
    argument("d", "double precision", [Some("0.5"), None, Some("NaN")], "0.5::float8", "NULL::float8"),
    argument("ia", "integer[]", [Some("{1,2}"), None, Some("{}")], "ARRAY[1, 2]", "NULL::int[]"),
    argument(
        "ts",
        "timestamp without time zone",
        [Some("1000000"), None, Some("-1")],
        "timestamp '2024-02-29 01:02:03'",
        "NULL::timestamp",
    ),
    argument("da", "date", [Some("19782"), None, Some("-1")], "date '2024-02-29'", "NULL::date"),
    argument("ta", "text[]", [Some("{a,b}"), None, Some("{NULL}")], "ARRAY['a', 'b']", "NULL::text[]"),
    argument("b", "boolean", [Some("t"), None, Some("f")], "true", "NULL::boolean"),
    argument("n", "numeric(10,2)", [Some("1.25"), None, Some("-7.50")], "1.25", "NULL::numeric"),
    argument("by", "bytea", [Some("00ff"), None, Some("")], "'\\x00ff'::bytea", "NULL::bytea"),
    argument("j", "text", [Some(r#"{"a": 1}"#), None, Some("[1]")], r#"'{"a": 1}'::jsonb"#, "NULL::jsonb"),
    argument(
        "tz",
        "timestamp with time zone",
        [Some("1000000"), None, Some("-1")],
        "timestamptz '2024-02-29 01:02:03+00'",
        "NULL::timestamptz",
    ),
    argument("ti", "time without time zone", [Some("1000000"), None, Some("0")], "time '01:02:03'", "NULL::time"),
    argument("iv", "text", [Some("1 day"), None, Some("-1 month")], "interval '1 day'", "NULL::interval"),
    argument("i4", "integer", [Some("3"), None, Some("0")], "3::int", "NULL::int"),
];
/// How a column is named in a call: some types are not those of files.
const fn expression(argument: &Argument) -> (&'static str, &'static str) {
    match argument.column.as_bytes() {
        b"j" => ("j", "::jsonb"),
        b"iv" => ("iv", "::interval"),
        _ => (argument.column, ""),
    }
}

/// Of each argument of a call with so many, how many columns are tried.
const TRIED: [usize; 4] = [0, ARGUMENTS.len(), 6, 4];
/// Calls that are run of each function and number of arguments.
const CALLS_OF_ARITY_MAX: usize = 2;

/// The calls of a function by the names of the types of its arguments.
fn combinations(arity: usize) -> Vec<Vec<&'static Argument>> {
    (0..arity).fold(vec![Vec::new()], |calls: Vec<Vec<&Argument>>, _| {
        let longer = |call: &Vec<&'static Argument>, argument| call.iter().copied().chain([argument]).collect();
        calls
            .iter()
            .flat_map(|call| ARGUMENTS[..TRIED[arity]].iter().map(move |argument| longer(call, argument)))
            .collect()
    })
}

/// A statement that calls `function` with `arguments`.
fn statement(function: &EngineFunction, arguments: &[String]) -> String {
    let call = format!("{}({})", function.name, arguments.join(", "));
    match function.kind {
        FunctionKind::Window => format!("SELECT {call} OVER (ORDER BY i) AS x FROM t"),
        FunctionKind::Table => format!("SELECT * FROM {call} LIMIT 10"),
        _ => format!("SELECT {call} AS x FROM t"),
    }
}

fn table(folder: &Folder) {
    let column = |argument: &Argument| {
        let texts: Vec<Option<String>> = argument.rows.iter().map(|text| text.map(str::to_owned)).collect();
        (argument.column, array_of(&texts, argument.of), true)
    };
    let batch = RecordBatch::try_from_iter_with_nullable(ARGUMENTS.iter().map(column)).unwrap();
    write_parquet(&folder.join("t.parquet"), &batch, 10);
}

/// The calls that are written down, by the name of the function.
fn written_calls() -> BTreeMap<String, Vec<String>> {
    let text = fs::read_to_string(corpus::folder().join("calls.txt")).unwrap();
    let mut calls: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, sql) = line.split_once(": ").unwrap_or_else(|| panic!("calls.txt: {line}"));
        calls.entry(name.to_owned()).or_default().push(sql.to_owned());
    }
    calls
}

/// What trying a function found.
#[derive(Default)]
struct Findings {
    calls: usize,
    failures: Vec<String>,
    without_call: BTreeSet<String>,
}

impl Findings {
    async fn run(&mut self, node: &Node, sql: &str) {
        self.calls += 1;
        match ask_ours(node.database.clone(), sql).await {
            Ours::Broken(reason) => self.failures.push(format!("{sql}: {reason}")),
            Ours::Error(error) if matches!(error.kind(), ErrorKind::Internal | ErrorKind::TimedOut) => {
                self.failures.push(format!("{sql}: {error} ({})", error.detail().unwrap_or_default()));
            }
            Ours::Error(_) | Ours::Answer(_) => {}
        }
    }

    /// Finds arguments that `function` takes, and runs it with them.
    async fn try_arguments(&mut self, node: &Node, function: &EngineFunction) {
        let mut is_called = false;
        for arity in 0..TRIED.len() {
            // More arguments are needed only where fewer are not taken.
            if is_called && arity + 1 == TRIED.len() {
                break;
            }
            let mut found = 0;
            for arguments in combinations(arity) {
                if found == CALLS_OF_ARITY_MAX {
                    break;
                }
                let columns: Vec<String> = arguments
                    .iter()
                    .map(|argument| expression(argument))
                    .map(|(name, cast)| format!("{name}{cast}"))
                    .collect();
                let literals: Vec<String> = arguments.iter().map(|argument| argument.literal.to_owned()).collect();
                let nulls: Vec<String> = arguments.iter().map(|argument| argument.null.to_owned()).collect();
                let probe = if function.kind == FunctionKind::Table { &literals } else { &columns };
                if !plans(node, &statement(function, probe)).await {
                    continue;
                }
                found += 1;
                is_called = true;
                for arguments in [&columns, &literals, &nulls] {
                    self.run(node, &statement(function, arguments)).await;
                }
            }
        }
        if !is_called {
            self.without_call.insert(function.name.clone());
        }
    }
}

async fn findings_of(node: &Node, function: &EngineFunction, written: Option<Vec<String>>) -> Findings {
    let mut findings = Findings::default();
    match written {
        Some(calls) => {
            for sql in calls {
                assert!(plans(node, &sql).await, "calls.txt: {sql} is refused");
                findings.run(node, &sql).await;
            }
        }
        None => findings.try_arguments(node, function).await,
    }
    findings
}

async fn plans(node: &Node, sql: &str) -> bool {
    let Ok(statement) = Statement::parse(sql, node.database.dialect()) else { return false };
    let database = node.database.clone();
    let task = tokio::spawn(async move { database.describe(&statement, &Principal::anonymous()).await });
    match task.await {
        Ok(Ok(_schema)) => true,
        // So that it is run, and listed.
        Ok(Err(error)) => error.kind() == ErrorKind::Internal,
        Err(_panic) => true,
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it took more than two minutes on a busy machine: which call is slow must be found first"]
async fn every_function_runs_with_columns_literals_and_null() {
    let folder = Folder::new();
    table(&folder);
    let node = Node::open_with(vec![folder.path()], small_options(), FileLimits::default());
    let functions = node.database.functions();
    let mut written = written_calls();
    let found = functions.iter().map(|function| findings_of(&node, function, written.remove(&function.name)));
    let found: Vec<Findings> = stream::iter(found.collect::<Vec<_>>()).buffered(PARALLEL).collect().await;
    let mut findings = Findings::default();
    for found in found {
        findings.calls += found.calls;
        findings.failures.extend(found.failures);
        findings.without_call.extend(found.without_call);
    }
    let Findings { calls, failures, without_call } = findings;
    let text = format!(
        "{} functions, {calls} calls\n\n==== {} internal errors ====\n{}\n\n==== no arguments found ====\n{}\n",
        functions.len(),
        failures.len(),
        failures.join("\n"),
        without_call.iter().cloned().collect::<Vec<_>>().join("\n"),
    );
    publish("differential-functions", &text);
    if setting("_REPORT").is_some() {
        return;
    }
    assert!(functions.len() > 200, "only {} functions are offered", functions.len());
    assert!(failures.is_empty() && without_call.is_empty(), "the list is above");
    assert!(written.is_empty(), "calls.txt names functions that are not offered: {:?}", written.keys());
}
