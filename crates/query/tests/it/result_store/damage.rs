//! Blocks and folders that are not what they were, names that are none of the caller's.

use std::fs;
use std::time::Duration;

use futures::StreamExt;
use tidegate_core::LinkVerifier;
use tidegate_results::{ResultEnd, StoreLimits};

use super::{
    RunningCall, TestStore, ann, bob, describe_error, describe_error_without_id, numbered_rows, read, ready,
    small_limits, then_pending, wait_for_end,
};

#[tokio::test]
async fn a_flipped_bit_anywhere_in_a_block_is_found() {
    let spool = TestStore::new(small_limits()).await;
    let result = spool.keep(&ann(), 9000).await;
    let path = spool.files_of(&result).join("1.arrow");
    let bytes = fs::read(&path).unwrap();
    let positions = (0..bytes.len()).filter(|at| *at < 300 || *at + 300 > bytes.len() || at % 997 == 0);
    for at in positions {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&path, damaged).unwrap();
        let error = result.block(1).await.unwrap_err();
        assert!(error.message().contains("is damaged"), "at {at}: {error}");
    }
    let mut table = String::new();
    for (subject, bytes) in
        [("shorter", &bytes[..bytes.len() - 1]), ("longer", &[&bytes[..], b"x"].concat()), ("empty", b"")]
    {
        fs::write(&path, bytes).unwrap();
        table.push_str(&format!(
            "{subject}: {}\n",
            describe_error_without_id(&result.block(1).await.unwrap_err(), &result)
        ));
    }
    fs::remove_file(&path).unwrap();
    table.push_str(&format!("missing: {}\n", describe_error_without_id(&result.block(1).await.unwrap_err(), &result)));
    // Rows before it are returned, and the reader receives an error after them.
    let mut rows = result.rows_from(0);
    let first: usize = rows.next().await.unwrap().unwrap().num_rows();
    assert!(first > 0 && rows.next().await.unwrap().is_err() && rows.next().await.is_none());
    fs::write(&path, &bytes).unwrap();
    assert_eq!(read(&result, 0).await.unwrap().len(), 9000);
    insta::assert_snapshot!(table, @r#"
    shorter: internal: block 1 of the stored result ID is damaged on the server's disk
    Repeat the query.
    longer: internal: block 1 of the stored result ID is damaged on the server's disk
    Repeat the query.
    empty: internal: block 1 of the stored result ID is damaged on the server's disk
    Repeat the query.
    missing: unavailable: block 1 of the stored result ID cannot be read from the server's disk
    Repeat the query.
    "#);
}

