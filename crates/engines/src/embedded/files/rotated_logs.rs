//! The names of log files, and which of them are one log.

use std::collections::{BTreeMap, HashSet};

use tidegate_log_formats::group_rotated_logs;

use super::file_kind::{NamedFormat, split_compression};
use super::walk::DataFile;

/// Names of logs that do not end in `.log`, as they are in `/var/log`.
const SYSTEM_LOG_NAMES: &[&str] = &[
    "auth",
    "boot",
    "cron",
    "daemon",
    "debug",
    "kern",
    "mail.err",
    "mail.info",
    "mail.warn",
    "maillog",
    "messages",
    "secure",
    "syslog",
    "user",
];
/// How names of logs end: `app.log`, and `access_log` of Apache.
const LOG_NAME_ENDINGS: &[&str] = &[".log", "_log"];
/// Endings of compressions that are not read.
const UNREAD_COMPRESSIONS: &[&str] = &[".lz4", ".Z", ".br"];

/// The files of one log in a folder, from the oldest to the newest, with the name of its table.
pub(super) struct LogFiles {
    pub(super) table: String,
    pub(super) files: Vec<DataFile>,
}

/// Whether a file with this name, without folders and without the ending of its compression, is probably a log, and
/// which may be rotated.
pub(super) fn is_log_name(name: &str) -> bool {
    if UNREAD_COMPRESSIONS.iter().any(|ending| name.ends_with(ending)) {
        return false;
    }
    let base_name = log_base_name(name).to_ascii_lowercase();
    let has_ending = |ending: &&str| base_name.len() > ending.len() && base_name.ends_with(*ending);
    SYSTEM_LOG_NAMES.contains(&base_name.as_str()) || LOG_NAME_ENDINGS.iter().any(has_ending)
}

/// The glob for the files of the log called `name` and of those whose names end like it. Files of one log must match one
/// glob, because each glob is a folder of its own.
pub(super) fn rotated_logs_glob(name: &str) -> String {
    let base_name = log_base_name(name);
    let folded = base_name.to_ascii_lowercase();
    let ending = LOG_NAME_ENDINGS.iter().find(|ending| folded.ends_with(**ending));
    match ending.and_then(|ending| base_name.get(base_name.len() - ending.len()..)) {
        Some(ending) => format!("*{ending}*"),
        None => format!("{base_name}*"),
    }
}

/// The name of the file that is written, of the log that the file called `name` belongs to.
pub(super) fn log_base_name(name: &str) -> String {
    group_rotated_logs([name]).pop().map_or_else(|| name.to_owned(), |log| log.base_name)
}

/// The name of the table of a log file, without folders: that of its log.
pub(super) fn log_table_name(file_name: &str) -> String {
    let (name, _) = split_compression(file_name);
    group_rotated_logs([name]).pop().map_or_else(|| name.to_owned(), |log| log.table)
}

/// Takes the log files out of the files of one folder, and groups them by log.
pub(super) fn take_logs(files: &mut Vec<DataFile>) -> Vec<LogFiles> {
    let (logs, others) = std::mem::take(files).into_iter().partition(|file| file.kind.format == NamedFormat::Log);
    *files = others;
    let logs: Vec<DataFile> = logs;
    let names: Vec<String> = logs.iter().map(|file| file.file_name().to_owned()).collect();
    let mut by_name: BTreeMap<String, DataFile> = names.iter().cloned().zip(logs).collect();
    let groups = group_rotated_logs(names.iter().map(String::as_str));
    let groups = groups.into_iter().map(|log| {
        let mut files: Vec<DataFile> = log.files.iter().filter_map(|name| by_name.remove(name)).collect();
        remove_links(&mut files);
        LogFiles { table: log.table, files }
    });
    groups.filter(|log| !log.files.is_empty()).collect()
}

/// Two names of one file would give its lines twice: `current.log` is often a link to the newest file.
fn remove_links(files: &mut Vec<DataFile>) {
    let mut seen = HashSet::new();
    files.retain(|file| {
        file.version.as_ref().ok().and_then(|version| version.file_id()).is_none_or(|id| seen.insert(id))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_logs() {
        for name in [
            "access.log",
            "access.log.1",
            "app-20240101.log",
            "app.log-20240102",
            "access_log",
            "error_log-20240301",
            "syslog",
            "syslog.1",
            "messages-20240301",
            "mail.err",
            "ERROR.LOG",
            "auth.log.old",
        ] {
            assert!(is_log_name(name), "{name}");
        }
        for name in ["notes.txt", "log", ".log", "catalog", "access.log.lz4", "access.log.1.bak", "blog", "README"] {
            assert!(!is_log_name(name), "{name}");
        }
        assert_eq!(log_table_name("access.log.2.gz"), "access");
        assert_eq!(log_table_name("messages-20240301"), "messages");
    }
}
