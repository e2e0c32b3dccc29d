//! The recorder of a node's own metrics: samples of a day in memory, and longer in files if there is a folder.
//!
//! A series is a list of compressed chunks of 120 samples (20 minutes at ten seconds). With a folder, each full chunk
//! is appended to a file at once, and those that are not full when [`Recorder::flush`] is called. So the end of the
//! process without a flush loses at most the samples of the last chunk of each series.

mod chunk;
mod chunk_folder;

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use tidegate_core::{Error, ErrorKind};

use self::chunk::{ChunkEncoder, MILLISECOND_NS};
use super::answer::MetricAnswer;
use super::catalog::{CatalogBuilder, MetricSummary};
use super::evaluator::MetricEvaluator;
use super::exposition::Exposition;
use super::model::{Labels, MetricKind, Sample, TimeWindow};
use super::request::MetricQuery;
use super::selection::LabelSelection;

pub use self::chunk::{ChunkSamples, SampleChunk};
pub use self::chunk_folder::{ChunkFolder, ChunkFolderError, DamagedFile, FolderOptions, ReloadReport};

/// The store of a node's own samples, in memory and optionally in a folder.
#[derive(Debug)]
pub struct Recorder {
    store: SampleStore,
    folder: Option<ChunkFolder>,
}

/// What became of the samples of one scrape.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordedCounts {
    /// Samples that were stored.
    pub stored: u64,
    /// Samples that are not later than the latest one of their series.
    pub out_of_order: u64,
    /// Samples of further series than the store may have.
    pub too_many_series: u64,
}

impl Recorder {
    /// A recorder without a folder.
    pub fn in_memory(options: RecorderOptions) -> Self {
        Self { store: SampleStore::new(options), folder: None }
    }

    /// A recorder that appends to files in `path`, and begins with the samples in them, as far as its memory allows.
    ///
    /// # Errors
    /// If the folder cannot be created or read. Damaged files are no error: the report has what was lost.
    pub fn open(
        options: RecorderOptions,
        path: &Path,
        folder_options: FolderOptions,
    ) -> Result<(Self, ReloadReport), ChunkFolderError> {
        let mut store = SampleStore::new(options);
        let (folder, report) = ChunkFolder::open(path, folder_options, |metric, labels, chunk| {
            store.insert_chunk(metric, &labels, chunk);
        })?;
        Ok((Self { store, folder: Some(folder) }, report))
    }

    /// The samples in memory.
    pub fn store(&self) -> &SampleStore {
        &self.store
    }

    /// Adds a sample. Times are stored in whole milliseconds.
    ///
    /// # Errors
    /// If a full chunk cannot be written. The sample is in memory nevertheless.
    pub fn append(&mut self, metric: &str, labels: &Labels, sample: Sample) -> Result<AppendOutcome, ChunkFolderError> {
        let (outcome, sealed) = self.store.append(metric, labels, sample);
        if let (Some(chunk), Some(folder)) = (sealed, &mut self.folder) {
            folder.append(metric, labels, &chunk)?;
        }
        Ok(outcome)
    }

    /// Adds all samples of a scrape at `time_ns`, whatever times the text has, and remembers kinds and units.
    ///
    /// # Errors
    /// The first error of a file. All samples are in memory nevertheless.
    pub fn record(&mut self, exposition: &Exposition, time_ns: i64) -> Result<RecordedCounts, ChunkFolderError> {
        let mut counts = RecordedCounts::default();
        let mut failure = None;
        for sample in &exposition.samples {
            let family = exposition.families.family_of(&sample.name);
            let kind = exposition.families.kind_of(&sample.name);
            let unit = family.and_then(|family| family.unit.as_deref());
            let help = family.and_then(|family| family.help.as_deref());
            let recorded = Sample { time_ns, value: sample.value };
            match self.append(&sample.name, &sample.labels, recorded) {
                Ok(AppendOutcome::Stored) => counts.stored += 1,
                Ok(AppendOutcome::OutOfOrder) => counts.out_of_order += 1,
                Ok(AppendOutcome::TooManySeries) => counts.too_many_series += 1,
                Err(error) => {
                    counts.stored += 1;
                    failure.get_or_insert(error);
                }
            }
            self.store.describe(&sample.name, kind, unit, help);
        }
        failure.map_or(Ok(counts), Err)
    }

