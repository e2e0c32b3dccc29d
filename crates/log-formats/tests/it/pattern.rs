//! Lines that a declared pattern reads.

use std::sync::Arc;

use tidegate_log_formats::{DeclaredGroup, EntryTimeFormat, LinePattern, LogFormat, PatternGroupType};

use super::fixture::{context, context_in, read, rendered, schema_of};

fn pattern(pattern: &str, declared: &[DeclaredGroup]) -> LogFormat {
    LogFormat::Pattern(Arc::new(LinePattern::new(pattern, declared).expect("a pattern")))
}

fn entries(format: LogFormat, text: &str) -> Vec<String> {
    read(schema_of(format, b""), context(), text.as_bytes(), rendered)
}

#[test]
fn the_standard_error_of_postgresql() {
    let format = pattern(
        r"^(?<time>\S+ \S+ \S+) \[(?<pid__int>\d+)\] (?:(?<user>\S*)@(?<database>\S*) )?(?<severity>[A-Z0-9]+):  (?<message>.*)",
        &[],
    );
    let text = include_bytes!("data/postgresql-15.log");
    let entries = read(schema_of(format, b""), context_in("Europe/Berlin"), text, rendered);
    assert_eq!(entries.len(), 19);
    assert_eq!(
        entries[7..11],
        [
            r#"time=2026-11-26T04:15:47.739Z pid=12718 severity="ERROR" message="relation \"t\" does not exist at character 25" normalized_severity="error""#,
            r#"time=2026-11-26T04:15:47.739Z pid=12718 severity="STATEMENT" message="select\n\t \"no such\"\n\t from t""#,
            r#"time=2026-11-26T04:15:47.740Z pid=12718 severity="WARNING" message="two\n\tlines, \"quoted\"" normalized_severity="warning""#,
            r#"time=2026-11-26T04:15:47.740Z pid=12718 severity="CONTEXT" message="PL/pgSQL function inline_code_block line 1 at RAISE""#,
        ]
    );
}

#[test]
fn declared_types_and_values_that_are_not_of_them() {
    let time = EntryTimeFormat::parse("%d.%m.%Y %H:%M:%S").expect("a time format");
    let declared = [
        DeclaredGroup { name: "at".to_owned(), group_type: PatternGroupType::Time(time) },
        DeclaredGroup { name: "took".to_owned(), group_type: PatternGroupType::Float },
    ];
    let format =
        pattern(r"^(?<at>\S+ \S+) (?<level>\w+) took=(?<took>\S*) n=(?<n__int>\S*) ?(?<message>.*)$", &declared);
    let text = "01.03.2024 12:00:00 WARN took=1.5 n=7 slow\n\
                01.03.2024 12:00:00 WARN took=- n=\n\
                01.03.2024 12:00:00 WARN took=x n=7 slow\n\
                41.03.2024 12:00:00 WARN took=1 n=7 slow\n";
    assert_eq!(
        entries(format, text),
        [
            r#"at=2024-03-01T12:00:00Z level="WARN" took=1.5 n=7 message="slow" normalized_severity="warning""#,
            r#"at=2024-03-01T12:00:00Z level="WARN" message="" normalized_severity="warning""#,
            r#"parse_error="the value of \"took\" is not a number""#,
            r#"parse_error="the value of \"at\" is not a time in the declared form""#,
        ]
    );
}

#[test]
fn lines_that_do_not_match_continue_an_entry_that_does() {
    let format = pattern(r"^(?<level>[A-Z]+): (?<message>.*)", &[]);
    let text = "start\nother\nERROR: one\nmore of it\n\n\nINFO: two\n";
    assert_eq!(
        entries(format, text),
        [
            r#"parse_error="the line does not match the pattern""#,
            r#"parse_error="the line does not match the pattern""#,
            r#"level="ERROR" message="one\nmore of it" normalized_severity="error""#,
            r#"level="INFO" message="two" normalized_severity="info""#,
        ]
    );
}

/// The entries of a file that is its own sample, and the columns that a pattern has for it.
fn fitted(expression: &str, text: &str) -> (Vec<String>, LogFormat) {
    let schema = schema_of(pattern(expression, &[]), text.as_bytes());
    let format = schema.format().clone();
    (read(schema, context(), text.as_bytes(), rendered), format)
}

