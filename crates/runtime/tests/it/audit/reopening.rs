//! Rotation, restarts, incomplete last lines, and exclusive writers.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tidegate_runtime::audit::{
    AuditKey, AuditLog, AuditOptions, LogHead, OpenError, VerifyNotice, VerifyOptions, verify,
};

use super::fixture::{LogFolder, TestNode, member_of_each_line, text};

fn key(letter: u8) -> Option<AuditKey> {
    AuditKey::new(&[letter; 32])
}

#[tokio::test]
async fn chain_continues_across_rotation_and_restart() {
    let place = LogFolder::new();
    let options = AuditOptions { bytes_max: 2_500, kept_files: 3, ..place.options() };
    for _ in 0..3 {
        let scene = TestNode::open(&options);
        scene.ask_often(6).await;
        scene.close().await;
    }
    let files = place.files();
    assert!(files.contains("audit.jsonl.3 ") && !files.contains("audit.jsonl.4 "), "{files}");
    let verified = verify(&[place.file()], &VerifyOptions::default()).unwrap();
    assert_eq!((verified.last.seq, verified.has_head), (21, true));
    assert_eq!(verified.first, 21 - verified.lines + 1);
    assert_eq!(verified.notices, [VerifyNotice::BeginsAt(verified.first)]);
    let head = LogHead::read(&place.file(), None).unwrap().unwrap();
    assert_eq!((head.first, head.seq, head.hash), (verified.first, 21, verified.last.hash));
    for file in [place.file(), place.file().with_extension("jsonl.1")] {
        assert!(fs::metadata(file).unwrap().len() <= 2_500);
    }
}

#[tokio::test]
async fn reducing_kept_files_leaves_no_gap() {
    let place = LogFolder::new();
    for kept_files in [4, 1, 0] {
        let scene = TestNode::open(&AuditOptions { bytes_max: 1, kept_files, ..place.options() });
        scene.ask_often(6).await;
        scene.close().await;
        let files = place.files();
        assert!(!files.contains(&format!("audit.jsonl.{} ", kept_files + 1)), "{files}");
        verify(&[place.file()], &VerifyOptions::default()).unwrap();
    }
}

