//! Reads `mounts`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use procfs::process::MountInfo;
use rustix::fs::{StatVfs, statvfs};

use super::{ColumnReader, RowCallback, SystemRowWriter, percentage, unreadable};
use crate::catalog::SystemTable;
use crate::description::SystemValue;
use crate::read::{ReadOptions, ReadSummary, SystemError};

const MOUNTS_FILE: &str = "/proc/self/mountinfo";
/// Bytes of one line of the file at most.
const LINE_BYTES_MAX: u64 = 65_536;

/// Types without stored files.
const PSEUDO_TYPES: &[&str] = &[
    "autofs",
    "binder",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "ramfs",
    "resctrl",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "sysfs",
    "tracefs",
];
/// Types whose server may not answer.
const NETWORK_TYPES: &[&str] =
    &["9p", "afs", "beegfs", "ceph", "cifs", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "smb3", "smbfs"];

struct MountRow {
    mount: MountInfo,
    mount_point: PathBuf,
    space: Option<StatVfs>,
}

const COLUMNS: &[ColumnReader<MountRow>] = &[
    ("mount_point", |row| row.mount_point.to_string_lossy().into_owned().into()),
    ("device", |row| row.mount.mount_source.as_deref().map(decode_octal).into()),
    ("file_system_type", |row| row.mount.fs_type.as_str().into()),
    ("total_bytes", |row| row.space.as_ref().map(|space| blocks(space, space.f_blocks)).into()),
    ("used_bytes", |row| row.space.as_ref().map(used_bytes).into()),
    ("available_bytes", |row| row.space.as_ref().map(|space| blocks(space, space.f_bavail)).into()),
    ("used_percent", |row| row.space.as_ref().and_then(used_percent).into()),
    ("inodes_total", |row| inodes(row, |space| space.f_files)),
    ("inodes_used", |row| inodes(row, |space| space.f_files.saturating_sub(space.f_ffree))),
    ("inodes_available", |row| inodes(row, |space| space.f_favail)),
    ("is_read_only", |row| is_read_only(&row.mount).into()),
    ("options", |row| options_text(&row.mount).into()),
];

pub(super) fn read(options: &ReadOptions, on_row: RowCallback<'_>) -> Result<ReadSummary, SystemError> {
    let failed = |error| unreadable(SystemTable::Mounts, Path::new(MOUNTS_FILE), error);
    let flag = |name: &str| options.parameters.get(name).and_then(SystemValue::as_boolean).unwrap_or(false);
    let (includes_pseudo, has_network_sizes) = (flag("include_pseudo"), flag("network_sizes"));
    let mut lines = BufReader::new(File::open(MOUNTS_FILE).map_err(failed)?);
    let mut line = Vec::new();
    let mut writer = SystemRowWriter::new(SystemTable::Mounts, COLUMNS, options, on_row);
    loop {
        line.clear();
        if lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line).map_err(failed)? == 0 {
            break;
        }
        let Ok(mount) = MountInfo::from_line(String::from_utf8_lossy(&line).trim_end()) else { continue };
        if PSEUDO_TYPES.contains(&mount.fs_type.as_str()) && !includes_pseudo {
            continue;
        }
        let mount_point = PathBuf::from(decode_octal(&mount.mount_point.to_string_lossy()));
        let has_space = has_network_sizes || !may_wait(&mount.fs_type);
        let space = if has_space { statvfs(&mount_point).ok() } else { None };
        if writer.write(&MountRow { mount, mount_point, space }).is_break() {
            break;
        }
    }
    Ok(writer.finish())
}

/// Whether reading the size may wait for a server, or mount something.
fn may_wait(file_system_type: &str) -> bool {
    let is_fuse = file_system_type.starts_with("fuse.") || file_system_type == "fuse";
    is_fuse || file_system_type == "autofs" || NETWORK_TYPES.contains(&file_system_type)
}

/// Blank characters and backslashes are written as `\` and three octal digits.
fn decode_octal(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                decoded.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                decoded.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

fn blocks(space: &StatVfs, count: u64) -> u64 {
    count.saturating_mul(space.f_frsize)
}

/// Space that is reserved for root is neither used nor available.
fn used_bytes(space: &StatVfs) -> u64 {
    blocks(space, space.f_blocks.saturating_sub(space.f_bfree))
}

fn used_percent(space: &StatVfs) -> Option<f64> {
    let used = used_bytes(space);
    percentage(used, used.saturating_add(blocks(space, space.f_bavail)))
}

/// A file system without a limit of files reports zero.
fn inodes(row: &MountRow, count: fn(&StatVfs) -> u64) -> SystemValue {
    row.space.as_ref().filter(|space| space.f_files > 0).map(count).into()
}

fn is_read_only(mount: &MountInfo) -> bool {
    mount.mount_options.contains_key("ro") || mount.super_options.contains_key("ro")
}

fn options_text(mount: &MountInfo) -> String {
    let all = mount.mount_options.iter().chain(&mount.super_options);
    let text = |(name, value): (&String, &Option<String>)| match value {
        Some(value) => decode_octal(&format!("{name}={value}")),
        None => name.clone(),
    };
    // A file system that is writable elsewhere can be mounted read-only.
    let is_read_only = is_read_only(mount);
    let options: BTreeSet<String> = all.map(text).filter(|option| !(is_read_only && option == "rw")).collect();
    options.into_iter().collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octal_codes_are_decoded_once() {
        assert_eq!(decode_octal(r"/mnt/my\040disk"), "/mnt/my disk");
        assert_eq!(decode_octal(r"/a\134040b"), r"/a\040b");
        assert_eq!(decode_octal(r"/gr\303\266\303\237e"), "/größe");
        assert_eq!(decode_octal(r"/end\04"), r"/end\04");
        assert_eq!(decode_octal(r"\9\\"), r"\9\\");
    }

    #[test]
    fn options_of_mount_and_file_system_are_one_list() {
        let line = r"36 35 98:0 / /mnt/my\040disk ro,noatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro";
        let mount = MountInfo::from_line(line).unwrap();
        assert_eq!(options_text(&mount), "errors=remount-ro,noatime,ro");
        assert!(is_read_only(&mount));
    }

    #[test]
    fn sizes_of_network_file_systems_may_wait() {
        assert!(may_wait("nfs4") && may_wait("fuse.sshfs") && may_wait("autofs"));
        assert!(!may_wait("ext4") && !may_wait("fuseblk") && !may_wait("tmpfs"));
    }
}
