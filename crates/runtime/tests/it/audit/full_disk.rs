//! Full and slow disks under both policies.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use serde_json::json;
use tidegate_core::TransportKind;
use tidegate_runtime::audit::{AuditLog, AuditOptions, AuditSink, ChainLink, VerifyOptions, WhenFull, verify};
use tidegate_runtime::event::{Event, Subscriber as _};

use super::fixture::{LogFolder, TestNode, member_of_each_line, until};

/// A disk that can be full or stalled.
#[derive(Clone, Default)]
struct FaultySink(Arc<SinkState>);

#[derive(Default)]
struct SinkState {
    lines: Mutex<Vec<u8>>,
    is_full: AtomicBool,
    attempts: AtomicUsize,
    is_held: Mutex<bool>,
    goes_on: Condvar,
}

impl AuditSink for FaultySink {
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut is_held = self.0.is_held.lock();
        self.0.attempts.fetch_add(1, Ordering::Relaxed);
        while *is_held {
            self.0.goes_on.wait(&mut is_held);
        }
        if self.0.is_full.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.lines.lock().extend_from_slice(lines);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.0.lines.lock().len() as u64
    }

    fn rotate(&mut self, _: &ChainLink) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync(&mut self, _: &ChainLink) -> io::Result<()> {
        Ok(())
    }
}

impl FaultySink {
    fn fill(&self, is_full: bool) {
        self.0.is_full.store(is_full, Ordering::Relaxed);
    }

    fn hold(&self, is_held: bool) {
        *self.0.is_held.lock() = is_held;
        self.0.goes_on.notify_all();
    }

    /// The lines as a file.
    fn in_file(&self) -> LogFolder {
        let place = LogFolder::new();
        std::fs::write(place.file(), &*self.0.lines.lock()).unwrap();
        place
    }
}

fn options(when_full: WhenFull) -> AuditOptions {
    // A call that waits when the disk has room again must be written in this time.
    let (wait_max, retry_after) = (Duration::from_secs(1), Duration::from_millis(5));
    AuditOptions {
        when_full,
        reserve_timeout: wait_max,
        retry_after,
        queue_lines_max: 8,
        ..AuditOptions::new("nowhere")
    }
}

fn scene(disk: &FaultySink, when_full: WhenFull) -> TestNode {
    TestNode::over(AuditLog::with_sink(Box::new(disk.clone()), &options(when_full)).unwrap())
}

