//! Entries as JSON, in the form that `journalctl -o json` documents.

use std::fmt::Write as _;

use tidegate_log_formats::journal::{EntryHead, FieldValue, Id128};

/// Appends an entry with all its values to `json`. A value is a text, or a list of bytes if it is not printable; a field
/// with several values is a list of them.
pub(crate) fn write_json(seqnum_id: Id128, head: &EntryHead, values: &[FieldValue], json: &mut String) {
    let EntryHead { seqnum, realtime, monotonic, boot_id, xor_hash, .. } = head;
    let cursor = format!("s={seqnum_id};i={seqnum:x};b={boot_id};m={monotonic:x};t={realtime:x};x={xor_hash:x}");
    // Writing to a string does not fail.
    let _ = write!(
        json,
        r#"{{"__CURSOR":"{cursor}","__REALTIME_TIMESTAMP":"{realtime}","__MONOTONIC_TIMESTAMP":"{monotonic}","_BOOT_ID":"{boot_id}""#
    );
    for (index, value) in values.iter().enumerate() {
        let is_same_field = |other: &&FieldValue| other.name() == value.name();
        let is_written = value.name() == "_BOOT_ID" || values.iter().take(index).any(|other| is_same_field(&other));
        if is_written {
            continue;
        }
        json.push(',');
        write_text(value.name(), json);
        json.push(':');
        let mut same = values.iter().skip(index + 1).filter(is_same_field).peekable();
        if same.peek().is_none() {
            write_value(value.bytes(), json);
            continue;
        }
        json.push('[');
        write_value(value.bytes(), json);
        for other in same {
            json.push(',');
            write_value(other.bytes(), json);
        }
        json.push(']');
    }
    json.push('}');
}

fn write_value(bytes: &[u8], json: &mut String) {
    match std::str::from_utf8(bytes).ok().filter(|text| is_printable(text)) {
        Some(text) => write_text(text, json),
        None => {
            json.push('[');
            for (index, byte) in bytes.iter().enumerate() {
                let _ = write!(json, "{}{byte}", if index > 0 { "," } else { "" });
            }
            json.push(']');
        }
    }
}

fn is_printable(text: &str) -> bool {
    text.chars().all(|character| matches!(character, '\n' | '\t') || !character.is_control())
}

fn write_text(text: &str, json: &mut String) {
    json.push_str(&serde_json::Value::from(text).to_string());
}
