//! The memory of the process: its size, and the allocator of glibc, which is kept from holding memory that nobody uses.
//!
//! That allocator keeps the memory that a burst of calls has used, for the next allocations, in up to eight heaps a processor. Other
//! allocators return memory by themselves, or have no function for it.

/// The variable with which a user sets the number of heaps.
const HEAPS_VARIABLE: &str = "MALLOC_ARENA_MAX";

/// Limits the number of heaps to that of the processors: large blocks that threads allocate in turn get the same memory
/// then, and not that of another heap each. A number that the user has set remains. To be called before threads are
/// started. Does nothing where the C library is not glibc.
pub fn limit_heaps() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if std::env::var_os(HEAPS_VARIABLE).is_none() {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let heaps = libc::c_int::try_from(processors).unwrap_or(libc::c_int::MAX);
        #[allow(unsafe_code, reason = "the C library has no safe function for it")]
        // SAFETY: `mallopt` receives two numbers and no pointer, and locks the heap that it changes (mallopt(3)). A
        // value that it refuses changes nothing.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, heaps);
        }
    }
}

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
    // Pages: all, in memory, and those of them that belong to files (proc_pid_statm(5)). Faster than `status`.
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut counts = pages.split(' ').skip(1).map_while(|count| count.parse::<usize>().ok());
    let (in_memory, of_files) = (counts.next()?, counts.next()?);
    in_memory.checked_sub(of_files)?.checked_mul(rustix::param::page_size())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A heap reserves 64 MiB of addresses. Threads that hold a block each would have one each.
    #[test]
    fn threads_share_heaps() {
        limit_heaps();
        let Some(before) = reserved_bytes() else { return };
        let (threads, barrier) = (4 * processors(), std::sync::Barrier::new(4 * processors() + 1));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let block = std::hint::black_box(vec![1_u8; 4096]);
                    barrier.wait();
                    barrier.wait();
                    drop(block);
                });
            }
            barrier.wait();
            let stacks = threads * (2 << 20);
            let heaps = (processors() + 1) * (128 << 20);
            let after = reserved_bytes().unwrap_or_default();
            barrier.wait();
            if cfg!(all(target_os = "linux", target_env = "gnu")) {
                assert!(after < before + stacks + heaps, "{before} bytes before, {after} with {threads} threads");
            }
        });
    }

    #[test]
    fn anonymous_bytes_are_those_of_the_system() {
        let differs = || {
            let Some(expected) = status_bytes("RssAnon:") else { return false };
            anonymous_bytes().unwrap_or_default().abs_diff(expected) > 512 << 10
        };
        // Other tests allocate meanwhile.
        assert!((0..1_000).any(|_| !differs()));
    }

    fn processors() -> usize {
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
    }

    fn reserved_bytes() -> Option<usize> {
        status_bytes("VmSize:")
    }

    fn status_bytes(name: &str) -> Option<usize> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok().map(|kibibytes| kibibytes * 1024)
    }

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
