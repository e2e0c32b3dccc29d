//! Logs are recognised, and other files are not.

use tidegate_log_formats::{LogFormat, detect_log_format};

fn detected(text: &str, name: &str) -> Option<&'static str> {
    detect_log_format(text.as_bytes(), name).map(|detected| detected.format.name())
}

#[test]
fn logs_of_each_format() {
    let common = "127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 2326\n".repeat(5);
    let combined = "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 2326 \"-\" \"curl\"\n".repeat(5);
    let syslog = "Mar  1 12:00:00 web1 systemd[1]: Started x.\n2024-03-01T12:00:03+01:00 web1 cron[7]: y\n".repeat(3);
    let rfc5424 = "<34>1 2003-10-11T22:14:15.003Z mymachine su - ID47 - x\n".repeat(3);
    let logfmt = "ts=2024-03-01T12:00:00Z level=info msg=\"x y\" n=1\n".repeat(3);
    let json = "{\"time\":\"2024-03-01T12:00:00Z\",\"level\":\"info\",\"msg\":\"x\"}\n".repeat(3);
    let table = [
        (common.as_str(), "x.log", "common"),
        (&combined, "access.log", "combined"),
        (&syslog, "syslog", "syslog"),
        (&rfc5424, "messages", "syslog"),
        (&logfmt, "app.log", "logfmt"),
        (&json, "app.jsonl", "json"),
        (include_str!("data/nginx-1.22-error.log"), "error.log", "nginx_error"),
        (include_str!("data/apache-2.2-error.log"), "error_log", "apache_error"),
        (include_str!("data/apache-2.4-error-requests.log"), "error.log", "apache_error"),
        (include_str!("data/haproxy-2.6.log"), "haproxy.log", "haproxy"),
        (include_str!("data/kubernetes-cri.log"), "0.log", "cri"),
        (include_str!("data/kubernetes-klog.log"), "kubelet.log", "klog"),
        (include_str!("data/postgresql-15.csv"), "postgresql-2024-03-01_000000.csv", "csvlog"),
        (include_str!("data/postgresql-15.json"), "postgresql-2024-03-01_000000.json", "jsonlog"),
        (include_str!("data/postgresql-15.log"), "postgresql-15-main.log", "postgresql"),
    ];
    for format in LogFormat::names().filter(|format| *format != "pattern") {
        assert!(table.iter().any(|(_, _, expected)| *expected == format), "{format} has no log");
    }
    for (text, name, expected) in table {
        assert_eq!(detected(text, name), Some(expected), "{name}");
        // An incomplete last line and a few foreign lines do not matter.
        let cut = format!("{text}{text}{text}what is this\n{}", &text[..20]);
        assert_eq!(detected(&cut, name), Some(expected), "{name}");
    }
}

#[test]
fn the_name_of_a_log_distinguishes_json_lines_with_a_time() {
    let jobs =
        "{\"job\":\"a\",\"started_at\":\"2024-03-01T12:00:00Z\",\"finished_at\":\"2024-03-01T12:00:09Z\"}\n".repeat(4);
    assert_eq!(detected(&jobs, "jobs.log"), Some("json"));
    assert_eq!(detected(&jobs, "jobs.jsonl"), None);
}

#[test]
fn the_zone_of_postgresql_need_not_be_known() {
    let text = include_str!("data/postgresql-15.csv").replace(" CET", " IST");
    assert_eq!(detected(&text, "x.csv"), Some("csvlog"));
}

#[test]
fn the_text_of_postgresql_is_no_syslog() {
    let text = "2024-03-01 12:00:00.123 CET [7] a@b ERROR:  x\n2024-03-01 12:00:00.123 CET [7] a@b STATEMENT:  y\n";
    assert_eq!(detected(text, "postgresql.log"), Some("postgresql"));
    let line = "2024-03-01T12:00:00.1+01:00 db1 postgres[712]: [3-1] 2024-03-01 12:00:00.123 CET [712] a@b LOG:  x\n";
    assert_eq!(detected(&line.repeat(5), "postgresql.log"), Some("syslog"));
}

#[test]
fn other_files_are_no_logs() {
    let prose = "It was the best of times, it was the worst of times.\nIt was the age of wisdom.\n\n".repeat(20);
    let table = [
        (prose.as_str(), "notes.txt"),
        (&prose, "app.log"),
        ("# Title\n\n- a\n- b\n\n    code\n", "README.md"),
        ("id,name,created_at\n1,a,2024-03-01 12:00:00\n2,b,2024-03-01 12:00:00\n", "data.csv"),
        ("2024-03-01 12:00:00,1,2\n2024-03-01 12:00:01,1,2\n", "data.csv"),
        ("{\"id\":1,\"name\":\"a\"}\n{\"id\":2,\"name\":\"b\"}\n", "data.jsonl"),
        ("{\"id\":1,\"created_at\":\"2024-03-01T12:00:00Z\",\"description\":\"a\"}\n", "orders.jsonl"),
        ("host=localhost\nport=5432\nuser=x\n", "settings.ini"),
        ("export A=1\nB=2\n", "env.sh"),
        ("[section]\na = 1\n", "x.toml"),
        ("2024-03-01T12:00:00.1Z  INFO my::crate: started\n2024-03-01T12:00:00.2Z  WARN my::crate: x\n", "app.log"),
        ("2024/03/01 12:00:00 [error] my handler: x\n2024/03/01 12:00:01 [error] y\n", "app.log"),
        ("\0\u{1}\u{2}binary", "x.log"),
        ("", "access.log"),
        ("March 1 was a nice day\n", "diary.txt"),
    ];
    for (text, name) in table {
        assert_eq!(detected(text, name), None, "{name}: {text}");
    }
}