#[tokio::test]
async fn block_mode_refuses_calls_on_full_disk_without_losing_lines() {
    let disk = FaultySink::default();
    let scene = scene(&disk, WhenFull::Block);
    scene.ask_often(2).await;
    until(|| scene.figures().0 == 3).await;
    disk.fill(true);
    // Writing its line reveals the failure.
    assert_eq!(scene.ask("rows", json!({})).await, "done");
    until(|| disk.0.attempts.load(Ordering::Relaxed) > 5).await;
    for _ in 0..3 {
        assert_eq!(scene.ask("rows", json!({})).await, "unavailable");
    }
    let waiting = async { scene.ask("rows", json!({})).await };
    let mended = async {
        tokio::task::yield_now().await;
        disk.fill(false);
    };
    assert_eq!(tokio::join!(waiting, mended).0, "done");
    scene.close().await;
    let place = disk.in_file();
    insta::assert_snapshot!(member_of_each_line(&place.file(), "outcome"), @r#"
    1 opened
    2 call "done"
    3 call "done"
    4 call "done"
    5 call "unavailable"
    6 call "unavailable"
    7 call "unavailable"
    8 call "done"
    "#);
    verify(&[place.file()], &VerifyOptions::default()).unwrap();
}

#[tokio::test]
async fn drop_mode_continues_and_records_the_dropped_count() {
    let disk = FaultySink::default();
    let scene = scene(&disk, WhenFull::Drop);
    scene.ask_often(2).await;
    until(|| scene.figures().0 == 3).await;
    disk.fill(true);
    scene.ask_often(50).await;
    until(|| scene.figures().1 == 50).await;
    disk.fill(false);
    until(|| scene.figures().0 == 4).await;
    scene.ask_often(1).await;
    scene.close().await;
    assert_eq!(scene.figures(), (5, 50, 0));
    let place = disk.in_file();
    insta::assert_snapshot!(member_of_each_line(&place.file(), "dropped"), @r"
    1 opened
    2 call
    3 call
    4 dropped 50
    5 call
    ");
    verify(&[place.file()], &VerifyOptions::default()).unwrap();
}

#[tokio::test]
async fn block_mode_delays_calls_on_slow_disk() {
    let disk = FaultySink::default();
    let scene = scene(&disk, WhenFull::Block);
    until(|| scene.figures().0 == 1).await;
    disk.hold(true);
    scene.ask_often(1).await;
    until(|| scene.figures().2 == 0).await;
    scene.ask_often(8).await;
    assert_eq!(scene.figures().2, 8);
    assert_eq!(scene.ask("rows", json!({})).await, "unavailable");
    disk.hold(false);
    until(|| scene.figures().2 == 0).await;
    scene.ask_often(1).await;
    scene.close().await;
    // The line of the refused call could not be written, which a later line reports.
    let (written, dropped, _) = scene.figures();
    assert_eq!((written, dropped), (12, 1));
    let place = disk.in_file();
    assert!(member_of_each_line(&place.file(), "dropped").contains("dropped 1"));
    verify(&[place.file()], &VerifyOptions::default()).unwrap();
}

#[tokio::test]
async fn drop_mode_drops_lines_on_slow_disk() {
    let disk = FaultySink::default();
    let scene = scene(&disk, WhenFull::Drop);
    until(|| scene.figures().0 == 1).await;
    disk.hold(true);
    scene.ask_often(1).await;
    until(|| scene.figures().2 == 0).await;
    scene.ask_often(20).await;
    assert_eq!(scene.figures(), (1, 12, 8));
    disk.hold(false);
    scene.close().await;
    let place = disk.in_file();
    assert!(member_of_each_line(&place.file(), "dropped").contains("dropped 12"));
    verify(&[place.file()], &VerifyOptions::default()).unwrap();
}

#[tokio::test]
async fn refused_calls_never_wait_for_the_log() {
    let disk = FaultySink::default();
    let scene = scene(&disk, WhenFull::Block);
    until(|| scene.figures().0 == 1).await;
    disk.hold(true);
    for number in 0..60 {
        let peer = Some([192, 0, 2, number].into());
        scene.log.on_event(Event::MessageRefused { transport: TransportKind::Sse, peer, reason: "no token" });
    }
    disk.hold(false);
    scene.close().await;
    let (written, dropped, waiting) = scene.figures();
    let reports_of_dropped = member_of_each_line(&disk.in_file().file(), "dropped").matches(" dropped ").count() as u64;
    assert_eq!((written + dropped, waiting), (61 + reports_of_dropped, 0));
}

#[tokio::test]
async fn close_returns_on_full_disk() {
    for when_full in [WhenFull::Block, WhenFull::Drop] {
        let disk = FaultySink::default();
        let scene = scene(&disk, when_full);
        until(|| scene.figures().0 == 1).await;
        disk.fill(true);
        scene.ask_often(1).await;
        scene.close().await;
        assert_eq!((scene.figures().0, scene.figures().1), (1, 1), "{when_full:?}");
    }
}

/// A real device that is always full.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn calls_are_refused_on_dev_full() {
    let place = LogFolder::new();
    std::os::unix::fs::symlink("/dev/full", place.file()).unwrap();
    let scene = TestNode::open(&AuditOptions { file: place.file(), ..options(WhenFull::Block) });
    until_stuck(&scene).await;
    assert_eq!(scene.ask("rows", json!({})).await, "unavailable");
    scene.close().await;
    assert_eq!(scene.figures().0, 0);
}

/// Makes calls until the log has detected that it cannot be written.
#[cfg(target_os = "linux")]
async fn until_stuck(scene: &TestNode) {
    while scene.ask("rows", json!({})).await != "unavailable" {}
}
