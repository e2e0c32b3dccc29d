//! Logs that PostgreSQL 15 of Debian wrote, and lines of other versions.

use super::fixture::{context_in, entries, format, read, rendered, schema_of};

const CSV: &[u8] = include_bytes!("data/postgresql-15.csv");
const TEXT: &[u8] = include_bytes!("data/postgresql-15.log");
const JSON: &[u8] = include_bytes!("data/postgresql-15.json");

#[test]
fn csvlog_of_version_15() {
    let entries = read(schema_of(format("csvlog"), CSV), context_in("Europe/Berlin"), CSV, rendered);
    assert_eq!(entries.len(), 17);
    assert!(entries.iter().all(|entry| !entry.contains("parse_error")), "{entries:#?}");
    assert_eq!(
        entries[7..9],
        [
            r#"log_time=2026-11-26T04:15:47.739Z user_name="postgres" database_name="postgres" process_id=12718 connection_from="[local]" session_id="6b07b273.31ae" session_line_num=4 command_tag="SELECT" session_start_time=2026-11-26T04:15:47Z virtual_transaction_id="3/3" transaction_id=0 error_severity="ERROR" sql_state_code="42P01" message="relation \"t\" does not exist" query="select\n \"no such\"\n from t" query_pos=25 application_name="psql" backend_type="client backend" query_id=0 normalized_severity="error""#,
            r#"log_time=2026-11-26T04:15:47.740Z user_name="postgres" database_name="postgres" process_id=12718 connection_from="[local]" session_id="6b07b273.31ae" session_line_num=5 command_tag="DO" session_start_time=2026-11-26T04:15:47Z virtual_transaction_id="3/4" transaction_id=0 error_severity="WARNING" sql_state_code="01000" message="two\nlines, \"quoted\"" context="PL/pgSQL function inline_code_block line 1 at RAISE" application_name="psql" backend_type="client backend" query_id=-8638577675960582524 normalized_severity="warning""#,
        ]
    );
}

#[test]
fn jsonlog_agrees_with_csvlog() {
    let view = |format_name: &str, bytes: &[u8]| {
        read(schema_of(format(format_name), bytes), context_in("UTC"), bytes, |entry| {
            (entry.time(), entry.severity(), entry.message().map(str::to_owned), entry.fits())
        })
    };
    let csv = view("csvlog", CSV);
    assert_eq!(view("jsonlog", JSON), csv);
    assert!(csv.iter().all(|(time, severity, _, fits)| time.is_some() && severity.is_some() && *fits));
}

/// The text names no state, and has the position within the message.
#[test]
fn text_agrees_with_csvlog() {
    let view = |format_name: &str, bytes: &[u8]| {
        let schema = schema_of(format(format_name), bytes);
        let columns = ["process_id", "detail", "hint", "context", "query"]
            .map(|name| schema.columns().iter().position(|column| column.name == name).expect("the column"));
        read(schema, context_in("Europe/Berlin"), bytes, |entry| {
            let values = columns.map(|column| format!("{:?}", entry.value(column)));
            let message = entry.message().map(|message| message.trim_end_matches(" at character 25").to_owned());
            (entry.time(), entry.severity(), message, values, entry.fits())
        })
    };
    assert_eq!(view("postgresql", TEXT), view("csvlog", CSV));
}

#[test]
fn prefixes_of_text() {
    let table = [
        (
            "2024-03-09 23:59:00.123 UTC [1234] app@shop ERROR:  no\n2024-03-09 23:59:00.123 UTC [1234] app@shop STATEMENT:  \n\tselect\n\t\t1\n",
            r#"log_time=2024-03-09T23:59:00.123Z user_name="app" database_name="shop" process_id=1234 error_severity="ERROR" message="no" query="\nselect\n\t1" normalized_severity="error""#,
        ),
        (
            "2024-03-09 23:59:00 UTC:10.0.0.1(54321):app@shop:[77]:LOG:  duration: 1 ms\n",
            r#"log_time=2024-03-09T23:59:00Z user_name="app" database_name="shop" process_id=77 error_severity="LOG" message="duration: 1 ms" normalized_severity="info""#,
        ),
        (
            "2024-03-09 23:59:00 UTC [77-3] user=app,db=shop,client=10.0.0.1 WARNUNG:  voll\n",
            r#"log_time=2024-03-09T23:59:00Z user_name="app" database_name="shop" process_id=77 error_severity="WARNUNG" message="voll""#,
        ),
    ];
    for (text, expected) in table {
        assert_eq!(entries("postgresql", text), [expected]);
    }
}

