//! The writer of a log: chains records and keeps the lines that cannot be written yet.
//!
//! Lines for refused messages are limited. Anyone can cause any number of them, so each network, and each principal
//! beyond its rate limit, gets one line a minute; further messages are counted into one more line at the end of the
//! minute.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_core::{AuthMethod, CallOrigin, Principal, TransportKind, quota_address};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::audit::chain::{AuditKey, AuditOptions, ChainLink, WhenFull, chain_line};
use crate::audit::line::{self, Record, RecordKind, RefusedMessage};
use crate::audit::sink::AuditSink;

const LINES_AT_ONCE: usize = 256;
const SYNC_AFTER: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct WriterState {
    pub(crate) written: AtomicU64,
    pub(crate) dropped: AtomicU64,
    unreported_drops: AtomicU64,
    pub(crate) is_failing: watch::Sender<bool>,
    pub(crate) refusals: Mutex<RefusalCounter>,
    pub(crate) closing: CancellationToken,
    pub(crate) closed: CancellationToken,
}

impl WriterState {
    pub(crate) fn drop_lines(&self, lines: u64) {
        self.dropped.fetch_add(lines, Ordering::Relaxed);
        self.unreported_drops.fetch_add(lines, Ordering::Relaxed);
    }
}

pub(crate) struct AuditLogWriter {
    sink: Box<dyn AuditSink>,
    last: ChainLink,
    /// Chained lines that are not written yet, each with its position.
    pending: VecDeque<(String, ChainLink)>,
    key: Option<AuditKey>,
    when_full: WhenFull,
    bytes_max: u64,
    retry_after: Duration,
    inbox: mpsc::Receiver<Record>,
    shared: Arc<WriterState>,
    unsynced_since: Option<Instant>,
    failing_since: Option<Instant>,
}

impl AuditLogWriter {
    pub(crate) fn new(
        sink: Box<dyn AuditSink>,
        last: ChainLink,
        options: &AuditOptions,
        inbox: mpsc::Receiver<Record>,
        shared: Arc<WriterState>,
    ) -> Self {
        Self {
            sink,
            last,
            pending: VecDeque::new(),
            key: options.key.clone(),
            when_full: options.when_full,
            bytes_max: options.bytes_max,
            retry_after: options.retry_after,
            inbox,
            shared,
            unsynced_since: None,
            failing_since: None,
        }
    }

    pub(crate) async fn run(mut self) {
        let closing = self.shared.closing.clone();
        let mut records = Vec::with_capacity(LINES_AT_ONCE);
        let mut is_over = false;
        while !is_over {
            let deadline = self.deadline();
            tokio::select! {
                biased;
                () = closing.cancelled(), if !self.inbox.is_closed() => self.inbox.close(),
                () = sleep_until(deadline) => self.run_due_work(),
                // While lines cannot be written, no more are taken from the queue, so callers wait.
                received = self.inbox.recv_many(&mut records, LINES_AT_ONCE), if self.pending.is_empty() => {
                    is_over = received == 0;
                    match is_over {
                        true => self.write_refusals(),
                        false => self.accept_records(&mut records),
                    }
                }
            }
            if self.inbox.is_closed() && !self.pending.is_empty() {
                // A node that shuts down does not wait for the disk.
                let lost = self.pending.len() + self.inbox.len();
                tracing::error!(lost, "lines of the audit log could not be written and are lost");
                self.shared.drop_lines(lost as u64);
                break;
            }
        }
        self.sync();
        let shared = self.shared.clone();
        // The log may be opened again as soon as `closed` fires.
        drop(self);
        shared.closed.cancel();
    }

    fn deadline(&self) -> Option<Instant> {
        let retry = self.failing_since.map(|since| since + self.retry_after);
        let sync = self.unsynced_since.map(|since| since + SYNC_AFTER);
        let refusals = self.shared.refusals.lock().due().filter(|_| self.pending.is_empty());
        retry.into_iter().chain(sync).chain(refusals).min()
    }

