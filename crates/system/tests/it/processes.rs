//! Processes against `ps` and this process; masks, needed columns and bounds.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::ops::ControlFlow;
use std::process::{Child, Command, Stdio};

use tidegate_system::{MASK, ReadOptions, ReadSummary, SystemReader, SystemTable, SystemValue};

use crate::fixture::{NamedRow, float, number, output, read, read_with, text, with_parameter};

const GRANTED: fn() -> ReadOptions = || ReadOptions { grants_sensitive: true, ..ReadOptions::default() };

fn row_of(rows: &[NamedRow], pid: u32) -> &NamedRow {
    rows.iter().find(|row| row["pid"].as_unsigned() == Some(pid.into())).expect("the process is listed")
}

/// A process that waits for its input to end, and is ended with the value.
struct WaitingProcess(Child);

impl WaitingProcess {
    fn start() -> Self {
        let mut command = Command::new("cat");
        command.arg("-").env("TIDEGATE_TEST_SECRET", "hunter2").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Self(command.spawn().unwrap());
        // A process that answers has loaded its libraries, so that the number of its open files does not change.
        process.0.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        process.0.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        process
    }
}

impl Drop for WaitingProcess {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

#[test]
fn own_process_has_its_values() {
    let (rows, _) = read_with(&SystemReader::new(), SystemTable::Processes, &GRANTED());
    let row = row_of(&rows, std::process::id());
    let executable = std::env::current_exe().unwrap();
    assert_eq!(text(row, "executable_path"), executable.to_string_lossy());
    let arguments: Vec<String> = std::env::args().collect();
    assert_eq!(text(row, "command_line"), arguments.join(" "));
    let name = executable.file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.starts_with(&text(row, "name")), "{row:?}");
    // The name of a program may begin the name of its test thread too; both are in `/proc/self/stat`.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    assert_eq!(number(row, "parent_pid").to_string(), field("PPid:"));
    assert_eq!(Some(number(row, "uid").to_string().as_str()), field("Uid:").split_whitespace().nth(1));
    assert!(matches!(text(row, "state").as_str(), "running" | "sleeping" | "disk_sleep"), "{row:?}");
    assert!(number(row, "threads") >= 1 && number(row, "open_files") >= 3, "{row:?}");
    for kernel_thread in rows.iter().filter(|row| row["is_kernel_thread"] == SystemValue::Boolean(true)) {
        assert!(kernel_thread["command_line"].is_null(), "{kernel_thread:?}");
        // Without rights, the number is unknown.
        assert_eq!(kernel_thread["open_files"].as_unsigned().unwrap_or_default(), 0, "{kernel_thread:?}");
    }
    let memory = number(row, "memory_bytes");
    assert!((1 << 20..1 << 32).contains(&memory) && memory <= number(row, "memory_virtual_bytes"), "{row:?}");
    assert!((0.0..100.0).contains(&float(row, "memory_percent")), "{row:?}");
    assert_eq!(row["is_kernel_thread"], SystemValue::Boolean(false));
    // A process that started within this clock tick has no usage yet.
    assert!(row["cpu_percent"].is_null() || float(row, "cpu_percent") >= 0.0);
    assert_eq!(row["cpu_percent"].is_null(), row["cpu_period_seconds"].is_null());
    assert!(float(row, "uptime_seconds") >= 0.0);
    assert!(matches!(row["start_time"], SystemValue::Timestamp(time) if time > 1_600_000_000_000_000), "{row:?}");
}

