//! The tables and their descriptions.

use std::sync::LazyLock;

use strum::VariantArray as _;

use crate::description::{SystemColumn, SystemColumnType, SystemParameter, SystemTableDescription};

/// One of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum SystemTable {
    /// Running processes.
    Processes,
    /// Open network connections.
    Connections,
    /// Ports that accept connections or datagrams.
    ListeningPorts,
    /// Mounted file systems.
    Mounts,
    /// Block devices.
    Disks,
    /// Network interfaces.
    Interfaces,
    /// systemd services.
    Services,
    /// Local user accounts.
    Users,
    /// Load, CPU and pressure; one row.
    Load,
    /// Main memory and swap; one row.
    Memory,
}

impl SystemTable {
    /// All tables.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The name, such as `listening_ports`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The description.
    pub fn description(self) -> &'static SystemTableDescription {
        static DESCRIPTIONS: [LazyLock<SystemTableDescription>; 10] = [
            LazyLock::new(processes),
            LazyLock::new(connections),
            LazyLock::new(listening_ports),
            LazyLock::new(mounts),
            LazyLock::new(disks),
            LazyLock::new(interfaces),
            LazyLock::new(services),
            LazyLock::new(users),
            LazyLock::new(load),
            LazyLock::new(memory),
        ];
        let [processes, connections, listening_ports, mounts, disks, interfaces, services, users, load, memory] =
            &DESCRIPTIONS;
        match self {
            Self::Processes => processes,
            Self::Connections => connections,
            Self::ListeningPorts => listening_ports,
            Self::Mounts => mounts,
            Self::Disks => disks,
            Self::Interfaces => interfaces,
            Self::Services => services,
            Self::Users => users,
            Self::Load => load,
            Self::Memory => memory,
        }
    }
}

fn text(name: &'static str, description: &'static str) -> SystemColumn {
    SystemColumn::new(name, SystemColumnType::Text, description)
}

fn integer(name: &'static str, description: &'static str) -> SystemColumn {
    SystemColumn::new(name, SystemColumnType::Integer, description)
}

fn count(name: &'static str, description: &'static str) -> SystemColumn {
    SystemColumn::new(name, SystemColumnType::Unsigned, description)
}

fn bytes(name: &'static str, description: &'static str) -> SystemColumn {
    count(name, description).with_unit("bytes")
}

fn float(name: &'static str, description: &'static str) -> SystemColumn {
    SystemColumn::new(name, SystemColumnType::Float, description)
}

fn percent(name: &'static str, description: &'static str) -> SystemColumn {
    float(name, description).with_unit("percent")
}

fn boolean(name: &'static str, description: &'static str) -> SystemColumn {
    SystemColumn::new(name, SystemColumnType::Boolean, description)
}

fn timestamp(name: &'static str, description: &'static str) -> SystemColumn {
    SystemColumn::new(name, SystemColumnType::Timestamp, description)
}

fn seconds(name: &'static str, description: &'static str) -> SystemColumn {
    SystemColumn::new(name, SystemColumnType::Duration, description).with_unit("seconds")
}

