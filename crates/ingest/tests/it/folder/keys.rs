//! Repeated writes.

use std::time::Duration;

use tempfile::TempDir;
use tidegate_ingest::IngestOptions;
use tidegate_query::{IngestTarget, WriteRequest, WriteStart};

use super::fixture::{append, open, open_with, options, range, reopen, request, rows, schema, values, write, writer};

fn with_key(key: &str) -> WriteRequest {
    WriteRequest { key: Some(key.to_owned()), ..request("readings", schema()) }
}

#[tokio::test]
async fn a_key_stores_once_across_flushes_and_restarts() {
    let path = TempDir::new().unwrap();
    let mut folder = open(path.path()).await;
    let first = write(&folder, with_key("a"), vec![rows(0, 10)]).await.unwrap();
    for step in 0..4 {
        match step {
            0 => folder = reopen(path.path(), folder, options()).await,
            1 => folder.flush("readings").await.unwrap(),
            2 => folder = reopen(path.path(), folder, options()).await,
            _ => {
                folder.close().await.unwrap();
                folder = open(path.path()).await;
            }
        }
        match folder.begin(with_key("a")).await.unwrap() {
            WriteStart::Repeated(receipt) => assert_eq!(receipt, first),
            WriteStart::Writer(_) => panic!("step {step}: the key is forgotten"),
        }
        assert_eq!(values(&folder, "readings"), range(0, 10));
    }
    write(&folder, with_key("b"), vec![rows(10, 5)]).await.unwrap();
    assert_eq!(values(&folder, "readings"), range(0, 15));
}

#[tokio::test]
async fn a_running_key_is_a_conflict_and_an_abandoned_one_is_free() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    let running = writer(&folder, with_key("a")).await;
    let error = folder.begin(with_key("a")).await.unwrap_err();
    assert!(error.to_string().contains("is running"), "{error}");
    drop(running);
    write(&folder, with_key("a"), vec![rows(0, 3)]).await.unwrap();
    assert_eq!(values(&folder, "readings"), range(0, 3));
    // A write that fails at its beginning does not keep its key.
    let wrong = WriteRequest { key: Some("b".to_owned()), ..request("../x", schema()) };
    assert!(folder.begin(wrong).await.is_err());
    write(&folder, with_key("b"), vec![rows(3, 3)]).await.unwrap();
    assert!(folder.begin(with_key("")).await.is_err());
}

#[tokio::test]
async fn keys_are_forgotten_by_age_and_number() {
    let path = TempDir::new().unwrap();
    let few = IngestOptions { keys_max: 2, ..options() };
    let folder = open_with(path.path(), few).await;
    for key in ["a", "b", "c"] {
        write(&folder, with_key(key), vec![rows(0, 1)]).await.unwrap();
    }
    assert!(matches!(folder.begin(with_key("a")).await.unwrap(), WriteStart::Writer(_)));
    assert!(matches!(folder.begin(with_key("b")).await.unwrap(), WriteStart::Repeated(_)));
    folder.close().await.unwrap();
    let folder = open_with(path.path(), IngestOptions { key_age_max: Duration::ZERO, ..options() }).await;
    assert!(matches!(folder.begin(with_key("c")).await.unwrap(), WriteStart::Writer(_)));
    append(&folder, "readings", 1, 1).await;
    folder.close().await.unwrap();
}
