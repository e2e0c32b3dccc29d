//! Writes log lines on a thread of its own, so that no call waits for standard error.
//!
//! Lines wait in a bounded queue and are written together. If standard error is too slow, lines of level `info` and
//! below are dropped and counted; warnings and errors wait for room.
//!
//! `tracing-appender` 0.2 does not suffice: it bounds lines and not bytes, drops lines of all levels or of none, says
//! nowhere how many, and cannot write what is queued before the report of a panic.

use std::io::{self, Write};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// Further lines of level `info` and below are dropped.
const QUEUED_BYTES_MAX: usize = 1 << 20;
/// Further warnings and errors wait for room.
const URGENT_BYTES_MAX: usize = 2 * QUEUED_BYTES_MAX;
/// Lines of level `info` and below are collected for this time before they are written.
const COLLECT_TIME: Duration = Duration::from_millis(5);
/// The maximum time that the end of the process, or the report of a panic, waits for the log.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The queue of lines, as the writer of a subscriber.
#[derive(Clone)]
pub(crate) struct LogQueue(Arc<SharedQueue>);

#[derive(Default)]
struct SharedQueue {
    /// The thread that writes.
    thread: OnceLock<ThreadId>,
    state: Mutex<QueueState>,
    /// Notified when the thread has something to do.
    filled: Condvar,
    /// Notified when lines have been written.
    written: Condvar,
}

#[derive(Default)]
struct QueueState {
    lines: Vec<u8>,
    dropped_lines: u64,
    /// Whether the thread is between taking lines and having written them.
    is_writing: bool,
    is_urgent: bool,
    is_closed: bool,
}

impl QueueState {
    fn is_written(&self) -> bool {
        self.lines.is_empty() && !self.is_writing
    }
}

/// Keeps the thread running. Dropping it waits until the queued lines are written.
#[derive(Debug)]
pub(crate) struct ServerLogWriter {
    queue: LogQueue,
    thread: Option<JoinHandle<()>>,
}

impl ServerLogWriter {
    /// Starts a thread that writes to `output`.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(crate) fn start(output: impl Write + Send + 'static) -> io::Result<Self> {
        let queue = LogQueue(Arc::default());
        let shared = queue.0.clone();
        let thread = thread::Builder::new().name("log".to_owned()).spawn(move || shared.write_to(output))?;
        Ok(Self { queue, thread: Some(thread) })
    }

    pub(crate) fn queue(&self) -> &LogQueue {
        &self.queue
    }

    /// Writes the queued lines before the report of each panic.
    pub(crate) fn flush_at_panics(&self) {
        let (queue, report) = (self.queue.clone(), std::panic::take_hook());
        std::panic::set_hook(Box::new(move |panic| {
            queue.flush();
            report(panic);
        }));
    }
}

impl Drop for ServerLogWriter {
    fn drop(&mut self) {
        self.queue.0.state.lock().is_closed = true;
        self.queue.flush();
        let is_written = self.queue.0.state.lock().is_written();
        // A thread that is still writing cannot be interrupted, and ends with the process.
        if let Some(thread) = self.thread.take().filter(|_| is_written) {
            let _ = thread.join();
        }
    }
}

impl LogQueue {
    /// Waits until the lines of now are written, for a limited time.
    fn flush(&self) {
        let give_up_at = Instant::now() + FLUSH_TIMEOUT;
        let mut state = self.0.state.lock();
        state.is_urgent = true;
        self.0.filled.notify_one();
        while !state.is_written() && !self.0.written.wait_until(&mut state, give_up_at).timed_out() {}
    }

    fn push(&self, line: &[u8], is_urgent: bool) {
        let mut state = self.0.state.lock();
        if !is_urgent && state.lines.len() + line.len() > QUEUED_BYTES_MAX {
            state.dropped_lines += 1;
            return;
        }
        // The thread that makes room does not wait for it.
        while state.lines.len() > URGENT_BYTES_MAX && self.0.thread.get() != Some(&thread::current().id()) {
            self.0.written.wait(&mut state);
        }
        let is_first = state.lines.is_empty();
        state.lines.extend_from_slice(line);
        state.is_urgent |= is_urgent;
        if is_first || is_urgent {
            self.0.filled.notify_one();
        }
    }
}

tidegate_core::impl_debug!(LogQueue, "LogQueue");

