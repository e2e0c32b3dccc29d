//! Samples in memory, compressed, bounded by age and by bytes.

use std::collections::{BTreeMap, VecDeque};

use super::super::catalog::{CatalogBuilder, MetricSummary};
use super::super::model::{Labels, MetricKind, Sample, TimeWindow};
use super::super::selection::LabelSelection;
use super::chunk::{ChunkEncoder, MILLISECOND_NS, SampleChunk};

/// The number of samples of a full chunk.
const CHUNK_SAMPLES: u32 = 120;
/// Eviction by bytes frees this part of the bound, so that it is rare.
const FREED_SHARE: usize = 10;

/// The bounds of a recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecorderOptions {
    /// How old samples in memory may become, in nanoseconds. Whole chunks are removed.
    pub age_ns_max: u64,
    /// The memory that samples and labels may take.
    pub bytes_max: usize,
    /// The maximum number of series.
    pub series_max: usize,
}

impl Default for RecorderOptions {
    /// A day, 64 MiB and 20,000 series.
    fn default() -> Self {
        Self { age_ns_max: 86_400_000_000_000, bytes_max: 64 << 20, series_max: 20_000 }
    }
}

/// What became of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendOutcome {
    /// It is in memory.
    Stored,
    /// It is not later than the latest sample of its series, and was not stored.
    OutOfOrder,
    /// It would begin a further series than the options allow, and was not stored.
    TooManySeries,
}

/// The series of all metrics.
#[derive(Debug)]
pub struct SampleStore {
    options: RecorderOptions,
    metrics: BTreeMap<String, StoredMetric>,
    series: usize,
    bytes: usize,
    /// Samples before this time may have been removed.
    complete_from_ms: i64,
}

#[derive(Debug, Default)]
struct StoredMetric {
    kind: MetricKind,
    unit: Option<String>,
    help: Option<String>,
    series: BTreeMap<Labels, StoredSeries>,
}

#[derive(Debug, Default)]
struct StoredSeries {
    sealed: VecDeque<SampleChunk>,
    open: ChunkEncoder,
}

impl StoredSeries {
    fn last_ms(&self) -> Option<i64> {
        let sealed = self.sealed.back().map(SampleChunk::last_ms);
        if self.open.count() > 0 { Some(self.open.last_ms()) } else { sealed }
    }

    fn first_ms(&self) -> Option<i64> {
        let sealed = self.sealed.front().map(SampleChunk::first_ms);
        sealed.or((self.open.count() > 0).then(|| self.open.first_ms()))
    }

    /// Makes the open chunk a sealed one.
    fn seal(&mut self) -> Option<&SampleChunk> {
        let chunk = std::mem::take(&mut self.open).seal()?;
        self.sealed.push_back(chunk);
        self.sealed.back()
    }

    fn memory_bytes(&self) -> usize {
        self.sealed.iter().map(SampleChunk::memory_bytes).sum::<usize>() + self.open.memory_bytes()
    }
}

/// One series of the store.
#[derive(Debug, Clone, Copy)]
pub struct StoredSeriesView<'a> {
    /// The name of its metric.
    pub metric: &'a str,
    /// The kind of its metric.
    pub kind: MetricKind,
    /// Its labels.
    pub labels: &'a Labels,
    series: &'a StoredSeries,
}

impl<'a> StoredSeriesView<'a> {
    /// The samples within the window, in order.
    pub fn samples(&self, window: TimeWindow) -> impl Iterator<Item = Sample> + use<'a> {
        let overlaps = move |first_ms: i64, last_ms: i64| {
            let (first_ns, last_ns) = (first_ms.saturating_mul(MILLISECOND_NS), last_ms.saturating_mul(MILLISECOND_NS));
            first_ns < window.before_ns && last_ns >= window.after_ns
        };
        let StoredSeries { sealed, open } = self.series;
        let sealed = sealed.iter().filter(move |chunk| overlaps(chunk.first_ms(), chunk.last_ms()));
        let open = (open.count() > 0 && overlaps(open.first_ms(), open.last_ms())).then(|| open.samples());
        let samples = sealed.flat_map(SampleChunk::samples).chain(open.into_iter().flatten());
        samples.filter(move |sample| window.contains(sample.time_ns))
    }
}

