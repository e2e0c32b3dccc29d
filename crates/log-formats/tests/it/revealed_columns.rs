//! From which columns the values of others can be read.

use std::sync::Arc;

use tidegate_log_formats::{EntrySchema, LinePattern, LogFormat};

use super::fixture::{format, schema_of};

/// The names of the columns from which the values of `column` can be read.
fn revealing(schema: &EntrySchema, column: &str) -> String {
    let position = schema.column_index(column).expect("a column");
    let columns = schema.columns().iter().zip(schema.revealed_columns());
    let revealing = columns.filter(|(_, revealed)| revealed.contains(&position));
    revealing.map(|(column, _)| column.name.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_text_of_an_entry_reveals_all_that_is_parsed_from_it() {
    for name in LogFormat::names().filter(|name| *name != "pattern") {
        let schema = EntrySchema::new(format(name));
        let text = schema.column_index("entry_text").expect("the text");
        for column in schema.columns().iter().take(text) {
            assert!(revealing(&schema, &column.name).ends_with("entry_text"), "{name}: {}", column.name);
        }
        for generated in ["entry_text", "parse_error", "entry_offset", "entry_file_id"] {
            assert_eq!(revealing(&schema, generated), "", "{name}: {generated}");
        }
    }
}

#[test]
fn a_column_and_its_parts_reveal_each_other() {
    let access = EntrySchema::new(format("combined"));
    assert_eq!(revealing(&access, "remote_addr"), "forwarded_for entry_text");
    assert_eq!(revealing(&access, "path"), "request entry_text");
    assert_eq!(revealing(&access, "request"), "method path protocol entry_text");
    let syslog = EntrySchema::new(format("syslog"));
    assert_eq!(revealing(&syslog, "message"), "entry_text");
    assert_eq!(revealing(&syslog, "severity"), "pri normalized_severity normalized_severity_number entry_text");
    assert_eq!(
        revealing(&syslog, "pri"),
        "facility severity normalized_severity normalized_severity_number entry_text"
    );
    let haproxy = EntrySchema::new(format("haproxy"));
    assert_eq!(revealing(&haproxy, "path"), "message entry_text");
    assert_eq!(revealing(&EntrySchema::new(format("apache_error")), "code"), "message entry_text");
    assert_eq!(revealing(&EntrySchema::new(format("csvlog")), "process_id"), "session_id message detail entry_text");
    assert_eq!(revealing(&EntrySchema::new(format("jsonlog")), "pid"), "session_id message detail entry_text");
}

#[test]
fn texts_reveal_the_values_that_their_program_repeats() {
    let nginx = EntrySchema::new(format("nginx_error"));
    assert_eq!(revealing(&nginx, "request"), "message subrequest upstream entry_text");
    assert_eq!(revealing(&nginx, "client"), "message entry_text");
    assert_eq!(revealing(&nginx, "host"), "message server referrer entry_text");
    assert_eq!(revealing(&nginx, "message"), "entry_text");
    let haproxy = EntrySchema::new(format("haproxy"));
    assert_eq!(revealing(&haproxy, "client_ip"), "message entry_text");
    assert_eq!(revealing(&haproxy, "frontend_name"), "backend_name message entry_text");
    assert_eq!(revealing(&EntrySchema::new(format("combined")), "virtual_host"), "referer entry_text");
    for (name, user, statement) in
        [("csvlog", "user_name", "query"), ("jsonlog", "user", "statement"), ("postgresql", "user_name", "query")]
    {
        let postgres = EntrySchema::new(format(name));
        assert_eq!(revealing(&postgres, user), "message detail entry_text", "{name}");
        assert_eq!(revealing(&postgres, statement), "message detail context entry_text", "{name}");
    }
}

#[test]
fn members_with_values_of_other_types_are_in_other_fields() {
    let schema = schema_of(format("json"), b"{\"level\":\"info\",\"user\":7}\n");
    assert_eq!(revealing(&schema, "user"), "other_fields entry_text");
    assert_eq!(revealing(&schema, "level"), "other_fields normalized_severity normalized_severity_number entry_text");
}

#[test]
fn groups_within_groups_reveal_each_other() {
    let pattern = LinePattern::new(r"^(?<head>(?<level>[A-Z]+) ((?<user>\w+))+) (?<message>.*)$", &[]);
    let schema = EntrySchema::new(LogFormat::Pattern(Arc::new(pattern.expect("a pattern"))));
    assert_eq!(revealing(&schema, "message"), "entry_text");
    assert_eq!(revealing(&schema, "user"), "head entry_text");
    assert_eq!(revealing(&schema, "level"), "head normalized_severity normalized_severity_number entry_text");
    assert_eq!(revealing(&schema, "head"), "level user normalized_severity normalized_severity_number entry_text");
}

#[test]
fn the_time_reveals_the_date_beside_it() {
    let pattern = LinePattern::new(r"^(?<date>\S+) (?<time>\S+) (?<message>.*)$", &[]).expect("a pattern");
    let schema = EntrySchema::new(LogFormat::Pattern(Arc::new(pattern)));
    assert_eq!(revealing(&schema, "date"), "time entry_text");
}