fn unread_time(format: &LogFormat) -> Option<(String, Option<String>)> {
    let LogFormat::Pattern(pattern) = format else { return None };
    pattern.unread_time().map(|unread| (format!("{}: {}", unread.group, unread.example), unread.declaration.clone()))
}

#[test]
fn a_date_and_a_time_of_day_in_two_groups_are_the_time() {
    let expression = r"^(?<date>\S+) (?<time>\S+) +(?<pid__int>\d+) (?<level>\w+) (?<message>.*)$";
    let table = [
        ("081109 203615 148 INFO a", r#"date="081109" time=2008-11-09T20:36:15Z pid=148"#),
        ("2005.11.09 12:01:01 148 INFO a", r#"date="2005.11.09" time=2005-11-09T12:01:01Z pid=148"#),
        // Only one form reads all values.
        ("03-17 16:13:38.811  148 INFO a", r#"date="03-17" time=2023-03-17T16:13:38.811Z pid=148"#),
        // The time needs no date.
        (
            "2005.06.03 2005-06-03-15.42.50.675872 148 INFO a",
            r#"date="2005.06.03" time=2005-06-03T15:42:50.675872Z pid=148"#,
        ),
    ];
    for (line, expected) in table {
        let (entries, format) = fitted(expression, line);
        let expected = format!(r#"{expected} level="INFO" message="a" normalized_severity="info""#);
        assert_eq!((entries, unread_time(&format)), (vec![expected], None), "{line}");
    }
}

#[test]
fn a_group_that_only_has_the_name_of_a_time_loses_nothing() {
    let (entries, format) =
        fitted(r"^(?<date>\S+) (?<level>\w+) (?<message>.*)$", "2024-03-01 INFO a\n2024-03-02 WARN b\n");
    assert_eq!(
        entries,
        [
            r#"date="2024-03-01" level="INFO" message="a" normalized_severity="info""#,
            r#"date="2024-03-02" level="WARN" message="b" normalized_severity="warning""#,
        ]
    );
    assert_eq!(unread_time(&format), Some(("date: 2024-03-01".to_owned(), Some("time %Y-%m-%d".to_owned()))));
}

#[test]
fn a_time_with_two_readings_is_text_until_its_form_is_declared() {
    let expression = r"^(?<date>\S+) (?<time>\S+) (?<message>.*)$";
    let text = "17/06/09 20:10:40 a\n17/06/09 20:10:41 b\n";
    let (read_as_text, format) = fitted(expression, text);
    assert_eq!(read_as_text[0], r#"date="17/06/09" time="20:10:40" message="a""#);
    let (example, declaration) = unread_time(&format).expect("an unread time");
    assert_eq!(example, "time: 17/06/09 20:10:40");
    let declaration = declaration.expect("a declaration");
    let (name, form) = declaration.split_once(' ').expect("a form");
    let group_type = PatternGroupType::from_name(name, Some(form)).expect("a type");
    let declared = [DeclaredGroup { name: "time".to_owned(), group_type }];
    let schema = schema_of(pattern(expression, &declared), text.as_bytes());
    assert_eq!(
        read(schema, context(), text.as_bytes(), rendered),
        [
            r#"date="17/06/09" time=2017-06-09T20:10:40Z message="a""#,
            r#"date="17/06/09" time=2017-06-09T20:10:41Z message="b""#,
        ]
    );
}

#[test]
fn a_single_value_that_is_no_time_leaves_the_other_columns() {
    let (entries, format) =
        fitted(r"^(?<time>\S+) (?<message>.*)$", "2024-03-01T12:00:00Z a\nsoon b\n2024-03-01T12:00:01Z c\n");
    assert_eq!(
        entries,
        [
            r#"time=2024-03-01T12:00:00Z message="a""#,
            r#"message="b" parse_error="the value of \"time\" is not a time in a known form""#,
            r#"time=2024-03-01T12:00:01Z message="c""#,
        ]
    );
    assert_eq!(unread_time(&format), None);
}
