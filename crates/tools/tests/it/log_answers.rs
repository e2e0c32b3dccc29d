//! The members of answers about logs: what was searched, what was left out, names beside values, and what is new.

use std::sync::Arc;

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_core::ErrorKind;
use tidegate_query::{Database, HashKey, RowCondition, RowPolicies, RowPolicy};
use tidegate_sqlite::{SqliteDatabase, SqliteOptions};
use tidegate_tools::LogSource;

use crate::fake::shop;
use crate::log_counting::node::LogNode;

/// A journal of one minute, by the second.
const ROWS: &str = "INSERT INTO events VALUES
  ('2026-03-01T12:00:00Z', 6, 'job 1 done', 10, 'sekret a'), ('2026-03-01T12:00:10Z', 6, 'job 2 done', 20, 'sekret b'),
  ('2026-03-01T12:00:20Z', 4, 'job 3 is slow', 900, 'sekret c'), ('2026-03-01T12:00:30Z', 6, 'job 4 done', 15, 'sekret d'),
  ('2026-03-01T12:00:40Z', 3, 'disk full', NULL, 'sekret e'), ('2026-03-01T12:00:50Z', 6, 'job 5 done', 12, 'sekret f')";

/// The sources `app` and `other` over the tables `events` and `more` of a file of SQLite.
struct Journal {
    folder: TempDir,
    node: LogNode,
}

impl Journal {
    fn new(fields: &[&str]) -> Self {
        Self::with_options(fields, SqliteOptions::default())
    }

    fn with_options(fields: &[&str], options: SqliteOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open(folder.path().join("log.db")).unwrap();
        let columns = "time TEXT, priority INTEGER, message TEXT, took INTEGER, secret TEXT";
        connection.execute_batch(&format!("CREATE TABLE events ({columns}); {ROWS}")).unwrap();
        connection.execute_batch("CREATE TABLE more (time TEXT, message TEXT)").unwrap();
        connection.execute("INSERT INTO more VALUES ('2026-03-01T12:00:45Z', 'disk full here too')", []).unwrap();
        let path = folder.path().join("log.db");
        let database: Arc<dyn Database> = Arc::new(SqliteDatabase::open("lite", vec![path], options).unwrap());
        let source = |name: &str, table: &str, fields: &[&str]| LogSource {
            name: name.to_owned(),
            database: "lite".to_owned(),
            table: table.to_owned(),
            time: Some("time".to_owned()),
            fields: fields.iter().map(|field| (*field).to_owned()).collect(),
            ..LogSource::default()
        };
        let sources = [source("app", "events", fields), source("other", "more", &[])];
        Self { node: LogNode::with_sources(&[database], &sources), folder }
    }

    /// Removes a table as another program would.
    fn drop_table(&self, table: &str) {
        let connection = Connection::open(self.folder.path().join("log.db")).unwrap();
        connection.execute_batch(&format!("DROP TABLE {table}")).unwrap();
    }

    async fn ask(&self, tool: &str, arguments: Value) -> Value {
        self.node.call(tool, arguments).await.unwrap()
    }
}

#[tokio::test]
async fn a_source_that_cannot_be_read_is_an_error_for_it_alone() {
    let journal = Journal::new(&[]);
    journal.drop_table("more");
    let answer = journal.ask("query_logs", json!({"source": ["app", "other"], "query": "disk"})).await;
    assert_eq!((&answer["matched"], &answer["partial"]), (&json!(1), &json!(true)));
    let errors = answer["errors"].as_object().unwrap();
    assert_eq!(errors.keys().collect::<Vec<_>>(), ["other"]);
    assert!(errors["other"].as_str().unwrap().contains("there is no table \"more\""), "{errors:?}");
    let sources = journal.ask("list_logs_sources", json!({})).await;
    assert_eq!((&sources[0]["name"], &sources[0]["error"]), (&json!("app"), &Value::Null), "{sources}");
    assert!(sources[1]["error"].as_str().unwrap().contains("there is no table \"more\""), "{sources}");
    journal.drop_table("events");
    let error = journal.node.call("query_logs", json!({"source": ["app", "other"]})).await.unwrap_err();
    assert!(error.contains("the log source \"app\" cannot be read: "), "{error}");
}

