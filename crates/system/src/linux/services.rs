//! Reads `services`: the units from their files, and what runs from the control groups of processes. D-Bus is not used,
//! so the state that only systemd has in memory, such as `failed`, is unknown.

mod unit_files;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use procfs::process::Process;
use procfs::{ProcessCGroup, ProcessCGroups};

use self::unit_files::{StartMode, UnitFiles};
use super::row_writer::{ColumnReader, RowWriter};
use super::text_files::{read_small, read_value};
use super::{KernelClock, RowCallback, SystemPaths};
use crate::catalog::SystemTable;
use crate::error::SystemError;
use crate::read::{ReadOptions, ReadSummary};
use crate::value::SystemValue;

/// Services at most.
const SERVICES_MAX: usize = 16_384;
/// What the name of a service ends in.
const SERVICE_SUFFIX: &str = ".service";
const MICROSECONDS_PER_SECOND: f64 = 1_000_000.0;

/// The service of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessService {
    /// The name of the unit.
    pub(super) name: String,
    /// The path of its control group in its hierarchy, which begins with a slash.
    control_group: String,
}

/// The service of the system that `process` belongs to. Services of a user belong to `user@UID.service`.
pub(super) fn service_of_process(process: &Process) -> Option<ProcessService> {
    service_of_groups(&process.cgroups().ok()?)
}

fn service_of_groups(groups: &ProcessCGroups) -> Option<ProcessService> {
    let is_of_systemd = |group: &&ProcessCGroup| {
        group.hierarchy == 0 || group.controllers.iter().any(|controller| controller == "name=systemd")
    };
    groups.into_iter().filter(is_of_systemd).find_map(|group| service_of_path(&group.pathname))
}

fn service_of_path(path: &str) -> Option<ProcessService> {
    let mut control_group = String::new();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        control_group.push('/');
        control_group.push_str(part);
        if part.ends_with(SERVICE_SUFFIX) && part.len() > SERVICE_SUFFIX.len() {
            return Some(ProcessService { name: part.to_owned(), control_group });
        }
    }
    None
}

/// What the processes of a service use.
#[derive(Debug, Default)]
struct RunningService {
    processes: u64,
    control_group: String,
    /// The start of the oldest process, in ticks since the start of the machine.
    start_ticks: Option<u64>,
}

struct ServiceRow {
    name: String,
    unit_file: Option<PathBuf>,
    start_mode: Option<StartMode>,
    running: Option<RunningService>,
    /// The folder of the control group, if it is one of version 2.
    group_folder: Option<PathBuf>,
    clock: KernelClock,
}

const COLUMNS: &[ColumnReader<ServiceRow>] = &[
    ("name", |row| row.name.as_str().into()),
    ("description", |row| row.unit_file.as_deref().and_then(unit_files::read_description).into()),
    ("is_running", |row| row.running.is_some().into()),
    ("start_mode", |row| row.start_mode.map(StartMode::name).into()),
    ("unit_file", |row| row.unit_file.as_ref().map(|path| path.to_string_lossy().into_owned()).into()),
    ("processes", |row| row.running.as_ref().map_or(0, |running| running.processes).into()),
    ("memory_bytes", |row| in_group(row, "memory.current").and_then(|file| read_value::<u64>(&file)).into()),
    ("cpu_time_seconds", |row| in_group(row, "cpu.stat").and_then(|file| read_cpu_seconds(&file)).into()),
    ("start_time", |row| {
        let ticks = row.running.as_ref().and_then(|running| running.start_ticks);
        ticks.and_then(|ticks| row.clock.time(ticks)).map_or(SystemValue::Null, SystemValue::Timestamp)
    }),
];

pub(super) fn read(
    paths: &SystemPaths,
    options: &ReadOptions,
    on_row: RowCallback<'_>,
) -> Result<ReadSummary, SystemError> {
    let clock = KernelClock::read();
    let units = UnitFiles::read(&paths.unit_folders);
    let mut running = read_running();
    let group_root = group_root(paths);
    let names: BTreeSet<String> = units.names().chain(running.keys()).cloned().collect();
    let mut writer = RowWriter::new(SystemTable::Services, COLUMNS, options, on_row);
    for name in names {
        let running = running.remove(&name);
        let group_folder = running.as_ref().and_then(|running| group_folder(group_root.as_deref()?, running));
        let row = ServiceRow {
            unit_file: units.file(&name),
            start_mode: units.start_mode(&name),
            running,
            group_folder,
            clock,
            name,
        };
        if writer.write(&row).is_break() {
            break;
        }
    }
    Ok(writer.finish())
}

