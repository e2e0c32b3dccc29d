//! A server whose results depend on their id, and requests to it.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use serde_json::json;
use tidegate_core::{Budget, Error, ErrorKind, Format, MissingNode, MissingNodes, UriTemplate};
use tidegate_runtime::{
    Answer, AnswerMeta, BodyFile, BodyMetadata, BodyVersion, Job, ReplySender, ResourceTemplate, SnapshotBuilder,
    event::{EventDispatcher, Subscriber},
    handler_fn,
};
use tidegate_transport::Metrics;
use tidegate_transport::http::HttpOptions;
use tokio_util::sync::CancellationToken;

use super::super::Server;
use super::super::wire;
use tidegate_testkit::host::Host;

/// A complete result: its rows are [`ROWS`] in any format.
pub(super) const COMPLETE: &str = "0a1b2c3d-1111-4222-8333-444455556666";
/// A result that is still being written: the remaining rows are available when the test releases them.
pub(super) const RUNNING: &str = "11111111-1111-4222-8333-444455556666";
/// A result that fails within its rows when the test releases them.
pub(super) const BREAKING: &str = "22222222-1111-4222-8333-444455556666";
/// A result that fails after its last row when the test releases them.
pub(super) const DAMAGED: &str = "33333333-1111-4222-8333-444455556666";
/// A result that declares one byte more than it has.
pub(super) const SHORT: &str = "44444444-1111-4222-8333-444455556666";
/// A result that fails before its first byte.
pub(super) const FAILING: &str = "55555555-1111-4222-8333-444455556666";
/// A result without an end.
pub(super) const ENDLESS: &str = "66666666-1111-4222-8333-444455556666";
/// A result without rows.
pub(super) const EMPTY: &str = "77777777-1111-4222-8333-444455556666";
/// A result that returns its request.
pub(super) const REQUESTED: &str = "88888888-1111-4222-8333-444455556666";
/// A stored file: [`ROWS`] unchanged.
pub(super) const FILE: &str = "aaaaaaaa-1111-4222-8333-444455556666";
/// A complete result without the rows of a node.
pub(super) const PARTIAL: &str = "bbbbbbbb-1111-4222-8333-444455556666";
/// A result that does not exist.
pub(super) const ABSENT: &str = "99999999-1111-4222-8333-444455556666";

/// The rows of a result, as text; larger than one write.
pub(super) static ROWS: LazyLock<Bytes> =
    LazyLock::new(|| (0..40_000).map(|n| format!("{n},row {n}\n")).collect::<String>().into());
/// The size of the pieces in bytes.
pub(super) const PIECE_BYTES: usize = 60_000;

pub(super) async fn start() -> Server {
    with(HttpOptions::default()).await
}

pub(super) async fn with(options: HttpOptions) -> Server {
    with_subscriber(options, None).await
}

/// A server whose events `subscriber` receives too.
pub(super) async fn with_subscriber(options: HttpOptions, subscriber: Option<Arc<dyn Subscriber>>) -> Server {
    let metrics = Arc::new(Metrics::new());
    let events = EventDispatcher::new([metrics.clone() as Arc<dyn Subscriber>].into_iter().chain(subscriber));
    let cancellation_token = CancellationToken::new();
    let mut host = Host::with_entries(events, |entries| with_results(entries, &cancellation_token));
    host.release = cancellation_token;
    Server::of(host, metrics, options).await
}

fn with_results(entries: SnapshotBuilder, cancellation_token: &CancellationToken) -> SnapshotBuilder {
    let results = ["tidegate://results/{id}", "tidegate://results/{id}/blocks/{n}", "tidegate://results/{id}/data"];
    results.into_iter().fold(entries, |entries, template| {
        let cancellation_token = cancellation_token.clone();
        let handler = handler_fn(move |_| {
            let cancellation_token = cancellation_token.clone();
            async move { Ok(Answer::written(move |reply| answer(reply, cancellation_token))) }
        });
        entries.template(ResourceTemplate::new(UriTemplate::parse(template).unwrap(), "result", handler))
    })
}

/// The request, as JSON.
fn requested(job: &Job) -> String {
    let mut requested = json!({
        "uri": job.target().name(),
        "arguments": job.arguments(),
        "format": job.format().map(Format::name),
        "subject": job.principal().subject,
        "transport": job.caller().origin.transport.name(),
        "peer": job.caller().origin.peer,
    });
    if job.caller().is_link_only {
        requested["by_link"] = true.into();
    }
    requested.to_string()
}

