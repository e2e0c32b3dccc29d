//! The auditor of a node: how a log is opened and continued after its last complete line, and how lines are reserved and passed
//! to the writer.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::event::{Event, Subscriber};
use crate::{AuditReservation, AuditStats, Auditor, Job};
use async_trait::async_trait;
use tidegate_core::{ArgumentRedaction, CallOrigin, Error, ErrorKind, LimitLevel, LimitMeasure};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::audit::chain::{AuditOptions, ChainLink, WhenFull};
use crate::audit::line::{Record, RecordKind, RefusedMessage};
use crate::audit::sink::{self, AuditSink, FileSink, FileTail, LogHead, with_suffix};
use crate::audit::writer::{AuditLogWriter, WriterState};

/// Writes a line for each call and each refused message.
pub struct AuditLog {
    inbox: mpsc::Sender<Record>,
    when_full: WhenFull,
    redaction: Option<Arc<ArgumentRedaction>>,
    reserve_timeout: Duration,
    shared: Arc<WriterState>,
}

impl AuditLog {
    /// Opens the log in `options` and continues after its last line.
    ///
    /// # Errors
    /// When another process writes the log, its last line is invalid, or it cannot be written.
    pub fn open(options: &AuditOptions) -> Result<Arc<Self>, OpenError> {
        let OpenLog { sink, last, opened } = open_log(options)?;
        Self::start_writer(options, Box::new(sink), last, opened)
    }

    /// Checks whether the log in `options` can be opened, now or after its current writer ends. It changes neither the
    /// log nor its folder.
    ///
    /// # Errors
    /// As [`AuditLog::open`], except that another process may write the log.
    pub fn check_openable(options: &AuditOptions) -> Result<(), OpenError> {
        check_openable(options)
    }

    /// Starts a new log in `sink`. The file in `options` is ignored.
    ///
    /// # Errors
    /// When the writer thread cannot be started.
    pub fn with_sink(sink: Box<dyn AuditSink>, options: &AuditOptions) -> Result<Arc<Self>, OpenError> {
        let opened = RecordKind::Opened { mended_bytes: 0, missing_until: None };
        Self::start_writer(options, sink, ChainLink::genesis(), opened)
    }

    fn start_writer(
        options: &AuditOptions,
        sink: Box<dyn AuditSink>,
        last: ChainLink,
        opened: RecordKind,
    ) -> Result<Arc<Self>, OpenError> {
        let failed = |error| OpenError::Io { file: options.file.clone(), error };
        let (inbox, records) = mpsc::channel(options.queue_lines_max);
        let shared = Arc::<WriterState>::default();
        let writer = AuditLogWriter::new(sink, last, options, records, shared.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(failed)?;
        let thread = std::thread::Builder::new().name("tidegate-audit".to_owned());
        thread.spawn(move || runtime.block_on(writer.run())).map_err(failed)?;
        let log = Self {
            inbox,
            when_full: options.when_full,
            redaction: options.values.clone().map(Arc::new),
            reserve_timeout: options.reserve_timeout,
            shared,
        };
        log.try_record(Record::now(opened));
        Ok(Arc::new(log))
    }

    /// Accepts no more lines and waits until all reserved lines are on the disk, for `within` at most. Lines that
    /// cannot be written are lost; the process log reports their number.
    pub async fn close(&self, within: Duration) {
        self.shared.closing.cancel();
        if tokio::time::timeout(within, self.shared.closed.cancelled()).await.is_err() {
            tracing::error!("the audit log was not closed in time; its last lines may be lost");
        }
    }

    fn record_refusal(&self, message: RefusedMessage) {
        let own = self.shared.refusals.lock().record(message, Instant::now());
        own.into_iter().for_each(|message| self.try_record(Record::now(message.into())));
    }

    fn is_blocked(&self) -> bool {
        self.when_full == WhenFull::Block && *self.shared.is_failing.borrow()
    }

    /// Queues a record without a reservation. If the queue is full, the record is dropped and counted.
    fn try_record(&self, record: Record) {
        if self.inbox.try_send(record).is_err() {
            self.shared.drop_lines(1);
        }
    }

    async fn wait_for_room(&self) -> Result<mpsc::OwnedPermit<Record>, Error> {
        let mut is_stuck = self.shared.is_failing.subscribe();
        let room = async {
            // The sender is in `shared`, which outlives this future.
            let _ = is_stuck.wait_for(|is_stuck| !is_stuck).await;
            self.inbox.clone().reserve_owned().await
        };
        match tokio::time::timeout(self.reserve_timeout, room).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(Error::new(ErrorKind::Unavailable, "the server is shutting down")),
            Err(_) => {
                let message = "the audit log cannot be written; calls are refused until it can";
                Err(Error::new(ErrorKind::Unavailable, message).with_hint("Try again later."))
            }
        }
    }
}

#[async_trait]
impl Auditor for AuditLog {
    async fn reserve(&self) -> Result<Box<dyn AuditReservation>, Error> {
        let at_once = if self.is_blocked() { None } else { self.inbox.clone().try_reserve_owned().ok() };
        let permit = match (at_once, self.when_full) {
            (None, WhenFull::Block) => Some(self.wait_for_room().await?),
            (permit, _) => permit,
        };
        Ok(Box::new(ReservedLine { permit, redaction: self.redaction.clone(), shared: self.shared.clone() }))
    }

    fn record_unreserved(&self, job: &Job, outcome: &'static str) {
        self.try_record(Record::from_call(job, outcome, self.redaction.as_deref()));
    }

    fn stats(&self) -> AuditStats {
        AuditStats {
            written: self.shared.written.load(Ordering::Relaxed),
            dropped: self.shared.dropped.load(Ordering::Relaxed),
            waiting: (self.inbox.max_capacity() - self.inbox.capacity()) as u64,
            is_blocked: self.is_blocked(),
        }
    }
}

