//! Log sources: their configuration, and the tools that read them.

use serde_json::{Value, json};

use super::ConfiguredFolder;
use super::token_server::TokenServer;

/// Entries of a small service; the last five have the same time.
pub(super) const EVENTS: &str = "created_at,level,service,body,status
2026-03-01 12:00:00,info,web,GET /a took 12 ms,200
2026-03-01 12:00:10,error,web,connection to db1 timed out,500
2026-03-01 12:00:20,info,web,GET /b took 40 ms,200
2026-03-01 12:01:00,warning,worker,job 7 is slow,
2026-03-01 12:02:00,error,worker,job 8 failed: connection refused,
2026-03-01 12:03:00,info,web,tie one,200
2026-03-01 12:03:00,info,web,tie two,200
2026-03-01 12:03:00,info,web,tie three,200
2026-03-01 12:03:00,info,worker,tie four,200
2026-03-01 12:03:00,info,worker,tie five,200
";

const SOURCE: &str = "databases: [{name: shop, files: shop}]\nlogs: [{name: app, table: shop.events}]\n";

fn folder(configuration: &str) -> ConfiguredFolder {
    let configured = ConfiguredFolder::new(configuration);
    std::fs::write(configured.folder().join("shop/events.csv"), EVENTS).unwrap();
    configured
}