fn load() -> SystemTableDescription {
    SystemTableDescription {
        name: "load".into(),
        description: "One row: load averages, CPU usage, tasks, uptime, and pressure (the part of the time in which \
                      tasks waited for CPU, memory or disks)."
            .into(),
        columns: vec![
            float("load_1_minute", "Tasks that ran or waited for CPU or disks, averaged over about one minute."),
            float("load_5_minutes", "The same over five minutes."),
            float("load_15_minutes", "The same over fifteen minutes."),
            count("cpus", "Logical CPUs; a load above it means that tasks wait."),
            percent("cpu_percent", "Used part of the time of all CPUs, in cpu_period_seconds."),
            seconds(
                "cpu_period_seconds",
                "Time since the last reading of this table, at least one second ago, else since the start of the machine.",
            ),
            seconds("cpu_user_seconds", "CPU time of programs since the start of the machine, of all CPUs together."),
            seconds("cpu_system_seconds", "That of the kernel, with interrupts."),
            seconds("cpu_idle_seconds", "Time of CPUs without work."),
            seconds("cpu_io_wait_seconds", "Time of CPUs without work while tasks waited for disks."),
            seconds("cpu_steal_seconds", "Time that the host of a virtual machine used for others."),
            count("running_tasks", "Tasks (threads) that run or could run now."),
            count("total_tasks", "All tasks (threads)."),
            count("blocked_processes", "Processes that wait for disks now."),
            seconds("uptime_seconds", "Time since the start of the machine."),
            timestamp("boot_time", "Start of the machine."),
            percent("cpu_pressure_10_seconds_percent", "Part of the last 10 seconds in which a task waited for CPU."),
            percent("cpu_pressure_60_seconds_percent", "The same over the last 60 seconds."),
            percent(
                "memory_pressure_10_seconds_percent",
                "Part of the last 10 seconds in which a task waited for memory.",
            ),
            percent("memory_pressure_60_seconds_percent", "The same over the last 60 seconds."),
            percent(
                "memory_full_pressure_60_seconds_percent",
                "Part of the last 60 seconds in which all tasks with work waited for memory.",
            ),
            percent("io_pressure_10_seconds_percent", "Part of the last 10 seconds in which a task waited for disks."),
            percent("io_pressure_60_seconds_percent", "The same over the last 60 seconds."),
            percent(
                "io_full_pressure_60_seconds_percent",
                "Part of the last 60 seconds in which all tasks with work waited for disks.",
            ),
        ],
        parameters: Vec::new(),
    }
}

fn memory() -> SystemTableDescription {
    SystemTableDescription {
        name: "memory".into(),
        description: "One row: main memory and swap of the machine.".into(),
        columns: vec![
            bytes("total_bytes", "Size of the main memory."),
            bytes("available_bytes", "What programs can still use without swapping."),
            bytes("used_bytes", "total_bytes without available_bytes."),
            percent("used_percent", "used_bytes as a part of total_bytes."),
            bytes("free_bytes", "Memory that nothing uses, not even a cache."),
            bytes("buffers_bytes", "Buffers for block devices."),
            bytes("cached_bytes", "Cache of files, with shared memory."),
            bytes("shared_bytes", "Shared memory and tmpfs."),
            bytes("anonymous_bytes", "Memory of programs that is not in files."),
            bytes("slab_bytes", "Data structures of the kernel."),
            bytes("slab_reclaimable_bytes", "Part of slab_bytes that can be freed."),
            bytes("page_tables_bytes", "Page tables."),
            bytes("dirty_bytes", "Data of files that is not yet on the disk."),
            bytes("committed_bytes", "Memory that programs have been promised."),
            bytes("commit_limit_bytes", "Limit of committed_bytes if the kernel enforces it."),
            bytes("swap_total_bytes", "Size of the swap."),
            bytes("swap_used_bytes", "Used part of the swap."),
            bytes("swap_free_bytes", "Free part of the swap."),
            percent("swap_used_percent", "swap_used_bytes as a part of swap_total_bytes. Null without swap."),
        ],
        parameters: Vec::new(),
    }
}