    /// Removes what is older than the options allow, in memory and in the folder.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn evict(&mut self, now_ns: i64) -> Result<(), ChunkFolderError> {
        self.store.evict(now_ns);
        self.folder.as_mut().map_or(Ok(()), |folder| folder.evict(now_ns))
    }

    /// Writes the chunks that are not full, and waits until all files are on the disk.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn flush(&mut self) -> Result<(), ChunkFolderError> {
        let Some(folder) = &mut self.folder else { return Ok(()) };
        for (metric, labels, chunk) in self.store.seal_all() {
            folder.append(&metric, &labels, &chunk)?;
        }
        folder.sync()
    }

    /// Calls `visit` for the samples of a window: for each series of the metric that fulfils the selection, possibly
    /// several times, first with samples from files and then with those in memory. Each sample is visited once, and
    /// those of a series are in order.
    ///
    /// # Errors
    /// If a file cannot be read, and the errors of `visit`. Damaged parts of files are skipped.
    pub fn read<E: From<ChunkFolderError>>(
        &self,
        metric: &str,
        selection: &LabelSelection,
        window: TimeWindow,
        mut visit: impl FnMut(&Labels, &mut dyn Iterator<Item = Sample>) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(folder) = self.folder.as_ref().filter(|_| self.store.begins_after(window.after_ns)) {
            folder.read(window, |name, labels, chunk| {
                if name != metric || !selection.accepts(&labels) {
                    return Ok(());
                }
                // What is in memory too is read from there.
                let until_ns = self.store.first_ns(name, &labels).unwrap_or(i64::MAX).min(window.before_ns);
                let part = TimeWindow::new(window.after_ns, until_ns);
                visit(&labels, &mut chunk.samples().filter(|sample| part.contains(sample.time_ns)))
            })?;
        }
        let mut series = self.store.select(Some(metric), selection);
        series.try_for_each(|series| visit(series.labels, &mut series.samples(window)))
    }

    /// The answer to a query over the recorded samples.
    ///
    /// # Errors
    /// If a file cannot be read, and the errors of [`MetricEvaluator`].
    pub fn evaluate(&self, query: MetricQuery) -> Result<MetricAnswer, Error> {
        let (metric, selection, window) = (query.metric.clone(), query.selection.clone(), query.read_window());
        let mut evaluator = MetricEvaluator::new(query);
        self.read(&metric, &selection, window, |labels, samples| -> Result<(), Error> {
            let Some(series) = evaluator.series(labels)? else { return Ok(()) };
            for sample in samples {
                evaluator.push(series, sample)?;
            }
            Ok(())
        })?;
        evaluator.finish()
    }
}

impl From<ChunkFolderError> for Error {
    /// The caller gets no path of the server.
    fn from(error: ChunkFolderError) -> Self {
        Self::new(ErrorKind::Unavailable, "the recorded metrics cannot be read").with_detail(error.to_string())
    }
}

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
    fn insert_chunk(&mut self, metric: &str, labels: &Labels, chunk: SampleChunk) {
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
    fn seal_all(&mut self) -> Vec<(String, Labels, SampleChunk)> {
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
    fn begins_after(&self, time_ns: i64) -> bool {
        let series = self.metrics.values().flat_map(|stored| stored.series.values());
        let first_ms = series.filter_map(StoredSeries::first_ms).min();
        first_ms.is_none_or(|first_ms| first_ms.saturating_mul(MILLISECOND_NS) > time_ns) || {
            self.complete_from_ms.saturating_mul(MILLISECOND_NS) > time_ns
        }
    }

    /// The time of the first sample of a series in memory.
    fn first_ns(&self, metric: &str, labels: &Labels) -> Option<i64> {
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
