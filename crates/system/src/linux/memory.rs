//! Reads `memory`.

use std::path::Path;

use procfs::{Current as _, Meminfo};

use super::{ColumnReader, RowCallback, SystemRowWriter, percentage, unreadable};
use crate::catalog::SystemTable;
use crate::read::{ReadOptions, ReadSummary, SystemError};

const COLUMNS: &[ColumnReader<Meminfo>] = &[
    ("total_bytes", |memory| memory.mem_total.into()),
    ("available_bytes", |memory| memory.mem_available.into()),
    ("used_bytes", |memory| used(memory).into()),
    ("used_percent", |memory| used(memory).and_then(|used| percentage(used, memory.mem_total)).into()),
    ("free_bytes", |memory| memory.mem_free.into()),
    ("buffers_bytes", |memory| memory.buffers.into()),
    ("cached_bytes", |memory| memory.cached.into()),
    ("shared_bytes", |memory| memory.shmem.into()),
    ("anonymous_bytes", |memory| memory.anon_pages.into()),
    ("slab_bytes", |memory| memory.slab.into()),
    ("slab_reclaimable_bytes", |memory| memory.s_reclaimable.into()),
    ("page_tables_bytes", |memory| memory.page_tables.into()),
    ("dirty_bytes", |memory| memory.dirty.into()),
    ("committed_bytes", |memory| memory.committed_as.into()),
    ("commit_limit_bytes", |memory| memory.commit_limit.into()),
    ("swap_total_bytes", |memory| memory.swap_total.into()),
    ("swap_used_bytes", |memory| swap_used(memory).into()),
    ("swap_free_bytes", |memory| memory.swap_free.into()),
    ("swap_used_percent", |memory| percentage(swap_used(memory), memory.swap_total).into()),
];

pub(super) fn read(options: &ReadOptions, on_row: RowCallback<'_>) -> Result<ReadSummary, SystemError> {
    let memory = Meminfo::current();
    let memory = memory.map_err(|error| unreadable(SystemTable::Memory, Path::new(Meminfo::PATH), error))?;
    let mut writer = SystemRowWriter::new(SystemTable::Memory, COLUMNS, options, on_row);
    // The only row: stopping after it changes nothing.
    let _ = writer.write(&memory);
    Ok(writer.finish())
}

fn used(memory: &Meminfo) -> Option<u64> {
    memory.mem_available.map(|available| memory.mem_total.saturating_sub(available))
}

fn swap_used(memory: &Meminfo) -> u64 {
    memory.swap_total.saturating_sub(memory.swap_free)
}