fn mounts() -> SystemTableDescription {
    SystemTableDescription {
        name: "mounts".into(),
        description: "Mounted file systems with their space and inodes; use it to find full disks.".into(),
        columns: vec![
            text("mount_point", "Folder where it is mounted.").good_filter(),
            text("device", "Device or remote folder.").good_filter(),
            text("file_system_type", "Type, such as ext4, xfs, tmpfs or nfs4.").good_filter(),
            bytes("total_bytes", "Size. Null if it cannot be read, and for network file systems by default."),
            bytes("used_bytes", "Space in use."),
            bytes("available_bytes", "Space for users without special rights."),
            percent("used_percent", "used_bytes as a part of used_bytes and available_bytes.").good_filter(),
            count("inodes_total", "Maximum number of files. Null without a limit."),
            count("inodes_used", "Number of files."),
            count("inodes_available", "Files that can still be created."),
            boolean("is_read_only", "Whether the mount or the file system is read-only.").good_filter(),
            text("options", "Mount options, sorted, separated by commas."),
        ],
        parameters: vec![
            SystemParameter::new(
                "include_pseudo",
                SystemColumnType::Boolean,
                "Whether file systems without stored files are included, such as proc, sysfs, cgroup2 and devpts. \
                 Default: false.",
            ),
            SystemParameter::new(
                "network_sizes",
                SystemColumnType::Boolean,
                "Whether the sizes of network and FUSE file systems are read. The read waits if their server does not \
                 answer. Default: false.",
            ),
        ],
    }
}

fn disks() -> SystemTableDescription {
    SystemTableDescription {
        name: "disks".into(),
        description: "Whole block devices (not partitions) with size, model, and operations since the start of the \
                      machine; use it to find slow or busy disks."
            .into(),
        columns: vec![
            text("name", "Name of the device, such as sda or nvme0n1.").good_filter(),
            text("model", "Model. Null for virtual devices."),
            bytes("size_bytes", "Size. Devices without a size, such as unused loop devices, are left out."),
            boolean("is_rotational", "Whether the disk rotates, as the device reports it."),
            boolean("is_removable", "Whether the medium can be removed."),
            boolean("is_read_only", "Whether the device is read-only."),
            bytes("read_bytes", "Bytes read."),
            bytes("written_bytes", "Bytes written."),
            count("read_operations", "Reads that completed."),
            count("write_operations", "Writes that completed."),
            seconds("read_time_seconds", "Duration of all reads together."),
            seconds("write_time_seconds", "Duration of all writes together."),
            seconds("busy_time_seconds", "Time with at least one operation in progress."),
            count("operations_in_progress", "Operations in progress now.").good_filter(),
        ],
        parameters: Vec::new(),
    }
}

fn processes() -> SystemTableDescription {
    SystemTableDescription {
        name: "processes".into(),
        description: "Running processes with their CPU, memory and disk usage; use it to find what loads the machine \
                      or whether a program runs."
            .into(),
        columns: vec![
            integer("pid", "Process id.").good_filter(),
            integer("parent_pid", "Id of the parent process; 0 for none."),
            text("name", "Name of the program, at most 15 characters.").good_filter(),
            text(
                "state",
                "running, sleeping, disk_sleep (waits for input or output and cannot be interrupted), stopped, traced, \
                 zombie, idle, parked or dead.",
            )
            .good_filter(),
            text("user_name", "Effective user.").good_filter(),
            count("uid", "Number of that user."),
            text("command_line", "Program with its arguments. Null for kernel threads.").sensitive(),
            text("executable_path", "File of the program. Often readable only for the same user or root."),
            text("environment", "Environment variables at the start, as NAME=value, sorted, separated by spaces.")
                .sensitive(),
            text("service", "systemd service that the process belongs to, such as nginx.service.").good_filter(),
            boolean("is_kernel_thread", "Whether it is a thread of the kernel.").good_filter(),
            count("threads", "Number of threads."),
            integer("nice", "Scheduling priority: -20 (first) to 19 (last)."),
            percent(
                "cpu_percent",
                "CPU usage in cpu_period_seconds; 100 is one CPU. Null for a process that started just now.",
            )
            .good_filter(),
            seconds(
                "cpu_period_seconds",
                "Time since the last reading of this table, at least one second ago, else since the start of the process.",
            ),
            seconds("cpu_time_seconds", "CPU time since the start of the process."),
            bytes("memory_bytes", "Main memory in use (resident set), with shared parts.").good_filter(),
            percent("memory_percent", "memory_bytes as a part of the machine's memory."),
            bytes("memory_virtual_bytes", "Address space; much of it may never be used."),
            bytes("memory_swap_bytes", "Swapped out memory."),
            bytes("read_bytes", "Bytes read from disks since the start. Readable for the same user or root."),
            bytes("written_bytes", "Bytes written to disks since the start. Readable for the same user or root."),
            count("open_files", "Number of open file descriptors. Readable for the same user or root."),
            timestamp("start_time", "Start of the process."),
            seconds("uptime_seconds", "Time since the start."),
        ],
        parameters: vec![SystemParameter::new(
            "user",
            SystemColumnType::Text,
            "Only processes of this user (name or number).",
        )],
    }
}

