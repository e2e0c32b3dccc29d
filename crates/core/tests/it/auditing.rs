//! Nothing runs of which nothing can be written down.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;
use tidegate_core::event::{Event, Events, Subscriber};
use tidegate_core::{
    AuditFigures, AuditLine, AuditedStatement, Auditor, Error, ErrorKind, Job, Metadata, Registry, SnapshotBuilder,
    Tool, handler_fn,
};
use tokio::sync::Notify;

use crate::host::{call, settle, told, tool_call, tool_that_says};

/// Writes lines into memory.
#[derive(Default)]
struct Notes {
    lines: Arc<Mutex<Vec<String>>>,
    /// Told when there is room; without it there is room at once.
    room: Option<Arc<Notify>>,
    is_full: bool,
}

struct Line(Arc<Mutex<Vec<String>>>);

impl Subscriber for Notes {
    fn hear(&self, event: Event<'_>) {
        if let Event::CallRefused { name, outcome, .. } = event {
            self.lines.lock().push(format!("refused {name}: {outcome}"));
        }
    }
}

#[async_trait]
impl Auditor for Notes {
    async fn reserve(&self) -> Result<Box<dyn AuditLine>, Error> {
        if self.is_full {
            return Err(Error::new(ErrorKind::Unavailable, "the disk is full"));
        }
        if let Some(room) = &self.room {
            room.notified().await;
        }
        Ok(Box::new(Line(self.lines.clone())))
    }

    fn ended_without_room(&self, job: &Job, outcome: &'static str) {
        self.lines.lock().push(format!("without room {}: {outcome}", job.target().name()));
    }

    fn figures(&self) -> AuditFigures {
        AuditFigures::default()
    }
}

impl AuditLine for Line {
    fn write(self: Box<Self>, job: &Job, outcome: &'static str) {
        let statements = job.take_statements().into_iter();
        let statements: Vec<String> = statements
            .map(|asked| format!("{} {} {}", asked.database, (asked.fingerprint)(), asked.tables.join("+")))
            .collect();
        let (name, rows) = (job.target().name(), job.rows());
        self.0.lock().push(format!("{name}: {outcome}, {rows} rows, {statements:?}"));
    }
}

fn registry(notes: Notes, snapshot: SnapshotBuilder) -> (Arc<Registry>, Arc<Mutex<Vec<String>>>) {
    let (lines, notes) = (notes.lines.clone(), Arc::new(notes));
    (Registry::new(snapshot.build(), Events::default().audited_by(notes)), lines)
}

fn asking() -> Tool {
    let handler = handler_fn(|job, reply| async move {
        for number in 0..40 {
            job.asked(|| AuditedStatement {
                database: "shop".to_owned(),
                tables: vec!["orders".to_owned()],
                fingerprint: Box::new(move || format!("f{number}")),
            });
        }
        job.count_rows(2);
        reply.text("two").await?;
        Ok(Metadata::new())
    });
    Tool::new("ask", "", handler)
}

#[tokio::test]
async fn a_call_is_written_down_before_its_reader_sees_the_end() {
    let (registry, lines) = registry(Notes::default(), SnapshotBuilder::new().tool(asking()));
    told(registry.call(tool_call("ask")).unwrap()).await;
    let line = lines.lock().join("\n");
    assert!(line.starts_with(r#"ask: done, 2 rows, ["shop f0 orders", "#), "{line}");
    assert_eq!(line.matches("shop").count(), 32, "statements are bounded");
}

#[tokio::test]
async fn what_is_refused_is_heard_of() {
    let (registry, lines) = registry(Notes::default(), SnapshotBuilder::new());
    let error = registry.call(call(tidegate_core::Target::Tool("none".to_owned()))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(lines.lock().join("\n"), "refused none: not_found");
}

#[tokio::test(start_paused = true)]
async fn no_handler_runs_before_there_is_room() {
    let ran = Arc::new(AtomicUsize::new(0));
    let count = ran.clone();
    let tool = Tool::new(
        "count",
        "",
        handler_fn(move |_, _| {
            let count = count.clone();
            async move {
                count.fetch_add(1, Ordering::Relaxed);
                Ok(Metadata::new())
            }
        }),
    );
    let room = Arc::new(Notify::new());
    let notes = Notes { room: Some(room.clone()), ..Notes::default() };
    let (registry, lines) = registry(notes, SnapshotBuilder::new().tool(tool));
    let reply = registry.call(tool_call("count")).unwrap();
    settle().await;
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    room.notify_one();
    assert_eq!(told(reply).await, "done {}");
    assert_eq!((ran.load(Ordering::Relaxed), lines.lock().len()), (1, 1));

    let dropped = registry.call(tool_call("count")).unwrap();
    settle().await;
    drop(dropped);
    settle().await;
    assert_eq!(lines.lock().last().unwrap(), "without room count: cancelled");
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn without_room_a_call_is_refused_as_unavailable() {
    let notes = Notes { is_full: true, ..Notes::default() };
    let (registry, lines) = registry(notes, SnapshotBuilder::new().tool(tool_that_says("say", "a")));
    assert_eq!(told(registry.call(tool_call("say")).unwrap()).await, "failed unavailable: the disk is full");
    assert_eq!(lines.lock().join("\n"), "without room say: unavailable");
}

#[tokio::test]
async fn without_an_auditor_nothing_is_remembered() {
    let registry = Registry::new(SnapshotBuilder::new().tool(asking()).build(), Events::default());
    let reply = registry.call(tool_call("ask")).unwrap();
    let job = reply.job().clone();
    told(reply).await;
    assert!(!job.is_audited() && job.take_statements().is_empty());
}