#[tokio::test]
async fn the_log_has_the_reason_why_the_row_policy_of_a_source_does_not_fit() {
    let rows = Some(RowCondition::parse("tenant = 'x'").unwrap());
    let policy =
        RowPolicy { table: "events".to_owned(), rows, columns: Default::default(), except_roles: Default::default() };
    let row_policies = RowPolicies::new(vec![policy], HashKey::from_secret(b"a secret of tests"));
    let journal = Journal::with_options(&[], SqliteOptions { row_policies, ..SqliteOptions::default() });
    let error = journal.node.try_call("query_logs", json!({"source": ["app"]})).await.unwrap_err();
    assert_eq!((error.kind(), error.is_configuration_fault()), (ErrorKind::Forbidden, true));
    assert!(error.message().starts_with("the log source \"app\" cannot be read: the table "), "{error}");
    assert!(error.detail().unwrap().contains("tenant"), "{:?}", error.detail());
}

#[tokio::test]
async fn the_time_that_was_searched_is_that_of_the_arguments_or_of_the_rows() {
    let journal = Journal::new(&[]);
    let searched = async |arguments: Value| {
        let mut all = json!({"source": "app"});
        all.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
        let answer = journal.ask("query_logs", all).await;
        assert_eq!(answer["partial"], false);
        answer["searched"].clone()
    };
    assert_eq!(searched(json!({})).await, json!({"from": "2026-03-01T12:00:00Z", "to": "2026-03-01T12:00:50Z"}));
    assert_eq!(
        searched(json!({"after": "2026-03-01T12:00:15Z"})).await,
        json!({"from": "2026-03-01T12:00:15Z", "to": "2026-03-01T12:00:50Z"})
    );
    assert_eq!(
        searched(json!({"after": "2026-02-01", "before": "2026-02-02"})).await,
        json!({"from": "2026-02-01T00:00:00Z", "to": "2026-02-02T00:00:00Z"})
    );
}

#[tokio::test]
async fn a_range_in_the_future_is_refused_with_the_time_covered() {
    let journal = Journal::new(&[]);
    let error = journal.node.call("query_logs", json!({"source": "app", "after": "2200-01-01"})).await.unwrap_err();
    assert!(error.contains("the range of time is in the future: after is 2200-01-01T00:00:00Z"), "{error}");
    assert!(error.contains("the source covers 2026-03-01T12:00:00Z to 2026-03-01T12:00:50Z"), "{error}");
}

#[tokio::test]
async fn priorities_have_names_and_numbers_have_ranges() {
    let journal = Journal::new(&[]);
    let arguments = json!({"source": "app", "fields": ["priority"]});
    let answer = journal.ask("list_logs_fields_values", arguments).await;
    let expected = json!([["6", 4, "info"], ["3", 1, "error"], ["4", 1, "warning"]]);
    assert_eq!(answer["facets"]["priority"]["values"], expected);
    let arguments = json!({"source": "app", "fields": ["took", "secret"], "ranges": 2});
    let answer = journal.ask("list_logs_fields_values", arguments).await;
    let took = &answer["facets"]["took"];
    let ranges = took["ranges"].as_array().unwrap();
    assert!((1..=2).contains(&ranges.len()), "{answer}");
    assert_eq!(ranges.iter().map(|range| range[2].as_u64().unwrap()).sum::<u64>(), 5, "{answer}");
    for (range, value) in [(&ranges[0], 10.0), (&ranges[ranges.len() - 1], 900.0)] {
        assert!(range[0].as_f64().unwrap() <= value && value <= range[1].as_f64().unwrap(), "{answer}");
    }
    assert_eq!(took["missing"], 1);
    assert_eq!(answer["facets"]["secret"]["values"].as_array().unwrap().len(), 6, "a text has no ranges");
}

