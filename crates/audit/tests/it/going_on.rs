//! Rotation, restarts, torn ends, and who may write.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tidegate_audit::{AuditKey, AuditLog, AuditOptions, Head, Notice, OpenError, VerifyOptions, verify};

use crate::scene::{Place, Scene, text, told};

fn key(letter: u8) -> Option<AuditKey> {
    AuditKey::new(&[letter; 32])
}

#[tokio::test]
async fn the_chain_goes_on_over_rotation_and_restart() {
    let place = Place::new();
    let options = AuditOptions { bytes_max: 2_500, kept_files: 3, ..place.options() };
    for _ in 0..3 {
        let scene = Scene::open(&options);
        scene.ask_often(6).await;
        scene.close().await;
    }
    let files = place.files();
    assert!(files.contains("audit.jsonl.3 ") && !files.contains("audit.jsonl.4 "), "{files}");
    let verified = verify(&[place.file()], &VerifyOptions::default()).unwrap();
    assert_eq!((verified.last.seq, verified.has_head), (21, true));
    assert_eq!(verified.first, 21 - verified.lines + 1);
    assert_eq!(verified.notices, [Notice::BeginsAt(verified.first)]);
    let head = Head::read(&place.file(), None).unwrap().unwrap();
    assert_eq!((head.first, head.seq, head.hash), (verified.first, 21, verified.last.hash));
    for file in [place.file(), place.file().with_extension("jsonl.1")] {
        assert!(fs::metadata(file).unwrap().len() <= 2_500);
    }
}

#[tokio::test]
async fn fewer_files_than_before_leave_no_hole() {
    let place = Place::new();
    for kept_files in [4, 1, 0] {
        let scene = Scene::open(&AuditOptions { bytes_max: 1, kept_files, ..place.options() });
        scene.ask_often(6).await;
        scene.close().await;
        let files = place.files();
        assert!(!files.contains(&format!("audit.jsonl.{} ", kept_files + 1)), "{files}");
        verify(&[place.file()], &VerifyOptions::default()).unwrap();
    }
}