#[tokio::test]
async fn zero_kept_files_starts_each_file_anew() {
    let place = LogFolder::new();
    let scene = TestNode::open(&AuditOptions { bytes_max: 1, kept_files: 0, ..place.options() });
    scene.ask_often(3).await;
    scene.close().await;
    assert_eq!(member_of_each_line(&place.file(), "outcome"), r#"4 call "done""#);
    assert_eq!(verify(&[place.file()], &VerifyOptions::default()).unwrap().first, 4);
}

#[tokio::test]
async fn truncates_and_records_a_torn_last_line() {
    let place = LogFolder::new();
    let scene = TestNode::open(&place.options());
    scene.ask_often(2).await;
    scene.close().await;
    let mut file = OpenOptions::new().append(true).open(place.file()).unwrap();
    file.write_all(br#"{"time":"2026-11-2"#).unwrap();
    let error = verify(&[place.file()], &VerifyOptions::default()).unwrap_err().to_string();
    assert!(error.ends_with("audit.jsonl: line 4: is incomplete"), "{error}");
    let scene = TestNode::open(&place.options());
    scene.ask_often(1).await;
    scene.close().await;
    insta::assert_snapshot!(member_of_each_line(&place.file(), "mended_bytes"), @r"
    1 opened
    2 call
    3 call
    4 opened 18
    5 call
    ");
    let verified = verify(&[place.file()], &VerifyOptions::default()).unwrap();
    assert_eq!(verified.notices, [VerifyNotice::Truncated { seq: 4, bytes: 18 }]);
}

#[tokio::test]
async fn opens_a_log_torn_before_its_first_line() {
    let place = LogFolder::new();
    fs::write(place.file(), "{\"ti").unwrap();
    let scene = TestNode::open(&place.options());
    scene.close().await;
    assert_eq!(member_of_each_line(&place.file(), "mended_bytes"), "1 opened 4");
}

#[tokio::test]
async fn a_crash_between_rotation_and_the_first_line_loses_nothing() {
    let place = LogFolder::new();
    let scene = TestNode::open(&place.options());
    scene.ask_often(2).await;
    scene.close().await;
    fs::rename(place.file(), place.file().with_extension("jsonl.1")).unwrap();
    let scene = TestNode::open(&place.options());
    scene.close().await;
    assert_eq!(member_of_each_line(&place.file(), "missing_until"), "4 opened");
    assert_eq!(verify(&[place.file()], &VerifyOptions::default()).unwrap().lines, 4);
}

#[tokio::test]
async fn records_missing_lines_on_open() {
    let place = LogFolder::new();
    let scene = TestNode::open(&place.options());
    scene.ask_often(3).await;
    scene.close().await;
    let whole = text(&place.file());
    let cut: String = whole.lines().take(2).map(|line| format!("{line}\n")).collect();
    fs::write(place.file(), cut).unwrap();
    let scene = TestNode::open(&place.options());
    scene.close().await;
    insta::assert_snapshot!(member_of_each_line(&place.file(), "missing_until"), @r"
    1 opened
    2 call
    3 opened 4
    ");
    let error = verify(&[place.file()], &VerifyOptions::default()).unwrap_err().to_string();
    assert!(
        error.ends_with("line 3: records that lines up to 4 were missing before it when the log was opened"),
        "{error}"
    );
}

#[tokio::test]
async fn verifies_during_writing_and_rotation() {
    let place = LogFolder::new();
    let options = AuditOptions { bytes_max: 40_000, kept_files: 4, key: key(b'a'), ..place.options() };
    let scene = TestNode::open(&options);
    let rotations = Arc::new(AtomicUsize::new(0));
    let ended = Arc::new(AtomicBool::new(false));
    let verifying = tokio::task::spawn_blocking({
        let (file, rotations, ended) = (place.file(), rotations.clone(), ended.clone());
        move || {
            let options = VerifyOptions { key: key(b'a'), required_hash: None };
            let mut firsts = BTreeSet::new();
            while !ended.load(Ordering::Relaxed) {
                firsts.insert(verify(std::slice::from_ref(&file), &options).unwrap().first);
                rotations.store(firsts.len() - 1, Ordering::Relaxed);
            }
        }
    });
    while rotations.load(Ordering::Relaxed) < 2 && !verifying.is_finished() {
        scene.ask_often(100).await;
    }
    scene.close().await;
    ended.store(true, Ordering::Relaxed);
    verifying.await.unwrap();
}

#[tokio::test]
async fn second_writer_is_rejected() {
    let place = LogFolder::new();
    let scene = TestNode::open(&place.options());
    assert!(matches!(AuditLog::open(&place.options()), Err(OpenError::Locked(_))));
    scene.close().await;
    drop(scene);
    TestNode::open(&place.options()).close().await;
}

#[tokio::test]
async fn check_openable_has_no_side_effects() {
    let place = LogFolder::new();
    AuditLog::check_openable(&place.options()).unwrap();
    assert_eq!(place.files(), "");
    let scene = TestNode::open(&place.options());
    scene.ask_often(1).await;
    AuditLog::check_openable(&place.options()).unwrap();
    scene.close().await;
    OpenOptions::new().append(true).open(place.file()).unwrap().write_all(b"{\"torn").unwrap();
    let before = (text(&place.file()), place.files());
    AuditLog::check_openable(&place.options()).unwrap();
    assert_eq!((text(&place.file()), place.files()), before);
    for file in ["nowhere/audit.jsonl", "audit.jsonl/audit.jsonl", "."] {
        let options = AuditOptions::new(place.file().with_file_name(file));
        let error = AuditLog::open(&options).unwrap_err();
        assert!(matches!(error, OpenError::Io { .. }), "{error}");
        assert_eq!(AuditLog::check_openable(&options).unwrap_err().to_string(), error.to_string());
    }
}

#[tokio::test]
async fn rejects_a_changed_end_or_another_key() {
    let place = LogFolder::new();
    let keyed = AuditOptions { key: key(b'a'), ..place.options() };
    let scene = TestNode::open(&keyed);
    scene.close().await;
    drop(scene);
    for key in [None, key(b'b')] {
        let options = AuditOptions { key, ..place.options() };
        let error = AuditLog::open(&options).unwrap_err();
        assert!(matches!(error, OpenError::NotAppendable { .. }), "{error}");
        assert_eq!(AuditLog::check_openable(&options).unwrap_err().to_string(), error.to_string());
    }
    TestNode::open(&keyed).close().await;
    let changed = text(&place.file()).replace("opened", "closed");
    fs::write(place.file(), changed).unwrap();
    let error = AuditLog::open(&keyed).unwrap_err().to_string();
    assert!(error.contains("its last line was changed, or written with another key"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn log_files_are_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = LogFolder::new();
    TestNode::open(&place.options()).close().await;
    for ending in ["jsonl", "jsonl.head", "jsonl.lock"] {
        let file = place.file().with_extension(ending);
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600, "{ending}");
    }
}

#[test]
fn rejects_short_keys_and_redacts_debug_output() {
    assert!(AuditKey::new(b"  short  ").is_none());
    assert_eq!(format!("{:?}", key(b'a')), "Some(***)");
}