impl SharedQueue {
    /// Runs until the queue is closed and empty.
    fn write_to(&self, mut output: impl Write) {
        self.thread.get_or_init(|| thread::current().id());
        let mut lines = Vec::new();
        while let Some(dropped_lines) = self.take(&mut lines) {
            // There is nowhere to report that standard error is closed.
            let _ = output.write_all(&lines).and_then(|()| output.flush());
            lines.clear();
            if dropped_lines > 0 {
                tracing::warn!(
                    dropped_lines,
                    "the log is written too slowly; lines of level info and below are missing"
                );
            }
            self.state.lock().is_writing = false;
            self.written.notify_all();
        }
    }

    /// Waits for lines, moves them to `lines`, and returns the number of lines dropped before. `None` at the end.
    fn take(&self, lines: &mut Vec<u8>) -> Option<u64> {
        let mut state = self.state.lock();
        while state.lines.is_empty() {
            if state.is_closed {
                return None;
            }
            state.is_urgent = false;
            self.filled.wait(&mut state);
        }
        self.collect(&mut state);
        std::mem::swap(&mut state.lines, lines);
        state.is_urgent = false;
        state.is_writing = true;
        Some(std::mem::take(&mut state.dropped_lines))
    }

    fn collect(&self, state: &mut MutexGuard<'_, QueueState>) {
        let until = Instant::now() + COLLECT_TIME;
        while !state.is_urgent && !state.is_closed && !self.filled.wait_until(state, until).timed_out() {}
    }
}

impl<'a> MakeWriter<'a> for LogQueue {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        LineWriter { queue: self, is_urgent: true }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Self::Writer {
        LineWriter { queue: self, is_urgent: *metadata.level() <= Level::WARN }
    }
}

/// Adds one line to the queue.
pub(crate) struct LineWriter<'a> {
    queue: &'a LogQueue,
    is_urgent: bool,
}

impl Write for LineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.queue.push(line, self.is_urgent);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// An output that writes only when the test permits it.
    struct GatedOutput {
        written: Arc<Mutex<Vec<u8>>>,
        permits: mpsc::Receiver<()>,
    }

    impl Write for GatedOutput {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Without a sender, writing is permitted forever.
            let _ = self.permits.recv();
            self.written.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gated() -> (ServerLogWriter, Arc<Mutex<Vec<u8>>>, mpsc::Sender<()>) {
        let (sender, permits) = mpsc::channel();
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let writer = ServerLogWriter::start(GatedOutput { written: written.clone(), permits }).unwrap();
        (writer, written, sender)
    }

    /// Drops `writer` and waits for its thread. A busy machine may need longer than the drop waits.
    fn drop_and_join(mut writer: ServerLogWriter) {
        let thread = writer.thread.take().unwrap();
        drop(writer);
        thread.join().unwrap();
    }

    #[test]
    fn dropping_writes_every_line_in_order() {
        let (writer, written, permits) = gated();
        drop(permits);
        for line in 0..1000 {
            writer.queue().push(format!("{line}\n").as_bytes(), line % 100 == 0);
        }
        drop_and_join(writer);
        let expected: String = (0..1000).map(|line| format!("{line}\n")).collect();
        assert_eq!(String::from_utf8(written.lock().clone()).unwrap(), expected);
    }

    #[test]
    fn blocked_output_stops_no_caller_and_loses_no_warning() {
        let (writer, written, permits) = gated();
        let line = [b'i'; 1024];
        writer.queue().push(&line, false);
        // From here on the thread takes nothing from the queue, nor does it report what is dropped.
        while !writer.queue().0.state.lock().is_writing {
            std::thread::yield_now();
        }
        for _ in 0..3 * QUEUED_BYTES_MAX / line.len() {
            writer.queue().push(&line, false);
        }
        writer.queue().push(b"w", true);
        assert!(writer.queue().0.state.lock().dropped_lines > 0);
        drop(permits);
        drop_and_join(writer);
        let written = written.lock();
        assert!(written.contains(&b'w'));
        assert!(written.len() <= QUEUED_BYTES_MAX + line.len() + 1);
    }

    #[test]
    fn warning_is_written_at_once() {
        let (writer, written, permits) = gated();
        drop(permits);
        writer.queue().push(b"warning\n", true);
        let mut state = writer.queue().0.state.lock();
        while !state.is_written() {
            writer.queue().0.written.wait(&mut state);
        }
        assert_eq!(*written.lock(), b"warning\n");
    }
}
