//! The unit files of services: which exist, which are enabled, and their descriptions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{read_dir, read_link};
use std::path::{Path, PathBuf};

use super::super::text_files::read_small;
use super::{SERVICE_SUFFIX, SERVICES_MAX};

/// Folders whose links enable a unit, by the end of their name.
const ENABLING_FOLDERS: [&str; 3] = [".wants", ".requires", ".upholds"];
/// Entries of one folder at most.
const ENTRIES_MAX: usize = 65_536;

/// How a service starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum StartMode {
    Enabled,
    Disabled,
    Static,
    Alias,
    Masked,
    Template,
    Generated,
}

impl StartMode {
    pub(super) fn name(self) -> &'static str {
        self.into()
    }
}

/// The unit files of all folders.
#[derive(Debug, Default)]
pub(super) struct UnitFiles {
    files: BTreeMap<String, PathBuf>,
    enabled: BTreeSet<String>,
}

impl UnitFiles {
    /// Reads the folders; a file in an earlier folder replaces those of the same name in later ones.
    pub(super) fn read(folders: &[PathBuf]) -> Self {
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

    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.files.keys()
    }

    /// The file of a service; that of its template for an instance.
    pub(super) fn file(&self, name: &str) -> Option<PathBuf> {
        self.files.get(name).cloned().or_else(|| self.template(name))
    }

    /// `getty@.service` for `getty@tty1.service`.
    fn template(&self, name: &str) -> Option<PathBuf> {
        let (template, instance) = name.split_once('@')?;
        (instance != SERVICE_SUFFIX).then(|| self.files.get(&format!("{template}@{SERVICE_SUFFIX}")).cloned())?
    }

    pub(super) fn start_mode(&self, name: &str) -> Option<StartMode> {
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

pub(super) fn read_description(file: &Path) -> Option<String> {
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

    use super::*;

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
