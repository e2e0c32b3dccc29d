//! The form of a line: JSON with members in a fixed order, without the two members that chain it.

use std::net::IpAddr;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use serde_json::{Map, Value};
use tidegate_core::Principal;

use crate::record::{CallRecord, Record, RecordCaller, RecordKind, RecordedArguments, RefusedMessage};
use crate::redaction::truncate;

/// Bytes of a subject, tenant, role, database or table in a line at most.
const WORD_BYTES_MAX: usize = 256;
/// Roles in a line at most.
const ROLES_MAX: usize = 32;

#[derive(Default, Serialize)]
struct JsonLine<'a> {
    time: String,
    seq: u64,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    roles: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<LineTarget<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<LineArguments<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    statements: Option<Vec<LineStatement>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secrets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elapsed_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mended_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_until: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped: Option<u64>,
}

#[derive(Serialize)]
struct LineTarget<'a> {
    kind: &'static str,
    name: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum LineArguments<'a> {
    Names(&'a [String]),
    Values(&'a Map<String, Value>),
}

#[derive(Serialize)]
struct LineStatement {
    database: String,
    fingerprint: String,
    tables: Vec<String>,
}

/// Renders `record` as line number `seq`, an object with at least one member.
pub(crate) fn render_line(record: &mut Record, seq: u64) -> String {
    let time = DateTime::<Utc>::from(record.time).to_rfc3339_opts(SecondsFormat::Millis, true);
    let line = match &mut record.kind {
        RecordKind::Opened { mended_bytes, missing_until } => JsonLine {
            kind: "opened",
            mended_bytes: Some(*mended_bytes).filter(|bytes| *bytes > 0),
            missing_until: *missing_until,
            ..JsonLine::default()
        },
        RecordKind::Call(call) => call_line(call),
        RecordKind::RefusedCall { caller: subject, target, outcome } => JsonLine {
            target: Some(LineTarget { kind: target.0, name: &target.1 }),
            outcome: Some(outcome),
            ..caller_line("refused_call", subject)
        },
        RecordKind::RefusedMessage(RefusedMessage { principal, transport, address, reason, times }) => JsonLine {
            kind: "refused_message",
            transport: Some(transport.name()),
            address: *address,
            reason: Some(reason),
            times: Some(*times).filter(|times| *times > 1),
            ..principal.as_ref().map_or_else(JsonLine::default, |principal| principal_line(principal))
        },
        RecordKind::Dropped(lines) => JsonLine { kind: "dropped", dropped: Some(*lines), ..JsonLine::default() },
    };
    // Serialization cannot fail: all keys are text.
    serde_json::to_string(&JsonLine { time, seq, ..line }).unwrap_or_else(|_| format!("{{\"seq\":{seq}}}"))
}

fn call_line(call: &mut CallRecord) -> JsonLine<'_> {
    let statements = std::mem::take(&mut call.statements).into_iter();
    let statements = statements.map(|audited_statement| LineStatement {
        database: truncate_word(&audited_statement.database).to_owned(),
        fingerprint: (audited_statement.fingerprint)(),
        tables: audited_statement.tables.iter().map(|table| truncate_word(table).to_owned()).collect(),
    });
    JsonLine {
        target: Some(LineTarget { kind: call.target.0, name: &call.target.1 }),
        arguments: Some(match &call.arguments {
            RecordedArguments::Names(names) => LineArguments::Names(names),
            RecordedArguments::Values(values) => LineArguments::Values(values),
        }),
        statements: Some(statements.collect()),
        rows: Some(call.rows),
        bytes: Some(call.bytes),
        secrets: Some(call.secrets).filter(|secrets| *secrets > 0),
        outcome: Some(call.outcome),
        elapsed_ms: Some(call.elapsed_ms),
        job: Some(call.job.to_string()),
        ..caller_line("call", &call.caller)
    }
}

fn caller_line<'a>(kind: &'static str, caller: &'a RecordCaller) -> JsonLine<'a> {
    JsonLine {
        kind,
        transport: Some(caller.transport.name()),
        address: caller.address,
        ..principal_line(&caller.principal)
    }
}

fn principal_line(principal: &Principal) -> JsonLine<'_> {
    JsonLine {
        subject: Some(truncate_word(&principal.subject)),
        tenant: principal.tenant.as_deref().map(truncate_word),
        proof: Some(principal.auth_method.name()),
        roles: Some(principal.roles.iter().take(ROLES_MAX).map(|role| truncate_word(role)).collect()),
        ..JsonLine::default()
    }
}

fn truncate_word(text: &str) -> &str {
    truncate(text, WORD_BYTES_MAX)
}
