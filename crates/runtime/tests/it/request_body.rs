//! Bodies of requests: the handler reads them while they arrive.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use tidegate_core::{Error, ErrorKind, Limits, WriteRows};
use tidegate_runtime::{Answer, Call, RequestBody, RequestBodyTypes, SnapshotBuilder, Tool, handler_fn};

use crate::host::{Host, pass_time, process_user, run_until_idle, tool_call};

const TYPES: RequestBodyTypes = RequestBodyTypes { media_types: &["text/plain"], codings: &["identity"] };

/// Reads the body and says what it was.
fn reading_tool() -> Tool {
    let handler = handler_fn(|call| async move {
        let Some(mut body) = call.job().take_request_body() else { return Ok(Answer::text("no body")) };
        assert!(call.job().take_request_body().is_none() && call.request().request_body.is_some());
        let mut pieces = 0;
        while body.next().await?.is_some() {
            pieces += 1;
        }
        assert!(body.next().await?.is_none());
        let text = format!("{pieces} pieces, {} bytes of {} in {:?}", body.bytes(), body.media_type(), body.coding());
        Ok(Answer::text(text))
    });
    Tool::new("read", "", handler).with_request_body(TYPES)
}

fn host() -> Host {
    Host::new(SnapshotBuilder::new().tool(reading_tool()).tool(Tool::new("plain", "", crate::host::text_handler("ok"))))
}

fn piece(bytes: usize) -> Result<Bytes, Error> {
    Ok(Bytes::from(vec![b'x'; bytes]))
}

fn call_with(tool: &str, bytes_max: u64, pieces: Vec<Result<Bytes, Error>>) -> Call {
    let mut call = tool_call(tool);
    call.request_body = Some(RequestBody::new("text/plain", Some("gzip".into()), bytes_max, stream::iter(pieces)));
    call
}

#[tokio::test(start_paused = true)]
async fn body_is_read_once_and_counted() {
    let host = host();
    let reply = host.begin(call_with("read", 10, vec![piece(4), piece(0), piece(6)]));
    let job = reply.job().clone();
    let answer = crate::host::reply_text(reply).await;
    assert_eq!(answer, "block 2 pieces, 10 bytes of text/plain in Some(\"gzip\")\ndone {}");
    assert_eq!(job.usage().bytes(), 10 + answer.len() as u64 - "block \ndone {}".len() as u64);
    assert_eq!(host.call_to_text(tool_call("read")).await, "block no body\ndone {}");
}

#[tokio::test(start_paused = true)]
async fn large_and_broken_bodies_fail() {
    let host = host();
    let large = host.call_to_text(call_with("read", 9, vec![piece(4), piece(6)])).await;
    assert_eq!(large, "failed too_large: the body is larger than 9 bytes");
    let broken = vec![piece(4), Err(Error::new(ErrorKind::InvalidArguments, "the body is incomplete"))];
    assert_eq!(
        host.call_to_text(call_with("read", 9, broken)).await,
        "failed invalid_arguments: the body is incomplete"
    );
    let refused = host.call_to_text(call_with("plain", 9, vec![])).await;
    assert_eq!(refused, "refused invalid_arguments: the tool \"plain\" takes no body, only arguments");
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_takes_rows_is_called_with_what_it_takes() {
    let append = Tool { name: "append_rows".to_owned(), ..reading_tool() };
    let host = Host::new(SnapshotBuilder::new().tool(append));
    let write = |entry, table| {
        let build = |target, caller, types: Option<RequestBodyTypes>| {
            assert_eq!(types, Some(TYPES));
            let body = RequestBody::new("text/plain", None, 10, stream::iter([piece(4)]));
            Ok(Call { request_body: Some(body), ..Call::new(target, caller) })
        };
        host.registry.write_rows(entry, table, process_user(), |error: Error| error.to_string(), build)
    };
    let table = Some(("plant", "sensors"));
    let reply = write(WriteRows::AppendRows, table).unwrap();
    let answer = crate::host::reply_text(reply).await;
    assert_eq!(answer, "block 1 pieces, 4 bytes of text/plain in None\ndone {}");
    let refused = write(WriteRows::ReplaceRows, table).err().unwrap();
    assert!(refused.starts_with("there is no table \"sensors\" of database \"plant\" that takes rows"), "{refused}");
    let refused = write(WriteRows::ReceiveOtlp, None).err().unwrap();
    assert!(refused.starts_with("there is no tool \"receive_otlp\""), "{refused}");
    let lines = host.recorder.lines();
    for entry in ["replace_rows", "receive_otlp"] {
        assert!(lines.contains(&format!("refused tool {entry}: not_found")), "{lines}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_read_ahead_of_the_handler() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = sent.clone();
    let pieces = stream::repeat_with(move || {
        counter.fetch_add(1, Ordering::SeqCst);
        piece(1024)
    });
    let handler = handler_fn(|call| async move {
        let mut body = call.job().take_request_body().unwrap();
        body.next().await?;
        call.cancelled().await;
        let error = body.next().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        Err(error)
    });
    let host = Host::new(SnapshotBuilder::new().tool(Tool::new("read", "", handler).with_request_body(TYPES)));
    let mut call = tool_call("read");
    call.request_body = Some(RequestBody::new("text/plain", None, u64::MAX, pieces));
    let reply = host.begin(call);
    run_until_idle().await;
    assert_eq!(sent.load(Ordering::SeqCst), 1);
    reply.job().cancel();
    assert_eq!(crate::host::reply_text(reply).await, "failed cancelled: the call was cancelled");
}

#[tokio::test(start_paused = true)]
async fn large_bodies_may_take_longer_and_slow_ones_end() {
    let limits = Limits { timeout: Duration::from_secs(2), ..Limits::default() };
    let host = Host::with_limits(limits, SnapshotBuilder::new().tool(reading_tool()));
    let slow = |bytes: usize| {
        let pieces = stream::iter(0..10).then(move |_| async move {
            pass_time(Duration::from_secs(1)).await;
            piece(bytes)
        });
        let mut call = tool_call("read");
        call.request_body = Some(RequestBody::new("text/plain", None, u64::MAX, pieces));
        call
    };
    let answer = host.call_to_text(slow(16 * 1024)).await;
    assert_eq!(answer, "block 10 pieces, 163840 bytes of text/plain in None\ndone {}");
    let answer = host.call_to_text(slow(1024)).await;
    assert!(answer.starts_with("failed timed_out: the call exceeded its time limit of 2.0 s"), "{answer}");
}