impl SampleStore {
    /// An empty store.
    pub fn new(options: RecorderOptions) -> Self {
        Self { options, metrics: BTreeMap::new(), series: 0, bytes: 0, complete_from_ms: i64::MIN }
    }

    /// The memory that samples and labels take, in bytes. It never exceeds the bound of the options after a call.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Declares the kind, the unit and the description of a metric. Metrics without series are ignored.
    pub fn describe(&mut self, metric: &str, kind: MetricKind, unit: Option<&str>, help: Option<&str>) {
        let Some(stored) = self.metrics.get_mut(metric) else { return };
        stored.kind = kind;
        if stored.unit.as_deref() != unit {
            stored.unit = unit.map(str::to_owned);
        }
        if stored.help.as_deref() != help {
            stored.help = help.map(str::to_owned);
        }
    }

    /// Adds a sample, with its time cut to milliseconds. Returns the chunk that became full.
    pub fn append(&mut self, metric: &str, labels: &Labels, sample: Sample) -> (AppendOutcome, Option<SampleChunk>) {
        let time_ms = sample.time_ns.div_euclid(MILLISECOND_NS);
        let Some(series) = self.series_mut(metric, labels) else { return (AppendOutcome::TooManySeries, None) };
        if series.last_ms().is_some_and(|last_ms| time_ms <= last_ms) {
            return (AppendOutcome::OutOfOrder, None);
        }
        let before = series.open.memory_bytes();
        series.open.append(time_ms, sample.value);
        let mut sealed = None;
        let mut after = series.open.memory_bytes();
        if series.open.count() >= CHUNK_SAMPLES {
            sealed = series.seal().cloned();
            after = sealed.as_ref().map_or(0, SampleChunk::memory_bytes);
        }
        self.bytes = (self.bytes + after).saturating_sub(before);
        self.evict_bytes();
        (AppendOutcome::Stored, sealed)
    }

    /// Adds a sealed chunk from a file. Chunks that do not follow the samples of their series are ignored.
    pub(super) fn insert_chunk(&mut self, metric: &str, labels: &Labels, chunk: SampleChunk) {
        let Some(series) = self.series_mut(metric, labels) else { return };
        if series.open.count() > 0 || series.last_ms().is_some_and(|last_ms| chunk.first_ms() <= last_ms) {
            return;
        }
        let bytes = chunk.memory_bytes();
        series.sealed.push_back(chunk);
        self.bytes += bytes;
        self.evict_bytes();
    }

    /// `None` if the series is new and there are too many.
    fn series_mut(&mut self, metric: &str, labels: &Labels) -> Option<&mut StoredSeries> {
        let is_known = self.metrics.get(metric).is_some_and(|stored| stored.series.contains_key(labels));
        if !is_known {
            let bytes = series_bytes(metric, labels);
            if self.series >= self.options.series_max || bytes > self.options.bytes_max / FREED_SHARE {
                return None;
            }
            self.series += 1;
            self.bytes += bytes;
            let stored = self.metrics.entry(metric.to_owned()).or_default();
            stored.series.insert(labels.clone(), StoredSeries::default());
        }
        self.metrics.get_mut(metric)?.series.get_mut(labels)
    }

    /// Seals all open chunks and returns them.
    pub(super) fn seal_all(&mut self) -> Vec<(String, Labels, SampleChunk)> {
        let mut all = Vec::new();
        for (metric, stored) in &mut self.metrics {
            for (labels, series) in &mut stored.series {
                let before = series.open.memory_bytes();
                let Some(chunk) = series.seal() else { continue };
                self.bytes = (self.bytes + chunk.memory_bytes()).saturating_sub(before);
                all.push((metric.clone(), labels.clone(), chunk.clone()));
            }
        }
        self.evict_bytes();
        all
    }

    /// Removes chunks that are older than the options allow, and series without samples.
    pub fn evict(&mut self, now_ns: i64) {
        let age_ns_max = i64::try_from(self.options.age_ns_max).unwrap_or(i64::MAX);
        self.evict_before(now_ns.saturating_sub(age_ns_max).div_euclid(MILLISECOND_NS));
    }

