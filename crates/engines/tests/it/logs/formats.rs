//! Each format by SQL, against values that are written by hand.

use super::{combined, settle};
use crate::support::Folder;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../log-formats/tests/it/data/");

fn copied(source: &str, name: &str) -> Folder {
    let folder = Folder::new();
    folder.write(name, std::fs::read(format!("{DATA}{source}")).unwrap());
    folder
}

#[tokio::test]
async fn an_access_log_is_a_table_by_its_name() {
    let folder = Folder::with(&[("access.log", &(combined("/a", 200) + &combined("/b", 404) + &combined("/c", 200)))]);
    let node = folder.database();
    assert_eq!(node.tables().await, "access: readable");
    assert_eq!(node.rows("SELECT status, count(*) FROM access GROUP BY 1 ORDER BY 1").await, "200|2\n404|1");
    assert_eq!(
        node.rows("SELECT time, method, path, body_bytes, referer, user_agent, entry_file FROM access LIMIT 1").await,
        "2024-03-01T11:00:00Z|GET|/a|12|null|curl/8|access.log"
    );
    let columns = node.columns("access").await.unwrap();
    assert_eq!(
        columns,
        "virtual_host text, remote_addr text, forwarded_for text, remote_identity text, remote_user text, \
         time timestamp with time zone, request text, \
         method text, path text, protocol text, status bigint, body_bytes bigint, referer text, user_agent text, \
         other_fields text, entry_text text, parse_error text, entry_offset bigint, entry_file_id bigint, entry_file text"
    );
    assert_eq!(node.rows("SELECT count(*) FROM access").await, "3");
    assert_eq!(node.rows("SELECT path FROM access WHERE entry_text LIKE '%404%'").await, "/b");
}

#[tokio::test]
async fn logs_of_nginx_and_apache() {
    let node_folder = copied("nginx-1.22-access.log", "nginx/access.log");
    node_folder.write("apache/access_log", std::fs::read(format!("{DATA}apache-2.4-common.log")).unwrap());
    let node = node_folder.database();
    assert_eq!(node.tables().await, "apache.access_log: readable\nnginx.access: readable");
    assert_eq!(
        node.rows("SELECT status, count(*), sum(body_bytes) FROM nginx.access GROUP BY 1 ORDER BY 1").await,
        "200|8|24\n400|5|628\n401|1|179"
    );
    assert_eq!(
        node.rows("SELECT user_agent FROM nginx.access WHERE remote_user = 'jane doe'").await,
        "Agent \"quoted\" \\ back"
    );
    assert_eq!(node.rows("SELECT count(*) FROM nginx.access WHERE parse_error IS NOT NULL").await, "0");
    assert_eq!(node.rows("SELECT count(*) > 0 FROM apache.access_log WHERE status = 200").await, "true");
}

#[tokio::test]
async fn error_logs_haproxy_and_kubernetes() {
    let folder = copied("nginx-1.22-error.log", "nginx/error.log");
    for (source, name) in [
        ("apache-2.4-error-requests.log", "apache/error.log"),
        ("haproxy-2.6.log", "haproxy.log"),
        ("kubernetes-cri.log", "pods/0.log"),
        ("kubernetes-klog.log", "kubelet.log"),
    ] {
        folder.write(name, std::fs::read(format!("{DATA}{source}")).unwrap());
    }
    let node = folder.database();
    assert_eq!(
        node.rows("SELECT client, count(*) FROM nginx.error WHERE level = 'error' GROUP BY 1 ORDER BY 1").await,
        "192.0.2.7|2\n192.0.2.9|1\n2001:db8::7|1"
    );
    assert_eq!(
        node.rows("SELECT time, module, client FROM apache.error WHERE code = 'AH01628'").await,
        "2024-03-01T10:42:30.000200Z|authz_core|2001:db8::7:51733"
    );
    assert_eq!(
        node.rows("SELECT server_name, max(total_ms) FROM haproxy WHERE status = 200 GROUP BY 1 ORDER BY 1").await,
        "srv1|109\nweb2|3"
    );
    assert_eq!(node.rows("SELECT stream, count(*) FROM pods.\"0\" GROUP BY 1 ORDER BY 1").await, "stderr|2\nstdout|4");
    assert_eq!(node.rows("SELECT file, line FROM kubelet WHERE normalized_severity = 'critical'").await, "main.go|9");
}

#[tokio::test]
async fn a_list_of_addresses_does_not_shift_the_columns() {
    let line = "10.0.0.7, 10.1.1.1 - - [28/Dec/2015:04:02:08 -0500] \"GET /a HTTP/1.1\" 200 7 \"-\" \"x\"\n";
    let folder = Folder::with(&[("access.log", &(line.to_owned() + &combined("/b", 404)))]);
    let node = folder.database();
    assert_eq!(
        node.rows("SELECT remote_addr, forwarded_for, remote_user, status FROM access").await,
        "10.0.0.7|10.0.0.7, 10.1.1.1|null|200\n10.0.0.1|null|null|404"
    );
}