#[test]
fn other_process_agrees_with_ps() {
    let process = WaitingProcess::start();
    let pid = process.0.id();
    let rows = read(SystemTable::Processes);
    let row = row_of(&rows, pid);
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    assert_eq!(number(row, "open_files"), descriptors.count() as u64);
    let Some(fields) = output("ps", &["-o", "pid=,ppid=,euid=,nlwp=,ni=,comm=", "-p", &pid.to_string()]) else {
        return;
    };
    let nice = match row["nice"] {
        SystemValue::Integer(nice) => nice,
        ref other => panic!("{other:?}"),
    };
    let (parent, uid, threads) = (number(row, "parent_pid"), number(row, "uid"), number(row, "threads"));
    let expected = format!("{pid} {parent} {uid} {threads} {nice} {}", text(row, "name"));
    assert_eq!(fields.split_whitespace().collect::<Vec<_>>().join(" "), expected);
    if let Some(user) = output("ps", &["-o", "user:64=", "-p", &pid.to_string()]) {
        assert_eq!(user.trim(), text(row, "user_name"));
    }
    if let Some(start) = output("ps", &["-o", "lstart=", "-p", &pid.to_string()]) {
        let start = chrono::NaiveDateTime::parse_from_str(start.trim(), "%a %b %e %H:%M:%S %Y").unwrap();
        let SystemValue::Timestamp(time) = row["start_time"] else { panic!("{row:?}") };
        // `ps` prints local time and computes it from the uptime, so that only the second within the hour can be compared.
        let difference = (start.and_utc().timestamp() - time / 1_000_000).rem_euclid(900);
        assert!(difference <= 2 || difference >= 898, "{difference}: {start} {time}");
    }
}

#[test]
fn long_lived_processes_are_those_of_ps() {
    let Some(before) = output("ps", &["-e", "-o", "pid="]) else { return };
    let rows = read(SystemTable::Processes);
    let Some(after) = output("ps", &["-e", "-o", "pid="]) else { return };
    let pids = |text: &str| text.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<BTreeSet<u64>>();
    let (before, after) = (pids(&before), pids(&after));
    let listed: BTreeSet<u64> = rows.iter().map(|row| number(row, "pid")).collect();
    let missing: Vec<_> = before.intersection(&after).filter(|pid| !listed.contains(pid)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn sensitive_columns_are_masked_unless_granted() {
    let process = WaitingProcess::start();
    let reader = SystemReader::new();
    let (masked, _) = read_with(&reader, SystemTable::Processes, &ReadOptions::default());
    assert!(!masked.is_empty());
    for row in &masked {
        assert_eq!((text(row, "command_line"), text(row, "environment")), (MASK.to_owned(), MASK.to_owned()));
        assert!(!format!("{row:?}").contains("hunter2"));
    }
    let (granted, _) = read_with(&reader, SystemTable::Processes, &GRANTED());
    let row = row_of(&granted, process.0.id());
    assert!(text(row, "environment").contains("TIDEGATE_TEST_SECRET=hunter2"), "{row:?}");
    assert_eq!(text(row, "command_line"), "cat -");
}

#[test]
fn only_needed_columns_are_read() {
    let columns = ["pid", "command_line"].map(str::to_owned).to_vec();
    let options = ReadOptions { columns: Some(columns), ..ReadOptions::default() };
    let (rows, _) = read_with(&SystemReader::new(), SystemTable::Processes, &options);
    let row = row_of(&rows, std::process::id());
    for (name, value) in row {
        match name.as_str() {
            "pid" => assert_eq!(value.as_unsigned(), Some(std::process::id().into())),
            "command_line" => assert_eq!(value.as_text(), Some(MASK)),
            _ => assert!(value.is_null(), "{name}: {value:?}"),
        }
    }
}

#[test]
fn rows_are_bounded_and_a_reading_can_be_stopped() {
    let reader = SystemReader::new();
    let options = ReadOptions { rows_max: 1, ..ReadOptions::default() };
    // This process and its parent are two.
    let (rows, summary) = read_with(&reader, SystemTable::Processes, &options);
    assert_eq!((rows.len(), summary), (1, ReadSummary { rows: 1, is_truncated: true }));
    let mut calls = 0;
    let stopped = reader.read(SystemTable::Processes, &ReadOptions::default(), &mut |_| {
        calls += 1;
        ControlFlow::Break(())
    });
    assert_eq!((calls, stopped.unwrap()), (1, ReadSummary { rows: 1, is_truncated: false }));
}

#[test]
fn processes_of_one_user() {
    let reader = SystemReader::new();
    let own = row_of(&read(SystemTable::Processes), std::process::id()).clone();
    for user in [text(&own, "user_name"), number(&own, "uid").to_string()] {
        let (rows, _) = read_with(&reader, SystemTable::Processes, &with_parameter("user", user));
        assert!(rows.iter().all(|row| row["uid"] == own["uid"]));
        row_of(&rows, std::process::id());
    }
    let (none, _) = read_with(&reader, SystemTable::Processes, &with_parameter("user", "no such user"));
    assert!(none.is_empty());
}
