//! The number of files that the process may have open: connections leave a reserve for databases, files and results.

/// The largest reserve; a smaller limit is shared in halves.
const RESERVED_FILES_MAX: u64 = 1024;

/// Raises the limit of open files as far as the system permits, and returns how many connections fit: at most `requested`.
pub(crate) fn connections_that_fit(requested: usize) -> usize {
    let limit = match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => limit,
        Err(error) => {
            tracing::warn!(
                "the limit of open files is unknown ({error}); it may be reached before {requested} connections"
            );
            return requested;
        }
    };
    let connections = connections_within(limit, requested);
    if connections < requested {
        tracing::warn!(
            "the system allows {limit} open files (ulimit -n): {connections} connections at once instead of {requested}; \
             the other files are reserved for databases, data and results"
        );
    }
    connections
}

fn connections_within(limit: u64, requested: usize) -> usize {
    let free = limit - (limit / 2).min(RESERVED_FILES_MAX);
    requested.min(usize::try_from(free).unwrap_or(usize::MAX)).max(1)
}

#[cfg(test)]
mod tests {
    use super::connections_within;

    #[test]
    fn connections_leave_a_reserve() {
        let limits = [0, 64, 1024, 4096, 1 << 20, u64::MAX];
        assert_eq!(limits.map(|limit| connections_within(limit, 4096)), [1, 32, 512, 3072, 4096, 4096]);
    }
}
