//! Records the metrics of the server itself, for the metric source `node`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, RwLock};
use tidegate_telemetry::metrics::exposition::Exposition;
use tidegate_telemetry::metrics::recorder::{FolderOptions, Recorder, RecorderOptions};
use tokio_util::sync::CancellationToken;

use crate::node::Node;

/// The time between two recordings.
const RECORDING_INTERVAL: Duration = Duration::from_secs(10);
/// After so many recordings, what is too old is removed.
const RECORDINGS_PER_EVICTION: u32 = 6;

/// How the metrics of the server are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RecordingOptions {
    /// `None` keeps them in memory.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) keep: Option<Duration>,
}

/// A recorder with the options that it was opened with.
pub(crate) type RunningRecorder = (RecordingOptions, Arc<RwLock<Recorder>>);

/// The recorder of the running configuration. It stays while its options stay.
#[derive(Debug, Default)]
pub(crate) struct MetricRecording(Mutex<Option<RunningRecorder>>);

impl MetricRecording {
    /// The recorder with `options`: the running one, or a new one that is not used for recording yet.
    pub(crate) fn prepare(&self, options: &RecordingOptions) -> Result<Arc<RwLock<Recorder>>, String> {
        if let Some((running, recorder)) = &*self.0.lock()
            && running == options
        {
            return Ok(recorder.clone());
        }
        Ok(Arc::new(RwLock::new(open_recorder(options)?)))
    }

    /// Records with `recorder` from now on; `None` ends the recording. What the previous one holds is written.
    pub(crate) fn enter(&self, recorder: Option<RunningRecorder>) {
        let previous = std::mem::replace(&mut *self.0.lock(), recorder);
        let current = self.0.lock().as_ref().map(|(_, recorder)| recorder.clone());
        if let Some((_, previous)) = previous
            && !current.is_some_and(|current| Arc::ptr_eq(&current, &previous))
        {
            flush(&previous);
        }
    }

    /// Writes what is not on the disk yet.
    pub(crate) fn flush(&self) {
        if let Some((_, recorder)) = &*self.0.lock() {
            flush(recorder);
        }
    }

    fn current(&self) -> Option<Arc<RwLock<Recorder>>> {
        self.0.lock().as_ref().map(|(_, recorder)| recorder.clone())
    }
}

fn flush(recorder: &RwLock<Recorder>) {
    if let Err(error) = recorder.write().flush() {
        tracing::error!("the recorded metrics cannot be written: {error}");
    }
}

fn open_recorder(options: &RecordingOptions) -> Result<Recorder, String> {
    let nanos = |keep: Duration| u64::try_from(keep.as_nanos()).unwrap_or(u64::MAX);
    let mut memory = RecorderOptions::default();
    let Some(folder) = &options.folder else {
        memory.age_ns_max = options.keep.map_or(memory.age_ns_max, nanos);
        return Ok(Recorder::in_memory(memory));
    };
    let mut files = FolderOptions::default();
    files.age_ns_max = options.keep.map_or(files.age_ns_max, nanos);
    let (recorder, report) = Recorder::open(memory, folder, files).map_err(|error| error.to_string())?;
    for damaged in report.damaged {
        let (path, bytes) = (damaged.path.display(), damaged.lost_bytes);
        tracing::warn!("{path}: {bytes} bytes of recorded metrics are lost: {}", damaged.reason);
    }
    Ok(recorder)
}

/// Records until `ended` fires. Files are written on another thread.
pub(crate) fn spawn_recording(node: Arc<Node>, recording: Arc<MetricRecording>, ended: CancellationToken) {
    tokio::spawn(async move {
        let mut interval = tokio::time::interval(RECORDING_INTERVAL);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let mut recordings = 0_u32;
        while ended.run_until_cancelled(interval.tick()).await.is_some() {
            let Some(recorder) = recording.current() else { continue };
            recordings = recordings.wrapping_add(1);
            let text = node.metrics().render(node.registry());
            let evicts = recordings.is_multiple_of(RECORDINGS_PER_EVICTION);
            let recorded = tokio::task::spawn_blocking(move || record(&recorder, &text, evicts)).await;
            if let Ok(Err(error)) = recorded {
                tracing::warn!("the metrics of the server cannot be recorded: {error}");
            }
        }
    });
}

fn record(recorder: &RwLock<Recorder>, text: &str, evicts: bool) -> Result<(), String> {
    let exposition = Exposition::parse(text).map_err(|error| error.to_string())?;
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX);
    let mut recorder = recorder.write();
    recorder.record(&exposition, now).map_err(|error| error.to_string())?;
    if evicts { recorder.evict(now).map_err(|error| error.to_string()) } else { Ok(()) }
}
