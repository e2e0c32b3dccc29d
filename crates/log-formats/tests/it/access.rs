//! Lines of nginx and Apache.

use tidegate_log_formats::EntryValue;

use super::fixture::{context, entries, entry, format, read, schema_of};

#[test]
fn a_line_of_nginx() {
    let line = r#"192.0.2.7 - - [01/Mar/2024:13:55:36 +0100] "GET /index.html?q=1 HTTP/1.1" 200 2326 "https://example.com/" "Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0""#;
    assert_eq!(
        entry("combined", line),
        r#"remote_addr="192.0.2.7" time=2024-03-01T12:55:36Z request="GET /index.html?q=1 HTTP/1.1" method="GET" path="/index.html?q=1" protocol="HTTP/1.1" status=200 body_bytes=2326 referer="https://example.com/" user_agent="Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0""#
    );
}

#[test]
fn users_ipv6_and_http2() {
    let line =
        r#"2001:db8::7 - jane doe [01/Mar/2024:13:55:36 +0000] "POST /api/v1/orders HTTP/2.0" 201 0 "-" "curl/7.88.1""#;
    assert_eq!(
        entry("combined", line),
        r#"remote_addr="2001:db8::7" remote_user="jane doe" time=2024-03-01T13:55:36Z request="POST /api/v1/orders HTTP/2.0" method="POST" path="/api/v1/orders" protocol="HTTP/2.0" status=201 body_bytes=0 user_agent="curl/7.88.1""#
    );
}

#[test]
fn other_virtual_hosts_of_debian() {
    let line =
        r#"www.example.org:443 198.51.100.3 - frank [10/Oct/2023:13:55:36 -0700] "GET /a%20b HTTP/1.1" 304 - "-" "-""#;
    assert_eq!(
        entry("combined", line),
        r#"virtual_host="www.example.org:443" remote_addr="198.51.100.3" remote_user="frank" time=2023-10-10T20:55:36Z request="GET /a%20b HTTP/1.1" method="GET" path="/a%20b" protocol="HTTP/1.1" status=304"#
    );
}

