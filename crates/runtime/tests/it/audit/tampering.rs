//! Verification detects every change of a log, or reports that it cannot.

use std::fs;
use std::sync::LazyLock;

use proptest::prelude::*;
use tidegate_runtime::audit::{AuditKey, AuditOptions, BrokenLog, VerifiedLog, VerifyError, VerifyOptions, verify};

use super::fixture::{LogFolder, TestNode, text};

/// The text of a log of eight lines and of its head, with and without a key.
static LOGS: LazyLock<[(String, String); 2]> = LazyLock::new(|| [written(false), written(true)]);

fn key() -> AuditKey {
    AuditKey::new(b"of thirty-two bytes, as it should").unwrap()
}

fn written(is_keyed: bool) -> (String, String) {
    let place = LogFolder::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let scene = TestNode::open(&AuditOptions { key: is_keyed.then(key), ..place.options() });
        scene.ask_often(7).await;
        scene.close().await;
    });
    (text(&place.file()), text(&place.file().with_extension("jsonl.head")))
}

fn verified(log: &[u8], head: Option<&str>, options: &VerifyOptions) -> Result<VerifiedLog, VerifyError> {
    let place = LogFolder::new();
    fs::write(place.file(), log).unwrap();
    if let Some(head) = head {
        fs::write(place.file().with_extension("jsonl.head"), head).unwrap();
    }
    verify(&[place.file()], options)
}

fn found(log: &[u8], head: Option<&str>, options: &VerifyOptions) -> BrokenLog {
    match verified(log, head, options) {
        Err(VerifyError::Broken(broken)) => broken,
        other => panic!("not found: {other:?}"),
    }
}

fn options(is_keyed: bool) -> VerifyOptions {
    VerifyOptions { key: is_keyed.then(key), required_hash: None }
}

fn lines(log: &str) -> Vec<&str> {
    log.split_inclusive('\n').collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn detects_any_changed_byte(is_keyed: bool, has_head: bool, place: prop::sample::Index, change in 1_u8..) {
        let (log, head) = &LOGS[usize::from(is_keyed)];
        let mut log = log.clone().into_bytes();
        let place = place.index(log.len());
        let line = log[..place].iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        log[place] ^= change;
        let broken = found(&log, has_head.then_some(head), &options(is_keyed));
        prop_assert_eq!(broken.line, line);
    }

    #[test]
    fn detects_any_inserted_or_removed_byte(is_keyed: bool, place: prop::sample::Index, byte: Option<u8>) {
        let (log, _) = &LOGS[usize::from(is_keyed)];
        let mut log = log.clone().into_bytes();
        let place = place.index(log.len());
        match byte {
            Some(byte) => log.insert(place, byte),
            None => drop(log.remove(place)),
        }
        found(&log, None, &options(is_keyed));
    }

    #[test]
    fn detects_a_removed_line(is_keyed: bool, place in 0_usize..8) {
        let (log, head) = &LOGS[usize::from(is_keyed)];
        let mut lines = lines(log);
        lines.remove(place);
        let without = lines.concat();
        let broken = found(without.as_bytes(), Some(head), &options(is_keyed));
        prop_assert_eq!(broken.line, place as u64 + 1);
        // Without the head, a missing first or last line cannot be detected.
        let is_inner = place > 0 && place < 7;
        prop_assert_eq!(verified(without.as_bytes(), None, &options(is_keyed)).is_err(), is_inner);
    }

    #[test]
    fn detects_swapped_lines(is_keyed: bool, one in 0_usize..8, other in 0_usize..8) {
        prop_assume!(one != other);
        let (log, _) = &LOGS[usize::from(is_keyed)];
        let mut lines = lines(log);
        lines.swap(one, other);
        found(lines.concat().as_bytes(), None, &options(is_keyed));
    }

    #[test]
    fn detects_an_inserted_line(is_keyed: bool, from in 0_usize..8, to in 0_usize..9) {
        let (log, _) = &LOGS[usize::from(is_keyed)];
        let mut lines = lines(log);
        lines.insert(to, lines[from]);
        found(lines.concat().as_bytes(), None, &options(is_keyed));
    }

    #[test]
    fn detects_truncation_by_head_or_required_hash(is_keyed: bool, kept in 1_usize..8) {
        let (log, head) = &LOGS[usize::from(is_keyed)];
        let cut = lines(log)[..kept].concat();
        found(cut.as_bytes(), Some(head), &options(is_keyed));
        let whole = verified(log.as_bytes(), Some(head), &options(is_keyed)).unwrap();
        let must_hold = Some(whole.last.hash.to_uppercase());
        found(cut.as_bytes(), None, &VerifyOptions { required_hash: must_hold.clone(), ..options(is_keyed) });
        verified(log.as_bytes(), None, &VerifyOptions { required_hash: must_hold, ..options(is_keyed) }).unwrap();
        // Without the head or a required hash this cannot be detected.
        prop_assert!(verified(cut.as_bytes(), None, &options(is_keyed)).is_ok());
    }

    #[test]
    fn verify_terminates_on_arbitrary_bytes(bytes: Vec<u8>, is_keyed: bool) {
        if let Ok(verified) = verified(&bytes, None, &options(is_keyed)) {
            prop_assert_eq!((verified.lines, bytes.len()), (0, 0));
        }
    }
}

#[test]
fn an_untouched_log_is_verified() {
    for (is_keyed, (log, head)) in [false, true].into_iter().zip(&*LOGS) {
        let verified = verified(log.as_bytes(), Some(head), &options(is_keyed)).unwrap();
        assert_eq!((verified.lines, verified.first, verified.last.seq, verified.has_head), (8, 1, 8, true));
        assert!(verified.notices.is_empty());
    }
}

#[test]
fn keyed_log_needs_its_key() {
    let (log, head) = &LOGS[1];
    assert_eq!(found(log.as_bytes(), None, &options(false)).line, 1);
    let other = VerifyOptions { key: AuditKey::new(&[7; 32]), required_hash: None };
    assert_eq!(found(log.as_bytes(), None, &other).line, 1);
    // A log without a key, rewritten by a forger.
    assert_eq!(found(LOGS[0].0.as_bytes(), None, &options(true)).line, 1);
    let forged = head.replace("\"seq\":8", "\"seq\":2");
    let broken = found(lines(log)[..2].concat().as_bytes(), Some(&forged), &options(true));
    assert!(broken.reason.contains("the head of the log was changed"), "{broken}");
}

#[test]
fn files_may_come_in_any_order() {
    let place = LogFolder::new();
    let (log, _) = &LOGS[0];
    let lines = lines(log);
    let names = ["b.jsonl", "a.jsonl", "c.jsonl"].map(|name| place.file().with_file_name(name));
    for (name, part) in names.iter().zip([&lines[..2], &lines[2..5], &lines[5..]]) {
        fs::write(name, part.concat()).unwrap();
    }
    assert_eq!(verify(&names, &VerifyOptions::default()).unwrap().lines, 8);
    let gap = verify(&[names[2].clone(), names[0].clone()], &VerifyOptions::default()).unwrap_err();
    assert!(
        gap.to_string().ends_with("c.jsonl: line 1: is number 6 and follows 2: lines were removed, added or moved")
    );
    assert!(matches!(verify(&[place.file()], &VerifyOptions::default()), Err(VerifyError::Io { .. })));
}
