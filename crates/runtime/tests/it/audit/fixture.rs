//! A minimal node whose calls are audited.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_core::{
    AuditedStatement, AuthMethod, CallOrigin, CallTarget, Caller, Error, ErrorKind, Grants, MissingNode, MissingNodes,
    Principal, TransportKind,
};
use tidegate_runtime::audit::{AuditLog, AuditOptions};
use tidegate_runtime::{
    Answer, Auditor, Call, Registry, ReplyPart, Snapshot, SnapshotBuilder, Tool, event::EventDispatcher, handler_fn,
};

/// A node and its log.
pub(crate) struct TestNode {
    pub(crate) registry: Arc<Registry>,
    pub(crate) log: Arc<AuditLog>,
}

/// A folder for a log.
pub(crate) struct LogFolder(tempfile::TempDir);

impl LogFolder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.path().join("audit.jsonl")
    }

    pub(crate) fn options(&self) -> AuditOptions {
        AuditOptions::new(self.file())
    }

    /// The files of the log, each with its number of lines.
    pub(crate) fn files(&self) -> String {
        let mut files: Vec<String> = std::fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                format!("{} {}", path.file_name().unwrap().to_string_lossy(), text(&path).lines().count())
            })
            .collect();
        files.sort();
        files.join("\n")
    }
}

impl TestNode {
    pub(crate) fn open(options: &AuditOptions) -> Self {
        Self::over(AuditLog::open(options).unwrap())
    }

    pub(crate) fn over(log: Arc<AuditLog>) -> Self {
        let events = EventDispatcher::default().with_auditor(log.clone());
        Self { registry: Registry::new(snapshot(), events), log }
    }

    pub(crate) async fn ask(&self, tool: &str, arguments: Value) -> String {
        let mut call = Call::new(CallTarget::Tool(tool.to_owned()), ann());
        call.arguments = arguments.as_object().unwrap().clone();
        let mut reply = match self.registry.call(call) {
            Ok(reply) => reply,
            Err(error) => return error.kind().name().to_owned(),
        };
        while let Some(part) = reply.next().await {
            if let ReplyPart::End(end) = part {
                return end.map_or_else(|error| error.kind().name(), |_| "done").to_owned();
            }
        }
        "nothing".to_owned()
    }

    /// Makes `calls` calls.
    pub(crate) async fn ask_often(&self, calls: usize) {
        for number in 0..calls {
            assert_eq!(self.ask("rows", json!({"number": number})).await, "done");
        }
    }

    pub(crate) async fn close(&self) {
        self.log.close(Duration::from_secs(60)).await;
    }

    /// Lines written, dropped, waiting.
    pub(crate) fn figures(&self) -> (u64, u64, u64) {
        let figures = self.log.stats();
        (figures.written, figures.dropped, figures.waiting)
    }
}

pub(crate) fn ann() -> Caller {
    let mut ann = Principal::new("ann", AuthMethod::Token, Arc::new(Grants::for_anonymous()));
    ann.tenant = Some("north".to_owned());
    ann.roles = ["reader", "writer"].map(str::to_owned).into();
    let peer = Some("10.0.0.7".parse::<IpAddr>().unwrap());
    Caller::new(Arc::new(ann), CallOrigin { transport: TransportKind::StreamableHttp, peer })
}

fn snapshot() -> Snapshot {
    let rows = handler_fn(|call| async move {
        call.record_statement(|| AuditedStatement {
            database: "shop".to_owned(),
            tables: vec!["orders".to_owned()],
            fingerprint: Box::new(|| "0123456789abcdef".to_owned()),
        });
        call.usage().count_rows(3);
        Ok(Answer::text("three"))
    });
    let fail = handler_fn(|_| async { Err(Error::new(ErrorKind::TooLarge, "the password is hunter2")) });
    let partial = handler_fn(|call| async move {
        let node =
            |name: &str| MissingNode { name: name.to_owned(), reason: "is away: hunter2".to_owned(), rows: None };
        call.record_missing_nodes(&MissingNodes { nodes: vec![node("oslo"), node("rome")], rows_total: None })?;
        Ok(Answer::content(vec![]))
    });
    let open = json!({"type": "object"});
    SnapshotBuilder::new()
        .tool(Tool::new("rows", "", rows).with_input_schema(open.clone()).unwrap())
        .tool(Tool::new("partial", "", partial).with_input_schema(open.clone()).unwrap())
        .tool(Tool::new("fail", "", fail).with_input_schema(open).unwrap())
        .build()
}

pub(crate) fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// The lines of a log, without what differs between runs.
pub(crate) fn visible_lines(path: &Path) -> String {
    let lines = text(path)
        .lines()
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            for name in ["time", "job", "prev", "hash", "elapsed_ms"] {
                if let Some(value) = line.get_mut(name) {
                    let length = value.as_str().map_or(0, str::len);
                    *value = if length > 0 { format!("<{length}>").into() } else { "<>".into() };
                }
            }
            line.to_string()
        })
        .collect::<Vec<_>>();
    lines.join("\n")
}

/// The number, kind and named member of each line.
pub(crate) fn member_of_each_line(path: &Path, member: &str) -> String {
    let lines = text(path)
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            let message = line.get(member).map_or_else(String::new, |value| format!(" {value}"));
            format!("{} {}{message}", line["seq"], line["kind"].as_str().unwrap())
        })
        .collect::<Vec<_>>();
    lines.join("\n")
}

/// Waits until `is_so`; the test runner bounds the time.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}
