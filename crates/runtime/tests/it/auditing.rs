//! Nothing runs of which nothing can be written down.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;
use tidegate_core::{AuditedStatement, Error, ErrorKind};
use tidegate_runtime::{
    Answer, AuditReservation, AuditStats, Auditor, Job, Registry, SnapshotBuilder, Tool,
    event::{Event, EventDispatcher, Subscriber},
    handler_fn,
};
use tokio::sync::Notify;

use crate::host::{call, reply_text, run_until_idle, tool_call, tool_with_text};

/// Writes lines into memory.
#[derive(Default)]
struct MemoryAuditor {
    lines: Arc<Mutex<Vec<String>>>,
    /// Fires when there is room; without it there is room at once.
    room: Option<Arc<Notify>>,
    is_full: bool,
}

struct MemoryReservation(Arc<Mutex<Vec<String>>>);

impl Subscriber for MemoryAuditor {
    fn on_event(&self, event: Event<'_>) {
        if let Event::CallRefused { name, outcome, .. } = event {
            self.lines.lock().push(format!("refused {name}: {outcome}"));
        }
    }
}

#[async_trait]
impl Auditor for MemoryAuditor {
    async fn reserve(&self) -> Result<Box<dyn AuditReservation>, Error> {
        if self.is_full {
            return Err(Error::new(ErrorKind::Unavailable, "the disk is full"));
        }
        if let Some(room) = &self.room {
            room.notified().await;
        }
        Ok(Box::new(MemoryReservation(self.lines.clone())))
    }

    fn record_unreserved(&self, job: &Job, outcome: &'static str) {
        self.lines.lock().push(format!("without room {}: {outcome}", job.target().name()));
    }

    fn stats(&self) -> AuditStats {
        AuditStats::default()
    }
}

impl AuditReservation for MemoryReservation {
    fn write(self: Box<Self>, job: &Job, outcome: &'static str) {
        let statements = job.take_statements().into_iter();
        let statements: Vec<String> = statements
            .map(|audited_statement| {
                format!(
                    "{} {} {}",
                    audited_statement.database,
                    (audited_statement.fingerprint)(),
                    audited_statement.tables.join("+")
                )
            })
            .collect();
        let (name, rows) = (job.target().name(), job.usage().rows());
        self.0.lock().push(format!("{name}: {outcome}, {rows} rows, {statements:?}"));
    }
}

fn registry(notes: MemoryAuditor, snapshot: SnapshotBuilder) -> (Arc<Registry>, Arc<Mutex<Vec<String>>>) {
    let (lines, notes) = (notes.lines.clone(), Arc::new(notes));
    (Registry::new(snapshot.build(), EventDispatcher::default().with_auditor(notes)), lines)
}

fn auditing_tool() -> Tool {
    let handler = handler_fn(|call| async move {
        for number in 0..40 {
            call.record_statement(|| {
                assert!(number < 32, "statements that are not recorded cost nothing");
                AuditedStatement {
                    database: "shop".to_owned(),
                    tables: vec!["orders".to_owned()],
                    fingerprint: Box::new(move || format!("f{number}")),
                }
            });
        }
        call.usage().count_rows(2);
        Ok(Answer::text("two"))
    });
    Tool::new("ask", "", handler)
}

#[tokio::test]
async fn record_is_written_before_reply_ends() {
    let (registry, lines) = registry(MemoryAuditor::default(), SnapshotBuilder::new().tool(auditing_tool()));
    reply_text(registry.call(tool_call("ask")).unwrap()).await;
    let line = lines.lock().join("\n");
    assert!(line.starts_with(r#"ask: done, 2 rows, ["shop f0 orders", "#), "{line}");
    assert_eq!(line.matches("shop").count(), 32, "statements are bounded");
}

#[tokio::test]
async fn rejected_call_is_recorded() {
    let (registry, lines) = registry(MemoryAuditor::default(), SnapshotBuilder::new());
    let error = registry.call(call(tidegate_core::CallTarget::Tool("none".to_owned()))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(lines.lock().join("\n"), "refused none: not_found");
}

#[tokio::test(start_paused = true)]
async fn handler_waits_for_audit_reservation() {
    let ran = Arc::new(AtomicUsize::new(0));
    let count = ran.clone();
    let tool = Tool::new(
        "count",
        "",
        handler_fn(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            async { Ok(Answer::content(vec![])) }
        }),
    );
    let room = Arc::new(Notify::new());
    let notes = MemoryAuditor { room: Some(room.clone()), ..MemoryAuditor::default() };
    let (registry, lines) = registry(notes, SnapshotBuilder::new().tool(tool));
    let reply = registry.call(tool_call("count")).unwrap();
    run_until_idle().await;
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    room.notify_one();
    assert_eq!(reply_text(reply).await, "done {}");
    assert_eq!((ran.load(Ordering::Relaxed), lines.lock().len()), (1, 1));

    let dropped = registry.call(tool_call("count")).unwrap();
    run_until_idle().await;
    drop(dropped);
    run_until_idle().await;
    assert_eq!(lines.lock().last().unwrap(), "without room count: cancelled");
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn call_without_reservation_is_unavailable() {
    let notes = MemoryAuditor { is_full: true, ..MemoryAuditor::default() };
    let (registry, lines) = registry(notes, SnapshotBuilder::new().tool(tool_with_text("say", "a")));
    assert_eq!(reply_text(registry.call(tool_call("say")).unwrap()).await, "failed unavailable: the disk is full");
    assert_eq!(lines.lock().join("\n"), "without room say: unavailable");
}

#[tokio::test]
async fn without_auditor_no_statements_are_recorded() {
    let registry = Registry::new(SnapshotBuilder::new().tool(auditing_tool()).build(), EventDispatcher::default());
    let reply = registry.call(tool_call("ask")).unwrap();
    let job = reply.job().clone();
    reply_text(reply).await;
    assert!(job.take_statements().is_empty());
}