fn read_running() -> BTreeMap<String, RunningService> {
    let mut services: BTreeMap<String, RunningService> = BTreeMap::new();
    let Ok(processes) = procfs::process::all_processes() else { return services };
    for process in processes.flatten() {
        let Some(service) = service_of_process(&process) else { continue };
        if services.len() >= SERVICES_MAX && !services.contains_key(&service.name) {
            continue;
        }
        let running = services.entry(service.name).or_default();
        running.processes += 1;
        running.control_group = service.control_group;
        if let Ok(stat) = process.stat() {
            let oldest = running.start_ticks.map_or(stat.starttime, |ticks| ticks.min(stat.starttime));
            running.start_ticks = Some(oldest);
        }
    }
    services
}

/// The folder of cgroup version 2: alone, or beside version 1.
fn group_root(paths: &SystemPaths) -> Option<PathBuf> {
    let root = paths.sys.join("fs/cgroup");
    [root.clone(), root.join("unified")].into_iter().find(|folder| folder.join("cgroup.controllers").is_file())
}

fn group_folder(root: &Path, running: &RunningService) -> Option<PathBuf> {
    let relative = running.control_group.trim_start_matches('/');
    // Paths of processes outside of the namespace begin with `..`.
    let is_inside = !relative.split('/').any(|part| part == "..");
    is_inside.then(|| root.join(relative)).filter(|folder| folder.is_dir())
}

fn in_group(row: &ServiceRow, file: &str) -> Option<PathBuf> {
    row.group_folder.as_ref().map(|folder| folder.join(file))
}

fn read_cpu_seconds(file: &Path) -> Option<f64> {
    let text = read_small(file)?;
    let microseconds: u64 = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?.parse().ok()?;
    Some(microseconds as f64 / MICROSECONDS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use procfs::FromRead as _;

    use super::*;

    fn service(text: &str) -> Option<String> {
        let groups = ProcessCGroups::from_read(text.as_bytes()).unwrap();
        service_of_groups(&groups).map(|service| format!("{} {}", service.name, service.control_group))
    }

    #[test]
    fn service_is_the_first_in_the_path_of_systemd() {
        let expected = |text: &str| Some(text.to_owned());
        assert_eq!(service("0::/system.slice/ssh.service\n"), expected("ssh.service /system.slice/ssh.service"));
        assert_eq!(
            service("0::/user.slice/user-1000.slice/user@1000.service/app.slice/sync.service\n"),
            expected("user@1000.service /user.slice/user-1000.slice/user@1000.service")
        );
        assert_eq!(
            service("4:memory:/x.service\n1:name=systemd:/system.slice/cron.service/worker\n0::/\n"),
            expected("cron.service /system.slice/cron.service")
        );
        assert_eq!(service("0::/user.slice/user-1000.slice/session-2.scope\n"), None);
        assert_eq!(service("0::/\n"), None);
    }

    #[test]
    fn groups_outside_of_the_namespace_have_no_folder() {
        let root = tempfile::tempdir().unwrap();
        let folder = |group: &str| {
            let running = RunningService { control_group: group.to_owned(), ..RunningService::default() };
            group_folder(root.path(), &running)
        };
        std::fs::create_dir_all(root.path().join("system.slice/a.service")).unwrap();
        assert_eq!(folder("/system.slice/a.service"), Some(root.path().join("system.slice/a.service")));
        assert_eq!((folder("/../a.service"), folder("/missing.service")), (None, None));
        let file = root.path().join("cpu.stat");
        std::fs::write(&file, "usage_usec 2500000\nuser_usec 1\n").unwrap();
        assert_eq!(read_cpu_seconds(&file), Some(2.5));
    }
}
