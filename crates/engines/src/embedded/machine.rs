//! How much memory the machine, or the control group of this process, has.

use std::fs;

/// Bytes of memory, if the system reports them.
pub(crate) fn memory_bytes() -> Option<usize> {
    let physical = fs::read_to_string("/proc/meminfo").ok().and_then(|text| parse_meminfo_total(&text));
    // `max` means no limit and does not parse.
    let granted = fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    match (physical, granted) {
        (Some(physical), Some(granted)) => Some(usize::min(physical, granted)),
        (one, other) => one.or(other),
    }
}

fn parse_meminfo_total(text: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_total_from_meminfo() {
        assert_eq!(parse_meminfo_total("MemTotal:       24670212 kB\nMemFree: 1 kB\n"), Some(24_670_212 * 1_024));
        assert_eq!(parse_meminfo_total("nothing"), None);
    }
}
