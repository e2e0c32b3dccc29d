//! The advice for logs that are not read, or not as they are meant, reads them.

use serde_json::{Map, Value, json};

use super::ConfiguredFolder;

/// A folder with `shop/app.log`, and the options of its tables.
fn folder(log: &str, tables: &str) -> ConfiguredFolder {
    let configured = ConfiguredFolder::new(&configuration(tables));
    std::fs::write(configured.folder().join("shop/app.log"), log).unwrap();
    configured
}

fn configuration(tables: &str) -> String {
    format!("databases:\n  - name: shop\n    files: shop\n    {tables}\n")
}

fn rows(configured: &ConfiguredFolder, sql: &str) -> Vec<Map<String, Value>> {
    let ran = configured.run(&["query", sql, "--format", "mcp"]);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// What `config check` warns of.
fn warnings(configured: &ConfiguredFolder) -> String {
    let ran = configured.run(&["config", "check"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let warnings: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("database shop: tables:")).collect();
    assert_eq!(ran.stdout.ends_with("nothing wrong\n"), warnings.is_empty(), "{ran:?}");
    warnings.join("\n")
}

#[test]
fn the_suggested_declaration_reads_an_unknown_log() {
    let table = [
        ("081109 203615 148 INFO dfs: a\n081109 203807 222 WARN dfs: b\n", Some("2008-11-09T20:36:15Z"), "dfs: a"),
        ("17/06/09 20:10:40 INFO exec: a\n17/06/09 20:10:41 ERROR exec: b\n", Some("2017-06-09T20:10:40Z"), "exec: a"),
        ("03-17 16:13:38.811 1702 2395 D Win: a\n03-17 16:13:38.819 1702 8671 W P: b\n", None, "Win: a"),
        ("2024-03-09 12:00:00|INFO|a\n2024-03-09 12:00:01|WARN|b\n", Some("2024-03-09T12:00:00Z"), "a"),
        (
            "- 1117838570 2005.06.03 R02 RAS KERNEL INFO a\n- 1117838573 2005.06.03 R02 RAS APP FATAL b\n",
            Some("2005-06-03T22:42:50Z"),
            "a",
        ),
        (
            "2015-07-29 17:41:44,747 - INFO [Peer@7] - it's\n\tat x\n",
            Some("2015-07-29T17:41:44.747Z"),
            "[Peer@7] - it's\n\tat x",
        ),
        ("Dear diary,\ntoday was fine.\n", None, "Dear diary,"),
        ("{\"message\":\"a\"}\n{\"message\":\"b\"}\n{\"message\":\"c\",\"n\":1}\n", None, "a"),
    ];
    for (log, time, message) in table {
        let configured = folder(log, "");
        let doctor = configured.run(&["doctor"]).stdout;
        let advice = doctor.lines().find(|line| line.contains("skipped app.log: unknown log format; "));
        let (_, declaration) = advice.and_then(|line| line.split_once("under its database, ")).expect(&doctor);
        let is_source = declaration.contains("(?<time>");
        assert_ne!(
            doctor.contains("so it becomes a table for SQL, but no log source; declare one"),
            is_source,
            "{doctor}"
        );
        configured.write(&configuration(declaration));
        let warnings = warnings(&configured);
        let no_time = "app: no column is the time of its entries, so it is a table for SQL, but no log source; name";
        assert!(if is_source { warnings.is_empty() } else { warnings.contains(no_time) }, "{declaration}: {warnings}");
        assert_eq!(configured.run(&["logs", "app"]).code == Some(0), is_source, "{declaration}");
        let rows = rows(&configured, "SELECT * FROM app");
        assert_eq!(rows.len(), log.lines().filter(|line| !line.starts_with('\t')).count(), "{declaration}");
        assert_eq!(rows[0]["message"], message, "{declaration}");
        if let Some(time) = time {
            assert_eq!(rows[0]["time"], time, "{declaration}");
        }
        for row in &rows {
            assert_eq!(row["parse_error"], Value::Null, "{row:?}");
            let is_always_there = |name: &str| !["parse_error", "other_fields", "n"].contains(&name);
            assert!(row.iter().all(|(name, value)| !is_always_there(name) || !value.is_null()), "{row:?}");
        }
    }
}

#[test]
fn config_check_says_that_no_entry_has_a_time_and_what_to_declare() {
    let pattern = r"pattern: '^(?<date>\S+) (?<time>\S+) (?<level>\w+) (?<message>.*)$'";
    let log = "17/06/09 20:10:40 INFO a\n17/06/09 20:10:41 WARN b\n";
    let configured = folder(log, &format!("tables: {{app: {{{pattern}}}}}"));
    let found = warnings(&configured);
    let problem = "database shop: tables: app: its entries have no time, because the form of \"17/06/09 20:10:40\" in the \
                   group \"time\" is not certain; declare it beside the pattern, such as ";
    let (_, advice) = found.split_once(problem).expect(&found);
    let (groups, _) = advice.split_once('}').expect(&found);
    let columns = "SELECT date, time, level, message FROM app LIMIT 1";
    let row = |configured: &ConfiguredFolder| rows(configured, columns).pop().map(Value::Object);
    let as_text = json!({"date": "17/06/09", "time": "20:10:40", "level": "INFO", "message": "a"});
    assert_eq!(row(&configured), Some(as_text));
    configured.write(&configuration(&format!("tables: {{app: {{{pattern}, {groups}}}}}}}")));
    assert_eq!(warnings(&configured), "");
    let as_time = json!({"date": "17/06/09", "time": "2017-06-09T20:10:40Z", "level": "INFO", "message": "a"});
    assert_eq!(row(&configured), Some(as_time));
}

#[test]
fn config_check_says_that_a_group_shifts() {
    let pattern = r"pattern: '^(?<host>\S+) (?<status>\S+) (?<message>.*)$', groups: {status: integer}";
    let configured = folder("10.0.0.8 200 a\n10.0.0.7, 10.1.1.1 200 b\n", &format!("tables: {{app: {{{pattern}}}}}"));
    let found = warnings(&configured);
    let problem = "database shop: tables: app: 1 of the first 2 entries do not fit its format pattern: the value of \"status\" \
                   is not an integer, in \"10.0.0.7, 10.1.1.1 200 b\"";
    assert!(found.contains(problem), "{found}");
}

#[test]
fn config_check_says_that_a_declared_format_does_not_fit() {
    let configured = folder("Mar  1 12:00:00 web1 app[7]: x\n", "tables: {app: {format: nginx_error}}");
    let found = warnings(&configured);
    let problem =
        "database shop: tables: app: 1 of the first 1 entries do not fit its format nginx_error: expected a time";
    assert!(found.contains(problem), "{found}");
}
