//! The form of a line: JSON with members in a fixed order, without the two members that chain it.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use serde_json::json;
use tidegate_core::{CallOrigin, Principal};

use crate::record::{CallRecord, Record, RecordCaller, RecordKind, RecordedArguments, RefusedMessage};
use crate::redaction::truncate;

const WORD_BYTES_MAX: usize = 256;
const ROLES_MAX: usize = 32;

pub(crate) fn render_line(record: &mut Record, seq: u64) -> String {
    let mut line = JsonLine(Vec::new());
    line.push("time", DateTime::<Utc>::from(record.time).to_rfc3339_opts(SecondsFormat::Millis, true));
    line.push("seq", seq);
    match &mut record.kind {
        RecordKind::Opened { mended_bytes, missing_until } => {
            line.push("kind", "opened");
            line.push_some("mended_bytes", Some(*mended_bytes).filter(|bytes| *bytes > 0));
            line.push_some("missing_until", *missing_until);
        }
        RecordKind::Call(call) => line.push_call(call),
        RecordKind::RefusedCall { caller, target, outcome } => {
            line.push("kind", "refused_call");
            line.push_caller(caller);
            line.push_target(target);
            line.push("outcome", outcome);
        }
        RecordKind::RefusedMessage(RefusedMessage { principal, origin, reason, times }) => {
            line.push("kind", "refused_message");
            if let Some(principal) = principal {
                line.push_principal(principal);
            }
            line.push_origin(*origin);
            line.push("reason", reason);
            line.push_some("times", Some(*times).filter(|times| *times > 1));
        }
        RecordKind::Dropped(lines) => {
            line.push("kind", "dropped");
            line.push("dropped", lines);
        }
    }
    line.0.push(b'}');
    String::from_utf8(line.0).unwrap_or_default()
}

/// The JSON text of a line, without its last brace.
struct JsonLine(Vec<u8>);

impl JsonLine {
    fn push(&mut self, name: &str, value: impl Serialize) {
        self.0.extend_from_slice(if self.0.is_empty() { b"{\"" } else { b",\"" });
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
        // Serialization into memory cannot fail: all keys are text.
        let _ = serde_json::to_writer(&mut self.0, &value);
    }

    fn push_some(&mut self, name: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.push(name, value);
        }
    }

    fn push_call(&mut self, call: &mut CallRecord) {
        self.push("kind", "call");
        self.push_caller(&call.caller);
        self.push_target(&call.target);
        match &call.arguments {
            RecordedArguments::Names(names) => self.push("arguments", names),
            RecordedArguments::Values(values) => self.push("arguments", values),
        }
        let statements = std::mem::take(&mut call.statements).into_iter().map(|statement| {
            let tables: Vec<&str> = statement.tables.iter().map(|table| truncate_word(table)).collect();
            let database = truncate_word(&statement.database);
            json!({"database": database, "fingerprint": (statement.fingerprint)(), "tables": tables})
        });
        self.push("statements", statements.collect::<Vec<_>>());
        self.push("rows", call.rows);
        self.push("bytes", call.bytes);
        self.push_some("secrets", Some(call.secrets).filter(|secrets| *secrets > 0));
        self.push_some("missing_nodes", call.missing_nodes.as_ref());
        self.push("outcome", call.outcome);
        self.push("elapsed_ms", call.elapsed_ms);
        self.push("job", call.job.to_string());
    }

    fn push_caller(&mut self, caller: &RecordCaller) {
        self.push_principal(&caller.principal);
        self.push_origin(caller.origin);
    }

    fn push_origin(&mut self, origin: CallOrigin) {
        self.push("transport", origin.transport.name());
        self.push_some("address", origin.peer);
    }

    fn push_principal(&mut self, principal: &Principal) {
        let roles: Vec<&str> = principal.roles.iter().take(ROLES_MAX).map(|role| truncate_word(role)).collect();
        self.push("subject", truncate_word(&principal.subject));
        self.push_some("tenant", principal.tenant.as_deref().map(truncate_word));
        self.push("proof", principal.auth_method.name());
        self.push("roles", roles);
    }

    fn push_target(&mut self, (kind, name): &(&'static str, String)) {
        self.push("target", json!({"kind": kind, "name": name}));
    }
}

fn truncate_word(text: &str) -> &str {
    truncate(text, WORD_BYTES_MAX)
}
