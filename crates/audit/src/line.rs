//! The form of a line: JSON, its members always in the same order, without the two that chain it.

use std::net::IpAddr;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use serde_json::{Map, Value};
use tidegate_core::Principal;

use crate::record::{Arguments, CallRecord, Record, RefusedMessage, What, Who};
use crate::redaction::cut;

/// Bytes of a subject, tenant, role, database or table in one line.
const WORD_BYTES_MAX: usize = 256;
/// Roles in one line.
const ROLES_MAX: usize = 32;

#[derive(Default, Serialize)]
struct Line<'a> {
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
    target: Option<Target<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<WrittenArguments<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    statements: Option<Vec<Statement>>,
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
struct Target<'a> {
    kind: &'static str,
    name: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WrittenArguments<'a> {
    Names(&'a [String]),
    Values(&'a Map<String, Value>),
}

#[derive(Serialize)]
struct Statement {
    database: String,
    fingerprint: String,
    tables: Vec<String>,
}

/// The line number `seq`, an object of at least one member.
pub(crate) fn written(record: &mut Record, seq: u64) -> String {
    let time = DateTime::<Utc>::from(record.time).to_rfc3339_opts(SecondsFormat::Millis, true);
    let line = match &mut record.what {
        What::Opened { mended_bytes, missing_until } => Line {
            kind: "opened",
            mended_bytes: Some(*mended_bytes).filter(|bytes| *bytes > 0),
            missing_until: *missing_until,
            ..Line::default()
        },
        What::Call(call) => of_call(call),
        What::RefusedCall { who, target, outcome } => Line {
            target: Some(Target { kind: target.0, name: &target.1 }),
            outcome: Some(outcome),
            ..of("refused_call", who)
        },
        What::RefusedMessage(RefusedMessage { principal, transport, address, reason, times }) => Line {
            kind: "refused_message",
            transport: Some(transport.name()),
            address: *address,
            reason: Some(reason),
            times: Some(*times).filter(|times| *times > 1),
            ..principal.as_ref().map_or_else(Line::default, |principal| known(principal))
        },
        What::Dropped(lines) => Line { kind: "dropped", dropped: Some(*lines), ..Line::default() },
    };
    // Nothing in a line is without a form in JSON: all keys are text.
    serde_json::to_string(&Line { time, seq, ..line }).unwrap_or_else(|_| format!("{{\"seq\":{seq}}}"))
}

fn of_call(call: &mut CallRecord) -> Line<'_> {
    let statements = std::mem::take(&mut call.statements).into_iter();
    let statements = statements.map(|asked| Statement {
        database: word(&asked.database).to_owned(),
        fingerprint: (asked.fingerprint)(),
        tables: asked.tables.iter().map(|table| word(table).to_owned()).collect(),
    });
    Line {
        target: Some(Target { kind: call.target.0, name: &call.target.1 }),
        arguments: Some(match &call.arguments {
            Arguments::Names(names) => WrittenArguments::Names(names),
            Arguments::Values(values) => WrittenArguments::Values(values),
        }),
        statements: Some(statements.collect()),
        rows: Some(call.rows),
        bytes: Some(call.bytes),
        secrets: Some(call.secrets).filter(|secrets| *secrets > 0),
        outcome: Some(call.outcome),
        elapsed_ms: Some(call.elapsed_ms),
        job: Some(call.job.to_string()),
        ..of("call", &call.who)
    }
}

fn of<'a>(kind: &'static str, who: &'a Who) -> Line<'a> {
    Line { kind, transport: Some(who.transport.name()), address: who.address, ..known(&who.principal) }
}

fn known(principal: &Principal) -> Line<'_> {
    Line {
        subject: Some(word(&principal.subject)),
        tenant: principal.tenant.as_deref().map(word),
        proof: Some(principal.proof.name()),
        roles: Some(principal.roles.iter().take(ROLES_MAX).map(|role| word(role)).collect()),
        ..Line::default()
    }
}

fn word(text: &str) -> &str {
    cut(text, WORD_BYTES_MAX)
}
