//! Reads `disks`.

use std::collections::HashMap;
use std::fs::read_dir;
use std::path::PathBuf;

use procfs::DiskStat;

use super::{ColumnReader, RowCallback, SystemPaths, SystemRowWriter, read_flag, read_small, read_value, unreadable};
use crate::catalog::SystemTable;
use crate::description::SystemValue;
use crate::read::{ReadOptions, ReadSummary, SystemError};

/// Devices at most.
const DEVICES_MAX: usize = 16_384;
/// The kernel counts in sectors of this size, whatever the sectors of the device are.
const SECTOR_BYTES: u64 = 512;

struct DiskRow {
    name: String,
    folder: PathBuf,
    size_bytes: u64,
    counters: Option<DiskStat>,
}

const COLUMNS: &[ColumnReader<DiskRow>] = &[
    ("name", |disk| disk.name.as_str().into()),
    ("model", |disk| read_small(&disk.folder.join("device/model")).into()),
    ("size_bytes", |disk| disk.size_bytes.into()),
    ("is_rotational", |disk| read_flag(&disk.folder.join("queue/rotational")).into()),
    ("is_removable", |disk| read_flag(&disk.folder.join("removable")).into()),
    ("is_read_only", |disk| read_flag(&disk.folder.join("ro")).into()),
    ("read_bytes", |disk| counter(disk, |counters| counters.sectors_read.saturating_mul(SECTOR_BYTES))),
    ("written_bytes", |disk| counter(disk, |counters| counters.sectors_written.saturating_mul(SECTOR_BYTES))),
    ("read_operations", |disk| counter(disk, |counters| counters.reads)),
    ("write_operations", |disk| counter(disk, |counters| counters.writes)),
    ("read_time_seconds", |disk| seconds(disk, |counters| counters.time_reading)),
    ("write_time_seconds", |disk| seconds(disk, |counters| counters.time_writing)),
    ("busy_time_seconds", |disk| seconds(disk, |counters| counters.time_in_progress)),
    ("operations_in_progress", |disk| counter(disk, |counters| counters.in_progress)),
];

pub(super) fn read(
    paths: &SystemPaths,
    options: &ReadOptions,
    on_row: RowCallback<'_>,
) -> Result<ReadSummary, SystemError> {
    let folder = paths.sys.join("block");
    let entries = read_dir(&folder).map_err(|error| unreadable(SystemTable::Disks, &folder, error))?;
    let mut names: Vec<String> =
        entries.flatten().take(DEVICES_MAX).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    let counters = procfs::diskstats().unwrap_or_default().into_iter();
    let mut counters: HashMap<String, DiskStat> = counters.map(|disk| (disk.name.clone(), disk)).collect();
    let mut writer = SystemRowWriter::new(SystemTable::Disks, COLUMNS, options, on_row);
    for name in names {
        let device_folder = folder.join(&name);
        let Some(sectors) = read_value::<u64>(&device_folder.join("size")).filter(|sectors| *sectors > 0) else {
            continue;
        };
        let row = DiskRow {
            size_bytes: sectors.saturating_mul(SECTOR_BYTES),
            folder: device_folder,
            counters: counters.remove(&name),
            name,
        };
        if writer.write(&row).is_break() {
            break;
        }
    }
    Ok(writer.finish())
}

fn counter(disk: &DiskRow, value: fn(&DiskStat) -> u64) -> SystemValue {
    disk.counters.as_ref().map(value).into()
}

/// The kernel counts milliseconds.
fn seconds(disk: &DiskRow, milliseconds: fn(&DiskStat) -> u64) -> SystemValue {
    disk.counters.as_ref().map(|counters| milliseconds(counters) as f64 / 1_000.0).into()
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::linux::row_text;

    #[test]
    fn devices_of_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join("block").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("testdisk0/size", "2048\n");
        write("testdisk0/queue/rotational", "1\n");
        write("testdisk0/removable", "0\n");
        write("testdisk0/ro", "0\n");
        write("testdisk0/device/model", "Spinning Disk 3000  \n");
        write("testdisk1/size", "8\n");
        write("testloop0/size", "0\n");
        let paths = SystemPaths { sys: folder.path().to_owned(), ..SystemPaths::default() };
        let mut rows = Vec::new();
        read(&paths, &ReadOptions::default(), &mut |row| {
            rows.push(row_text(&row[..7]));
            ControlFlow::Continue(())
        })
        .unwrap();
        insta::assert_snapshot!(rows.join("\n"), @r#"
        "testdisk0" "Spinning Disk 3000" 1048576 true false false null
        "testdisk1" null 4096 null null null null
        "#);
    }
}