#[tokio::test]
async fn reports_missing_and_hides_foreign_results() {
    let spool = TestStore::new(small_limits()).await;
    let rows = numbered_rows(0..9000, 8);
    let running = RunningCall::from_caller(&ann());
    let writer = spool.begin(&running, &rows.schema()).await.unwrap();
    let result = writer.result().clone();
    let id = result.header().id;
    let (mut table, mut tell) = (String::new(), Vec::new());
    let writing = tokio::spawn({
        let job = running.job.clone();
        async move { writer.write_all(then_pending([rows]), 0, &job).await }
    });
    result.next_block(2).await.unwrap();
    let before = result.block(9).await.unwrap_err();
    assert!(before.message().contains("does not exist yet"));
    tell.push(("before its time", before));
    running.job.cancel();
    assert!(writing.await.unwrap().is_err());
    tell.push(("after the end", result.block(9).await.unwrap_err()));
    let absent = "0b84a1a0-5fd2-4a3f-8a56-1b8b8e9a4a11".parse().unwrap();
    tell.push(("a stranger's", spool.store.get(id, &bob()).unwrap_err()));
    tell.push(("absent", spool.store.get(absent, &bob()).unwrap_err()));
    tell.push(("no name", "12".parse::<tidegate_results::ResultId>().unwrap_err()));
    let other_spelling = id.to_string().to_uppercase().parse::<tidegate_results::ResultId>();
    assert!(other_spelling.is_err() || id.to_string() == id.to_string().to_uppercase());
    let cursor = spool.store.create_cursor(&result, 1, 7, &ann());
    tell.push(("a stranger's cursor", spool.store.resolve_cursor(&cursor, 7, &bob()).unwrap_err()));
    tell.push(("a cursor of another question", spool.store.resolve_cursor(&cursor, 8, &ann()).unwrap_err()));
    for (subject, error) in tell {
        let text = describe_error_without_id(&error, &result).replace(&absent.to_string(), "ID");
        table.push_str(&format!("{subject}: {text}\n"));
    }
    insta::assert_snapshot!(table, @r#"
    before its time: not_found: block 9 of the stored result ID does not exist yet: 3 do, and it is still being written
    after the end: not_found: the stored result ID has no block 9: it has 3, counted from 0
    a stranger's: not_found: there is no stored result ID
    absent: not_found: there is no stored result ID
    no name: not_found: there is no stored result 12
    a stranger's cursor: invalid_arguments: the cursor is unknown or was changed
    Pass the cursor of an earlier answer unchanged, with the arguments of that call.
    a cursor of another question: invalid_arguments: the cursor belongs to a call with other arguments
    Repeat the arguments of that call; only cursor, delivery, format, limit, max_rows, mode, no_cache and save_as may differ.
    "#);
    let (_, row) = spool.store.resolve_cursor(&cursor, 7, &ann()).unwrap();
    assert_eq!(row, 1);
}

#[tokio::test]
async fn a_link_opens_one_result_and_no_byte_of_it_can_change() {
    let spool = TestStore::new(small_limits()).await;
    let (result, other) = (spool.keep(&ann(), 20).await, spool.keep(&ann(), 20).await);
    let (id, (link, until)) = (result.header().id.to_string(), spool.store.create_link(&result, &ann()));
    let opened = |id: &str, link: &str| spool.store.verify_link(id, link);
    assert_eq!(opened(&id, &link).unwrap().principal.subject, "ann");
    assert!(until > result.header().created_at_ms);
    assert!(opened(&other.header().id.to_string(), &link).is_none());
    assert!(opened("x", &link).is_none() && opened(&id, "").is_none() && opened(&id, "ä").is_none());
    for at in 0..link.len() {
        let mut forged = link.clone().into_bytes();
        forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
        let forged = String::from_utf8(forged).unwrap();
        assert!(opened(&id, &forged).is_none(), "at {at}");
        assert!(opened(&id, &link[..at]).is_none(), "at {at}");
    }
    // The mark does not survive a restart of the process; a new store opens the result.
    let spool = spool.reopen(small_limits()).await;
    let result = spool.store.get(result.header().id, &ann()).unwrap();
    assert!(spool.store.verify_link(&id, &link).is_none());
    let (fresh, _) = spool.store.create_link(&result, &ann());
    let opened = |id: &str, link: &str| spool.store.verify_link(id, link);
    assert_eq!(opened(&id, &fresh).unwrap().principal.subject, "ann");
    // A cursor is no link, and a link no cursor.
    let cursor = spool.store.create_cursor(&result, 1, 7, &ann());
    assert!(opened(&id, &cursor).is_none() && spool.store.resolve_cursor(&link, 7, &ann()).is_err());
}

#[tokio::test]
async fn reports_expiry_to_owner_only() {
    let spool = TestStore::new(StoreLimits { time_to_live: Duration::ZERO, ..small_limits() }).await;
    let result = spool.keep(&ann(), 20).await;
    let id = result.header().id;
    let cursor = spool.store.create_cursor(&result, 1, 7, &ann());
    let (link, _) = spool.store.create_link(&result, &ann());
    let tell = |caller| {
        let got = spool.store.get(id, &caller).map(drop).unwrap_err();
        let placed = spool.store.resolve_cursor(&cursor, 7, &caller).map(drop).unwrap_err();
        format!("{}\n{}", describe_error_without_id(&got, &result), describe_error(&placed))
    };
    let before = (tell(ann()), tell(bob()));
    insta::assert_snapshot!(before.0, @r#"
    not_found: the stored result has expired
    Repeat the query.
    not_found: the stored result has expired
    Repeat the query.
    "#);
    insta::assert_snapshot!(before.1, @r#"
    not_found: there is no stored result ID
    invalid_arguments: the cursor is unknown or was changed
    Pass the cursor of an earlier answer unchanged, with the arguments of that call.
    "#);
    spool.store.sweep().await;
    assert_eq!((tell(ann()), tell(bob())), before, "the same when its files are gone");
    assert!(spool.store.is_empty() && spool.on_disk().is_empty());
    assert!(spool.store.verify_link(&id.to_string(), &link).is_none());
    insta::assert_snapshot!(describe_error_without_id(&result.block(0).await.unwrap_err(), &result), @"not_found: the stored result ID is gone: it has expired");
}

#[tokio::test]
async fn what_expires_while_it_is_written_goes_when_it_has_ended() {
    let spool = TestStore::new(StoreLimits { time_to_live: Duration::ZERO, ..small_limits() }).await;
    let rows = numbered_rows(0..9000, 8);
    let running = RunningCall::from_caller(&ann());
    let writer = spool.begin(&running, &rows.schema()).await.unwrap();
    spool.store.sweep().await;
    assert_eq!(spool.store.len(), 1);
    let result = writer.result().clone();
    let end = writer.write_all(ready([rows]), 0, &running.job).await.unwrap();
    assert_eq!((result.progress().rows(), end), (9000, ResultEnd::Complete));
    spool.store.sweep().await;
    assert!(spool.store.is_empty() && spool.on_disk().is_empty());
}

#[tokio::test]
async fn a_restart_takes_away_what_has_expired() {
    let spool = TestStore::new(StoreLimits { time_to_live: Duration::ZERO, ..small_limits() }).await;
    let id = spool.keep(&ann(), 20).await.header().id;
    let spool = spool.reopen(small_limits()).await;
    assert!(spool.on_disk().is_empty());
    assert!(describe_error(&spool.store.get(id, &ann()).unwrap_err()).contains("expired"));
}

#[tokio::test]
async fn reports_vanished_folder() {
    let mut table = String::new();
    // Before it begins.
    let spool = TestStore::new(small_limits()).await;
    let before = spool.keep(&ann(), 20).await;
    fs::remove_dir_all(spool.folder.path()).unwrap();
    let running = RunningCall::from_caller(&ann());
    let error = spool.begin(&running, &numbered_rows(0..1, 8).schema()).await.map(drop).unwrap_err();
    table.push_str(&format!("before: {}\n", describe_error(&error)));
    table.push_str(&format!(
        "while reading: {}\n",
        describe_error_without_id(&read(&before, 0).await.unwrap_err(), &before)
    ));
    assert_eq!(spool.store.len(), 1, "the one that could not begin is not counted");
    assert!(!spool.folder.path().exists(), "nobody has a place there any more");
    // While it is written: after its first block.
    let spool = TestStore::new(small_limits()).await;
    let writer = spool.begin(&running, &numbered_rows(0..1, 8).schema()).await.unwrap();
    let result = writer.result().clone();
    let (seen, path) = (result.clone(), spool.folder.path().to_owned());
    let batches = futures::stream::iter(0..20_i64).then(move |index| {
        let (seen, path) = (seen.clone(), path.clone());
        async move {
            if index == 12 {
                seen.next_block(0).await.unwrap();
                fs::remove_dir_all(path).unwrap();
            }
            Ok(numbered_rows(index * 500..(index + 1) * 500, 8))
        }
    });
    let error = writer.write_all(batches.boxed(), 0, &running.job).await.unwrap_err();
    table.push_str(&format!("while writing: {}\n", describe_error(&error)));
    table.push_str(&format!("its end: {:?}\n", wait_for_end(&result).await));
    insta::assert_snapshot!(table, @r#"
    before: unavailable: the server cannot write stored results now
    while reading: unavailable: block 0 of the stored result ID cannot be read from the server's disk
    Repeat the query.
    while writing: unavailable: the server cannot write stored results now
    its end: Incomplete("the server cannot write stored results now")
    "#);
    assert!(!table.contains("tmp"), "no folder is named");
    assert!(error.detail().is_some(), "the log hears why");
}
