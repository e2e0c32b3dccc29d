//! Lines of logfmt and JSON.

use tidegate_log_formats::EntryColumnRole;

use super::fixture::{context, entries, entry, format, read, rendered, schema_of};

/// `name: type` of the columns, with a mark for their roles, without those that every file has.
fn columns(format_name: &str, text: &str) -> String {
    let schema = schema_of(format(format_name), text.as_bytes());
    let own = schema.columns().iter().take_while(|column| column.name != "other_fields");
    let described = own.map(|column| {
        let mark = match column.role {
            EntryColumnRole::Time => "*",
            EntryColumnRole::Severity => "!",
            EntryColumnRole::Message => "#",
            EntryColumnRole::Field => "",
        };
        format!("{}{mark}: {}", column.name, column.column_type.name())
    });
    described.collect::<Vec<_>>().join(", ")
}

#[test]
fn logfmt_of_prometheus_and_heroku() {
    let text = "ts=2024-03-01T12:00:00.123Z caller=main.go:583 level=info msg=\"Starting Prometheus \\\"x\\\"\" mode=server n=3\n\
                ts=2024-03-01T12:00:01.000Z caller=db.go:1 level=warn component=tsdb took=1.5s ok=true debug n=0.5 empty= id=007\n";
    assert_eq!(
        columns("logfmt", text),
        "ts*: time, level!: text, msg#: text, caller: text, mode: text, n: float, component: text, took: text, ok: boolean, \
         debug: boolean, empty: text, id: text"
    );
    assert_eq!(
        entries("logfmt", text),
        [
            r#"ts=2024-03-01T12:00:00.123Z level="info" msg="Starting Prometheus \"x\"" caller="main.go:583" mode="server" n=3.0 normalized_severity="info""#,
            r#"ts=2024-03-01T12:00:01Z level="warn" caller="db.go:1" n=0.5 component="tsdb" took="1.5s" ok=true debug=true id="007" normalized_severity="warning""#,
        ]
    );
}

