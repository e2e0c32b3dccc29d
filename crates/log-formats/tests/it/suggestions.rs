//! What is suggested for a log of no known format reads it: each entry has its time, and no text is lost.

use std::sync::Arc;

use tidegate_log_formats::{
    DeclaredGroup, EntrySchema, EntryValue, LinePattern, LogFormat, ParsedEntry, PatternGroupType, SuggestedLogFormat,
    detect_log_format, suggest_log_format,
};

use super::fixture::{context, read, rendered};

/// The format that the suggestion declares, and its expression.
fn suggested(text: &str) -> (LogFormat, String) {
    match suggest_log_format(text.as_bytes(), &context()) {
        SuggestedLogFormat::Json { .. } => (LogFormat::Json, "json".to_owned()),
        SuggestedLogFormat::Pattern { expression, time, .. } => {
            let declared = time.map(|time| {
                let (name, form) = time.split_once(' ').expect("a type with a form");
                let group_type = PatternGroupType::from_name(name, Some(form)).expect("a type");
                DeclaredGroup { name: "time".to_owned(), group_type }
            });
            let declared: Vec<DeclaredGroup> = declared.into_iter().collect();
            let pattern = LinePattern::new(&expression, &declared).expect("a pattern");
            (LogFormat::Pattern(Arc::new(pattern)), expression)
        }
    }
}

/// The columns of an entry without those of every file, all of which have a value.
fn complete(entry: &ParsedEntry<'_>) -> String {
    assert!(entry.parse_error().is_none(), "{:?}: {}", entry.parse_error(), entry.text());
    let generated =
        |name: &str| ["other_fields", "entry_text", "parse_error", "entry_offset", "entry_file_id"].contains(&name);
    for (index, column) in entry.schema().columns().iter().enumerate().filter(|(_, column)| !generated(&column.name)) {
        assert_ne!(entry.value(index), EntryValue::Null, "{}: {}", column.name, entry.text());
    }
    rendered(entry)
}

