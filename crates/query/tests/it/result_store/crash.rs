//! What is left when a process ends without a word, and what the next one makes of it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tidegate_results::{NewResult, ResultEnd, ResultStore, StoreLimits, StoredColumns};

use super::{RunningCall, TestStore, ann, numbered_rows, read, small_limits};
use crate::stored::caller_named;

/// Names the folder to the process that is killed.
const FOLDER: &str = "TIDEGATE_TEST_SPOOL_OF_CRASH";
/// Processes that are killed.
const KILLS_MIN: u32 = 20;
/// On a slow machine, more may be needed until one leaves a whole result, and one a part.
const KILLS_MAX: u32 = 100;
const STOPPED: &str = "the server was stopped while it was being written";

/// Room for a few results only, so that old ones go while new ones are written.
fn tight_limits() -> StoreLimits {
    StoreLimits { total_bytes: 1_500_000, bytes_per_principal: 600_000, ..small_limits() }
}

/// Writes results of `who` without an end, of as many rows as the name of their database says.
async fn write_on(store: Arc<ResultStore>, caller: &str, mut size: i64) {
    let caller = caller_named(caller);
    loop {
        size = (size * 7 + 13) % 9000;
        let running = RunningCall::from_caller(&caller);
        let database = size.to_string();
        let new_result = NewResult::new(&running.job, &database);
        let Ok(writer) = store.begin(new_result, StoredColumns::unchanged(numbered_rows(0..1, 40).schema())).await
        else {
            continue;
        };
        let batches = (0..size).step_by(500).map(move |from| Ok(numbered_rows(from..size.min(from + 500), 40)));
        // One that finds no room is not whole, and the next one is begun.
        let _ = writer.write_all(futures::stream::iter(batches).boxed(), 0, &running.job).await;
    }
}

/// Kills a process that writes after `format_time`, and says in whose name it wrote.
fn run_and_kill_writers(folder: &Path, time: Duration) -> [&'static str; 2] {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["result_store::crash::a_killed_process_leaves_prefixes_or_nothing", "--exact", "--nocapture"]);
    let mut child = program.env(FOLDER, folder).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("it writes")), "it began");
    // The process is killed at a moment of its work that differs from run to run.
    std::thread::sleep(time);
    child.kill().unwrap();
    child.wait().unwrap();
    ["ann", "bob"]
}

/// Looks at all that was left; gives the numbers of whole results and of parts.
async fn check_recovered(spool: &TestStore, writers: [&str; 2]) -> (usize, usize) {
    let (mut whole, mut parts, mut names) = (0, 0, Vec::new());
    for result in writers.iter().flat_map(|caller| spool.store.list(&caller_named(caller))) {
        let expected: i64 = result.header().database.parse().unwrap();
        // Each block is read and its hash compared.
        let rows = read(&result, 0).await.unwrap();
        assert_eq!(rows, (0..rows.len() as i64).collect::<Vec<i64>>());
        assert_eq!(rows.len() as u64, result.progress().rows());
        match result.end().unwrap() {
            ResultEnd::Complete => {
                assert_eq!(rows.len() as i64, expected);
                whole += 1;
            }
            ResultEnd::Incomplete(reason) => {
                assert!(reason == STOPPED || reason.contains("room"), "{reason}");
                parts += 1;
            }
            ResultEnd::Removed(reason) => panic!("{reason}"),
        }
        names.push(result.header().id.to_string());
    }
    names.sort();
    assert_eq!(spool.on_disk(), names, "nothing else is left");
    (whole, parts)
}

#[test]
fn a_killed_process_leaves_prefixes_or_nothing() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if let Some(folder) = std::env::var_os(FOLDER) {
        return runtime.block_on(async {
            let store = ResultStore::open(Path::new(&folder), tight_limits()).await.unwrap();
            std::io::stdout().write_all(b"it writes\n").unwrap();
            let writers = [("ann", 1), ("ann", 5), ("bob", 3)];
            futures::future::join_all(writers.map(|(caller, size)| write_on(store.clone(), caller, size))).await;
        });
    }
    let (mut whole, mut parts, mut state) = (0, 0, 20_261_122_u64);
    let mut folder = None;
    for round in 0..KILLS_MAX {
        if round >= KILLS_MIN && whole > 0 && parts > 0 {
            break;
        }
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let time = Duration::from_micros((state >> 33) % 60_000);
        // Each fourth one begins with nothing, the others where the one before was killed.
        let here = folder.take().filter(|_| round % 4 != 0).unwrap_or_else(|| tempfile::TempDir::new().unwrap());
        let writers = run_and_kill_writers(here.path(), time);
        folder = Some(runtime.block_on(async {
            let spool = TestStore::within(here, tight_limits()).await;
            let seen = check_recovered(&spool, writers).await;
            (whole, parts) = (whole + seen.0, parts + seen.1);
            // The next one finds the same.
            let spool = spool.reopen(tight_limits()).await;
            assert_eq!(check_recovered(&spool, writers).await, seen);
            spool.folder
        }));
    }
    assert!(whole > 0 && parts > 0, "{whole} whole ones and {parts} parts were seen");
}

