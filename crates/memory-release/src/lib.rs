//! Returns free memory of the allocator to the system.
//!
//! The allocator of glibc keeps the memory that a burst of calls has used, for the next allocations. Other allocators
//! return it by themselves, or have no function for it.

/// Returns free memory to the system. It takes milliseconds for a large heap, in which allocations of other threads may
/// wait. Does nothing where the C library is not glibc.
pub fn release_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code, reason = "the C library has no safe function for it")]
    // SAFETY: `malloc_trim` receives no pointer, does not touch allocated memory, and may be called from any thread
    // (malloc_trim(3): MT-Safe).
    unsafe {
        libc::malloc_trim(0);
    }
}

/// The number of bytes of the process that are in memory and belong to no file. `None` where the system does not report
/// it.
pub fn anonymous_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kibibytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks that lie between others cannot be returned by `free` alone.
    #[test]
    fn memory_between_used_blocks_is_returned() {
        let Some(before) = anonymous_bytes() else { return };
        let mut blocks: Vec<Vec<u8>> = (0..8_192).map(|_| vec![1; 16 << 10]).collect();
        let kept: Vec<Vec<u8>> = blocks.iter_mut().step_by(64).map(std::mem::take).collect();
        drop(blocks);
        release_free_memory();
        let after = anonymous_bytes().unwrap_or_default();
        if cfg!(all(target_os = "linux", target_env = "gnu")) {
            assert!(after < before + (32 << 20), "{before} bytes before, {after} after");
        }
        assert!(kept.iter().all(|block| block.iter().all(|byte| *byte == 1)));
    }
}
