//! The auditor of a node: gives room for lines and hands them to the one who writes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use tidegate_core::event::{Event, Subscriber};
use tidegate_core::{AuditFigures, AuditLine, Auditor, Error, ErrorKind, Job, Level, Measure};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::chain::Link;
use crate::opening::{self, OpenError};
use crate::options::{AuditOptions, WhenFull};
use crate::record::{Record, RefusedMessage, What};
use crate::redaction::Redaction;
use crate::sink::Sink;
use crate::writer::{Shared, Writer};

/// Writes a line for each call, and for what is refused.
pub struct AuditLog {
    inbox: mpsc::Sender<Record>,
    when_full: WhenFull,
    values: Option<Arc<Redaction>>,
    wait_max: Duration,
    shared: Arc<Shared>,
}

impl AuditLog {
    /// Opens the log that `options` name, and goes on after its last line.
    ///
    /// # Errors
    /// When another process writes it, its last line is not one that this log can go on from, or it cannot be written.
    pub fn open(options: &AuditOptions) -> Result<Arc<Self>, OpenError> {
        let opening::OpenLog { sink, last, opened } = opening::open(options)?;
        Self::begin(options, Box::new(sink), last, opened)
    }

    /// Looks whether the log that `options` name could be opened, now or as soon as nobody else writes it; it is left
    /// as it is, and so is its folder.
    ///
    /// # Errors
    /// Those of [`AuditLog::open`], without that another process writes it.
    pub fn look(options: &AuditOptions) -> Result<(), OpenError> {
        opening::look(options)
    }

    /// A log that begins anew in `sink`; the options say all but where it is.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn over(sink: Box<dyn Sink>, options: &AuditOptions) -> Result<Arc<Self>, OpenError> {
        let opened = What::Opened { mended_bytes: 0, missing_until: None };
        Self::begin(options, sink, Link::nothing(), opened)
    }

    fn begin(options: &AuditOptions, sink: Box<dyn Sink>, last: Link, opened: What) -> Result<Arc<Self>, OpenError> {
        let failed = |error| OpenError::Io { file: options.file.clone(), error };
        let (inbox, records) = mpsc::channel(options.waiting_max);
        let shared = Shared::new();
        let writer = Writer::new(sink, last, options, records, shared.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(failed)?;
        let thread = std::thread::Builder::new().name("tidegate-audit".to_owned());
        thread.spawn(move || runtime.block_on(writer.run())).map_err(failed)?;
        let log = Self {
            inbox,
            when_full: options.when_full,
            values: options.values.clone().map(Arc::new),
            wait_max: options.wait_max,
            shared,
        };
        log.tell(Record::now(opened));
        Ok(Arc::new(log))
    }

    /// Takes no more lines and waits until those are on the disk for which there was room, or for `within`. Lines that
    /// cannot be written then are lost, and the log of the process says how many.
    pub async fn close(&self, within: Duration) {
        self.shared.closing.cancel();
        if tokio::time::timeout(within, self.shared.closed.cancelled()).await.is_err() {
            tracing::error!("the audit log was not closed in time; its last lines may be lost");
        }
    }

    fn refused(&self, message: RefusedMessage) {
        let own = self.shared.refusals.lock().hear(message, Instant::now());
        own.into_iter().for_each(|message| self.tell(Record::now(message.into())));
    }

    fn is_blocked(&self) -> bool {
        self.when_full == WhenFull::Block && *self.shared.is_stuck.borrow()
    }

    /// Hands on what nobody waits for: without room it is dropped, and counted.
    fn tell(&self, record: Record) {
        if self.inbox.try_send(record).is_err() {
            self.shared.drop_lines(1);
        }
    }

    async fn room_in_time(&self) -> Result<mpsc::OwnedPermit<Record>, Error> {
        let mut is_stuck = self.shared.is_stuck.subscribe();
        let room = async {
            // The sender is in `shared`, which outlives this.
            let _ = is_stuck.wait_for(|is_stuck| !is_stuck).await;
            self.inbox.clone().reserve_owned().await
        };
        match tokio::time::timeout(self.wait_max, room).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(Error::new(ErrorKind::Unavailable, "the server is shutting down")),
            Err(_) => {
                let message = "the server cannot write down what is called, and answers nothing until it can";
                Err(Error::new(ErrorKind::Unavailable, message).with_hint("Try again later."))
            }
        }
    }
}

#[async_trait]
impl Auditor for AuditLog {
    async fn reserve(&self) -> Result<Box<dyn AuditLine>, Error> {
        let at_once = if self.is_blocked() { None } else { self.inbox.clone().try_reserve_owned().ok() };
        let permit = match (at_once, self.when_full) {
            (None, WhenFull::Block) => Some(self.room_in_time().await?),
            (permit, _) => permit,
        };
        Ok(Box::new(Room { permit, values: self.values.clone(), shared: self.shared.clone() }))
    }

    fn ended_without_room(&self, job: &Job, outcome: &'static str) {
        self.tell(Record::of_call(job, outcome, self.values.as_deref()));
    }

    fn figures(&self) -> AuditFigures {
        AuditFigures {
            written: self.shared.written.load(Ordering::Relaxed),
            dropped: self.shared.dropped.load(Ordering::Relaxed),
            waiting: (self.inbox.max_capacity() - self.inbox.capacity()) as u64,
            is_blocked: self.is_blocked(),
        }
    }
}

impl Subscriber for AuditLog {
    fn hear(&self, event: Event<'_>) {
        match event {
            Event::CallRefused { caller, kind, name, outcome } => {
                self.tell(Record::of_refused_call(caller, kind, name, outcome));
            }
            Event::MessageRefused { transport, peer, reason } => {
                self.refused(RefusedMessage::new(transport, peer, reason));
            }
            // That of a tool is reached by a call, which is refused with a line of its own.
            Event::LimitReached { caller, level, measure: Measure::Requests } if level != Level::Tool => {
                self.refused(RefusedMessage::too_many(caller, level));
            }
            // Calls that pass the door have room of their own.
            _ => {}
        }
    }
}

/// Room for one line; none where lines are dropped and there is none.
struct Room {
    permit: Option<mpsc::OwnedPermit<Record>>,
    values: Option<Arc<Redaction>>,
    shared: Arc<Shared>,
}

impl AuditLine for Room {
    fn write(self: Box<Self>, job: &Job, outcome: &'static str) {
        match self.permit {
            Some(permit) => drop(permit.send(Record::of_call(job, outcome, self.values.as_deref()))),
            None => self.shared.drop_lines(1),
        }
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog").field("when_full", &self.when_full).finish_non_exhaustive()
    }
}
