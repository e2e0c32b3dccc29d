//! Each function that the engine offers is run with columns, literals and NULL: none may end in an internal error.
//!
//! The calls are those of `tests/differential/calls.txt`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use std::{fmt, fs};

use arrow::array::RecordBatch;
use futures::{StreamExt, stream};
use tidegate_core::{ErrorKind, Principal};
use tidegate_engines::FileLimits;
use tidegate_engines::embedded::{EngineFunction, FunctionKind};
use tidegate_query::Database;
use tidegate_sql::Statement;

use super::columns::array_of;
use super::compare::EngineAnswer;
use super::{PARALLEL, corpus, publish, query_engine};
use crate::support::{Folder, TestNode, two_thread_options, write_parquet};

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
/// How long a call may be planned for.
const PLANNED_WITHIN: Duration = Duration::from_secs(60);

/// The arguments that calls with so many are tried with.
fn combinations(arity: usize) -> Vec<Vec<&'static Argument>> {
    (0..arity).fold(vec![Vec::new()], |calls: Vec<Vec<&Argument>>, _| {
        let longer = |call: &Vec<&'static Argument>, argument| call.iter().copied().chain([argument]).collect();
        calls
            .iter()
            .flat_map(|call| ARGUMENTS[..TRIED[arity]].iter().map(move |argument| longer(call, argument)))
            .collect()
    })
}

/// How a function is called, as a line of `calls.txt` has it.
#[derive(Clone)]
enum Call {
    /// With these columns, literals of their types, and NULL.
    With(Vec<&'static Argument>),
    /// By a statement.
    Statement(String),
}

impl Call {
    fn read(text: &str) -> Self {
        if text.starts_with("SELECT ") {
            return Self::Statement(text.to_owned());
        }
        let argument = |name: &str| {
            ARGUMENTS.iter().find(|of| of.column == name).unwrap_or_else(|| panic!("calls.txt: no column {name}"))
        };
        Self::With(text.split_whitespace().map(argument).collect())
    }

    fn statements(&self, function: &EngineFunction) -> Vec<String> {
        let arguments = match self {
            Self::Statement(sql) => return vec![sql.clone()],
            Self::With(arguments) => arguments,
        };
        let call = |write: fn(&Argument) -> String| {
            statement(function, &arguments.iter().map(|argument| write(argument)).collect::<Vec<_>>())
        };
        let literals = call(|of| of.literal.to_owned());
        let nulls = call(|of| of.null.to_owned());
        if arguments.is_empty() || function.kind == FunctionKind::Table {
            return vec![literals, nulls];
        }
        let columns = call(|of| {
            let (name, cast) = expression(of);
            format!("{name}{cast}")
        });
        vec![columns, literals, nulls]
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::With(arguments) => {
                f.write_str(&arguments.iter().map(|argument| argument.column).collect::<Vec<_>>().join(" "))
            }
            Self::Statement(sql) => f.write_str(sql),
        }
    }
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
fn written_calls() -> BTreeMap<String, Vec<Call>> {
    let text = fs::read_to_string(corpus::folder().join("calls.txt")).unwrap();
    let mut calls: BTreeMap<String, Vec<Call>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, call) = line.split_once(':').unwrap_or_else(|| panic!("calls.txt: {line}"));
        calls.entry(name.to_owned()).or_default().push(Call::read(call.trim()));
    }
    calls
}

/// Writes the calls down, beneath the remarks that the file begins with.
fn write_calls(calls: &BTreeMap<String, Vec<Call>>) {
    let file = corpus::folder().join("calls.txt");
    let text = fs::read_to_string(&file).unwrap();
    let remarks = text.lines().take_while(|line| line.starts_with('#')).map(str::to_owned);
    let lines = calls
        .iter()
        .flat_map(|(name, calls)| calls.iter().map(move |call| format!("{name}: {call}").trim_end().to_owned()));
    let lines: Vec<String> = remarks.chain([String::new()]).chain(lines).collect();
    fs::write(file, lines.join("\n") + "\n").unwrap();
}

/// Finds, for each number of arguments, some that `function` accepts.
async fn find_calls(node: &TestNode, function: &EngineFunction) -> Vec<Call> {
    let mut found = Vec::new();
    for arity in 0..TRIED.len() {
        // More arguments are needed only if fewer are not accepted.
        if !found.is_empty() && arity + 1 == TRIED.len() {
            break;
        }
        for arguments in combinations(arity) {
            let call = Call::With(arguments);
            if !is_taken(node, &call.statements(function)[0]).await {
                continue;
            }
            let (failures, is_answered) = run(node, function, &call).await;
            if is_answered || !failures.is_empty() {
                found.push(call);
                break;
            }
        }
    }
    found
}

