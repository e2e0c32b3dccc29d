//! Reads `load`.

use std::path::Path;
use std::time::Instant;

use parking_lot::Mutex;
use procfs::{
    CpuPressure, CpuTime, Current as _, CurrentSI as _, IoPressure, KernelStats, LoadAverage, MemoryPressure,
    PressureRecord,
};

use super::{ColumnReader, KernelClock, RowCallback, SystemRowWriter, unreadable};
use crate::catalog::SystemTable;
use crate::cpu_sampler::{CpuSampler, CpuUsage, ProcessKey};
use crate::description::SystemValue;
use crate::read::{ReadOptions, ReadSummary, SystemError};

/// The key of the machine in the sampler; no process has it.
const MACHINE: ProcessKey = (-1, 0);

struct LoadRow {
    load: LoadAverage,
    stats: Option<KernelStats>,
    clock: KernelClock,
    usage: Option<CpuUsage>,
    cpu_pressure: Option<PressureRecord>,
    memory_pressure: Option<MemoryPressure>,
    io_pressure: Option<IoPressure>,
}

const COLUMNS: &[ColumnReader<LoadRow>] = &[
    ("load_1_minute", |row| rounded(row.load.one).into()),
    ("load_5_minutes", |row| rounded(row.load.five).into()),
    ("load_15_minutes", |row| rounded(row.load.fifteen).into()),
    ("cpus", |row| row.stats.as_ref().map(cpus).into()),
    ("cpu_percent", |row| row.usage.map(|usage| usage.percent).into()),
    ("cpu_period_seconds", |row| row.usage.map(|usage| usage.period_seconds).into()),
    ("cpu_user_seconds", |row| cpu_seconds(row, |time| time.user + time.nice)),
    ("cpu_system_seconds", |row| {
        cpu_seconds(row, |time| time.system + time.irq.unwrap_or_default() + time.softirq.unwrap_or_default())
    }),
    ("cpu_idle_seconds", |row| cpu_seconds(row, |time| time.idle)),
    ("cpu_io_wait_seconds", |row| cpu_seconds(row, |time| time.iowait.unwrap_or_default())),
    ("cpu_steal_seconds", |row| cpu_seconds(row, |time| time.steal.unwrap_or_default())),
    ("running_tasks", |row| row.load.cur.into()),
    ("total_tasks", |row| row.load.max.into()),
    ("blocked_processes", |row| row.stats.as_ref().and_then(|stats| stats.procs_blocked).into()),
    ("uptime_seconds", |row| row.clock.uptime_seconds.into()),
    ("boot_time", |row| row.clock.boot_microseconds.map_or(SystemValue::Null, SystemValue::Timestamp)),
    ("cpu_pressure_10_seconds_percent", |row| row.cpu_pressure.as_ref().map(|cpu| rounded(cpu.avg10)).into()),
    ("cpu_pressure_60_seconds_percent", |row| row.cpu_pressure.as_ref().map(|cpu| rounded(cpu.avg60)).into()),
    ("memory_pressure_10_seconds_percent", |row| {
        row.memory_pressure.as_ref().map(|memory| rounded(memory.some.avg10)).into()
    }),
    ("memory_pressure_60_seconds_percent", |row| {
        row.memory_pressure.as_ref().map(|memory| rounded(memory.some.avg60)).into()
    }),
    ("memory_full_pressure_60_seconds_percent", |row| {
        row.memory_pressure.as_ref().map(|memory| rounded(memory.full.avg60)).into()
    }),
    ("io_pressure_10_seconds_percent", |row| row.io_pressure.as_ref().map(|io| rounded(io.some.avg10)).into()),
    ("io_pressure_60_seconds_percent", |row| row.io_pressure.as_ref().map(|io| rounded(io.some.avg60)).into()),
    ("io_full_pressure_60_seconds_percent", |row| row.io_pressure.as_ref().map(|io| rounded(io.full.avg60)).into()),
];

pub(super) fn read(
    sampler: &Mutex<CpuSampler>,
    options: &ReadOptions,
    on_row: RowCallback<'_>,
) -> Result<ReadSummary, SystemError> {
    let load = LoadAverage::current();
    let load = load.map_err(|error| unreadable(SystemTable::Load, Path::new(LoadAverage::PATH), error))?;
    let stats = KernelStats::current().ok();
    let clock = KernelClock::read();
    let usage = stats.as_ref().and_then(|stats| {
        let divisor = cpus(stats).max(1) as f64 * clock.ticks_per_second;
        let busy_seconds = busy_ticks(&stats.total) as f64 / divisor;
        sampler.lock().sample(MACHINE, Instant::now(), busy_seconds, clock.uptime_seconds?)
    });
    let row = LoadRow {
        load,
        stats,
        clock,
        usage,
        cpu_pressure: cpu_pressure(),
        memory_pressure: MemoryPressure::current().ok(),
        io_pressure: IoPressure::current().ok(),
    };
    let mut writer = SystemRowWriter::new(SystemTable::Load, COLUMNS, options, on_row);
    // The only row: stopping after it changes nothing.
    let _ = writer.write(&row);
    Ok(writer.finish())
}

/// Kernels before 5.13 have only the first of the two lines that the library expects.
fn cpu_pressure() -> Option<PressureRecord> {
    let text = super::read_small(Path::new(CpuPressure::PATH))?;
    procfs::parse_pressure_record(text.lines().next()?).ok()
}

fn cpus(stats: &KernelStats) -> u64 {
    stats.cpu_time.len() as u64
}

fn cpu_seconds(row: &LoadRow, ticks: fn(&CpuTime) -> u64) -> SystemValue {
    row.stats.as_ref().map(|stats| row.clock.seconds(ticks(&stats.total))).into()
}

/// Guest time is a part of user time, and stolen time was not used here.
fn busy_ticks(time: &CpuTime) -> u64 {
    let interrupts = time.irq.unwrap_or_default() + time.softirq.unwrap_or_default();
    time.user + time.nice + time.system + interrupts
}

/// The kernel prints two decimals, which a conversion to 64 bits would turn into many.
fn rounded(value: f32) -> f64 {
    (f64::from(value) * 100.0).round() / 100.0
}