#[test]
fn lists_of_forwarded_addresses() {
    let rest = r#"[01/Mar/2024:13:55:36 +0000] "GET / HTTP/1.1" 200 1"#;
    let table = [
        ("10.0.0.7, 10.1.1.1 - -", r#"remote_addr="10.0.0.7" forwarded_for="10.0.0.7, 10.1.1.1""#),
        (
            "10.0.0.7,10.1.1.1, 2001:db8::7 - jane doe",
            r#"remote_addr="10.0.0.7" forwarded_for="10.0.0.7,10.1.1.1, 2001:db8::7" remote_user="jane doe""#,
        ),
        (
            "www:443 10.0.0.7, 10.1.1.1 - ann",
            r#"virtual_host="www:443" remote_addr="10.0.0.7" forwarded_for="10.0.0.7, 10.1.1.1" remote_user="ann""#,
        ),
        ("-, 10.1.1.1 - -", r#"forwarded_for="-, 10.1.1.1""#),
    ];
    for (remote, expected) in table {
        let request = r#"time=2024-03-01T13:55:36Z request="GET / HTTP/1.1" method="GET" path="/" protocol="HTTP/1.1""#;
        let expected = format!("{expected} {request} status=200 body_bytes=1");
        assert_eq!(entry("common", &format!("{remote} {rest}")), expected, "{remote}");
    }
    let error = r#"parse_error="expected the address, the identity and the user before the time at byte 14""#;
    assert_eq!(entry("common", &format!("10.0.0.7, - - {rest}")), error);
}

#[test]
fn the_common_format_of_apache() {
    let line = r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326"#;
    assert_eq!(
        entry("common", line),
        r#"remote_addr="127.0.0.1" remote_user="frank" time=2000-10-10T20:55:36Z request="GET /apache_pb.gif HTTP/1.0" method="GET" path="/apache_pb.gif" protocol="HTTP/1.0" status=200 body_bytes=2326"#
    );
    assert_eq!(entry("combined", line), r#"parse_error="expected the referer in quotes at byte 86""#);
}

#[test]
fn further_fields_become_columns() {
    let line = r#"192.0.2.7 - - [01/Mar/2024:13:55:36 +0100] "GET / HTTP/1.1" 200 1 "-" "curl" "203.0.113.9, 10.0.0.1" 0.005 - "a\"b""#;
    assert_eq!(
        entry("combined", line),
        r#"remote_addr="192.0.2.7" time=2024-03-01T12:55:36Z request="GET / HTTP/1.1" method="GET" path="/" protocol="HTTP/1.1" status=200 body_bytes=1 user_agent="curl" extra_1="203.0.113.9, 10.0.0.1" extra_2=0.005 extra_4="a\"b""#
    );
}

#[test]
fn escapes_and_broken_requests() {
    let head = "192.0.2.7 - - [01/Mar/2024:13:55:36 +0000]";
    let table = [
        // nginx escapes a quote as \x22, Apache as \".
        (
            r#""GET /a\x22b HTTP/1.1""#,
            r#"request="GET /a\"b HTTP/1.1" method="GET" path="/a\"b" protocol="HTTP/1.1" status=400"#,
        ),
        (
            r#""GET /a\"b HTTP/1.1""#,
            r#"request="GET /a\"b HTTP/1.1" method="GET" path="/a\"b" protocol="HTTP/1.1" status=400"#,
        ),
        (r#""\x16\x03\x01\x02""#, r#"request="\u{16}\u{3}\u{1}\u{2}" status=400"#),
        (r#""""#, r#"request="" status=400"#),
        (r#""-""#, r#"status=400"#),
        (r#""GET""#, r#"request="GET" status=400"#),
        (
            r#""GET /x y HTTP/1.1""#,
            r#"request="GET /x y HTTP/1.1" method="GET" path="/x y" protocol="HTTP/1.1" status=400"#,
        ),
        (r#""GET /old""#, r#"request="GET /old" method="GET" path="/old" status=400"#),
        (r#""MGLNDD_198.51.100.1_80\n""#, r#"request="MGLNDD_198.51.100.1_80\n" status=400"#),
    ];
    for (request, expected) in table {
        let line = format!("{head} {request} 400 150 \"-\" \"-\"");
        let expected = format!("remote_addr=\"192.0.2.7\" time=2024-03-01T13:55:36Z {expected} body_bytes=150");
        assert_eq!(entry("combined", &line), expected, "{request}");
    }
}

#[test]
fn lines_that_do_not_fit_have_a_reason() {
    let good = "192.0.2.7 - - [01/Mar/2024:13:55:36 +0000] \"GET / HTTP/1.1\" 200 1";
    let text = format!(
        "{good}\n\
         hello\n\
         192.0.2.7 - - [01/Foo/2024:13:55:36 +0000] \"GET / HTTP/1.1\" 200 1\n\
         192.0.2.7 - - [01/Mar/2024:13:55:36 +0000] \"GET / HTTP/1.1 200 1\n\
         192.0.2.7 - - [01/Mar/2024:13:55:36 +0000] \"GET / HTTP/1.1\" OK 1\n\
         192.0.2.7 - - [01/Mar/2024:13:55:36 +0000] \"GET / HTTP/1.1\" 200\n"
    );
    let errors = entries("common", &text);
    assert_eq!(
        errors[1..],
        [
            r#"parse_error="expected the time in brackets at byte 1""#,
            r#"parse_error="expected a time such as 10/Oct/2000:13:55:36 -0700] at byte 16""#,
            r#"parse_error="expected the request in quotes at byte 44""#,
            r#"parse_error="expected the status, a number at byte 61""#,
            r#"parse_error="expected a blank after the status at byte 64""#,
        ]
    );
}

/// Method, path and user agent of the entries, all of which fit.
fn requests(format_name: &str, text: &str) -> Vec<String> {
    let schema = schema_of(format(format_name), text.as_bytes());
    let columns = ["method", "path", "user_agent"].map(|name| schema.column_index(name));
    read(schema, context(), text.as_bytes(), |entry| {
        assert!(entry.parse_error().is_none() && entry.time().is_some(), "{}", entry.text());
        let values = columns.map(|column| match column.map(|column| entry.value(column)) {
            Some(EntryValue::Text(text)) => text.to_owned(),
            _ => "-".to_owned(),
        });
        values.join(" ")
    })
}

#[test]
fn files_of_nginx_and_apache_of_debian() {
    let expected = [
        "GET / curl/7.88.1",
        "GET /index.html?q=a%20b Agent \"quoted\" \\ back",
        "GET /gr%C3%B6%C3%9Fe curl/7.88.1",
        "GET /ab größe",
        "OPTIONS /x -",
        "- - -",
        "- - -",
        "GET /a b -",
        "GET /x\"y\\z -",
        "- - -",
        "GET /old -",
        "FOO \u{fffd}\u{fffd} -",
        "GET /six curl/7.88.1",
        "GET /h2 curl/7.88.1",
    ];
    assert_eq!(requests("combined", include_str!("data/nginx-1.22-access.log")), expected);
    assert_eq!(requests("combined", include_str!("data/nginx-1.22-extended.log")), expected);
    // Apache writes nothing for an empty request, and did not receive the last two.
    let of_apache: Vec<&str> = expected[..9].iter().chain(&expected[10..12]).copied().collect();
    assert_eq!(requests("combined", include_str!("data/apache-2.4-other_vhosts_access.log")), of_apache);
    let without_agent: Vec<String> = requests("common", include_str!("data/apache-2.4-common.log"));
    assert_eq!(without_agent.len(), of_apache.len());
    assert!(without_agent.iter().zip(of_apache).all(|(common, combined)| {
        let words = |text: &str| text.split(' ').take(2).map(str::to_owned).collect::<Vec<_>>();
        words(common) == words(combined)
    }));
}

#[test]
fn further_fields_of_nginx_become_columns() {
    let text = include_str!("data/nginx-1.22-extended.log");
    let schema = schema_of(format("combined"), text.as_bytes());
    let described: Vec<_> = ["extra_1", "extra_2"]
        .map(|name| schema.columns()[schema.column_index(name).expect("a column")].column_type.name())
        .to_vec();
    assert_eq!(described, ["text", "float"]);
}