    fn evict_before(&mut self, time_ms: i64) {
        if time_ms <= self.complete_from_ms {
            return;
        }
        self.complete_from_ms = time_ms;
        let (bytes, count) = (&mut self.bytes, &mut self.series);
        self.metrics.retain(|metric, stored| {
            stored.series.retain(|labels, series| {
                while let Some(chunk) = series.sealed.pop_front_if(|chunk| chunk.last_ms() < time_ms) {
                    *bytes = bytes.saturating_sub(chunk.memory_bytes());
                }
                let is_empty = series.last_ms().is_none_or(|last_ms| last_ms < time_ms);
                if is_empty {
                    *bytes = bytes.saturating_sub(series.memory_bytes() + series_bytes(metric, labels));
                    *count = count.saturating_sub(1);
                }
                !is_empty
            });
            !stored.series.is_empty()
        });
    }

    /// Removes the oldest chunks while the store exceeds its bound.
    fn evict_bytes(&mut self) {
        while self.bytes > self.options.bytes_max {
            let excess = self.bytes.saturating_sub(self.options.bytes_max - self.options.bytes_max / FREED_SHARE);
            let series = self.metrics.values().flat_map(|stored| stored.series.values());
            let mut ends: Vec<(i64, usize)> = series
                .flat_map(|series| {
                    let open = (series.open.count() > 0).then(|| (series.open.last_ms(), series.open.memory_bytes()));
                    series.sealed.iter().map(|chunk| (chunk.last_ms(), chunk.memory_bytes())).chain(open)
                })
                .collect();
            ends.sort_unstable();
            let mut freed = 0;
            let reached = ends.iter().find(|(_, bytes)| {
                freed += bytes;
                freed >= excess
            });
            let Some((end_ms, _)) = reached.or(ends.last()) else { return };
            let before = self.bytes;
            self.evict_before(end_ms.saturating_add(1).max(self.complete_from_ms.saturating_add(1)));
            if self.bytes == before {
                return;
            }
        }
    }

    /// Whether samples after this time may be missing, because they were removed or never loaded.
    pub(super) fn begins_after(&self, time_ns: i64) -> bool {
        let series = self.metrics.values().flat_map(|stored| stored.series.values());
        let first_ms = series.filter_map(StoredSeries::first_ms).min();
        first_ms.is_none_or(|first_ms| first_ms.saturating_mul(MILLISECOND_NS) > time_ns) || {
            self.complete_from_ms.saturating_mul(MILLISECOND_NS) > time_ns
        }
    }

    /// The time of the first sample of a series in memory.
    pub(super) fn first_ns(&self, metric: &str, labels: &Labels) -> Option<i64> {
        let first_ms = self.metrics.get(metric)?.series.get(labels)?.first_ms()?;
        Some(first_ms.saturating_mul(MILLISECOND_NS))
    }

    /// The series of one metric, or of all, that fulfil the selection, in order of their names and labels.
    pub fn select<'a>(
        &'a self,
        metric: Option<&'a str>,
        selection: &'a LabelSelection,
    ) -> impl Iterator<Item = StoredSeriesView<'a>> {
        let metrics = self.metrics.iter().filter(move |(name, _)| metric.is_none_or(|metric| metric == *name));
        let series = metrics.flat_map(|(metric, stored)| {
            let view = move |(labels, series)| StoredSeriesView { metric, kind: stored.kind, labels, series };
            stored.series.iter().map(view)
        });
        series.filter(move |series| selection.accepts(series.labels))
    }

    /// The metrics with series that fulfil the selection.
    pub fn catalog(&self, selection: LabelSelection) -> Vec<MetricSummary> {
        let mut builder = CatalogBuilder::new(selection);
        for (metric, stored) in &self.metrics {
            for (labels, series) in &stored.series {
                let covers = series.first_ms().zip(series.last_ms()).map(|(first_ms, last_ms)| {
                    let behind_last_ms = last_ms.saturating_add(1);
                    TimeWindow::new(
                        first_ms.saturating_mul(MILLISECOND_NS),
                        behind_last_ms.saturating_mul(MILLISECOND_NS),
                    )
                });
                builder.add_series(metric, labels, covers);
            }
            builder.describe(metric, stored.kind, stored.unit.as_deref(), stored.help.as_deref());
        }
        builder.finish().0
    }
}

/// The memory of a series without its samples.
fn series_bytes(metric: &str, labels: &Labels) -> usize {
    metric.len() + labels.memory_bytes() + size_of::<Labels>() + size_of::<StoredSeries>()
}