    fn run_due_work(&mut self) {
        let now = Instant::now();
        if self.failing_since.is_some_and(|since| now >= since + self.retry_after) {
            self.chain_dropped_count();
            self.write();
        }
        if self.pending.is_empty() && self.shared.refusals.lock().due().is_some_and(|due| now >= due) {
            self.write_refusals();
        }
        if self.unsynced_since.is_some_and(|since| now >= since + SYNC_AFTER) {
            self.sync();
        }
    }

    fn write_refusals(&mut self) {
        let mut records = self.shared.refusals.lock().drain();
        if !records.is_empty() {
            self.accept_records(&mut records);
        }
    }

    fn accept_records(&mut self, records: &mut Vec<Record>) {
        let is_waiting = self.failing_since.is_some_and(|since| since.elapsed() < self.retry_after);
        if is_waiting && self.when_full == WhenFull::Drop {
            self.shared.drop_lines(records.len() as u64);
            records.clear();
            return;
        }
        self.chain_dropped_count();
        for mut record in records.drain(..) {
            self.chain_record(&mut record);
        }
        self.write();
    }

    fn chain_dropped_count(&mut self) {
        let dropped = self.shared.unreported_drops.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            self.chain_record(&mut Record::now(RecordKind::Dropped(dropped)));
        }
    }

    fn chain_record(&mut self, record: &mut Record) {
        let before = self.pending.back().map_or(&self.last, |(_, link)| link);
        let text = line::render_line(record, before.seq + 1);
        let chained = chain_line(text, before, self.key.as_ref());
        self.pending.push_back(chained);
    }

    /// Writes the chained lines. After a failure they are kept or dropped, as configured.
    fn write(&mut self) {
        match self.write_pending() {
            Ok(()) => {
                if self.failing_since.take().is_some() {
                    tracing::info!("the audit log is written again");
                    self.shared.is_failing.send_replace(false);
                }
            }
            Err(error) => {
                if self.failing_since.replace(Instant::now()).is_none() {
                    tracing::error!(%error, "the audit log cannot be written");
                    self.shared.is_failing.send_replace(true);
                }
                if self.when_full == WhenFull::Drop {
                    self.drop_pending();
                }
            }
        }
    }

    fn write_pending(&mut self) -> io::Result<()> {
        while !self.pending.is_empty() {
            let room = self.bytes_max.saturating_sub(self.sink.bytes());
            let (mut lines, mut count) = (String::new(), 0);
            for (line, _) in &self.pending {
                if (lines.len() + line.len()) as u64 > room {
                    break;
                }
                lines.push_str(line);
                count += 1;
            }
            if count == 0 && self.sink.bytes() > 0 {
                self.sink.rotate(&self.last)?;
                continue;
            }
            // A line that exceeds the file limit gets a file of its own.
            let count = count.max(1);
            if lines.is_empty() {
                lines.push_str(&self.pending[0].0);
            }
            self.sink.append(lines.as_bytes())?;
            if let Some((_, last)) = self.pending.drain(..count).next_back() {
                self.last = last;
            }
            self.shared.written.fetch_add(count as u64, Ordering::Relaxed);
            self.unsynced_since.get_or_insert_with(Instant::now);
        }
        Ok(())
    }

    /// The chain continues after the last written line; drops that an unwritten line reported are counted again.
    fn drop_pending(&mut self) {
        let mut dropped = 0;
        for (line, _) in self.pending.drain(..) {
            match crate::audit::chain::dropped_count(&line) {
                Some(lines) => {
                    self.shared.unreported_drops.fetch_add(lines, Ordering::Relaxed);
                }
                None => dropped += 1,
            }
        }
        self.shared.drop_lines(dropped);
    }

    fn sync(&mut self) {
        if self.unsynced_since.take().is_none() {
            return;
        }
        if let Err(error) = self.sink.sync(&self.last) {
            tracing::error!(%error, "the audit log could not be synced to disk");
        }
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

const WINDOW: Duration = Duration::from_secs(60);
/// Networks and principals with counts of their own in that time; all others share one.
const SOURCES_MAX: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct RefusalCounter {
    since: Option<Instant>,
    /// Messages after the first one, by their source.
    repeated: HashMap<RefusedCaller, Option<RefusedMessage>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum RefusedCaller {
    Network(TransportKind, Option<IpAddr>),
    Principal { subject: String, tenant: Option<String> },
    Others,
}

impl RefusedCaller {
    fn from_message(message: &RefusedMessage) -> Self {
        match message.principal.as_deref().filter(|principal| principal.auth_method != AuthMethod::Anonymous) {
            Some(Principal { subject, tenant, .. }) => {
                Self::Principal { subject: subject.clone(), tenant: tenant.clone() }
            }
            None => Self::Network(message.origin.transport, message.origin.peer.map(quota_address)),
        }
    }
}

impl RefusalCounter {
    /// Counts a message; returns it if it gets a line of its own.
    pub(crate) fn record(&mut self, message: RefusedMessage, now: Instant) -> Option<RefusedMessage> {
        self.since.get_or_insert(now);
        let own = RefusedCaller::from_message(&message);
        let has_room = self.repeated.len() < SOURCES_MAX || self.repeated.contains_key(&own);
        let source = if has_room { own } else { RefusedCaller::Others };
        let Some(counted) = self.repeated.get_mut(&source) else {
            self.repeated.insert(source, None);
            return Some(message);
        };
        let times = counted.as_ref().map_or(0, |counted| counted.times) + message.times;
        *counted = Some(RefusedMessage { times, ..message });
        None
    }

    fn due(&self) -> Option<Instant> {
        self.since.map(|since| since + WINDOW)
    }

    /// Records of the counted messages. Each has the origin and reason of the last message of its source.
    fn drain(&mut self) -> Vec<Record> {
        self.since = None;
        let counted = self.repeated.drain().filter_map(|(source, counted)| {
            let counted = counted?;
            let counted = match source {
                RefusedCaller::Others => {
                    let origin = CallOrigin { peer: None, ..counted.origin };
                    RefusedMessage { principal: None, origin, ..counted }
                }
                _ => counted,
            };
            Some(Record::now(counted.into()))
        });
        counted.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::audit::line::RecordKind;

    fn message(address: impl Into<IpAddr>) -> RefusedMessage {
        let peer = Some(address.into());
        RefusedMessage::new(CallOrigin { transport: TransportKind::Rest, peer }, "unknown caller")
    }

    fn counts(records: Vec<Record>) -> Vec<(Option<IpAddr>, u64)> {
        let rendered = records.into_iter().map(|record| match record.kind {
            RecordKind::RefusedMessage(message) => (message.origin.peer, message.times),
            _ => unreachable!("only refused messages are counted"),
        });
        let mut rendered: Vec<_> = rendered.collect();
        rendered.sort();
        rendered
    }

    #[test]
    fn first_refusal_of_each_network_has_its_own_line() {
        let mut refusals = RefusalCounter::default();
        let now = Instant::now();
        let addresses = ["10.0.0.1", "10.0.0.2", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"];
        let first =
            addresses.map(|address| refusals.record(message(address.parse::<IpAddr>().unwrap()), now).is_some());
        assert_eq!(first, [true, true, true, false, true]);
        for _ in 0..9 {
            assert!(refusals.record(message([10, 0, 0, 1]), now).is_none());
        }
        assert_eq!(refusals.due(), Some(now + WINDOW));
        let expected = [("10.0.0.1", 9), ("2001:db8::2", 1)].map(|(address, times)| (address.parse().ok(), times));
        assert_eq!(counts(refusals.drain()), expected);
        assert!(refusals.due().is_none() && refusals.drain().is_empty());
        assert!(refusals.record(message([10, 0, 0, 1]), now).is_some());
    }

    #[test]
    fn refusals_of_many_networks_are_bounded() {
        let mut refusals = RefusalCounter::default();
        let now = Instant::now();
        let all: u32 = 10_000;
        let own = (0..all).filter_map(|number| refusals.record(message(Ipv4Addr::from_bits(number)), now)).count();
        assert_eq!(own, SOURCES_MAX + 1);
        assert_eq!(counts(refusals.drain()), [(None, u64::from(all) - own as u64)]);
    }
}
