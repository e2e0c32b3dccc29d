//! Mounts against `df`, disks, services, users, load and memory against `/proc`.

use std::collections::BTreeSet;

use tidegate_system::{ReadOptions, SystemReader, SystemTable, SystemValue};

use crate::fixture::{float, number, output, read, read_with, text, texts, with_parameter};

#[test]
fn mounts_agree_with_df() {
    let rows = read(SystemTable::Mounts);
    let root = rows.iter().find(|row| row["mount_point"].as_text() == Some("/"));
    // The root of a process that `chroot` started may be a folder that is no mount.
    let Some(root) = root.or_else(|| rows.iter().find(|row| row["total_bytes"].as_unsigned() > Some(0))) else {
        return;
    };
    assert!(!text(root, "options").is_empty());
    let Some(line) = output("df", &["-B1", "--output=size,itotal,fstype", &text(root, "mount_point")]) else { return };
    let fields: Vec<&str> = line.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(number(root, "total_bytes").to_string(), fields[0]);
    // `df` prints 0 or `-` where there is no limit.
    let inodes = root["inodes_total"].as_unsigned().unwrap_or_default().to_string();
    assert!(inodes == fields[1] || fields[1] == "-", "{inodes} {fields:?}");
    assert_eq!(text(root, "file_system_type"), fields[2]);
    let used = number(root, "used_bytes");
    assert!(used > 0 && used + number(root, "available_bytes") <= number(root, "total_bytes"), "{root:?}");
    assert!((0.0..=100.0).contains(&float(root, "used_percent")));
}

#[test]
fn pseudo_file_systems_are_optional() {
    assert!(!texts(&read(SystemTable::Mounts), "file_system_type").contains("proc"));
    let options = with_parameter("include_pseudo", true);
    let (rows, _) = read_with(&SystemReader::new(), SystemTable::Mounts, &options);
    assert!(texts(&rows, "file_system_type").contains("proc"));
}

#[test]
fn disks_agree_with_the_kernel() {
    // A container may hide the devices.
    let Ok(entries) = std::fs::read_dir("/sys/block") else { return };
    let size = |name: &str| std::fs::read_to_string(format!("/sys/block/{name}/size")).ok()?.trim().parse::<u64>().ok();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let expected: BTreeSet<String> = names.filter(|name| size(name).is_some_and(|size| size > 0)).collect();
    let rows = read(SystemTable::Disks);
    assert_eq!(texts(&rows, "name"), expected);
    for row in &rows {
        assert_eq!(Some(number(row, "size_bytes")), size(&text(row, "name")).map(|sectors| sectors * 512));
    }
    if let Some(sizes) = output("lsblk", &["-b", "-d", "-n", "-o", "NAME,SIZE"]) {
        for line in sizes.lines() {
            let (name, size) = line.split_once(' ').unwrap();
            let row = rows.iter().find(|row| row["name"].as_text() == Some(name));
            assert!(row.is_none_or(|row| number(row, "size_bytes").to_string() == size.trim()), "{line}");
        }
    }
}

#[test]
fn users_are_those_of_the_file() {
    let file = std::fs::read_to_string("/etc/passwd").unwrap();
    let names = file.lines().filter_map(|line| line.split(':').next()).filter(|name| !name.is_empty());
    let rows = read(SystemTable::Users);
    assert_eq!(texts(&rows, "name"), names.map(str::to_owned).collect());
    let root = rows.iter().find(|row| row["uid"].as_unsigned() == Some(0)).unwrap();
    assert_eq!(text(root, "home_folder"), "/root");
}

#[test]
fn memory_agrees_with_proc() {
    let rows = read(SystemTable::Memory);
    let [row] = &rows[..] else { panic!("one row: {rows:?}") };
    let file = std::fs::read_to_string("/proc/meminfo").unwrap();
    let kibibytes = |name: &str| {
        let line = file.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_start_matches(':').split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(number(row, "total_bytes"), kibibytes("MemTotal") * 1024);
    assert_eq!(number(row, "swap_total_bytes"), kibibytes("SwapTotal") * 1024);
    assert_eq!(row["swap_used_percent"].is_null(), kibibytes("SwapTotal") == 0);
    assert_eq!(number(row, "used_bytes") + number(row, "available_bytes"), number(row, "total_bytes"));
    assert!(number(row, "available_bytes") > 0);
}

#[test]
fn load_agrees_with_proc() {
    let rows = read(SystemTable::Load);
    let [row] = &rows[..] else { panic!("one row: {rows:?}") };
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let cpus = stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count();
    assert_eq!(number(row, "cpus"), cpus as u64);
    let boot: i64 = stat.lines().find_map(|line| line.strip_prefix("btime ")).unwrap().parse().unwrap();
    assert_eq!(row["boot_time"], SystemValue::Timestamp(boot * 1_000_000));
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    // The averages may have been updated in between.
    assert!((float(row, "load_1_minute") - load.split(' ').next().unwrap().parse::<f64>().unwrap()).abs() < 50.0);
    assert!(number(row, "total_tasks") >= number(row, "running_tasks"));
    assert!((0.0..=100.5).contains(&float(row, "cpu_percent")), "{row:?}");
    assert!(float(row, "uptime_seconds") > 0.0 && float(row, "cpu_idle_seconds") >= 0.0);
    let has_pressure = std::fs::read_to_string("/proc/pressure/memory").is_ok();
    assert_eq!(row["memory_pressure_10_seconds_percent"].is_null(), !has_pressure);
    assert_eq!(row["cpu_pressure_60_seconds_percent"].is_null(), !has_pressure);
}

#[test]
fn services_are_units_or_have_processes() {
    let rows = read(SystemTable::Services);
    for row in &rows {
        assert!(text(row, "name").ends_with(".service"), "{row:?}");
        let is_running = row["is_running"] == SystemValue::Boolean(true);
        assert_eq!(number(row, "processes") > 0, is_running, "{row:?}");
        assert!(is_running || (row["start_time"].is_null() && !row["unit_file"].is_null()), "{row:?}");
    }
    let processes = read(SystemTable::Processes);
    for service in texts(&processes, "service") {
        // A service may have started or ended in between.
        let row = rows.iter().find(|row| row["name"].as_text() == Some(&service));
        assert!(row.is_none_or(|row| !row["processes"].is_null()), "{service}");
    }
}

#[test]
fn each_table_can_be_read_with_one_column() {
    for table in SystemTable::ALL {
        let columns = &table.description().columns;
        let first = columns.first().unwrap().name.clone().into_owned();
        let options = ReadOptions { columns: Some(vec![first.clone()]), ..ReadOptions::default() };
        let (rows, _) = read_with(&SystemReader::new(), *table, &options);
        let has_only_first = |name: &String| *name == first;
        assert!(rows.iter().all(|row| row.iter().all(|(name, value)| has_only_first(name) || value.is_null())));
    }
}
