//! Reads `services`: the units from their files (which exist, which are enabled, and their descriptions), and what runs from the
//! control groups of processes. D-Bus is not used, so the state that only systemd has in memory, such as `failed`, is unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{read_dir, read_link};
use std::path::{Path, PathBuf};

use procfs::process::Process;
use procfs::{ProcessCGroup, ProcessCGroups};

use super::{ColumnReader, KernelClock, RowCallback, SystemPaths, SystemRowWriter, read_small, read_value};
use crate::catalog::SystemTable;
use crate::description::SystemValue;
use crate::read::{ReadOptions, ReadSummary, SystemError};

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
    ("description", |row| row.unit_file.as_deref().and_then(read_description).into()),
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
    let mut writer = SystemRowWriter::new(SystemTable::Services, COLUMNS, options, on_row);
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

/// Folders whose links enable a unit, by the end of their name.
const ENABLING_FOLDERS: [&str; 3] = [".wants", ".requires", ".upholds"];
/// Entries of one folder at most.
const ENTRIES_MAX: usize = 65_536;

/// How a service starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
enum StartMode {
    Enabled,
    Disabled,
    Static,
    Alias,
    Masked,
    Template,
    Generated,
}

impl StartMode {
    fn name(self) -> &'static str {
        self.into()
    }
}

/// The unit files of all folders.
#[derive(Debug, Default)]
struct UnitFiles {
    files: BTreeMap<String, PathBuf>,
    enabled: BTreeSet<String>,
}

impl UnitFiles {
    /// Reads the folders; a file in an earlier folder replaces those of the same name in later ones.
    fn read(folders: &[PathBuf]) -> Self {
        let mut units = Self::default();
        for folder in folders {
            units.add_folder(folder);
        }
        // Instances of templates exist as links only.
        let instances: Vec<(String, PathBuf)> = units
            .enabled
            .iter()
            .filter(|name| !units.files.contains_key(*name))
            .filter_map(|name| Some((name.clone(), units.template(name)?)))
            .collect();
        units.files.extend(instances);
        units
    }

    fn add_folder(&mut self, folder: &Path) {
        let Ok(entries) = read_dir(folder) else { return };
        // Links of packages belong to static units; those of the owner and of programs at run time enable a unit.
        let is_configuration = !folder.components().any(|part| matches!(part.as_os_str().to_str(), Some("lib")));
        for entry in entries.flatten().take(ENTRIES_MAX) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(SERVICE_SUFFIX) {
                if self.files.len() < SERVICES_MAX {
                    self.files.entry(name).or_insert_with(|| entry.path());
                }
            } else if is_configuration && ENABLING_FOLDERS.iter().any(|suffix| name.ends_with(suffix)) {
                self.add_enabled(&entry.path());
            }
        }
    }

    fn add_enabled(&mut self, folder: &Path) {
        let Ok(entries) = read_dir(folder) else { return };
        for entry in entries.flatten().take(ENTRIES_MAX) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(SERVICE_SUFFIX) && self.enabled.len() < SERVICES_MAX {
                self.enabled.insert(name);
            }
        }
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.files.keys()
    }

    /// The file of a service; that of its template for an instance.
    fn file(&self, name: &str) -> Option<PathBuf> {
        self.files.get(name).cloned().or_else(|| self.template(name))
    }

    /// `getty@.service` for `getty@tty1.service`.
    fn template(&self, name: &str) -> Option<PathBuf> {
        let (template, instance) = name.split_once('@')?;
        (instance != SERVICE_SUFFIX).then(|| self.files.get(&format!("{template}@{SERVICE_SUFFIX}")).cloned())?
    }

    fn start_mode(&self, name: &str) -> Option<StartMode> {
        let file = self.file(name)?;
        let target = read_link(&file).ok();
        if target.as_deref() == Some(Path::new("/dev/null")) {
            return Some(StartMode::Masked);
        }
        let is_alias =
            target.as_deref().and_then(Path::file_name).is_some_and(|target| Some(target) != file.file_name());
        Some(if is_alias {
            StartMode::Alias
        } else if file.components().any(|part| part.as_os_str().to_string_lossy().starts_with("generator")) {
            StartMode::Generated
        } else if self.enabled.contains(name) {
            StartMode::Enabled
        } else if name.contains("@.") {
            StartMode::Template
        } else if can_be_enabled(&file) {
            StartMode::Disabled
        } else {
            StartMode::Static
        })
    }
}

/// Whether the file says which units start it once it is enabled.
fn can_be_enabled(file: &Path) -> bool {
    let text = read_small(file).unwrap_or_default();
    let keys = ["WantedBy", "RequiredBy", "UpheldBy", "Alias", "Also"];
    keys.iter().any(|key| setting(&text, "Install", key).is_some())
}

fn read_description(file: &Path) -> Option<String> {
    setting(&read_small(file)?, "Unit", "Description").map(str::to_owned)
}

/// The first value of `key` in `section`.
fn setting<'a>(text: &'a str, section: &str, key: &str) -> Option<&'a str> {
    let mut is_in_section = false;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            is_in_section = name == section;
        } else if is_in_section
            && let Some((name, value)) = line.split_once('=')
            && name.trim_end() == key
            && !value.trim().is_empty()
        {
            return Some(value.trim());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

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

    #[test]
    fn start_modes_of_a_folder_tree() {
        let root = tempfile::tempdir().unwrap();
        let folders: Vec<PathBuf> =
            ["etc", "run/generator", "usr/lib/system"].iter().map(|name| root.path().join(name)).collect();
        let [etc, generator, lib] = folders.as_slice() else { panic!("three folders") };
        for folder in &folders {
            std::fs::create_dir_all(folder).unwrap();
        }
        for wants in [etc.join("multi-user.target.wants"), lib.join("sysinit.target.wants")] {
            std::fs::create_dir_all(wants).unwrap();
        }
        let unit = |folder: &Path, name: &str, install: &str| {
            std::fs::write(folder.join(name), format!("[Unit]\nDescription = About {name}\n{install}")).unwrap();
        };
        const INSTALL: &str = "[Install]\nWantedBy=multi-user.target\n";
        unit(lib, "on.service", INSTALL);
        unit(lib, "off.service", INSTALL);
        unit(lib, "plain.service", "# [Install]\n#WantedBy=x\n");
        unit(lib, "early.service", "");
        unit(lib, "getty@.service", INSTALL);
        unit(lib, "hidden.service", INSTALL);
        unit(lib, "ignored.socket", INSTALL);
        unit(generator, "made.service", "");
        symlink("/dev/null", etc.join("hidden.service")).unwrap();
        symlink(lib.join("on.service"), etc.join("dbus-on.service")).unwrap();
        symlink(lib.join("on.service"), etc.join("multi-user.target.wants/on.service")).unwrap();
        symlink(lib.join("getty@.service"), etc.join("multi-user.target.wants/getty@tty1.service")).unwrap();
        symlink("../early.service", lib.join("sysinit.target.wants/early.service")).unwrap();

        let units = UnitFiles::read(&folders);
        let line = |name: &String| format!("{name} {}", units.start_mode(name).map_or("none", StartMode::name));
        let lines: Vec<String> = units.names().map(line).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        dbus-on.service alias
        early.service static
        getty@.service template
        getty@tty1.service enabled
        hidden.service masked
        made.service generated
        off.service disabled
        on.service enabled
        plain.service static
        ");
        assert_eq!(units.start_mode("missing.service"), None);
        assert_eq!(read_description(&lib.join("on.service")).as_deref(), Some("About on.service"));
        assert_eq!(units.file("getty@tty9.service"), Some(lib.join("getty@.service")));
    }
}
