//! Files that change while they are read, with the programs of systemd if they are installed.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tidegate_log_formats::journal::{CheckedFiles, Journal, JournalQuery, ReadEntry};

use super::{open, parse_lines, read};

const WRITERS: [&str; 2] = ["/usr/lib/systemd/systemd-journal-remote", "/lib/systemd/systemd-journal-remote"];
const BOOT: &str = "0123456789abcdef0123456789abcdef";

/// The writer; `None` where it is not installed.
fn writer() -> Option<&'static str> {
    let is_installed = Command::new("journalctl").arg("--version").output().is_ok();
    WRITERS.into_iter().find(|path| is_installed && Path::new(path).exists())
}

/// Appends the entries `numbers` to the journal at `path`.
fn append(writer: &str, path: &Path, numbers: std::ops::Range<u64>) {
    let mut process =
        Command::new(writer).arg("-o").arg(path).arg("-").stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = process.stdin.take().unwrap();
    for number in numbers {
        let time = 1_700_000_000_000_000 + number * 1_000;
        write!(input, "__REALTIME_TIMESTAMP={time}\n__MONOTONIC_TIMESTAMP={number}000\n_BOOT_ID={BOOT}\nMESSAGE=entry {number}\nPRIORITY={}\n\n", number % 8).unwrap();
    }
    drop(input);
    assert!(process.wait().unwrap().success());
}

fn journalctl(paths: &[PathBuf]) -> Vec<serde_json::Value> {
    let mut command = Command::new("journalctl");
    command.args(["-o", "json", "--all"]);
    for path in paths {
        command.arg("--file").arg(path);
    }
    parse_lines(&command.output().unwrap().stdout)
}

#[test]
fn growing_and_rotated_files_give_each_entry_once() {
    let Some(writer) = writer() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("remote.journal");
    append(writer, &path, 0..3_000);
    let checked = CheckedFiles::default();
    let before = Journal::open(&[folder.path().to_owned()], &checked).unwrap();
    let (mut reader, mut values) = (before.read(JournalQuery::default()), Vec::new());
    for _ in 0..100 {
        assert!(matches!(reader.next_entry(&mut values).unwrap(), Some(ReadEntry::Entry { .. })));
    }
    // It grows, is rotated, and a new file begins, all while the reader is at its beginning.
    append(writer, &path, 3_000..5_000);
    let archived = folder.path().join("remote@1.journal");
    std::fs::rename(&path, &archived).unwrap();
    append(writer, &path, 5_000..6_000);
    let mut count = 100;
    while let Some(read) = reader.next_entry(&mut values).unwrap() {
        assert!(matches!(read, ReadEntry::Entry { .. }));
        count += 1;
    }
    assert_eq!(count, 3_000, "the reader sees the journal as it was opened");
    let after = Journal::open(&[folder.path().to_owned()], &checked).unwrap();
    let (entries, defects) = read(&after, JournalQuery::default());
    assert!(defects.is_empty(), "{defects:?}");
    assert_eq!(entries.len(), 6_000);
    assert!(entries == journalctl(&[archived.clone(), path]));
    // A file that is removed while it is open stays readable.
    let archive = open(std::slice::from_ref(&archived));
    std::fs::remove_file(archived).unwrap();
    assert_eq!(read(&archive, JournalQuery::default()).0.len(), 5_000);
}
