//! The descriptions of `load` and `memory`, which have one row each.

use super::{bytes, count, float, percent, seconds, timestamp};
use crate::description::SystemTableDescription;

pub(super) fn load() -> SystemTableDescription {
    SystemTableDescription {
        name: "load".into(),
        description: "One row: load averages, CPU usage, tasks, uptime, and pressure (the part of the time in which \
                      tasks waited for CPU, memory or disks)."
            .into(),
        columns: vec![
            float("load_1_minute", "Tasks that ran or waited for CPU or disks, averaged over about one minute."),
            float("load_5_minutes", "The same over five minutes."),
            float("load_15_minutes", "The same over fifteen minutes."),
            count("cpus", "The number of logical CPUs; a load above it means that tasks wait."),
            percent(
                "cpu_percent",
                "The part of the time of all CPUs that was used: since the last reading of this table that was at least \
                 one second ago, else since the start of the machine; cpu_period_seconds is the length of that period.",
            ),
            seconds("cpu_period_seconds", "The period of cpu_percent."),
            seconds("cpu_user_seconds", "CPU time of programs since the start of the machine, of all CPUs together."),
            seconds("cpu_system_seconds", "The same of the kernel, with interrupts."),
            seconds("cpu_idle_seconds", "The same of CPUs without work."),
            seconds("cpu_io_wait_seconds", "The same of CPUs without work while tasks waited for disks."),
            seconds("cpu_steal_seconds", "The same that the host of a virtual machine used for others."),
            count("running_tasks", "Tasks (threads) that run or could run now."),
            count("total_tasks", "All tasks (threads)."),
            count("blocked_processes", "Processes that wait for disks now."),
            seconds("uptime_seconds", "The time since the start of the machine."),
            timestamp("boot_time", "The time when the machine started."),
            percent(
                "cpu_pressure_10_seconds_percent",
                "The part of the last 10 seconds in which a task waited for CPU.",
            ),
            percent("cpu_pressure_60_seconds_percent", "The same over the last 60 seconds."),
            percent(
                "memory_pressure_10_seconds_percent",
                "The part of the last 10 seconds in which a task waited for memory.",
            ),
            percent("memory_pressure_60_seconds_percent", "The same over the last 60 seconds."),
            percent(
                "memory_full_pressure_60_seconds_percent",
                "The part of the last 60 seconds in which all tasks with work waited for memory.",
            ),
            percent(
                "io_pressure_10_seconds_percent",
                "The part of the last 10 seconds in which a task waited for disks.",
            ),
            percent("io_pressure_60_seconds_percent", "The same over the last 60 seconds."),
            percent(
                "io_full_pressure_60_seconds_percent",
                "The part of the last 60 seconds in which all tasks with work waited for disks.",
            ),
        ],
        parameters: Vec::new(),
    }
}

pub(super) fn memory() -> SystemTableDescription {
    SystemTableDescription {
        name: "memory".into(),
        description: "One row: main memory and swap of the machine.".into(),
        columns: vec![
            bytes("total_bytes", "The size of the main memory."),
            bytes("available_bytes", "What programs can still use without swapping; caches are emptied for them."),
            bytes("used_bytes", "total_bytes without available_bytes."),
            percent("used_percent", "used_bytes as a part of total_bytes."),
            bytes("free_bytes", "Memory that nothing uses, not even a cache."),
            bytes("buffers_bytes", "Buffers for block devices."),
            bytes("cached_bytes", "The cache of files, with shared memory."),
            bytes("shared_bytes", "Shared memory and tmpfs."),
            bytes("anonymous_bytes", "Memory of programs that is not in files."),
            bytes("slab_bytes", "Data structures of the kernel."),
            bytes("slab_reclaimable_bytes", "The part of slab_bytes that can be freed."),
            bytes("page_tables_bytes", "Page tables."),
            bytes("dirty_bytes", "Data of files that is not yet on the disk."),
            bytes("committed_bytes", "Memory that programs have been promised."),
            bytes("commit_limit_bytes", "The limit of committed_bytes if the kernel enforces it."),
            bytes("swap_total_bytes", "The size of the swap."),
            bytes("swap_used_bytes", "The used part of the swap."),
            bytes("swap_free_bytes", "The free part of the swap."),
            percent("swap_used_percent", "swap_used_bytes as a part of swap_total_bytes. Null without swap."),
        ],
        parameters: Vec::new(),
    }
}