fn services() -> SystemTableDescription {
    SystemTableDescription {
        name: "services".into(),
        description: "systemd services of the machine, from the unit files and the control groups of their processes; \
                      use it to find whether a service runs and what it uses."
            .into(),
        columns: vec![
            text("name", "Name of the unit, such as nginx.service.").good_filter(),
            text("description", "Description in the unit file."),
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
            text("unit_file", "Path of the unit file."),
            count("processes", "Number of processes."),
            bytes("memory_bytes", "Memory of the control group, with the page cache. Null without cgroup v2."),
            seconds("cpu_time_seconds", "CPU time of the control group. Null without cgroup v2."),
            timestamp("start_time", "Start of the oldest process. Null if the service does not run."),
        ],
        parameters: Vec::new(),
    }
}

fn users() -> SystemTableDescription {
    SystemTableDescription {
        name: "users".into(),
        description: "Local user accounts in /etc/passwd, without those of directory services such as LDAP.".into(),
        columns: vec![
            text("name", "Name of the user.").good_filter(),
            count("uid", "Number of the user.").good_filter(),
            count("gid", "Number of the primary group."),
            text("full_name", "Full name or purpose."),
            text("home_folder", "Home folder."),
            text("shell", "Program that starts after a login."),
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

fn connections() -> SystemTableDescription {
    let mut columns = local_columns();
    columns.extend([
        text("remote_address", "IP address of the other end.").good_filter(),
        count("remote_port", "Port of the other end.").good_filter(),
        text(
            "state",
            "established, syn_sent, syn_received, fin_wait_1, fin_wait_2, time_wait, close_wait, last_ack, closing or \
             closed. UDP sockets with a fixed other end are established.",
        )
        .good_filter(),
    ]);
    columns.extend(owner_columns());
    columns.extend([
        bytes("receive_queue_bytes", "Received bytes that the process has not read yet."),
        bytes("send_queue_bytes", "Sent bytes that the other end has not confirmed yet."),
    ]);
    SystemTableDescription {
        name: "connections".into(),
        description: "Open TCP connections and connected UDP sockets (IPv4 and IPv6) of the network namespace of this \
                      server, with their process; use it to find who is connected to what."
            .into(),
        columns,
        parameters: vec![protocol_parameter()],
    }
}

fn listening_ports() -> SystemTableDescription {
    let mut columns = local_columns();
    columns.push(boolean(
        "is_loopback_only",
        "Whether only programs on this machine can connect, because the address is a loopback address.",
    ));
    columns.extend(owner_columns());
    columns.push(bytes(
        "receive_queue_bytes",
        "UDP: received bytes that the process has not read yet. TCP: null, as the kernel counts connections there.",
    ));
    columns.push(count("pending_connections", "TCP: connections that the process has not accepted yet. UDP: null."));
    SystemTableDescription {
        name: "listening_ports".into(),
        description:
            "TCP ports that accept connections and UDP ports that receive datagrams, in the network namespace \
                      of this server, with their process; use it to find which program serves a port."
                .into(),
        columns,
        parameters: vec![protocol_parameter()],
    }
}

fn interfaces() -> SystemTableDescription {
    SystemTableDescription {
        name: "interfaces".into(),
        description:
            "Network interfaces with addresses, state, speed and counters since they were created; use it for \
                      traffic, errors and lost packets."
                .into(),
        columns: vec![
            text("name", "Name of the interface, such as eth0.").good_filter(),
            text("state", "up, down, dormant, testing, lower_layer_down, not_present or unknown (often loopback).")
                .good_filter(),
            text("mac_address", "Hardware address. Null if the interface has none."),
            text("addresses", "IP addresses with the length of their prefix, separated by spaces."),
            count("mtu_bytes", "Size of the largest packet.").with_unit("bytes"),
            count("speed_bits_per_second", "Speed of the link. Null if unknown, as for virtual interfaces.")
                .with_unit("bits per second"),
            bytes("received_bytes", "Bytes received."),
            bytes("sent_bytes", "Bytes sent."),
            count("received_packets", "Packets received."),
            count("sent_packets", "Packets sent."),
            count("received_errors", "Received packets with errors."),
            count("sent_errors", "Packets that could not be sent because of errors."),
            count("received_drops", "Received packets that were dropped, such as for lack of memory."),
            count("sent_drops", "Packets that were dropped before they were sent."),
            count("collisions", "Collisions on the link."),
        ],
        parameters: Vec::new(),
    }
}

fn local_columns() -> Vec<SystemColumn> {
    vec![
        text("protocol", "tcp or udp.").good_filter(),
        text("network_type", "ipv4 or ipv6. IPv4 addresses within IPv6 sockets count as ipv4."),
        text("local_address", "IP address on this machine. 0.0.0.0 and :: mean all addresses."),
        count("local_port", "Port on this machine.").good_filter(),
    ]
}

fn owner_columns() -> [SystemColumn; 3] {
    [
        integer(
            "pid",
            "Process that has the socket open, the lowest id if several have. Null if it has none (any more) or may \
             not be inspected: sockets of other users need root.",
        )
        .good_filter(),
        text("process_name", "Name of that process.").good_filter(),
        text("user_name", "User who created the socket."),
    ]
}

fn protocol_parameter() -> SystemParameter {
    SystemParameter::new("protocol", SystemColumnType::Text, "Only this protocol. Default: both.")
        .with_options(["tcp", "udp"])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn descriptions_are_complete_and_consistent() {
        for table in SystemTable::ALL {
            let description = table.description();
            assert_eq!(description.name, table.name());
            assert!(description.description.ends_with('.'), "{}", description.name);
            let names: BTreeSet<_> = description.column_names().collect();
            assert_eq!(names.len(), description.columns.len(), "{}", description.name);
            for column in &description.columns {
                let name = format!("{}.{}", description.name, column.name);
                assert!(
                    column.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
                    "{name}"
                );
                assert!(column.description.ends_with('.') && column.description.len() > 10, "{name}");
                let has_suffix = |suffix: &str| column.name.ends_with(suffix);
                assert_eq!(has_suffix("bytes"), column.unit.as_deref() == Some("bytes"), "{name}");
                assert_eq!(has_suffix("percent"), column.unit.as_deref() == Some("percent"), "{name}");
                assert_eq!(has_suffix("_seconds"), column.column_type == SystemColumnType::Duration, "{name}");
                let is_flag = ["is_", "can_", "has_"].iter().any(|prefix| column.name.starts_with(prefix));
                assert_eq!(is_flag, column.column_type == SystemColumnType::Boolean, "{name}");
            }
            let is_filter = |column: &SystemColumn| column.is_good_filter;
            let has_one_row = matches!(table, SystemTable::Load | SystemTable::Memory);
            assert!(has_one_row || description.columns.iter().any(is_filter), "{}", description.name);
        }
    }

    #[test]
    fn only_command_lines_and_environments_are_sensitive() {
        let sensitive: Vec<String> = SystemTable::ALL
            .iter()
            .flat_map(|table| table.description().columns.iter().map(move |column| (table.name(), column)))
            .filter(|(_, column)| column.is_sensitive)
            .map(|(table, column)| format!("{table}.{}", column.name))
            .collect();
        assert_eq!(sensitive, ["processes.command_line", "processes.environment"]);
    }
}