#[tokio::test]
async fn fields_of_a_source_hide_all_others() {
    let journal = Journal::new(&["took"]);
    let fields = journal.ask("list_logs_fields", json!({"source": "app"})).await;
    let names: Vec<&str> = fields.as_array().unwrap().iter().filter_map(|row| row["field"].as_str()).collect();
    assert_eq!(names, ["time", "priority", "message", "took"]);
    let answer = journal.ask("query_logs", json!({"source": "app", "all_fields": true, "query": "done"})).await;
    assert_eq!(answer["entries"]["columns"], json!(["time", "priority", "message", "took"]));
    let hidden = [
        json!({"columns": ["secret"]}),
        json!({"query": "secret:a"}),
        json!({"facets": ["secret"]}),
        json!({"selections": {"secret": ["a"]}}),
    ];
    for mut arguments in hidden {
        arguments["source"] = "app".into();
        let error = journal.node.call("query_logs", arguments.clone()).await.unwrap_err();
        assert!(error.contains("there is no field \"secret\""), "{arguments}: {error}");
    }
    let all = json!({"source": "app", "all_fields": true, "query": "sekret"});
    assert_eq!(journal.ask("query_logs", all.clone()).await["matched"], 0);
    assert_eq!(Journal::new(&[]).ask("query_logs", all).await["matched"], 6);
}

#[tokio::test(start_paused = true)]
async fn a_scan_that_ends_at_its_time_limit_is_partial() {
    let database: Arc<dyn Database> = Arc::new(shop());
    let source = LogSource {
        name: "slow".to_owned(),
        database: "shop".to_owned(),
        table: "endless".to_owned(),
        time: Some("name".to_owned()),
        ..LogSource::default()
    };
    let node = LogNode::with_sources(&[database], &[source]);
    let answer = node.call("query_logs", json!({"after": "2026-03-01"})).await.unwrap();
    assert_eq!((&answer["partial"], &answer["matched"]), (&json!(true), &json!(0)));
    let advice = "the scan ended at its time limit; give a shorter time (after, before) or fewer sources";
    assert_eq!(answer["reason"], advice);
    assert_eq!(answer["searched"], json!({"from": null, "to": null}), "nothing was searched");
    assert!(answer["cursor"].is_null() && answer["tail"].is_null(), "{answer}");
}

#[tokio::test]
async fn a_role_in_the_place_of_a_field_has_the_name_of_its_field() {
    let journal = Journal::new(&[]);
    for mut arguments in [
        json!({"facets": ["severity"]}),
        json!({"histogram": {"field": "severity"}}),
        json!({"selections": {"severity": ["3"]}}),
    ] {
        arguments["source"] = "app".into();
        let error = journal.node.call("query_logs", arguments.clone()).await.unwrap_err();
        let expected = "there is no field \"severity\"; the severity is in the field \"priority\"";
        assert!(error.contains(expected), "{arguments}: {error}");
    }
}

/// Log files have the severity as their format writes it, and one with the same values for all of them.
#[tokio::test]
async fn both_severities_of_a_log_file_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let lines = "CREATE TABLE lines (time TEXT, level TEXT, normalized_severity TEXT, message TEXT);
                 INSERT INTO lines VALUES ('2026-03-01T12:00:00Z', 'WARN', 'warning', 'slow')";
    Connection::open(&path).unwrap().execute_batch(lines).unwrap();
    let database: Arc<dyn Database> =
        Arc::new(SqliteDatabase::open("lite", vec![path], SqliteOptions::default()).unwrap());
    let (name, table) = ("app".to_owned(), "lines".to_owned());
    let source = LogSource { name, database: "lite".to_owned(), table, ..LogSource::default() };
    let node = LogNode::with_sources(&[database], &[source]);
    let error = node.call("query_logs", json!({"facets": ["severity"]})).await.unwrap_err();
    let expected = "the severity is in the field \"level\", and normalized in \"normalized_severity\"";
    assert!(error.contains(expected), "{error}");
    let answer = node.call("query_logs", json!({"facets": ["normalized_severity"]})).await.unwrap();
    assert_eq!(answer["facets"]["normalized_severity"]["values"][0][0], "warning", "{answer}");
}

