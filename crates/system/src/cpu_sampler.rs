//! CPU usage between two readings. A single reading has only the CPU time since the start of a process, so the
//! sampler stores earlier readings.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

/// Processes with stored readings at most. For the others, the usage is that since their start.
const PROCESSES_MAX: usize = 32_768;
/// The minimum time between two readings. The counters of the kernel advance in steps of 10 ms, so that shorter times
/// give coarse results.
const INTERVAL_MIN: Duration = Duration::from_secs(1);
/// The age at which a stored reading is removed.
const AGE_MAX: Duration = Duration::from_secs(3_600);
/// The same when more than half of the places are taken, as with very many processes that run for a short time.
const AGE_MAX_WHEN_FULL: Duration = Duration::from_secs(60);

/// A process: its id, and its start in clock ticks, because ids are reused.
pub(crate) type ProcessKey = (i32, u64);

/// The CPU usage over a period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CpuUsage {
    /// CPU seconds per second, in percent: 100 is one CPU.
    pub(crate) percent: f64,
    /// The length of the period in seconds.
    pub(crate) period_seconds: f64,
}

impl CpuUsage {
    /// `None` for an empty period.
    fn over(cpu_seconds: f64, period_seconds: f64) -> Option<Self> {
        let percent = 100.0 * cpu_seconds.max(0.0) / period_seconds;
        (period_seconds > 0.0).then_some(Self { percent, period_seconds })
    }
}

#[derive(Debug, Clone, Copy)]
struct CpuReading {
    at: Instant,
    cpu_seconds: f64,
}

/// The latest reading, and the one before it in case the latest is too recent.
#[derive(Debug)]
struct StoredReadings {
    latest: CpuReading,
    earlier: Option<CpuReading>,
}

/// Earlier readings of processes.
#[derive(Debug, Default)]
pub(crate) struct CpuSampler {
    readings: HashMap<ProcessKey, StoredReadings>,
}

impl CpuSampler {
    /// Removes readings of processes that were not read for a long time, as they probably ended.
    pub(crate) fn remove_old(&mut self, now: Instant) {
        let is_crowded = self.readings.len() > PROCESSES_MAX / 2;
        let age_max = if is_crowded { AGE_MAX_WHEN_FULL } else { AGE_MAX };
        self.readings.retain(|_, stored| now.saturating_duration_since(stored.latest.at) <= age_max);
    }

    /// The usage since the last reading that is at least one second old, else over `age_seconds`, the time since the
    /// start. `cpu_seconds` is the CPU time since the start.
    pub(crate) fn sample(
        &mut self,
        key: ProcessKey,
        now: Instant,
        cpu_seconds: f64,
        age_seconds: f64,
    ) -> Option<CpuUsage> {
        let reading = CpuReading { at: now, cpu_seconds };
        let is_full = self.readings.len() >= PROCESSES_MAX;
        let base = match self.readings.entry(key) {
            Entry::Occupied(mut entry) => entry.get_mut().base_for(reading),
            Entry::Vacant(entry) => {
                if !is_full {
                    entry.insert(StoredReadings { latest: reading, earlier: None });
                }
                None
            }
        };
        match base {
            Some(base) => {
                let period = now.saturating_duration_since(base.at).as_secs_f64();
                CpuUsage::over(cpu_seconds - base.cpu_seconds, period)
            }
            None => CpuUsage::over(cpu_seconds, age_seconds),
        }
    }
}

impl StoredReadings {
    /// The reading to compare `current` with. Stores `current` unless the latest is too recent.
    fn base_for(&mut self, current: CpuReading) -> Option<CpuReading> {
        let is_old = |reading: &CpuReading| current.at.saturating_duration_since(reading.at) >= INTERVAL_MIN;
        if is_old(&self.latest) {
            let base = self.latest;
            *self = Self { latest: current, earlier: Some(base) };
            return Some(base);
        }
        self.earlier.filter(is_old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: ProcessKey = (7, 100);

    fn usage(percent: f64, period_seconds: f64) -> Option<CpuUsage> {
        Some(CpuUsage { percent, period_seconds })
    }

    #[test]
    fn first_reading_is_over_the_whole_life() {
        let mut sampler = CpuSampler::default();
        assert_eq!(sampler.sample(KEY, Instant::now(), 5.0, 50.0), usage(10.0, 50.0));
        assert_eq!(sampler.sample((8, 0), Instant::now(), 0.0, 0.0), None);
    }

    #[test]
    fn later_readings_are_since_one_that_is_a_second_old() {
        let mut sampler = CpuSampler::default();
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        sampler.sample(KEY, at(0), 10.0, 100.0);
        // Too recent: still over the whole life.
        assert_eq!(sampler.sample(KEY, at(500), 10.1, 101.0), usage(10.0, 101.0));
        assert_eq!(sampler.sample(KEY, at(2_000), 11.0, 102.0), usage(50.0, 2.0));
        // The latest is too recent, the one before it is used.
        assert_eq!(sampler.sample(KEY, at(2_500), 11.0, 102.5), usage(40.0, 2.5));
        assert_eq!(sampler.sample(KEY, at(4_000), 13.0, 104.0), usage(100.0, 2.0));
    }

    #[test]
    fn reused_process_id_is_another_process() {
        let mut sampler = CpuSampler::default();
        let start = Instant::now();
        sampler.sample(KEY, start, 90.0, 100.0);
        let later = start + Duration::from_secs(10);
        assert_eq!(sampler.sample((KEY.0, 9_000), later, 1.0, 4.0), usage(25.0, 4.0));
        // A counter that goes back is no negative usage.
        assert_eq!(sampler.sample(KEY, later, 80.0, 110.0), usage(0.0, 10.0));
    }

    #[test]
    fn number_of_readings_is_bounded() {
        let mut sampler = CpuSampler::default();
        let start = Instant::now();
        for pid in 0..PROCESSES_MAX as i32 + 10 {
            sampler.sample((pid, 0), start, 1.0, 10.0);
        }
        assert_eq!(sampler.readings.len(), PROCESSES_MAX);
        sampler.remove_old(start + AGE_MAX_WHEN_FULL);
        assert_eq!(sampler.readings.len(), PROCESSES_MAX);
        sampler.remove_old(start + AGE_MAX_WHEN_FULL + Duration::from_secs(1));
        assert_eq!(sampler.readings.len(), 0);
        sampler.sample(KEY, start, 1.0, 10.0);
        sampler.remove_old(start + AGE_MAX);
        assert_eq!(sampler.readings.len(), 1);
    }
}