#[test]
fn unknown_logs_are_read_by_their_suggestion() {
    let table = [
        // Hadoop, Spark, Android, Blue Gene, ZooKeeper, OpenStack, Proxifier, MySQL and others.
        (
            "081109 203615 148 INFO dfs.DataNode: Receiving block\n081109 203807 222 WARN dfs.DataNode: done\n",
            r#"time=2008-11-09T20:36:15Z field_1="148" level="INFO" message="dfs.DataNode: Receiving block" normalized_severity="info""#,
        ),
        (
            "17/06/09 20:10:40 INFO executor.Backend: Registered\n17/06/09 20:10:41 ERROR executor.Backend: lost\n",
            r#"time=2017-06-09T20:10:40Z level="INFO" message="executor.Backend: Registered" normalized_severity="info""#,
        ),
        (
            "03-17 16:13:38.811  1702  2395 D WindowManager: drawn\n03-17 16:13:38.819  1702  8671 W Power: lock\n",
            r#"time=2023-03-17T16:13:38.811Z field_1="1702" field_2="2395" level="D" message="WindowManager: drawn" normalized_severity="debug""#,
        ),
        (
            "- 1117838570 2005.06.03 R02-M1 2005-06-03-15.42.50.675872 RAS KERNEL INFO cache error\n",
            r#"field_1="-" time=2005-06-03T22:42:50Z field_2="2005.06.03" field_3="R02-M1" field_4="2005-06-03-15.42.50.675872" field_5="RAS" field_6="KERNEL" level="INFO" message="cache error" normalized_severity="info""#,
        ),
        (
            "2015-07-29 17:41:44,747 - INFO  [Peer:1@774] - Notification\n2015-07-29 17:41:45,000 - WARN  [Peer:1@9] - x\n",
            r#"time=2015-07-29T17:41:44.747Z level="INFO" message="[Peer:1@774] - Notification" normalized_severity="info""#,
        ),
        (
            "api.log.1 2017-05-16 00:00:00.008 25746 INFO nova.wsgi [req-1 - -] GET\n",
            r#"field_1="api.log.1" time=2017-05-16T00:00:00.008Z field_2="25746" level="INFO" message="nova.wsgi [req-1 - -] GET" normalized_severity="info""#,
        ),
        (
            "[10.30 16:49:06] chrome.exe - proxy:5070 open\n[10.30 16:49:07] x.exe close\n",
            r#"time=2023-10-30T16:49:06Z message="chrome.exe - proxy:5070 open""#,
        ),
        (
            "130326 11:41:44 [Note] Plugin disabled\n130326 11:41:44 [ERROR] Fatal\n",
            r#"time=2013-03-26T11:41:44Z message="[Note] Plugin disabled""#,
        ),
        (
            "03/01/2024 1:02:03 PM [WARN ] disk\n03/09/2024 1:02:03 PM [ERROR] disk full\n",
            r#"time=2024-03-01T13:02:03Z level="WARN" message="disk" normalized_severity="warning""#,
        ),
        (
            "2024-03-01 12:00:00.123 UTC LOG started\n\tdetail\n2024-03-01 12:00:01 UTC ERROR no\n",
            r#"time=2024-03-01T12:00:00.123Z level="LOG" message="started\n\tdetail" normalized_severity="info""#,
        ),
        // Values that are attached to the time, and lines without one.
        (
            "7|2024-03-01 12:00:00|INFO|started\n12|2024-03-01 12:00:01|WARN|slow\n",
            r#"field_1="7" time=2024-03-01T12:00:00Z level="INFO" message="started" normalized_severity="info""#,
        ),
        (
            "20171223-22:15:29:606|Step_LSC|30002312|onStand 3579\n20171224-0:7:20:44|Step_LSC|30002312|x\n",
            r#"time=2017-12-23T22:15:29.606Z message="Step_LSC|30002312|onStand 3579""#,
        ),
        (
            "2024-03-01 12:00:00:044 INFO started\n2024-03-01 12:00:01:100 WARN slow\n",
            r#"time=2024-03-01T12:00:00.044Z level="INFO" message="started" normalized_severity="info""#,
        ),
        ("Dear diary,\ntoday was fine.\n", r#"message="Dear diary,""#),
        ("12:00:01 started\n12:00:02 done\n", r#"message="12:00:01 started""#),
        ("{\"a\":1}\n{\"a\":2}\n", "a=1"),
    ];
    for (text, first) in table {
        assert!(detect_log_format(text.as_bytes(), "x.txt").is_none(), "{text}");
        let (format, expression) = suggested(text);
        let schema = EntrySchema::infer(format, &[text.as_bytes()], &context());
        let entries = read(schema, context(), text.as_bytes(), complete);
        assert_eq!(entries[0], first, "{expression}");
        let heads = text.lines().filter(|line| !line.starts_with('\t')).count();
        assert_eq!(entries.len(), heads, "{expression}: {entries:?}");
    }
}

#[test]
fn a_suggestion_is_readable() {
    let (_, expression) = suggested("081109 203615 148 INFO dfs.DataNode: Receiving block\n");
    assert_eq!(
        expression,
        r"^(?<time>(?:\d{6}|\d{8}) (?:\d\d:\d\d:\d\d(?:[.,]\d+)?|\d{6}))\s*(?<field_1>\S+)\s+(?<level>\w+)\s*(?<message>.*)$"
    );
}

/// Day and month are known from a day after the 12th, or from the time at which the file was written: 10 March 2024.
#[test]
fn dates_with_two_readings_are_no_guess() {
    let reading = |first: &str, last: &str| {
        let text = format!("{first} 12:00:00 INFO a\n{last} 12:00:01 INFO b\n");
        match suggest_log_format(text.as_bytes(), &context()) {
            SuggestedLogFormat::Pattern { time, other_time, .. } => {
                (time.unwrap_or_default(), other_time.map(|other| (other.example, other.declarations)))
            }
            SuggestedLogFormat::Json { .. } => panic!("{text}"),
        }
    };
    let month_first = "time %m/%d/%Y %H:%M:%S%.f".to_owned();
    let day_first = "time %d/%m/%Y %H:%M:%S%.f".to_owned();
    assert_eq!(reading("03/04/2023", "13/04/2023"), (day_first.clone(), None));
    assert_eq!(reading("04/03/2023", "04/13/2023"), (month_first.clone(), None));
    assert_eq!(reading("09/03/2024", "10/03/2024"), (day_first.clone(), None));
    let other = Some(("04/05/2023 12:00:01".to_owned(), vec![month_first]));
    assert_eq!(reading("03/05/2023", "04/05/2023"), (day_first, other));
    let (time, others) = reading("03/04/23", "04/04/23");
    assert_eq!(time, "time %d/%m/%y %H:%M:%S%.f");
    assert_eq!(others.unwrap().1, ["time %y/%m/%d %H:%M:%S%.f", "time %m/%d/%y %H:%M:%S%.f"]);
}