impl Subscriber for AuditLog {
    fn on_event(&self, event: Event<'_>) {
        match event {
            Event::CallRefused { caller, kind, name, outcome } => {
                self.try_record(Record::from_refused_call(caller, kind, name, outcome));
            }
            Event::MessageRefused { transport, peer, reason } => {
                self.record_refusal(RefusedMessage::new(CallOrigin { transport, peer }, reason));
            }
            // A tool's own limit is reached by a call, which gets a line of its own.
            Event::LimitReached { caller, level, measure: LimitMeasure::Requests } if level != LimitLevel::Tool => {
                self.record_refusal(RefusedMessage::rate_limited(caller, level));
            }
            // Admitted calls have reserved a line.
            _ => {}
        }
    }
}

/// A reserved line; without a permit if lines are dropped and the queue is full.
struct ReservedLine {
    permit: Option<mpsc::OwnedPermit<Record>>,
    redaction: Option<Arc<ArgumentRedaction>>,
    shared: Arc<WriterState>,
}

impl AuditReservation for ReservedLine {
    fn write(self: Box<Self>, job: &Job, outcome: &'static str) {
        match self.permit {
            Some(permit) => drop(permit.send(Record::from_call(job, outcome, self.redaction.as_deref()))),
            None => self.shared.drop_lines(1),
        }
    }
}

tidegate_core::impl_debug!(AuditLog { when_full });

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process writes the log.
    #[error("another process writes the audit log {}; give each its own file", .0.display())]
    Locked(PathBuf),
    /// The end of the log is invalid.
    #[error(
        "cannot append to the audit log {}: {reason}; move it and the files beside it away, and verify them",
        .file.display()
    )]
    NotAppendable {
        /// The log.
        file: PathBuf,
        /// What is wrong with its end.
        reason: String,
    },
    /// A file of the log cannot be read or written.
    #[error("the audit log {} cannot be used: {error}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
}

impl OpenError {
    fn from_io(file: &Path, error: io::Error) -> Self {
        let file = file.to_owned();
        match error.kind() {
            io::ErrorKind::InvalidData => Self::NotAppendable { file, reason: error.to_string() },
            _ => Self::Io { file, error },
        }
    }
}

struct OpenLog {
    pub(crate) sink: FileSink,
    pub(crate) last: ChainLink,
    pub(crate) opened: RecordKind,
}

/// Opens the log in `options`. An incomplete line at its end, as after a crash, is removed.
fn open_log(options: &AuditOptions) -> Result<OpenLog, OpenError> {
    let (path, key) = (&options.file, options.key.as_ref());
    let failed = |error: io::Error| OpenError::from_io(path, error);
    let lock = acquire_lock(options)?;
    let mut file = sink::open_file(path).map_err(failed)?;
    let FileTail { last, whole_bytes, torn_bytes } = sink::read_tail(&mut file, key).map_err(failed)?;
    if torn_bytes > 0 {
        file.set_len(whole_bytes).map_err(failed)?;
        tracing::warn!(file = %path.display(), bytes = torn_bytes, "an incomplete line at the end of the audit log was removed");
    }
    let last = match last {
        Some(last) => last,
        // The file is new, or nothing was written to it.
        None => match File::open(sink::rotated_path(path, 1)) {
            Ok(mut older) => sink::read_tail(&mut older, key).map_err(failed)?.last.unwrap_or_else(ChainLink::genesis),
            Err(_) => ChainLink::genesis(),
        },
    };
    let head = LogHead::read(path, key).map_err(failed)?;
    // Lines in the head that are not in the log were not rotated away; they are reported missing until they are.
    let first =
        head.as_ref().map(|head| head.first).or_else(|| sink::first_seq(sink::existing_files(path).first()?, key));
    let missing_until = head.map(|head| head.seq).filter(|seq| *seq > last.seq);
    if let Some(seq) = missing_until {
        let (file, last) = (path.display(), last.seq);
        tracing::error!(%file, last, missing_until = seq, "lines at the end of the audit log are missing");
    }
    let opened = RecordKind::Opened { mended_bytes: torn_bytes, missing_until };
    let sink = FileSink::new(
        path.clone(),
        options.kept_files,
        options.key.clone(),
        (file, whole_bytes),
        first.unwrap_or(1),
        lock,
    );
    Ok(OpenLog { sink, last, opened })
}

/// Checks whether the log in `options` can be opened, now or after its current writer ends. It leaves no file behind.
fn check_openable(options: &AuditOptions) -> Result<(), OpenError> {
    let (path, key) = (&options.file, options.key.as_ref());
    let failed = |error: io::Error| OpenError::from_io(path, error);
    let is_there = |opened: io::Result<File>| match opened {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    };
    is_there(OpenOptions::new().write(true).open(with_suffix(path, ".lock")))?;
    if let Some(mut file) = is_there(OpenOptions::new().read(true).append(true).open(path))? {
        sink::read_tail(&mut file, key).map_err(failed)?;
    }
    LogHead::read(path, key).map_err(failed)?;
    // The head is written as a new file each time. This test file has no name, or is unlinked at once.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    folder.metadata().map_err(failed)?;
    tempfile::tempfile_in(folder).map(drop).map_err(failed)
}

fn acquire_lock(options: &AuditOptions) -> Result<File, OpenError> {
    let path = with_suffix(&options.file, ".lock");
    let failed = |error| OpenError::Io { file: options.file.clone(), error };
    let lock =
        sink::open_private(OpenOptions::new().write(true).create(true).truncate(false), &path).map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked(options.file.clone())),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}
