//! Rows that are sent: the body of a request is read by the handler of a call while it arrives.
//!
//! - `requests`: the call that results from each request, its answers, and refusals.
//! - `bodies`: bodies that are large, broken, slow or not wanted.

mod bodies;
mod requests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tidegate_core::{Error, ErrorKind, Violation};
use tidegate_runtime::event::{EventDispatcher, Subscriber};
use tidegate_runtime::{Answer, AnswerMeta, Job, RequestBodyTypes, SnapshotBuilder, Tool, WriteSummary, handler_fn};
use tidegate_testkit::host::Host;
use tidegate_transport::Metrics;
use tidegate_transport::http::HttpOptions;
use tokio_util::sync::CancellationToken;

use super::Server;

const TYPES: RequestBodyTypes =
    RequestBodyTypes { media_types: &["application/json", "text/csv"], codings: &["identity", "gzip"] };

/// A server whose tools read bodies.
struct DataServer {
    server: Server,
    /// The bytes of bodies that the handler has received to their end.
    stored: Arc<AtomicU64>,
    /// The largest piece of a body that the handler received.
    largest_piece: Arc<AtomicU64>,
    /// Lets the handler go on that writes to the table `held`, after its first piece.
    release: CancellationToken,
}

impl DataServer {
    async fn start() -> Self {
        Self::with(HttpOptions::default()).await
    }

    async fn with(options: HttpOptions) -> Self {
        let (stored, largest_piece, release) = (Arc::default(), Arc::default(), CancellationToken::new());
        let metrics = Arc::new(Metrics::new());
        let add = |builder: SnapshotBuilder| {
            let builder = builder.tool(writing_tool("append_rows", &stored, &largest_piece, &release));
            let builder = builder.tool(writing_tool("replace_rows", &stored, &largest_piece, &release));
            let builder = builder.tool(writing_tool("receive_otlp", &stored, &largest_piece, &release));
            builder.tool(Tool { request_body: None, ..writing_tool("drop_table", &stored, &largest_piece, &release) })
        };
        let host = Host::with_entries(EventDispatcher::new([metrics.clone() as Arc<dyn Subscriber>]), add);
        Self { server: Server::of(host, metrics, options).await, stored, largest_piece, release }
    }

    fn stored(&self) -> u64 {
        self.stored.load(Ordering::SeqCst)
    }
}

fn writing_tool(
    name: &'static str,
    stored: &Arc<AtomicU64>,
    largest_piece: &Arc<AtomicU64>,
    release: &CancellationToken,
) -> Tool {
    let state = (stored.clone(), largest_piece.clone(), release.clone());
    let handler = handler_fn(move |call| {
        let (stored, largest_piece, release) = state.clone();
        async move {
            let table = call.text_argument("table").unwrap_or_default().to_owned();
            fail_as_requested(&table)?;
            let body = read_body(call.job(), &table, &stored, &largest_piece, &release).await?;
            Ok(answer(name, body, &call))
        }
    });
    Tool::new(name, "Reads a body.", handler)
        .with_input_schema(json!({"type": "object"}))
        .unwrap()
        .with_request_body(TYPES)
}

fn fail_as_requested(table: &str) -> Result<(), Error> {
    match table {
        "running" => Err(Error::new(ErrorKind::Conflict, "a write with this key is running")),
        "full" => Err(Error::new(ErrorKind::Unavailable, "there is no room")),
        "absent" => Err(Error::new(ErrorKind::NotFound, "no such table").with_choices(["sensors".to_owned()])),
        "misfit" => {
            let violation =
                Violation { path: "line 3, column \"a\"".to_owned(), message: "it does not fit".to_owned() };
            Err(Error::invalid_arguments("1 row does not fit; nothing was stored:", vec![violation]))
        }
        _ => Ok(()),
    }
}

async fn read_body(
    job: &Arc<Job>,
    table: &str,
    stored: &AtomicU64,
    largest_piece: &AtomicU64,
    release: &CancellationToken,
) -> Result<Value, Error> {
    let Some(mut body) = job.take_request_body() else { return Ok(Value::Null) };
    let mut has_waited = false;
    while let Some(piece) = body.next().await? {
        largest_piece.fetch_max(piece.len() as u64, Ordering::SeqCst);
        if table == "held" && !has_waited {
            tokio::select! {
                () = release.cancelled() => {}
                () = job.cancelled() => {}
            }
            has_waited = true;
        }
    }
    stored.fetch_add(body.bytes(), Ordering::SeqCst);
    Ok(json!({"type": body.media_type(), "coding": body.coding(), "bytes": body.bytes()}))
}

fn answer(name: &str, body: Value, job: &Job) -> Answer {
    let answer = json!({"tool": name, "arguments": job.arguments(), "body": body});
    let is_created = job.arguments().get("table").is_some_and(|table| table == "new");
    let write = WriteSummary { rejected: 0, sequence: 7, is_created, repeated_rows: None };
    let meta = AnswerMeta { rows: Some(2), write: Some(Box::new(write)), ..AnswerMeta::default() };
    Answer::data(answer.to_string()).with_meta(meta)
}
