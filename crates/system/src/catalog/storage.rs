//! The descriptions of `mounts` and `disks`.

use super::{boolean, bytes, count, percent, seconds, text};
use crate::description::{SystemColumnType, SystemParameter, SystemTableDescription};

pub(super) fn mounts() -> SystemTableDescription {
    SystemTableDescription {
        name: "mounts".into(),
        description: "Mounted file systems with their space and inodes; use it to find full disks.".into(),
        columns: vec![
            text("mount_point", "The folder where the file system is mounted.").good_filter(),
            text("device", "The device or the remote folder.").good_filter(),
            text("file_system_type", "The type, such as ext4, xfs, tmpfs or nfs4.").good_filter(),
            bytes("total_bytes", "The size. Null if it cannot be read, and for network file systems by default."),
            bytes("used_bytes", "The space in use."),
            bytes("available_bytes", "The space that users without special rights can still use."),
            percent("used_percent", "used_bytes as a part of used_bytes and available_bytes.").good_filter(),
            count("inodes_total", "The number of files that the file system can have. Null if it has no limit."),
            count("inodes_used", "The number of files that it has."),
            count("inodes_available", "The number of files that can still be created."),
            boolean("is_read_only", "Whether the mount or the file system is read-only.").good_filter(),
            text("options", "The mount options, sorted, separated by commas."),
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

pub(super) fn disks() -> SystemTableDescription {
    SystemTableDescription {
        name: "disks".into(),
        description: "Whole block devices (not partitions) with size, model, and operations since the start of the \
                      machine; use it to find slow or busy disks."
            .into(),
        columns: vec![
            text("name", "The name of the device, such as sda or nvme0n1.").good_filter(),
            text("model", "The model. Null for virtual devices."),
            bytes("size_bytes", "The size. Devices without a size, such as unused loop devices, are left out."),
            boolean("is_rotational", "Whether the disk rotates, as the device reports it."),
            boolean("is_removable", "Whether the medium can be removed."),
            boolean("is_read_only", "Whether the device is read-only."),
            bytes("read_bytes", "Bytes read."),
            bytes("written_bytes", "Bytes written."),
            count("read_operations", "Reads that completed."),
            count("write_operations", "Writes that completed."),
            seconds("read_time_seconds", "The sum of the durations of all reads."),
            seconds("write_time_seconds", "The sum of the durations of all writes."),
            seconds("busy_time_seconds", "The time with at least one operation in progress."),
            count("operations_in_progress", "Operations in progress now.").good_filter(),
        ],
        parameters: Vec::new(),
    }
}