#[tokio::test]
async fn without_older_files_each_begins_anew() {
    let place = Place::new();
    let scene = Scene::open(&AuditOptions { bytes_max: 1, kept_files: 0, ..place.options() });
    scene.ask_often(3).await;
    scene.close().await;
    assert_eq!(told(&place.file(), "outcome"), r#"4 call "done""#);
    assert_eq!(verify(&[place.file()], &VerifyOptions::default()).unwrap().first, 4);
}

#[tokio::test]
async fn a_torn_last_line_is_cut_off_and_said() {
    let place = Place::new();
    let scene = Scene::open(&place.options());
    scene.ask_often(2).await;
    scene.close().await;
    let mut file = OpenOptions::new().append(true).open(place.file()).unwrap();
    file.write_all(br#"{"time":"2026-11-2"#).unwrap();
    let error = verify(&[place.file()], &VerifyOptions::default()).unwrap_err().to_string();
    assert!(error.ends_with("audit.jsonl: line 4: is not whole"), "{error}");
    let scene = Scene::open(&place.options());
    scene.ask_often(1).await;
    scene.close().await;
    insta::assert_snapshot!(told(&place.file(), "mended_bytes"), @r"
    1 opened
    2 call
    3 call
    4 opened 18
    5 call
    ");
    let verified = verify(&[place.file()], &VerifyOptions::default()).unwrap();
    assert_eq!(verified.notices, [Notice::Mended { seq: 4, bytes: 18 }]);
}

#[tokio::test]
async fn a_log_that_was_torn_before_its_first_line_begins() {
    let place = Place::new();
    fs::write(place.file(), "{\"ti").unwrap();
    let scene = Scene::open(&place.options());
    scene.close().await;
    assert_eq!(told(&place.file(), "mended_bytes"), "1 opened 4");
}

#[tokio::test]
async fn a_crash_between_rotation_and_the_first_line_loses_nothing() {
    let place = Place::new();
    let scene = Scene::open(&place.options());
    scene.ask_often(2).await;
    scene.close().await;
    fs::rename(place.file(), place.file().with_extension("jsonl.1")).unwrap();
    let scene = Scene::open(&place.options());
    scene.close().await;
    assert_eq!(told(&place.file(), "missing_until"), "4 opened");
    assert_eq!(verify(&[place.file()], &VerifyOptions::default()).unwrap().lines, 4);
}

#[tokio::test]
async fn lines_that_went_missing_while_nobody_looked_are_said_when_the_log_goes_on() {
    let place = Place::new();
    let scene = Scene::open(&place.options());
    scene.ask_often(3).await;
    scene.close().await;
    let whole = text(&place.file());
    let cut: String = whole.lines().take(2).map(|line| format!("{line}\n")).collect();
    fs::write(place.file(), cut).unwrap();
    let scene = Scene::open(&place.options());
    scene.close().await;
    insta::assert_snapshot!(told(&place.file(), "missing_until"), @r"
    1 opened
    2 call
    3 opened 4
    ");
    let error = verify(&[place.file()], &VerifyOptions::default()).unwrap_err().to_string();
    assert!(
        error.ends_with("line 3: says that lines up to 4 were missing before it when the log was opened"),
        "{error}"
    );
}

#[tokio::test]
async fn a_log_that_is_written_and_rotated_meanwhile_is_verified() {
    let place = Place::new();
    let options = AuditOptions { bytes_max: 40_000, kept_files: 4, key: key(b'a'), ..place.options() };
    let scene = Scene::open(&options);
    let rotations = Arc::new(AtomicUsize::new(0));
    let ended = Arc::new(AtomicBool::new(false));
    let verifying = tokio::task::spawn_blocking({
        let (file, rotations, ended) = (place.file(), rotations.clone(), ended.clone());
        move || {
            let options = VerifyOptions { key: key(b'a'), must_hold: None };
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
async fn one_process_writes_a_log() {
    let place = Place::new();
    let scene = Scene::open(&place.options());
    assert!(matches!(AuditLog::open(&place.options()), Err(OpenError::Taken(_))));
    scene.close().await;
    drop(scene);
    Scene::open(&place.options()).close().await;
}

#[tokio::test]
async fn who_looks_changes_nothing_and_disturbs_nobody() {
    let place = Place::new();
    AuditLog::look(&place.options()).unwrap();
    assert_eq!(place.files(), "");
    let scene = Scene::open(&place.options());
    scene.ask_often(1).await;
    AuditLog::look(&place.options()).unwrap();
    scene.close().await;
    OpenOptions::new().append(true).open(place.file()).unwrap().write_all(b"{\"torn").unwrap();
    let before = (text(&place.file()), place.files());
    AuditLog::look(&place.options()).unwrap();
    assert_eq!((text(&place.file()), place.files()), before);
    for file in ["nowhere/audit.jsonl", "audit.jsonl/audit.jsonl", "."] {
        let options = AuditOptions::new(place.file().with_file_name(file));
        let error = AuditLog::open(&options).unwrap_err();
        assert!(matches!(error, OpenError::Io { .. }), "{error}");
        assert_eq!(AuditLog::look(&options).unwrap_err().to_string(), error.to_string());
    }
}

#[tokio::test]
async fn a_log_whose_end_was_changed_or_has_another_key_is_not_gone_on_with() {
    let place = Place::new();
    let keyed = AuditOptions { key: key(b'a'), ..place.options() };
    let scene = Scene::open(&keyed);
    scene.close().await;
    drop(scene);
    for key in [None, key(b'b')] {
        let options = AuditOptions { key, ..place.options() };
        let error = AuditLog::open(&options).unwrap_err();
        assert!(matches!(error, OpenError::Unfit { .. }), "{error}");
        assert_eq!(AuditLog::look(&options).unwrap_err().to_string(), error.to_string());
    }
    Scene::open(&keyed).close().await;
    let changed = text(&place.file()).replace("opened", "closed");
    fs::write(place.file(), changed).unwrap();
    let error = AuditLog::open(&keyed).unwrap_err().to_string();
    assert!(error.contains("its last line was changed, or written with another key"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn only_its_owner_reads_a_log() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    Scene::open(&place.options()).close().await;
    for ending in ["jsonl", "jsonl.head", "jsonl.lock"] {
        let file = place.file().with_extension(ending);
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600, "{ending}");
    }
}

#[test]
fn keys_are_long_enough_and_shown_to_nobody() {
    assert!(AuditKey::new(b"  short  ").is_none());
    assert_eq!(format!("{:?}", key(b'a')), "Some(***)");
}
