//! Reads `processes`.

use std::cell::OnceCell;
use std::io::Read as _;
use std::path::Path;
use std::time::Instant;

use parking_lot::Mutex;
use procfs::process::{Io, ProcState, Process, Stat, StatFlags, Status};
use procfs::{Current as _, Meminfo};
use rustix::fs::{Dir, DirEntry};

use super::services::service_of_process;
use super::users::UserNames;
use super::{ColumnReader, KernelClock, RowCallback, SystemPaths, SystemRowWriter, percentage, unreadable};
use crate::catalog::SystemTable;
use crate::cpu_sampler::{CpuSampler, CpuUsage};
use crate::description::SystemValue;
use crate::read::{ReadOptions, ReadSummary, SystemError};

/// Bytes of a command line or an environment at most.
const TEXTS_BYTES_MAX: u64 = 65_536;

/// One process. What needs a file of its own is read when a column needs it.
struct ProcessRow {
    process: Process,
    stat: Stat,
    usage: Option<CpuUsage>,
    user_name: Option<String>,
    clock: KernelClock,
    memory_total_bytes: Option<u64>,
    status: OnceCell<Option<Status>>,
    io: OnceCell<Option<Io>>,
}

const COLUMNS: &[ColumnReader<ProcessRow>] = &[
    ("pid", |row| i64::from(row.process.pid).into()),
    ("parent_pid", |row| i64::from(row.stat.ppid).into()),
    ("name", |row| row.stat.comm.as_str().into()),
    ("state", |row| ProcState::from_char(row.stat.state).map(state_name).into()),
    ("user_name", |row| row.user_name.clone().into()),
    ("uid", |row| row.status().map(|status| status.euid).into()),
    ("command_line", command_line),
    ("executable_path", |row| row.process.exe().ok().map(|path| path.to_string_lossy().into_owned()).into()),
    ("environment", environment),
    ("service", |row| service_of_process(&row.process).map(|service| service.name).into()),
    ("is_kernel_thread", |row| is_kernel_thread(&row.stat).into()),
    ("threads", |row| u64::try_from(row.stat.num_threads).ok().into()),
    ("nice", |row| row.stat.nice.into()),
    ("cpu_percent", |row| row.usage.map(|usage| usage.percent).into()),
    ("cpu_period_seconds", |row| row.usage.map(|usage| usage.period_seconds).into()),
    ("cpu_time_seconds", |row| cpu_seconds(&row.clock, &row.stat).into()),
    ("memory_bytes", |row| memory_bytes(&row.stat).into()),
    ("memory_percent", |row| {
        row.memory_total_bytes.and_then(|total| percentage(memory_bytes(&row.stat), total)).into()
    }),
    ("memory_virtual_bytes", |row| row.stat.vsize.into()),
    ("memory_swap_bytes", |row| row.status().and_then(|status| status.vmswap).map(kibibytes).into()),
    ("read_bytes", |row| row.io().map(|io| io.read_bytes).into()),
    ("written_bytes", |row| row.io().map(|io| io.write_bytes).into()),
    ("open_files", |row| count_open_files(&row.process).into()),
    ("start_time", |row| row.clock.time(row.stat.starttime).map_or(SystemValue::Null, SystemValue::Timestamp)),
    ("uptime_seconds", |row| row.clock.seconds_since(row.stat.starttime).into()),
];

/// The parameter that selects the processes of one user.
const USER_PARAMETER: &str = "user";