async fn answer(reply: ReplySender, cancellation_token: CancellationToken) -> Result<AnswerMeta, Error> {
    let job = reply.job();
    let uri = job.target().name();
    let is_manifest = !uri.ends_with("/data") && !uri.contains("/blocks/");
    let id = job.variable("id").unwrap();
    if id == PARTIAL {
        let node = MissingNode { name: "oslo".to_owned(), reason: "is away".to_owned(), rows: None };
        job.record_missing_nodes(&MissingNodes { nodes: vec![node], rows_total: None })?;
    }
    match id {
        REQUESTED if is_manifest => reply.send_text(requested(job)).await?,
        REQUESTED => {
            reply.begin_body(head(job, None)).await?;
            reply.send_bytes(requested(job).into()).await?;
        }
        COMPLETE | PARTIAL if is_manifest => {
            reply.send_text("{\"id\":").await?;
            reply.send_text("1}").await?;
        }
        COMPLETE | PARTIAL => {
            reply.begin_body(head(job, Some(ROWS.len()))).await?;
            write(&reply, &ROWS).await?;
        }
        FILE if is_manifest => reply.send_text("{}").await?,
        FILE => {
            let body_version = Some(BodyVersion { tag: "tag-file".to_owned(), bytes: Some(ROWS.len() as u64) });
            let file = BodyFile { name: "Größe.html".to_owned(), media_type: Some("text/html".to_owned()) };
            let media_type = "application/octet-stream";
            reply
                .begin_body(BodyMetadata {
                    media_type,
                    budget: Budget::default(),
                    version: body_version,
                    file: Some(file),
                })
                .await?;
            write(&reply, &ROWS).await?;
        }
        EMPTY => reply.begin_body(head(job, Some(0))).await?,
        SHORT => {
            reply.begin_body(head(job, Some(ROWS.len() + 1))).await?;
            write(&reply, &ROWS).await?;
        }
        RUNNING | BREAKING => {
            reply.begin_body(head(job, None)).await?;
            reply.send_bytes(ROWS.slice(..PIECE_BYTES)).await?;
            cancellation_token.cancelled().await;
            if id == BREAKING {
                return Err(Error::new(ErrorKind::Unavailable, "gone"));
            }
            write(&reply, &ROWS.slice(PIECE_BYTES..)).await?;
        }
        DAMAGED => {
            reply.begin_body(head(job, Some(ROWS.len()))).await?;
            write(&reply, &ROWS).await?;
            cancellation_token.cancelled().await;
            return Err(Error::internal("a checksum is wrong"));
        }
        FAILING => return Err(Error::new(ErrorKind::Unavailable, "the result is incomplete: it has 5 rows")),
        ENDLESS => {
            reply.begin_body(head(job, None)).await?;
            loop {
                write(&reply, &ROWS).await?;
            }
        }
        _ => return Err(Error::new(ErrorKind::NotFound, format!("there is no resource {uri:?}"))),
    }
    Ok(AnswerMeta { rows: Some(40_000), ..AnswerMeta::default() })
}

async fn write(reply: &ReplySender, rows: &Bytes) -> Result<(), Error> {
    for from in (0..rows.len()).step_by(PIECE_BYTES) {
        reply.send_bytes(rows.slice(from..rows.len().min(from + PIECE_BYTES))).await?;
    }
    Ok(())
}

/// The head of a body with `bytes` bytes, whose length is known in the stored format; `None` if it is not complete.
fn head(job: &Job, bytes: Option<usize>) -> BodyMetadata {
    let format = job.format().unwrap();
    let body_version = bytes.map(|bytes| BodyVersion {
        tag: format!("tag-{}", format.name()),
        bytes: (format == Format::Arrow).then_some(bytes as u64),
    });
    BodyMetadata { media_type: format.media_type(), budget: Budget::default(), version: body_version, file: None }
}

/// A request without a body. `ID` in the path is the complete result.
pub(super) fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    wire::request(method, &path.replace("ID", COMPLETE), headers, b"")
}

pub(super) fn get(path: &str) -> Vec<u8> {
    request("GET", path, &[])
}

/// The rows of the result `id`.
pub(super) fn data(id: &str) -> String {
    format!("/results/{id}/data")
}

impl Server {
    /// One request on its own connection.
    pub(super) async fn download(&self, request: &[u8]) -> wire::Answer {
        self.connect().await.ask(request).await
    }
}

/// `name: value` of each of the existing headers, one per line.
pub(super) fn fields(head: &wire::Head, names: &[&str]) -> String {
    names.iter().filter_map(|name| Some(format!("{name}: {}\n", head.header(name)?))).collect()
}
