//! Tools that write rows, over tables in memory.
//!
//! - `memory_target`: those tables.
//! - `formats`: the same rows in every format and coding, and large bodies.
//! - `rejects`: rows that do not fit, and bodies that are refused.
//! - `access`: who may write where, and what others learn.
//! - `writes`: keys, replacing, dropping, creating, stamps, limits, failures.
//! - `over_mcp`: rows in an argument.
//! - `node_memory`: the memory that bodies draw on.

mod access;
mod formats;
mod memory_target;
mod node_memory;
mod over_mcp;
mod rejects;
mod writes;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, stream};
use serde_json::{Map, Value, json};
use tidegate_core::{
    AllowedNames, AuthMethod, CallOrigin, CallTarget, Caller, Error, Format, Grants, Principal, TransportKind,
};
use tidegate_query::WriteTarget;
use tidegate_runtime::{Call, Registry, ReplyPart, RequestBody, SnapshotBuilder, event::EventDispatcher};
use tidegate_tools::{IngestToolOptions, register_ingest_tools};

use self::memory_target::MemoryTarget;

const NDJSON: &str = "application/x-ndjson";
const BODY_BYTES_MAX: u64 = 1 << 30;

/// A registry with the tools for these tables.
fn registry(targets: &[&Arc<MemoryTarget>]) -> Arc<Registry> {
    registry_with(targets, IngestToolOptions::default())
}

fn registry_with(targets: &[&Arc<MemoryTarget>], options: IngestToolOptions) -> Arc<Registry> {
    let targets = targets.iter().map(|target| Arc::clone(target) as Arc<dyn WriteTarget>).collect();
    let builder = register_ingest_tools(SnapshotBuilder::new(), targets, options, &AllowedNames::Everything);
    Registry::new(builder.build(), EventDispatcher::default())
}

/// A device that may write to the tables that match.
fn device(ingest: &[&str]) -> Principal {
    let ingest = AllowedNames::matching(ingest.iter().copied());
    Principal::new("sensor-1", AuthMethod::Key, Arc::new(Grants { ingest, ..Grants::everything() }))
}

fn over_rest(principal: Principal) -> Caller {
    let peer = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    Caller::new(Arc::new(principal), CallOrigin { transport: TransportKind::Rest, peer })
}

/// A call over REST, with a body.
fn rest_call(principal: &Principal, tool: &str, arguments: Value, media_type: &str, body: impl Into<Bytes>) -> Call {
    let body: Bytes = body.into();
    // Pieces end anywhere.
    let pieces: Vec<Bytes> = body.chunks(1_000).map(|piece| body.slice_ref(piece)).collect();
    rest_call_of(principal, tool, arguments, media_type, None, stream::iter(pieces.into_iter().map(Ok)))
}

fn rest_call_of(
    principal: &Principal,
    tool: &str,
    arguments: Value,
    media_type: &str,
    coding: Option<&str>,
    pieces: impl Stream<Item = Result<Bytes, Error>> + Send + 'static,
) -> Call {
    let mut call = Call::new(CallTarget::Tool(tool.to_owned()), over_rest(principal.clone()));
    call.arguments = json!({"database": "plant", "table": "sensors"}).as_object().unwrap().clone();
    call.arguments.extend(arguments.as_object().cloned().unwrap_or_default());
    call.format = Some(Format::Json);
    call.request_body = Some(RequestBody::new(media_type, coding.map(str::to_owned), BODY_BYTES_MAX, pieces));
    call
}

/// The JSON of an answer, or the error as text.
async fn answer(registry: &Arc<Registry>, call: Call) -> Result<Value, String> {
    let text = |error: &Error| format!("{}: {error}", error.kind().name());
    let mut reply = registry.call(call).map_err(|error| text(&error))?;
    let mut bytes = Vec::new();
    while let Some(part) = reply.next().await {
        match part {
            ReplyPart::Bytes(piece) => bytes.extend_from_slice(&piece),
            ReplyPart::Text(piece) => bytes.extend_from_slice(piece.as_bytes()),
            ReplyPart::End(Ok(_)) => return Ok(serde_json::from_slice(&bytes).unwrap()),
            ReplyPart::End(Err(error)) => return Err(text(&error)),
            _ => {}
        }
    }
    panic!("the reply had no end")
}

/// Appends rows as NDJSON, as a device that may write everywhere.
async fn append(registry: &Arc<Registry>, body: &str, arguments: Value) -> Result<Value, String> {
    let body = body.to_owned();
    answer(registry, rest_call(&device(&["*"]), "append_rows", arguments, NDJSON, body)).await
}

/// The numbers of an answer: rows, rejected rows, whether the table was created, whether the write was a repeat.
fn counts(answer: &Value) -> (u64, u64, bool, bool) {
    let number = |name: &str| answer[name].as_u64().unwrap();
    let flag = |name: &str| answer[name].as_bool().unwrap();
    (number("rows"), number("rejected"), flag("created"), flag("repeated"))
}

fn no_arguments() -> Value {
    Value::Object(Map::new())
}