#[tokio::test]
async fn a_manifest_that_breaks_off_anywhere_is_a_prefix_or_nothing() {
    let spool = TestStore::new(small_limits()).await;
    let result = spool.keep(&ann(), 9000).await;
    let (id, files) = (result.header().id, spool.files_of(&result));
    let manifest = fs::read(files.join("manifest.jsonl")).unwrap();
    let blocks = result.progress().blocks;
    assert!(blocks.len() >= 3);
    drop(result);
    let whole_lines = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
    let kept = tempfile::TempDir::new().unwrap();
    let copy = |from: &Path, to: &Path| {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    };
    copy(&files, kept.path());
    let mut spool = spool;
    // At every seventh byte, before and after the ends of lines, and at the end.
    let is_line_end = |cut: usize| manifest.get(cut) == Some(&b'\n') || (cut > 0 && manifest[cut - 1] == b'\n');
    let is_tried = |cut: &usize| cut.is_multiple_of(7) || is_line_end(*cut) || *cut == manifest.len();
    for cut in (0..=manifest.len()).filter(is_tried) {
        copy(kept.path(), &files);
        fs::write(files.join("manifest.jsonl"), &manifest[..cut]).unwrap();
        // The second time it is found as the first one left it.
        for _ in 0..2 {
            spool = spool.reopen(small_limits()).await;
            let lines = whole_lines(&manifest[..cut]);
            if lines < 2 {
                assert!(spool.store.is_empty() && spool.on_disk().is_empty(), "at {cut}");
                continue;
            }
            let found = spool.store.get(id, &ann()).unwrap();
            let there = (lines - 1).min(blocks.len());
            assert_eq!(found.progress().blocks, blocks[..there], "at {cut}");
            let is_whole = cut == manifest.len();
            let end = if is_whole { ResultEnd::Complete } else { ResultEnd::Incomplete(STOPPED.to_owned()) };
            assert_eq!(found.end(), Some(end), "at {cut}");
            let lines = fs::read_to_string(files.join("manifest.jsonl")).unwrap();
            assert!(lines.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "at {cut}");
        }
    }
    assert_eq!(read(&spool.store.get(id, &ann()).unwrap(), 0).await.unwrap().len(), 9000);
}

#[tokio::test]
async fn ignores_foreign_files() {
    let spool = TestStore::new(small_limits()).await;
    let result = spool.keep(&ann(), 9000).await;
    let (id, place) = (result.header().id, spool.process_folder());
    let another = "0b84a1a0-5fd2-4a3f-8a56-1b8b8e9a4a11";
    fs::write(place.join("notes.txt"), "hello").unwrap();
    fs::create_dir(place.join("folder")).unwrap();
    fs::write(place.join("folder/manifest.jsonl"), "hello").unwrap();
    // The name of a result, and a file; a manifest of another one; the same name, spelled otherwise.
    fs::write(place.join("6f1c1d2e-9a56-4f0b-8d9c-3c1f5a7b9e01"), "hello").unwrap();
    fs::create_dir(place.join(another)).unwrap();
    fs::copy(spool.files_of(&result).join("manifest.jsonl"), place.join(another).join("manifest.jsonl")).unwrap();
    fs::create_dir(place.join(id.to_string().to_uppercase())).unwrap();
    fs::write(place.join("key"), "short").unwrap();
    // Another place, of a process that is gone; and one that is no folder.
    fs::create_dir(spool.folder.path().join("1")).unwrap();
    fs::write(spool.folder.path().join("2"), "hello").unwrap();
    drop(result);
    let spool = spool.reopen(small_limits()).await;
    assert_eq!(spool.store.len(), 1);
    assert_eq!(read(&spool.store.get(id, &ann()).unwrap(), 0).await.unwrap().len(), 9000);
    assert!(place.join("notes.txt").exists() && place.join("folder").exists());
    assert!(!place.join(another).exists(), "a folder of ours that is none goes");
}

#[tokio::test]
async fn truncates_result_at_missing_block() {
    for (name, length) in [("1.arrow", None), ("1.arrow", Some(0)), ("1.arrow", Some(100)), ("0.arrow", None)] {
        let spool = TestStore::new(small_limits()).await;
        let (result, other) = (spool.keep(&ann(), 9000).await, spool.keep(&ann(), 20).await);
        let (id, path) = (result.header().id, spool.files_of(&result).join(name));
        let first = result.progress().blocks[0].clone();
        match length {
            None => fs::remove_file(path).unwrap(),
            Some(bytes) => fs::File::options().write(true).open(path).unwrap().set_len(bytes).unwrap(),
        }
        let other = other.header().id;
        drop(result);
        let spool = spool.reopen(small_limits()).await;
        assert_eq!(read(&spool.store.get(other, &ann()).unwrap(), 0).await.unwrap().len(), 20);
        if name == "0.arrow" {
            assert!(spool.store.get(id, &ann()).is_err() && spool.on_disk() == [other.to_string()]);
            continue;
        }
        let found = spool.store.get(id, &ann()).unwrap();
        let why = "the rest is missing on the server's disk".to_owned();
        assert_eq!((found.progress().blocks, found.end()), (vec![first.clone()], Some(ResultEnd::Incomplete(why))));
        assert_eq!(read(&found, 0).await.unwrap().len() as u64, first.rows);
    }
}

#[tokio::test]
async fn processes_use_separate_subfolders() {
    let one = TestStore::new(small_limits()).await;
    let two = ResultStore::open(one.folder.path(), small_limits()).await.unwrap();
    let result = one.keep(&ann(), 20).await;
    assert!(two.get(result.header().id, &ann()).is_err());
    assert!(one.folder.path().join("1").is_dir());
    drop(two);
    let none = StoreLimits { time_to_live: Duration::ZERO, ..small_limits() };
    // What the second leaves goes when its time is over, though nobody may ever take its place again.
    let two = ResultStore::open(one.folder.path(), none).await.unwrap();
    let second = TestStore { store: two, folder: tempfile::TempDir::new().unwrap() };
    second.keep(&ann(), 20).await;
    let place = one.folder.path().join("1");
    let there = || fs::read_dir(&place).unwrap().count();
    assert_eq!(there(), 3, "a lock, a key, a result");
    drop(second);
    let folder = one.reopen(small_limits()).await;
    assert_eq!((there(), folder.store.len()), (2, 1));
}
