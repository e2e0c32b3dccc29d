//! Masks of log files: a value that is masked cannot be read from another column of its entry.

use serde_json::json;
use tidegate_engines::Engine;
use tidegate_query::{Database, Mask};

use super::{RestrictedDatabase, policy, test_principal};
use crate::support::{Folder, two_thread_options};

const FITTING: &str = "10.1.2.3 - ann [01/Mar/2024:12:00:00 +0100] \"GET /hidden HTTP/1.1\" 200 12 \"-\" \"curl/8\"\n";
const MISFIT: &str = "10.1.2.3 does not fit\n";
const FIRST_ENTRY: &str = "SELECT request, method, path, entry_text FROM access ORDER BY entry_offset LIMIT 1";

fn access_log() -> Folder {
    Folder::with(&[("access.log", &(FITTING.repeat(9) + MISFIT))])
}

fn open(folder: &Folder, table: &str, columns: &[(&str, Mask)]) -> RestrictedDatabase {
    let engine = Engine::start(two_thread_options()).unwrap();
    let policies = vec![policy(table, "TRUE", columns)];
    RestrictedDatabase::open(&folder.path(), &engine, policies, test_principal(&json!({})))
}

#[tokio::test]
async fn a_mask_covers_the_text_of_the_entry() {
    let folder = access_log();
    for mask in [Mask::Null, Mask::Hash, Mask::KeepFirst(2), Mask::Deny] {
        let limited = open(&folder, "access", &[("remote_addr", mask)]);
        let rows = limited.rows("SELECT * FROM access").await;
        assert!(!rows.contains("10.1.2.3") && rows.contains("/hidden"), "{mask:?}: {rows}");
        let has_text = limited.columns("access").await.contains("entry_text");
        assert_eq!(has_text, mask != Mask::Deny, "{mask:?}");
        if has_text {
            let found = "SELECT count(entry_text), count(*) FILTER (WHERE entry_text LIKE '10%') FROM access";
            assert_eq!(limited.rows(found).await, "0|0", "{mask:?}");
        }
    }
    let unrestricted = open(&folder, "*", &[("unknown", Mask::Deny)]);
    assert!(unrestricted.rows("SELECT * FROM access").await.contains("10.1.2.3"));
}

#[tokio::test]
async fn a_mask_covers_columns_with_the_same_value() {
    let folder = access_log();
    let of_path = open(&folder, "access", &[("path", Mask::KeepFirst(1))]);
    assert_eq!(of_path.rows(FIRST_ENTRY).await, "null|GET|/******|null");
    let of_request = open(&folder, "access", &[("request", Mask::Null)]);
    assert_eq!(of_request.rows(FIRST_ENTRY).await, "null|null|null|null");
}

/// The message of nginx has the file of the path, and the upstream has the path itself.
#[tokio::test]
async fn a_mask_covers_texts_that_repeat_the_value() {
    let line = "2024/03/01 12:00:00 [error] 12#12: *5 open() \"/srv/hidden\" failed (2: No such file or directory), \
                client: 10.1.2.3, server: example.org, request: \"GET /hidden HTTP/1.1\", upstream: \
                \"http://127.0.0.1:81/hidden\", host: \"example.org\"\n";
    let folder = Folder::with(&[("error.log", &line.repeat(9))]);
    for (column, hidden, visible) in [("request", "hidden", "10.1.2.3"), ("server", "example.org", "/hidden")] {
        for mask in [Mask::Null, Mask::Deny] {
            let limited = open(&folder, "error", &[(column, mask)]);
            let rows = limited.rows("SELECT * FROM error").await;
            assert!(!rows.contains(hidden) && rows.contains(visible), "{column}, {mask:?}: {rows}");
        }
    }
}

/// Members whose values do not have the type of their column are in `other_fields`.
#[tokio::test]
async fn a_mask_of_a_member_covers_other_fields() {
    let line = |user: &str| {
        format!("{{\"time\":\"2024-03-01T12:00:00Z\",\"level\":\"info\",\"user\":{user},\"msg\":\"x\"}}\n")
    };
    let text = line("7").repeat(2_000) + &line("\"bob\"");
    let folder = Folder::with(&[("app.log", &text)]);
    let last = "SELECT * FROM app ORDER BY entry_offset DESC LIMIT 1";
    let unrestricted = open(&folder, "*", &[("unknown", Mask::Deny)]);
    let other_fields = "SELECT other_fields FROM app ORDER BY entry_offset DESC LIMIT 1";
    assert_eq!(unrestricted.rows(other_fields).await, "{\"user\":\"bob\"}");
    for mask in [Mask::Null, Mask::Deny] {
        let limited = open(&folder, "app", &[("user", mask)]);
        let row = limited.rows(last).await;
        assert!(!row.contains("bob") && row.contains("info"), "{mask:?}: {row}");
    }
}

#[tokio::test]
async fn a_mask_of_the_text_itself_has_precedence() {
    let folder = access_log();
    let masks = [("remote_addr", Mask::Deny), ("forwarded_for", Mask::Deny), ("entry_text", Mask::KeepLast(3))];
    let limited = open(&folder, "access", &masks);
    let text = limited.rows("SELECT entry_text FROM access WHERE parse_error IS NOT NULL").await;
    assert_eq!(text, "******************fit");
    assert!(limited.database.check_policies().await.unwrap().is_empty());
}

#[tokio::test]
async fn the_check_names_what_a_mask_covers() {
    let folder = access_log();
    let limited = open(&folder, "access", &[("path", Mask::Hash), ("remote_addr", Mask::Deny)]);
    let found = limited.database.check_policies().await.unwrap();
    assert!(found.iter().all(|problem| problem.is_warning), "{found:?}");
    let messages: Vec<&str> = found.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "also masks entry_text, request of the table access, from which its values can be read; a mask of its own \
             in this policy overrides that",
            "also denies entry_text, forwarded_for of the table access, from which its values can be read; a mask of its \
             own in this policy overrides that",
        ]
    );
    let refusal = limited.refusal("SELECT entry_text FROM access").await;
    assert!(refusal.contains("there is no column \"entry_text\""), "{refusal}");
    assert_eq!(limited.database.log_tables().await.unwrap(), ["access"]);
}
