//! The names of what is known of an answer as members of `_meta`. No other code has these names.
//!
//! [MCP 2026-07-28, `_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic#meta)

use serde_json::{Map, Value};
use tidegate_core::Error;
use tidegate_runtime::AnswerMeta;

use crate::jsonrpc::ceil_milliseconds;

const PREFIX: &str = "dev.tidegate/";

/// The members of `_meta` for an answer.
pub(super) fn meta_members(metadata: &AnswerMeta) -> Map<String, Value> {
    let mode = metadata.was_buffered.map(|was_buffered| if was_buffered { "batch" } else { "streaming" });
    let elapsed_ms = metadata.elapsed.map(|elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
    let write = metadata.write.as_deref();
    let own = [
        ("mode", mode.map(Value::from)),
        ("rows", metadata.rows.map(Value::from)),
        ("bytes", metadata.bytes.map(Value::from)),
        ("elapsed_ms", elapsed_ms.map(Value::from)),
        ("truncated", metadata.is_truncated.map(Value::from)),
        ("cursor", metadata.cursor.as_deref().map(Value::from)),
        ("cached", metadata.is_cached.then_some(Value::Bool(true))),
        ("result", metadata.result_uri.as_deref().map(Value::from)),
        ("rejected", write.map(|write| Value::from(write.rejected))),
        ("sequence", write.map(|write| Value::from(write.sequence))),
        ("created", write.map(|write| Value::from(write.is_created))),
        ("repeated_rows", write.and_then(|write| write.repeated_rows).map(Value::from)),
    ];
    let mut members = metadata.other.clone();
    for (name, value) in own {
        members.extend(value.map(|value| (format!("{PREFIX}{name}"), value)));
    }
    if let Some(missing) = &metadata.missing_nodes {
        let missing = missing.to_json_members().into_iter();
        members.extend(missing.map(|(name, value)| (format!("{PREFIX}{name}"), value)));
    }
    members
}

/// The metadata of a call that failed before its handler ran: the time in milliseconds after which it can be repeated.
pub(super) fn failure_meta(error: &Error) -> AnswerMeta {
    let retry_after_ms = error.retry_after().map(|time| Value::from(ceil_milliseconds(time)));
    let other = retry_after_ms.map(|time| (format!("{PREFIX}retry_after_ms"), time)).into_iter().collect();
    AnswerMeta { other, ..AnswerMeta::default() }
}