#[tokio::test]
async fn logs_of_postgresql_with_the_name_of_a_log() {
    let folder = copied("postgresql-15.csv", "pg.log");
    folder.write("pgjson.log", std::fs::read(format!("{DATA}postgresql-15.json")).unwrap());
    let node = folder.database();
    for table in ["pg", "pgjson"] {
        let sql = format!("SELECT count(*), count(*) FILTER (WHERE normalized_severity = 'error') FROM {table}");
        assert_eq!(node.rows(&sql).await, "17|1", "{table}");
    }
}

#[tokio::test]
async fn syslog_of_both_kinds_with_several_lines() {
    let text = "Mar  1 12:00:00 web1 app[7]: failed\n\tat Main.run(Main.java:3)\nCaused by: x\n\
                <34>1 2024-03-01T12:00:01.5Z web1 su - ID47 [a b=\"c\"] denied\n\
                2024-03-01T12:00:02+01:00 web1 cron[8]: done\n";
    let folder = Folder::with(&[("syslog", text)]);
    settle(&folder, "syslog");
    let node = folder.database();
    let rows = node.rows("SELECT host, app, process_id, message FROM syslog").await;
    assert_eq!(
        rows,
        "web1|app|7|failed\n\tat Main.run(Main.java:3)\nCaused by: x\nweb1|su|null|denied\nweb1|cron|8|done"
    );
    assert_eq!(
        node.rows("SELECT time, normalized_severity FROM syslog WHERE app = 'su'").await,
        "2024-03-01T12:00:01.500Z|critical"
    );
    assert_eq!(node.rows("SELECT time FROM syslog WHERE app = 'cron'").await, "2024-03-01T11:00:02Z");
}

#[tokio::test]
async fn members_of_several_files_become_columns() {
    let line = |rest: &str| format!("ts=2024-03-01T12:00:00Z level=warn msg=\"slow query\" {rest}\n");
    let folder = Folder::with(&[
        ("app.log.1", &(line("took=1 user=ann").repeat(3))),
        ("app.log", &(line("took=1.5 shard=7").repeat(3))),
        (
            "json.log",
            &"{\"time\":\"2024-03-01T12:00:00Z\",\"level\":\"error\",\"msg\":\"x\",\"http\":{\"code\":500}}\n"
                .repeat(3),
        ),
    ]);
    let node = folder.database();
    assert_eq!(
        node.rows("SELECT DISTINCT took, \"user\", shard FROM app ORDER BY 1").await,
        "1.0|ann|null\n1.5|null|7"
    );
    assert_eq!(
        node.rows("SELECT DISTINCT level, normalized_severity, ts FROM app").await,
        "warn|warning|2024-03-01T12:00:00Z"
    );
    assert_eq!(node.rows("SELECT DISTINCT \"http.code\", msg, level FROM json").await, "500|x|error");
}

#[tokio::test]
async fn lines_that_do_not_fit_are_kept() {
    let text = combined("/a", 200) + "what is this\n" + &combined("/b", 200).repeat(9) + "\0\0bad \u{e9}\n";
    let folder = Folder::with(&[("access.log", &text)]);
    settle(&folder, "access.log");
    let node = folder.database();
    assert_eq!(node.rows("SELECT count(*), count(status), count(parse_error) FROM access").await, "12|10|2");
    assert_eq!(
        node.rows(
            "SELECT time, status, entry_text FROM access WHERE parse_error IS NOT NULL ORDER BY entry_offset LIMIT 1"
        )
        .await,
        "null|null|what is this"
    );
    let comment = node.catalog().await.tables[0].comment.clone().unwrap();
    assert_eq!(comment, "log file, format combined; 1 of 11 entries in the sample do not fit (see parse_error)");
}

#[tokio::test]
async fn other_files_are_left_alone() {
    let folder = Folder::with(&[
        ("notes.txt", &combined("/a", 200).repeat(5)),
        ("diary.log", "Dear diary,\ntoday was fine.\nI wrote nothing.\n"),
        ("empty.log", ""),
        ("orders.csv", "id,at\n1,2024-03-01T12:00:00Z\n"),
        ("events.ndjson", &"{\"time\":\"2024-03-01T12:00:00Z\",\"level\":\"error\",\"msg\":\"x\"}\n".repeat(3)),
    ]);
    let node = folder.database();
    assert_eq!(node.tables().await, "events: 3 rows\norders: 1 rows");
    assert_eq!(node.columns("events").await.unwrap(), "time text, level text, msg text");
    let notes = node.catalog().await.notes.join("\n");
    assert!(notes.contains("skipped notes.txt: document, not a table"), "{notes}");
    let unknown = "skipped diary.log: unknown log format; its lines have no known time, so it becomes a table for SQL, but no \
                   log source; declare one: in tidegate.yaml, under its database, tables: {diary: {pattern: \
                   '^(?<message>.*)$'}}";
    assert!(notes.contains(unknown), "{notes}");
    assert!(!notes.contains("empty.log"), "{notes}");
}

#[tokio::test]
async fn a_file_that_is_named_and_no_log_has_a_reason() {
    let folder = Folder::with(&[("diary.log", "Dear diary,\ntoday was fine.\nI wrote nothing.\n")]);
    let node = crate::support::TestNode::open(vec![folder.join("diary.log")], crate::support::two_thread_options());
    let tables = node.tables().await;
    assert!(
        tables.starts_with("diary: unreadable, its lines have no known log format; its lines have no known time")
            && tables.contains("declare one: in tidegate.yaml"),
        "{tables}"
    );
}