#[test]
fn lines_of_another_process_are_no_detail() {
    let line = |process: u32, label: &str| format!("2024-03-09 23:59:00 UTC [{process}] {label}:  x\n");
    let text = [line(1, "ERROR"), line(2, "DETAIL"), line(1, "HINT"), line(2, "LOG")].concat();
    assert_eq!(
        entries("postgresql", &text),
        [
            r#"log_time=2024-03-09T23:59:00Z process_id=1 error_severity="ERROR" message="x\n2024-03-09 23:59:00 UTC [2] DETAIL:  x" hint="x" normalized_severity="error""#,
            r#"log_time=2024-03-09T23:59:00Z process_id=2 error_severity="LOG" message="x" normalized_severity="info""#,
        ]
    );
    let misfit = r#"parse_error="expected a level and two blanks, such as LOG: at byte 24""#;
    assert_eq!(entries("postgresql", "2024-03-09 23:59:00 UTC archived\n"), [misfit]);
}

/// A line with this many columns, as versions 12 to 18 and a later one write it.
fn line_with_columns(columns: usize) -> String {
    let mut values = vec!["2024-03-01 12:00:00.123 UTC", "\"u\"", "\"d\"", "7"];
    values.resize(11, "");
    values.extend(["LOG", "00000", "\"m\""]);
    values.resize(columns, "");
    values.join(",") + "\n"
}

#[test]
fn versions_differ_in_columns() {
    let expected = r#"log_time=2024-03-01T12:00:00.123Z user_name="u" database_name="d" process_id=7 error_severity="LOG" sql_state_code="00000" message="m" normalized_severity="info""#;
    for columns in [23, 24, 26, 27] {
        assert_eq!(entries("csvlog", &line_with_columns(columns)), [expected], "{columns}");
    }
    let later = line_with_columns(26).trim_end().to_owned() + ",new\n";
    assert!(entries("csvlog", &later)[0].contains("extra_1=\"new\""));
    let reason = r#"parse_error="expected at least 23 columns before the end at byte 67""#;
    assert_eq!(entries("csvlog", &line_with_columns(22)), [reason]);
}

#[test]
fn a_record_that_a_crash_cut_does_not_take_the_next_ones() {
    let text = format!("2024-03-01 12:00:00.123 UTC,\"u\",\"d\",7,\"open\nline\n{0}{0}", line_with_columns(26));
    let entries = entries("csvlog", &text);
    assert_eq!(entries.len(), 3);
    assert_eq!(entries[0], r#"parse_error="expected a closing quote at byte 49""#);
    assert!(entries[1].contains("message=\"m\""));
}

#[test]
fn an_unknown_abbreviation_needs_a_declared_zone() {
    let text = line_with_columns(26).replace("UTC", "IST");
    let time = |zone| read(schema_of(format("csvlog"), b""), context_in(zone), text.as_bytes(), rendered).concat();
    assert!(time("UTC").contains("a time with a zone that is known or declared"), "{}", time("UTC"));
    assert!(time("Asia/Kolkata").starts_with("log_time=2024-03-01T06:30:00.123Z"));
    assert!(time("Europe/Dublin").contains("parse_error"));
}

#[test]
fn unknown_keys_of_jsonlog_are_kept() {
    let line =
        r#"{"timestamp":"2024-03-01 12:00:00.123 UTC","new_key":{"a":1},"pid":7,"message":5,"error_severity":"PANIC"}"#;
    assert_eq!(
        read(schema_of(format("jsonlog"), b""), context_in("UTC"), line.as_bytes(), rendered),
        [
            r#"timestamp=2024-03-01T12:00:00.123Z pid=7 error_severity="PANIC" message="5" other_fields="{\"new_key\":{\"a\":1}}" normalized_severity="emergency""#
        ]
    );
    let wrong = r#"{"timestamp":"2024-03-01 12:00:00.123 UTC","pid":"x"}"#;
    assert_eq!(entries("jsonlog", wrong), [r#"parse_error="expected an integer at byte 50""#]);
}
