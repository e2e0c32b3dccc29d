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

#[test]
fn the_error_log_of_apache() {
    let format = pattern(
        r"^\[(?<time>[^\]]+)\] \[(?<module>\w*):(?<level>\w+)\] \[pid (?<pid__int>\d+)[^\]]*\] (?:(?<code>AH\d+): )?(?<message>.*)",
        &[],
    );
    let entries = entries(format, include_str!("data/apache-2.4-error.log"));
    assert_eq!(
        entries[0],
        r#"time=2026-11-26T05:04:07.049563Z module="mpm_event" level="notice" pid=12975 code="AH00489" message="Apache/2.4.71 (Debian) configured -- resuming normal operations" normalized_severity="notice""#
    );
}