/// The answer of a tool as JSON.
fn call(configured: &ConfiguredFolder, arguments: &[&str]) -> Value {
    let ran = configured.run(&[&["call"], arguments].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

fn messages(answer: &Value) -> Vec<String> {
    let place = answer["entries"]["columns"].as_array().unwrap().iter().position(|column| column == "body").unwrap();
    let rows = answer["entries"]["rows"].as_array().unwrap().iter();
    rows.map(|row| row[place].as_str().unwrap().to_owned()).collect()
}

/// An answer without entries has no columns.
fn messages_or_none(answer: &Value) -> Vec<String> {
    let is_empty = answer["entries"]["rows"].as_array().is_none_or(Vec::is_empty);
    if is_empty { Vec::new() } else { messages(answer) }
}

#[test]
fn config_check_says_what_is_recognised() {
    let ran = folder(SOURCE).run(&["config", "check"]);
    let expected = "log source app: time created_at, message body, severity level, 2 further fields\n";
    assert!(ran.code == Some(0) && ran.stdout.starts_with(expected), "{ran:?}");
    let wrong = "databases: [{name: shop, files: shop}]\nlogs:
  - {name: app, table: shop.event}
  - {name: app, table: shp.events}
  - {name: b, table: shop.events, time: create_at, fields: [leve]}
  - {name: c, table: shop.customers}\n";
    let configured = folder(wrong);
    std::fs::write(configured.folder().join("shop/customers.csv"), "name,city\nAnn,Oslo\n").unwrap();
    let text = configured.usage_error(&["config", "check"]);
    for part in [
        "logs[0].table: there is no table \"event\"",
        "logs[1].name: app is the name of another",
        "logs[1].table: there is no database \"shp\"; nearest: shop",
        "logs[2].time: there is no column \"create_at\" in the table \"events\"; nearest: created_at",
        "logs[2].fields[0]: there is no column \"leve\" in the table \"events\"; nearest: level",
        "logs[3].time: no column of the table \"customers\" is recognised as the time of an entry; name one of name, city",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn sources_and_fields_are_listed() {
    let configured = folder(SOURCE);
    let csv = |arguments: &[&str]| configured.run(&[&["call"], arguments, &["format=csv"]].concat()).stdout;
    let sources = csv(&["list_logs_sources"]).replace('\r', "");
    assert!(sources.contains(&format!("app,files,shop.events,10,{},", EVENTS.len())), "{sources}");
    assert!(sources.contains(",2026-03-01T12:00:00Z,2026-03-01T12:03:00Z,"), "{sources}");
    let fields = csv(&["list_logs_fields"]).replace('\r', "");
    assert!(fields.contains("level,text,severity,scan,3,info\n"), "{fields}");
    assert!(fields.contains("service,text,,scan,2,web\n"), "{fields}");
}

#[test]
fn one_call_has_entries_facets_histogram_and_patterns() {
    let configured = folder(SOURCE);
    let answer = call(
        &configured,
        &["query_logs", "query=connection", r#"facets=["level", "service"]"#, "histogram={\"bars\": 2}", "patterns=5"],
    );
    assert_eq!((&answer["matched"], &answer["returned"], &answer["partial"]), (&2.into(), &2.into(), &false.into()));
    assert_eq!(messages(&answer), ["job 8 failed: connection refused", "connection to db1 timed out"]);
    assert_eq!(answer["entries"]["columns"][0], "created_at");
    assert_eq!(answer["entries"]["rows"][1][0], "2026-03-01T12:00:10Z");
    assert_eq!(answer["facets"]["level"]["values"], serde_json::json!([["error", 2]]));
    assert_eq!(answer["facets"]["service"]["values"], serde_json::json!([["web", 1], ["worker", 1]]));
    let bars = answer["histogram"]["series"][0]["rows"].as_array().unwrap();
    assert_eq!(bars.iter().filter_map(Value::as_u64).sum::<u64>(), 2);
    assert_eq!(answer["patterns"]["rows"].as_array().unwrap().len(), 2);
}

/// The address of the client is in the line of an access log, and not in its message, the request.
#[test]
fn words_are_searched_in_the_line_of_a_log_file() {
    let configured = folder("databases: [{name: web, files: shop}]\n");
    let line = |client: &str, path: &str| {
        format!("{client} - - [01/Mar/2026:12:00:00 +0000] \"GET {path} HTTP/1.1\" 200 12 \"-\" \"curl/8\"\n")
    };
    let log = line("10.1.2.3", "/a").repeat(4) + &line("10.9.9.9", "/b").repeat(3);
    std::fs::write(configured.folder().join("shop/access.log"), log).unwrap();
    let questions =
        [("10.1.2.3", 4), ("CURL/8", 7), ("!10.1.2.3", 3), ("/b", 3), ("10.9.9.9 /a", 0), ("request:10.1.2.3", 0)];
    for (query, matched) in questions {
        let answer = call(&configured, &["query_logs", "source=access", &format!("query={query}"), "limit=0"]);
        assert_eq!(answer["matched"], matched, "{query}");
    }
}

/// In a table, words are searched in the message. An answer without entries says so.
#[test]
fn an_answer_without_entries_has_the_fields_that_were_searched() {
    let configured = folder(SOURCE);
    let none = call(&configured, &["query_logs", "query=worker"]);
    let note = "The words of query were searched in body only; with all_fields, in all fields.";
    assert_eq!((&none["matched"], &none["notes"]), (&json!(0), &json!([note])));
    let values = call(&configured, &["list_logs_fields_values", "query=worker", r#"fields=["level"]"#]);
    assert_eq!(values["notes"], json!([note]));
    let all = call(&configured, &["query_logs", "query=worker", "all_fields=true"]);
    assert_eq!((&all["matched"], &all["notes"]), (&json!(4), &Value::Null));
    let ran = configured.run(&["logs", "app", "worker"]);
    assert!(ran.code == Some(0) && ran.stdout.is_empty() && ran.stderr.contains(note), "{ran:?}");
    let ran = configured.run(&["logs", "app", "worker", "--all-fields"]);
    assert!(ran.stdout.lines().count() == 4 && !ran.stderr.contains(note), "{ran:?}");
}

#[test]
fn an_answer_without_entries_has_the_values_that_differ_in_case() {
    let configured = folder(SOURCE);
    let note = json!([r#"level has "error" (rows: 2); selections observe case and spelling."#]);
    // The other selection matches nothing either.
    for selections in [r#"{"level": ["ERROR"]}"#, r#"{"level": ["Error", "fatal"], "service": ["none"]}"#] {
        let selections = format!("selections={selections}");
        let none = call(&configured, &["query_logs", &selections]);
        assert_eq!((&none["matched"], &none["notes"]), (&json!(0), &note), "{selections}");
        let values = call(&configured, &["list_logs_fields_values", &selections, r#"fields=["service"]"#]);
        assert_eq!(values["notes"], note, "{selections}");
    }
    // Who waits for new entries gets no note again.
    let selections = r#"selections={"level": ["ERROR"]}"#;
    let tail = call(&configured, &["query_logs", selections])["tail"].as_str().unwrap().to_owned();
    let later = call(&configured, &["query_logs", selections, "direction=forward", &format!("cursor={tail}")]);
    assert_eq!((&later["matched"], &later["notes"]), (&json!(0), &Value::Null));
    let absent = call(&configured, &["query_logs", r#"selections={"level": ["fatal"]}"#]);
    assert_eq!((&absent["matched"], &absent["notes"]), (&json!(0), &Value::Null));
}

/// The line of a log file has nothing of the fields of a table beside it.
#[test]
fn searched_fields_are_named_if_one_of_several_sources_has_others() {
    let sources = "logs: [{name: app, table: shop.events}, {name: access, table: shop.access}]\n";
    let configured = folder(&format!("databases: [{{name: shop, files: shop}}]\n{sources}"));
    let line = "10.1.2.3 - - [01/Mar/2026:12:00:00 +0000] \"GET /a HTTP/1.1\" 200 12 \"-\" \"curl/8\"\n";
    std::fs::write(configured.folder().join("shop/access.log"), line.repeat(4)).unwrap();
    let notes = |source: &str| {
        let answer = call(&configured, &["query_logs", source, "query=worker", "limit=0"]);
        assert_eq!(answer["matched"], 0, "{answer}");
        answer["notes"].clone()
    };
    assert_eq!(notes("source=access"), Value::Null);
    let note = "The words of query were searched in message and entry_text only; with all_fields, in all fields.";
    assert_eq!(notes(r#"source=["app", "access"]"#), json!([note]));
}

#[test]
fn a_facet_ignores_its_own_selection() {
    let answer = call(
        &folder(SOURCE),
        &[
            "list_logs_fields_values",
            r#"fields=["level", "service", "status"]"#,
            r#"selections={"level": ["error"], "service": ["web"]}"#,
            "after=2026-03-01",
        ],
    );
    assert_eq!(answer["matched"], 1);
    assert_eq!(answer["facets"]["level"]["values"], serde_json::json!([["info", 5], ["error", 1]]));
    assert_eq!(answer["facets"]["service"]["values"], serde_json::json!([["web", 1], ["worker", 1]]));
    assert_eq!(answer["facets"]["status"]["values"], serde_json::json!([["500", 1]]));
}

#[test]
fn pages_of_entries_with_equal_times_neither_repeat_nor_lose_any() {
    let configured = folder(SOURCE);
    let mut seen = Vec::new();
    let mut answer = call(&configured, &["query_logs", "limit=2"]);
    let tail = format!("cursor={}", answer["tail"].as_str().unwrap());
    loop {
        seen.extend(messages(&answer));
        let Some(cursor) = answer["cursor"].as_str() else { break };
        answer = call(&configured, &["query_logs", "limit=2", &format!("cursor={cursor}")]);
    }
    seen.sort();
    let mut all: Vec<&str> = EVENTS.lines().skip(1).filter_map(|line| line.split(',').nth(3)).collect();
    all.sort_unstable();
    assert_eq!(seen, all);
    let more = format!("{EVENTS}2026-03-01 12:03:00,info,web,late tie,200\n2026-03-01 12:04:00,info,web,new,200\n");
    std::fs::write(configured.folder().join("shop/events.csv"), more).unwrap();
    assert_eq!(messages(&call(&configured, &["query_logs", &tail])), ["late tie", "new"]);
}

#[test]
fn identical_rows_are_not_lost() {
    let configured = folder(SOURCE);
    let rows: String = std::iter::repeat_n("2026-03-01 12:00:00,info,web,the same,200\n", 7).collect();
    let header = EVENTS.lines().next().unwrap();
    std::fs::write(configured.folder().join("shop/events.csv"), format!("{header}\n{rows}")).unwrap();
    for direction in ["direction=backward", "direction=forward"] {
        let mut pages = Vec::new();
        let mut answer = call(&configured, &["query_logs", "limit=2", direction]);
        loop {
            pages.push(messages_or_none(&answer).len());
            let Some(cursor) = answer["cursor"].as_str().filter(|_| pages.last() != Some(&0)) else { break };
            answer = call(&configured, &["query_logs", "limit=2", &format!("cursor={cursor}")]);
        }
        assert_eq!(pages.iter().sum::<usize>(), 7, "{direction}: {pages:?}");
    }
}

#[test]
fn context_has_the_lines_around_a_time() {
    let context = r#"context={"time": "2026-03-01T12:01:00Z", "before": 1, "after": 2}"#;
    let answer = call(&folder(SOURCE), &["query_logs", "query=slow", context]);
    let body = |part: &str, row: usize| {
        let place = answer[part]["columns"].as_array().unwrap().iter().position(|column| column == "body").unwrap();
        answer[part]["rows"][row][place].as_str().unwrap().to_owned()
    };
    assert_eq!(body("before", 0), "GET /b took 40 ms");
    assert_eq!([body("after", 0), body("after", 1)], ["job 7 is slow", "job 8 failed: connection refused"]);
}

#[test]
fn all_violations_are_reported_at_once() {
    let ran = folder(SOURCE).run(&[
        "call",
        "query_logs",
        "after=2026-03-02",
        "before=2026-03-01",
        "query=\"open",
        r#"facets=["levle"]"#,
        r#"selections={"servce": ["web"]}"#,
        r#"conditions={"column": "bdy", "op": "=", "value": 1}"#,
    ]);
    for part in [
        "is not earlier than before",
        "the source covers 2026-03-01T12:00:00Z to 2026-03-01T12:03:00Z",
        "the quote at character 1 is not closed",
        "there is no field \"levle\"; nearest: level",
        "there is no field \"servce\"; nearest: service",
        "there is no column \"bdy\"",
    ] {
        assert!(ran.stderr.contains(part), "{part}\n{}", ran.stderr);
    }
    let ran = folder(SOURCE).run(&["call", "query_logs", "source=ap"]);
    assert!(ran.stderr.contains("there is no log source \"ap\"; nearest: app"), "{}", ran.stderr);
}

#[test]
fn several_sources_are_searched_together() {
    let configured = folder(
        "databases: [{name: shop, files: shop}]\nlogs: [{name: app, table: shop.events}, {name: other, table: shop.more}]\n",
    );
    let more = "ts,severity,msg\n2026-03-01 12:00:30,error,connection to db2 lost\n";
    std::fs::write(configured.folder().join("shop/more.csv"), more).unwrap();
    let answer = call(
        &configured,
        &["query_logs", r#"source=["app", "other"]"#, "query=connection", r#"facets=["source", "severity"]"#],
    );
    assert_eq!(answer["matched"], 3);
    assert_eq!(answer["facets"]["source"]["values"], serde_json::json!([["app", 2], ["other", 1]]));
    assert_eq!(answer["facets"]["severity"]["values"], serde_json::json!([["error", 3]]));
    assert_eq!(answer["entries"]["rows"][1][2], "connection to db2 lost");
}

#[test]
fn a_source_needs_its_access_names() {
    let configured = folder(
        "databases: [{name: shop, files: shop}]
logs: [{name: app, table: shop.events, access: [logs.read]}]
roles: [{name: reader, toolsets: ['*'], databases: ['*']}, {name: auditor, toolsets: ['*'], databases: ['*'], access: ['logs.*']}, {name: elsewhere, toolsets: ['*'], access: ['*']}]
auth: {keys: keys.json}
",
    );
    let reaches = |role: &str| {
        let ran = configured.run(&["access", "explain", "--role", role]);
        ran.stdout.lines().filter(|line| line.starts_with("yes  tool") && line.contains("logs")).count()
    };
    assert_eq!([reaches("reader"), reaches("elsewhere"), reaches("auditor")], [0, 0, 4]);
}

#[tokio::test]
async fn calls_reach_only_sources_with_their_access_names() {
    let configuration = "databases: [{name: shop, files: shop}]
logs: [{name: app, table: shop.events, access: [logs.read]}, {name: open, table: shop.events}]
roles: [{name: admin, toolsets: ['*'], databases: ['*'], access: ['logs.*'], claims: {groups: admins}},
  {name: clerk, toolsets: ['*'], databases: ['*'], claims: {groups: clerks}}]
";
    let node = TokenServer::start(configuration, |folder| {
        std::fs::write(folder.join("shop/events.csv"), EVENTS).unwrap();
    });
    let names = async |token: &str| node.call(token, "list_logs_sources", json!({"extract": "name"})).await;
    assert_eq!(names(&node.admin).await, "app\nopen\n");
    assert_eq!(names(&node.clerk).await, "open\n");
    for (tool, more) in [
        ("query_logs", json!({})),
        ("list_logs_fields", json!({})),
        ("list_logs_fields_values", json!({"fields": ["service"]})),
    ] {
        let call = async |token: &str, source: &str| {
            let mut arguments = more.clone();
            arguments["source"] = source.into();
            node.call(token, tool, arguments).await
        };
        let granted = call(&node.admin, "app").await;
        assert!(granted.contains("web"), "{granted}");
        assert!(call(&node.clerk, "open").await.contains("web"), "{tool}");
        // A hidden source is answered like one that does not exist.
        let (hidden, absent) = (call(&node.clerk, "app").await, call(&node.clerk, "apx").await);
        assert_eq!(hidden.replace("app", "apx"), absent, "{tool}");
        assert!(absent.contains(r#"there is no log source \"apx\"; there are open"#), "{absent}");
    }
}

#[test]
fn indexes_of_sqlite_are_listed() {
    let configured =
        ConfiguredFolder::new("databases: [{name: lite, sqlite: app.db}]\nlogs: [{name: app, table: lite.events}]\n");
    let lite = rusqlite::Connection::open(configured.folder().join("app.db")).unwrap();
    lite.execute_batch(
        "CREATE TABLE events (id INTEGER PRIMARY KEY, created_at TEXT, level TEXT, service TEXT UNIQUE, body TEXT, host TEXT);
         CREATE INDEX by_time ON events (created_at, level);
         CREATE INDEX of_errors ON events (host) WHERE level = 'error';
         CREATE INDEX by_length ON events (length(body));
         INSERT INTO events VALUES (1, '2026-03-01T12:00:00Z', 'info', 'web', 'started', 'a')",
    )
    .unwrap();
    let fields = call(&configured, &["list_logs_fields"]);
    let search: Vec<(&str, &str)> = fields
        .as_array()
        .unwrap()
        .iter()
        .map(|field| (field["field"].as_str().unwrap(), field["search"].as_str().unwrap()))
        .collect();
    let expected = [
        ("created_at", "index"),
        ("level", "scan"),
        ("body", "scan"),
        ("id", "index"),
        ("service", "index"),
        ("host", "scan"),
    ];
    assert_eq!(search, expected);
}

#[test]
fn all_fields_are_counted_where_there_are_more_than_one_scan_counts() {
    let configured =
        ConfiguredFolder::new("databases: [{name: shop, files: shop}]\nlogs: [{name: wide, table: shop.wide}]\n");
    let names: Vec<String> = (0..120).map(|number| format!("f{number}")).collect();
    let row = |second: usize| {
        let values: Vec<String> =
            (0..120).map(|number| if number % 2 == 0 { "same".to_owned() } else { format!("v{second}") }).collect();
        format!("2026-03-01 12:00:0{second},{}\n", values.join(","))
    };
    let text = format!("time,{}\n{}", names.join(","), (0..3).map(row).collect::<String>());
    std::fs::write(configured.folder().join("shop/wide.csv"), text).unwrap();
    let fields = call(&configured, &["list_logs_fields"]);
    let counts: Vec<(String, u64)> = fields
        .as_array()
        .unwrap()
        .iter()
        .skip(1)
        .map(|field| (field["field"].as_str().unwrap().to_owned(), field["values"].as_u64().unwrap()))
        .collect();
    let expected: Vec<(String, u64)> =
        names.into_iter().enumerate().map(|(number, name)| (name, if number % 2 == 0 { 1 } else { 3 })).collect();
    assert_eq!(counts, expected);
}

#[test]
fn the_command_prints_entries_and_facets() {
    let configured = folder(SOURCE);
    let ran = configured.run(&["logs", "app", "connection"]);
    let expected = "2026-03-01T12:00:10Z error   connection to db1 timed out service=web status=500\n\
                    2026-03-01T12:02:00Z error   job 8 failed: connection refused service=worker\n";
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), expected), "{ran:?}");
    let ran = configured.run(&["logs", "--facets", "level"]);
    assert_eq!(ran.stdout, "level\n         7  info\n         2  error\n         1  warning\n");
}

#[test]
fn a_relative_time_is_no_option() {
    let configured = folder(SOURCE);
    let all = configured.run(&["logs", "app"]);
    let ran = configured.run(&["logs", "app", "--after", "-36500d", "--before", "-0s", "-n", "50"]);
    assert_eq!((ran.code, &ran.stdout), (Some(0), &all.stdout), "{ran:?}");
    let ran = configured.run(&["logs", "app", "--after", "-15m"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    let ran = configured.run(&["logs", "--after", "--follow"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("a time is written as -15m, today or 2026-03-01T12:00:00Z"), "{ran:?}");
}

#[test]
fn the_same_questions_over_files_and_sqlite_agree() {
    let configured = folder(
        "databases: [{name: shop, files: shop}, {name: lite, sqlite: lite.db}]
logs: [{name: files, table: shop.events}, {name: lite, table: lite.events}]
",
    );
    let lite = rusqlite::Connection::open(configured.folder().join("lite.db")).unwrap();
    lite.execute_batch("CREATE TABLE events (created_at, level TEXT, service TEXT, body TEXT, status INTEGER)")
        .unwrap();
    for line in EVENTS.lines().skip(1) {
        let cells: Vec<Option<&str>> = line.split(',').map(|cell| Some(cell).filter(|cell| !cell.is_empty())).collect();
        lite.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?)", rusqlite::params_from_iter(cells)).unwrap();
    }
    let questions: [&[&str]; 5] = [
        &["query_logs", r#"facets=["level", "service", "status"]"#, "patterns=10"],
        &["query_logs", "after=2026-03-01T12:00:10Z", "before=2026-03-01T12:03:00Z", "direction=forward"],
        &["query_logs", "query=connection | slow", r#"selections={"level": ["error", "warning"]}"#, "limit=1"],
        &["query_logs", r#"conditions={"column": "status", "op": ">=", "value": 500}"#, r#"facets=["status"]"#],
        &["query_logs", r#"histogram={"field": "level", "bars": 5}"#, r#"selections={"status": ["-"]}"#, "limit=0"],
    ];
    for question in questions {
        let [files, lite] = ["files", "lite"].map(|source| {
            let source = format!("source={source}");
            let mut answer = call(&configured, &[question, &[&source]].concat());
            // The database may have applied conditions already.
            for member in ["cursor", "tail", "evaluated"] {
                answer.as_object_mut().unwrap().remove(member);
            }
            answer
        });
        assert_eq!(files, lite, "{question:?}");
        assert_ne!(files["matched"], 0, "{question:?}");
    }
    let fields = configured.run(&["call", "list_logs_fields", "source=lite", "format=csv"]);
    assert!(fields.stdout.contains("status,"), "{fields:?}");
}
