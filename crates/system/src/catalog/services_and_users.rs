//! The descriptions of `services` and `users`.

use super::{boolean, bytes, count, seconds, text, timestamp};
use crate::description::SystemTableDescription;

pub(super) fn services() -> SystemTableDescription {
    SystemTableDescription {
        name: "services".into(),
        description: "systemd services of the machine, from the unit files and the control groups of their processes; \
                      use it to find whether a service runs and what it uses."
            .into(),
        columns: vec![
            text("name", "The name of the unit, such as nginx.service.").good_filter(),
            text("description", "The description in the unit file."),
            boolean(
                "is_running",
                "Whether at least one process belongs to the service. A service that ran once and ended is not running; \
                 whether it failed is not known here.",
            )
            .good_filter(),
            text(
                "start_mode",
                "enabled (starts with the machine), disabled, static (only other units start it), alias, masked \
                 (cannot start), template (for instances such as getty@tty1.service), generated, or null if the unit has \
                 no file. Presets and links from other units than those in the unit folders are not considered.",
            )
            .good_filter(),
            text("unit_file", "The path of the unit file."),
            count("processes", "The number of processes."),
            bytes("memory_bytes", "The memory of the control group, with the page cache. Null without cgroup v2."),
            seconds("cpu_time_seconds", "The CPU time of the control group. Null without cgroup v2."),
            timestamp("start_time", "The start of the oldest process. Null if the service does not run."),
        ],
        parameters: Vec::new(),
    }
}

pub(super) fn users() -> SystemTableDescription {
    SystemTableDescription {
        name: "users".into(),
        description: "Local user accounts in /etc/passwd, without those of directory services such as LDAP.".into(),
        columns: vec![
            text("name", "The name of the user.").good_filter(),
            count("uid", "The number of the user.").good_filter(),
            count("gid", "The number of the primary group."),
            text("full_name", "The full name or purpose."),
            text("home_folder", "The home folder."),
            text("shell", "The program that starts after a login."),
            boolean("can_log_in", "Whether the shell permits a login; a locked password is not considered.")
                .good_filter(),
            boolean(
                "is_logged_in",
                "Whether the user has a session or services of their own, which is when systemd keeps a folder for them \
                 below /run/user. Null where that folder is missing.",
            )
            .good_filter(),
        ],
        parameters: Vec::new(),
    }
}
