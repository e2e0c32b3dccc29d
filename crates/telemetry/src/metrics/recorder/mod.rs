//! The recorder of a node's own metrics: samples of a day in memory, and longer in files if there is a folder.
//!
//! A series is a list of compressed chunks of 120 samples (20 minutes at ten seconds). With a folder, each full chunk
//! is appended to a file at once, and those that are not full when [`Recorder::flush`] is called. So the end of the
//! process without a flush loses at most the samples of the last chunk of each series.

mod bits;
mod chunk;
mod chunk_folder;
mod record;
mod store;

use std::path::Path;

use tidegate_core::{Error, ErrorKind};

use super::answer::MetricAnswer;
use super::evaluator::MetricEvaluator;
use super::exposition::Exposition;
use super::model::{Labels, Sample, TimeWindow};
use super::request::MetricQuery;
use super::selection::LabelSelection;

pub use chunk::{ChunkSamples, SampleChunk};
pub use chunk_folder::{ChunkFolder, ChunkFolderError, DamagedFile, FolderOptions, ReloadReport};
pub use store::{AppendOutcome, RecorderOptions, SampleStore, StoredSeriesView};

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