#[test]
fn logfmt_that_does_not_fit() {
    let text = "level=info msg=x\nlevel=info msg=\"never closed\nlevel=info =x\n";
    let errors: Vec<String> = entries("logfmt", text);
    assert_eq!(
        errors[1..],
        [r#"parse_error="expected a closing quote at byte 29""#, r#"parse_error="expected a key at byte 12""#]
    );
    assert_eq!(entry("logfmt", "just text"), r#"parse_error="expected key=value at byte 1""#);
}

#[test]
fn json_of_pino_and_nested_objects() {
    let text = r#"{"level":30,"time":1709294400123,"pid":17,"hostname":"web1","req":{"method":"GET","headers":{"host":"x"},"ids":[1,2]},"msg":"request completed","ms":1.5}
{"level":50,"time":1709294401000,"pid":17,"hostname":"web1","err":{"stack":"Error: a\n    at b"},"msg":"größe \ud83d\ude00 failed","ms":2,"ok":false,"none":null}
"#;
    assert_eq!(
        columns("json", text),
        "time*: time, level!: integer, msg#: text, pid: integer, hostname: text, req.method: text, req.headers.host: text, \
         req.ids: text, ms: float, err.stack: text, ok: boolean, none: text"
    );
    assert_eq!(
        entries("json", text),
        [
            r#"time=2024-03-01T12:00:00.123Z level=30 msg="request completed" pid=17 hostname="web1" req.method="GET" req.headers.host="x" req.ids="[1,2]" ms=1.5 normalized_severity="info""#,
            r#"time=2024-03-01T12:00:01Z level=50 msg="größe 😀 failed" pid=17 hostname="web1" ms=2.0 err.stack="Error: a\n    at b" ok=false normalized_severity="error""#,
        ]
    );
}

#[test]
fn the_depth_of_columns_is_bounded() {
    let text = r#"{"a":{"b":{"c":{"d":{"e":{"f":1}}}}}}"#;
    assert_eq!(entry("json", text), r#"a.b.c.d.e="{\"f\":1}""#);
}

#[test]
fn types_widen_and_identifiers_keep_their_digits() {
    let text = "{\"a\":1,\"b\":1,\"c\":true,\"d\":18446744073709551615,\"e\":\"2024-03-01T12:00:00Z\",\"f\":\"1\"}\n\
                {\"a\":1.5,\"b\":\"x\",\"c\":1,\"d\":1,\"e\":\"2024-03-01 12:00:00+01\",\"f\":\"2\"}\n";
    assert_eq!(columns("json", text), "e*: time, a: float, b: text, c: text, d: text, f: text");
    assert_eq!(
        entries("json", text),
        [
            r#"e=2024-03-01T12:00:00Z a=1.0 b="1" c="true" d="18446744073709551615" f="1""#,
            r#"e=2024-03-01T11:00:00Z a=1.5 b="x" c="1" d="1" f="2""#,
        ]
    );
}

#[test]
fn what_has_no_column_is_in_other_fields() {
    let sample = r#"{"level":"info","n":1}"#;
    let text = r#"{"level":"info","n":"many","new":{"a":"x\"y","b":[1,{"c":null}]},"flag":true,"none":null,"big":1e3}"#;
    let rendered = read(schema_of(format("json"), sample.as_bytes()), context(), text.as_bytes(), rendered);
    assert_eq!(
        rendered,
        [
            r#"level="info" other_fields="{\"n\":\"many\",\"new.a\":\"x\\\"y\",\"new.b\":[1,{\"c\":null}],\"flag\":true,\"big\":1e3}" normalized_severity="info""#
        ]
    );
}

#[test]
fn the_number_of_columns_is_bounded_and_the_most_frequent_stay() {
    let many: Vec<String> = (0..500).map(|number| format!("\"rare{number}\":1")).collect();
    let text =
        format!("{{\"level\":\"info\",{}}}\n{{\"level\":\"info\",\"often\":1}}\n{{\"often\":2}}\n", many.join(","));
    let schema = schema_of(format("json"), text.as_bytes());
    assert!(schema.column_index("often").is_some() && schema.column_index("level").is_some());
    assert_eq!(schema.columns().iter().filter(|column| column.name.starts_with("rare")).count(), 198);
}

#[test]
fn json_that_does_not_fit() {
    let table = [
        ("{\"a\":1", "a comma or the end of the object at byte 7"),
        ("{\"a\" 1}", "a colon after the name at byte 6"),
        ("{\"a\":x}", "a JSON value at byte 6"),
        ("{\"a\":\"x}", "a closing quote at byte 9"),
        ("{\"a\":1} tail", "the end of the line after the object at byte 9"),
        ("[1]", "a JSON object at byte 1"),
        ("{\"a\":\"\\q\"}", "an escape of JSON in the text at byte 7"),
    ];
    for (line, expected) in table {
        assert_eq!(entry("json", line), format!("parse_error={:?}", format!("expected {expected}")), "{line}");
    }
}

#[test]
fn names_of_generated_columns_are_not_taken() {
    assert_eq!(entry("json", r#"{"entry_text":"x","a":1}"#), r#"a=1 other_fields="{\"entry_text\":\"x\"}""#);
}

#[test]
fn a_trace_between_json_lines_stays_together() {
    let text = "{\"level\":\"error\",\"msg\":\"x\"}\n\
                Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nValueError: bad\n\
                Killed\n{\"level\":\"info\"}\n";
    let texts = read(schema_of(format("json"), text.as_bytes()), context(), text.as_bytes(), |entry| {
        (entry.fits(), entry.text().lines().count())
    });
    assert_eq!(texts, [(true, 4), (false, 1), (true, 1)]);
}

#[test]
fn hostile_names_do_not_fill_the_memory() {
    let name = "n".repeat(1_000);
    let members: Vec<String> = (0..5_000).map(|number| format!("\"{number}\":1")).collect();
    let text = format!("{{\"{name}\":{{{0}}},\"a\":{{{0}}}}}", members.join(","));
    let errors = read(schema_of(format("json"), b""), context(), text.as_bytes(), |entry| {
        entry.parse_error().map(str::to_owned)
    });
    assert_eq!(errors, [Some("4001 fields are only in the text of the entry".to_owned())]);
}