/// Whether a statement is planned; one that breaks the planner is, so that it is listed when it is run.
async fn is_taken(node: &TestNode, sql: &str) -> bool {
    let Ok(statement) = Statement::parse(sql, node.database.dialect()) else { return false };
    let database = node.database.clone();
    let task = tokio::spawn(async move {
        let anonymous = Principal::anonymous();
        let described = database.describe(&statement, &anonymous);
        tokio::time::timeout(PLANNED_WITHIN, described).await
    });
    match task.await {
        Ok(Ok(Ok(_schema))) => true,
        Ok(Ok(Err(error))) => error.kind() == ErrorKind::Internal,
        // Too late, or a panic.
        Ok(Err(_)) | Err(_) => true,
    }
}

/// The statements of `call` that break, and whether any is answered.
async fn run(node: &TestNode, function: &EngineFunction, call: &Call) -> (Vec<String>, bool) {
    let (mut failures, mut is_answered) = (Vec::new(), false);
    for sql in &call.statements(function) {
        match query_engine(node.database.clone(), sql).await {
            EngineAnswer::Broken(reason) => failures.push(format!("{sql}: {reason}")),
            EngineAnswer::Error(error) if matches!(error.kind(), ErrorKind::Internal | ErrorKind::TimedOut) => {
                failures.push(format!("{sql}: {error} ({})", error.detail().unwrap_or_default()));
            }
            EngineAnswer::Error(_) => {}
            EngineAnswer::Answer(_) => is_answered = true,
        }
    }
    (failures, is_answered)
}

/// What is wrong with `call`: each statement that breaks, or that all are refused.
async fn failures_of(node: &TestNode, function: &EngineFunction, call: &Call) -> Vec<String> {
    match run(node, function, call).await {
        (failures, false) if failures.is_empty() => {
            vec![format!("{}: none of them is answered", call.statements(function).join("; "))]
        }
        (failures, _) => failures,
    }
}

/// `TIDEGATE_WRITE_CALLS=1` searches for calls of the functions without any, and writes them down.
#[tokio::test(flavor = "multi_thread")]
async fn every_function_runs_with_columns_literals_and_null() {
    let folder = Folder::new();
    table(&folder);
    let node = TestNode::open_with(vec![folder.path()], two_thread_options(), FileLimits::default());
    let functions = node.database.functions();
    let mut written = written_calls();
    if std::env::var_os("TIDEGATE_WRITE_CALLS").is_some() {
        for function in functions.iter().filter(|function| !written.contains_key(&function.name)).collect::<Vec<_>>() {
            let found = find_calls(&node, function).await;
            written.insert(function.name.clone(), found);
        }
        written.retain(|name, calls| !calls.is_empty() && functions.iter().any(|function| function.name == *name));
        write_calls(&written);
    }
    let calls = functions.iter().flat_map(|function| {
        let calls = written.get(&function.name).cloned().unwrap_or_default();
        calls.into_iter().map(move |call| (function, call))
    });
    let found = calls.map(|(function, call)| {
        let node = &node;
        async move { failures_of(node, function, &call).await }
    });
    let failures: Vec<String> =
        stream::iter(found.collect::<Vec<_>>()).buffered(PARALLEL).collect::<Vec<_>>().await.concat();
    let names: BTreeSet<&str> = functions.iter().map(|function| function.name.as_str()).collect();
    let without_call: Vec<&str> = names.iter().copied().filter(|name| !written.contains_key(*name)).collect();
    let unknown: Vec<&String> = written.keys().filter(|name| !names.contains(name.as_str())).collect();
    publish("differential-functions", &format!("{} failures\n{}\n", failures.len(), failures.join("\n")));
    assert!(names.len() > 200, "only {} functions are offered", names.len());
    assert!(
        without_call.is_empty(),
        "calls.txt has no calls of {without_call:?}; TIDEGATE_WRITE_CALLS=1 looks for some"
    );
    assert!(unknown.is_empty(), "calls.txt names functions that are not offered: {unknown:?}");
    assert!(failures.is_empty(), "{} calls fail; the list is above", failures.len());
}