pub(super) fn read(
    paths: &SystemPaths,
    sampler: &Mutex<CpuSampler>,
    options: &ReadOptions,
    on_row: RowCallback<'_>,
) -> Result<ReadSummary, SystemError> {
    let processes = procfs::process::all_processes();
    let processes = processes.map_err(|error| unreadable(SystemTable::Processes, Path::new("/proc"), error))?;
    let user = options.parameters.get(USER_PARAMETER).and_then(SystemValue::as_text);
    let users = UserNames::read(paths);
    let memory_total_bytes = Meminfo::current().ok().map(|memory| memory.mem_total);
    let clock = KernelClock::read();
    sampler.lock().remove_old(Instant::now());
    let mut writer = SystemRowWriter::new(SystemTable::Processes, COLUMNS, options, on_row);
    for process in processes.flatten() {
        // A process without statistics ended since the folder was listed.
        let Ok(stat) = process.stat() else { continue };
        let mut row = ProcessRow {
            process,
            stat,
            usage: None,
            user_name: None,
            clock,
            memory_total_bytes,
            status: OnceCell::new(),
            io: OnceCell::new(),
        };
        let uid = row.status().map(|status| status.euid);
        row.user_name = uid.map(|uid| users.name(uid));
        let is_of_user =
            |user| uid.is_some_and(|uid| uid.to_string() == user) || row.user_name.as_deref() == Some(user);
        if !user.is_none_or(is_of_user) {
            continue;
        }
        row.usage = sample(sampler, &clock, &row.stat);
        if writer.write(&row).is_break() {
            break;
        }
    }
    Ok(writer.finish())
}

fn sample(sampler: &Mutex<CpuSampler>, clock: &KernelClock, stat: &Stat) -> Option<CpuUsage> {
    let age_seconds = clock.seconds_since(stat.starttime)?;
    let key = (stat.pid, stat.starttime);
    sampler.lock().sample(key, Instant::now(), cpu_seconds(clock, stat), age_seconds)
}

impl ProcessRow {
    /// The owner of the folder is not enough: it is root for programs with special rights.
    fn status(&self) -> Option<&Status> {
        self.status.get_or_init(|| self.process.status().ok()).as_ref()
    }

    fn io(&self) -> Option<&Io> {
        self.io.get_or_init(|| self.process.io().ok()).as_ref()
    }
}

/// Null for kernel threads and for processes that ended, which have none.
fn command_line(row: &ProcessRow) -> SystemValue {
    let arguments = read_texts(&row.process, "cmdline").filter(|arguments| !arguments.is_empty());
    arguments.map(|arguments| arguments.join(" ")).into()
}

fn environment(row: &ProcessRow) -> SystemValue {
    let variables = read_texts(&row.process, "environ").map(|mut variables| {
        variables.sort_unstable();
        variables.join(" ")
    });
    variables.into()
}

/// The texts of a file that separates them with zero bytes. A process can make them as large as its memory, and can
/// change them, so that they need not be valid.
fn read_texts(process: &Process, file: &str) -> Option<Vec<String>> {
    let mut bytes = Vec::new();
    process.open_relative(file).ok()?.take(TEXTS_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let texts = bytes.split(|byte| *byte == 0).filter(|text| !text.is_empty());
    Some(texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect())
}

/// The library also counts the two entries of each folder for itself and its parent, unless the kernel (since 6.2)
/// reports the number as the size of the folder.
fn count_open_files(process: &Process) -> Option<u64> {
    let folder = process.open_relative("fd").ok()?;
    let size = folder.metadata().ok()?.len();
    if size > 0 {
        return Some(size);
    }
    let entries = Dir::read_from(&folder).ok()?.flatten();
    let is_descriptor = |entry: &DirEntry| !entry.file_name().to_bytes().starts_with(b".");
    Some(entries.filter(is_descriptor).count() as u64)
}

fn is_kernel_thread(stat: &Stat) -> bool {
    StatFlags::from_bits_truncate(stat.flags).contains(StatFlags::PF_KTHREAD)
}

fn cpu_seconds(clock: &KernelClock, stat: &Stat) -> f64 {
    clock.seconds(stat.utime.saturating_add(stat.stime))
}

fn memory_bytes(stat: &Stat) -> u64 {
    stat.rss.saturating_mul(procfs::page_size())
}

fn kibibytes(count: u64) -> u64 {
    count.saturating_mul(1_024)
}

fn state_name(state: ProcState) -> &'static str {
    match state {
        ProcState::Running => "running",
        ProcState::Sleeping => "sleeping",
        ProcState::Waiting => "disk_sleep",
        ProcState::Zombie => "zombie",
        ProcState::Stopped => "stopped",
        ProcState::Tracing => "traced",
        ProcState::Dead => "dead",
        ProcState::Parked => "parked",
        // Old kernels have states of their own for a sleep that ends.
        ProcState::Idle | ProcState::Wakekill | ProcState::Waking => "idle",
    }
}