/// Several entries have the time, and a cursor names one of them.
#[tokio::test]
async fn context_has_the_lines_around_the_entry_of_a_cursor() {
    let journal = Journal::new(&[]);
    let connection = Connection::open(journal.folder.path().join("log.db")).unwrap();
    connection.execute_batch("UPDATE events SET time = '2026-03-01T12:00:30Z'").unwrap();
    let all = journal.ask("query_logs", json!({"source": "app"})).await;
    let messages = |entries: &Value| -> Vec<String> {
        let rows = entries["rows"].as_array().unwrap().iter();
        rows.map(|row| row[2].as_str().unwrap().to_owned()).collect()
    };
    let mut oldest_first = messages(&all["entries"]);
    oldest_first.reverse();
    // The only match has no page after it going backward.
    let disk = json!({"source": "app", "query": "disk", "limit": 1, "direction": "forward"});
    let page = journal.ask("query_logs", disk).await;
    let context = json!({"cursor": page["cursor"], "before": 5, "after": 5});
    let around = journal.ask("query_logs", json!({"source": "app", "query": "disk", "context": context})).await;
    let found = [messages(&around["before"]), vec!["disk full".to_owned()], messages(&around["after"])].concat();
    assert_eq!(found, oldest_first);
    let page = journal.ask("query_logs", json!({"source": "app", "limit": 3})).await;
    let context = json!({"cursor": page["cursor"], "before": 1, "after": 2});
    let around = journal.ask("query_logs", json!({"source": "app", "context": context})).await;
    assert_eq!(messages(&around["before"]), oldest_first[2..3]);
    assert_eq!(messages(&around["after"]), oldest_first[4..6]);
    let other = json!({"source": "app", "query": "disk", "context": context});
    let error = journal.node.call("query_logs", other).await.unwrap_err();
    assert!(error.contains("context.cursor: the cursor belongs to another request"), "{error}");
}

#[tokio::test]
async fn patterns_that_were_not_there_before_are_new() {
    let journal = Journal::new(&[]);
    let mut arguments = json!({"source": "app", "limit": 0, "patterns": 1, "after": "2026-03-01T12:00:25Z", "before": "2026-03-01T12:00:51Z"});
    let patterns = journal.ask("query_logs", arguments.clone()).await["patterns"].clone();
    assert_eq!(patterns["rows"][0][1], "job <number> done");
    assert_eq!(patterns["more"], json!({"patterns": 1, "rows": 1}));
    assert_eq!(
        patterns["changes"],
        json!({
            "baseline": {"from": "2026-03-01T11:59:59Z", "to": "2026-03-01T12:00:25Z", "matched": 3},
            "columns": ["rows", "pattern", "first", "last", "rows_before"],
            "rows": [[1, "disk full", "2026-03-01T12:00:40Z", "2026-03-01T12:00:40Z", 0]],
        })
    );
    arguments["after"] = "2026-03-01T12:00:00Z".into();
    let changes = journal.ask("query_logs", arguments).await["patterns"]["changes"].clone();
    assert!(changes["rows"].is_null() && changes["reason"].as_str().unwrap().contains("no entries"), "{changes}");
    let unbounded = journal.ask("query_logs", json!({"source": "app", "patterns": 1})).await;
    assert!(unbounded["patterns"]["changes"].is_null(), "{unbounded}");
}
