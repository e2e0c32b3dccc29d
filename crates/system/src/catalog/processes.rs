//! The description of `processes`.

use super::{boolean, bytes, count, integer, percent, seconds, text, timestamp};
use crate::description::{SystemColumnType, SystemParameter, SystemTableDescription};

pub(super) fn processes() -> SystemTableDescription {
    SystemTableDescription {
        name: "processes".into(),
        description: "Running processes with their CPU, memory and disk usage; use it to find what loads the machine \
                      or whether a program runs."
            .into(),
        columns: vec![
            integer("pid", "The process id.").good_filter(),
            integer("parent_pid", "The id of the parent process; 0 for none."),
            text("name", "The name of the program, at most 15 characters.").good_filter(),
            text(
                "state",
                "running, sleeping, disk_sleep (waits for input or output and cannot be interrupted), stopped, traced, \
                 zombie, idle, parked or dead.",
            )
            .good_filter(),
            text("user_name", "The user whose rights the process has (effective user).").good_filter(),
            count("uid", "The number of that user."),
            text("command_line", "The program with its arguments. Null for kernel threads.").sensitive(),
            text("executable_path", "The file of the program. Often readable only for the same user or root."),
            text("environment", "The environment variables at the start, as NAME=value, sorted, separated by spaces.")
                .sensitive(),
            text("service", "The systemd service that the process belongs to, such as nginx.service.").good_filter(),
            boolean("is_kernel_thread", "Whether this is a thread of the kernel, not a program.").good_filter(),
            count("threads", "The number of threads."),
            integer("nice", "The scheduling priority: -20 (first) to 19 (last)."),
            percent(
                "cpu_percent",
                "CPU usage, where 100 is one CPU fully used: since the last reading of this table that was at least one \
                 second ago, else since the start of the process; cpu_period_seconds is the length of that period. Null for a \
                 process that started just now.",
            )
            .good_filter(),
            seconds("cpu_period_seconds", "The period of cpu_percent."),
            seconds("cpu_time_seconds", "The CPU time since the start of the process, in user and kernel mode."),
            bytes("memory_bytes", "The main memory in use (resident set), with shared parts.").good_filter(),
            percent("memory_percent", "memory_bytes as a part of the memory of the machine."),
            bytes("memory_virtual_bytes", "The size of the address space; much of it may never be used."),
            bytes("memory_swap_bytes", "The memory that is swapped out."),
            bytes("read_bytes", "Bytes read from disks since the start. Readable for the same user or root."),
            bytes("written_bytes", "Bytes written to disks since the start. Readable for the same user or root."),
            count("open_files", "The number of open file descriptors. Readable for the same user or root."),
            timestamp("start_time", "The time when the process started."),
            seconds("uptime_seconds", "The time since the process started."),
        ],
        parameters: vec![SystemParameter::new(
            "user",
            SystemColumnType::Text,
            "Only processes of this user (name or number).",
        )],
    }
}
