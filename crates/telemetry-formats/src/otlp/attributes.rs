//! Attributes and values as JSON text.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::messages::common::{AnyValue, KeyValue, Value};
use crate::error::{RecordError, cut_text};
use crate::limits::TelemetryLimits;
use crate::text::{write_double, write_string};

/// The longest key that a reason contains, in bytes.
const REPORTED_KEY_BYTES_MAX: usize = 100;

/// A set of attributes as an object, its keys sorted by their bytes.
pub(super) fn attributes_json(attributes: &[KeyValue], limits: &TelemetryLimits) -> Result<String, RecordError> {
    let mut output = String::new();
    write_members(&mut output, attributes, limits, 0)?;
    Ok(output)
}

/// Appends a set of attributes.
pub(super) fn write_attributes(
    output: &mut String,
    attributes: &[KeyValue],
    limits: &TelemetryLimits,
) -> Result<(), RecordError> {
    write_members(output, attributes, limits, 0)
}

/// A body as text: a string itself, other values as JSON. Nothing if there is no value.
pub(super) fn body_text(body: Option<AnyValue>, limits: &TelemetryLimits) -> Result<Option<String>, RecordError> {
    match body.and_then(|body| body.value) {
        None => Ok(None),
        Some(Value::Text(text)) => Ok(Some(text)),
        Some(Value::Bytes(bytes)) => Ok(Some(STANDARD.encode(bytes))),
        Some(value) => {
            let mut output = String::new();
            write_value(&mut output, Some(&value), limits, 0)?;
            Ok(Some(output))
        }
    }
}

fn write_members(
    output: &mut String,
    members: &[KeyValue],
    limits: &TelemetryLimits,
    depth: usize,
) -> Result<(), RecordError> {
    check_size(members.len(), limits)?;
    let mut sorted: Vec<&KeyValue> = members.iter().collect();
    sorted.sort_by(|one, other| one.key.cmp(&other.key));
    if let Some([twice, _]) = sorted.array_windows().find(|[one, next]| one.key == next.key) {
        let key = cut_text(&twice.key, REPORTED_KEY_BYTES_MAX);
        return RecordError::rejected(format!("the attribute {key:?} occurs twice"));
    }
    output.push('{');
    for (index, member) in sorted.into_iter().enumerate() {
        if index > 0 {
            output.push(',');
        }
        write_string(output, &member.key);
        output.push(':');
        write_value(output, member.value.as_ref().and_then(|value| value.value.as_ref()), limits, depth)?;
    }
    output.push('}');
    Ok(())
}

fn write_value(
    output: &mut String,
    value: Option<&Value>,
    limits: &TelemetryLimits,
    depth: usize,
) -> Result<(), RecordError> {
    match value {
        None => output.push_str("null"),
        Some(Value::Text(text)) => write_string(output, text),
        Some(Value::Boolean(value)) => output.push_str(if *value { "true" } else { "false" }),
        // Writing to a text does not fail.
        Some(Value::Integer(value)) => _ = write!(output, "{value}"),
        Some(Value::Double(value)) => write_double(output, *value),
        Some(Value::Bytes(bytes)) => write_string(output, &STANDARD.encode(bytes)),
        Some(Value::Array(array)) => {
            check_depth(depth, limits)?;
            check_size(array.values.len(), limits)?;
            output.push('[');
            for (index, item) in array.values.iter().enumerate() {
                if index > 0 {
                    output.push(',');
                }
                write_value(output, item.value.as_ref(), limits, depth + 1)?;
            }
            output.push(']');
        }
        Some(Value::Members(members)) => {
            check_depth(depth, limits)?;
            write_members(output, &members.values, limits, depth + 1)?;
        }
    }
    Ok(())
}

fn check_depth(depth: usize, limits: &TelemetryLimits) -> Result<(), RecordError> {
    let most = limits.nesting_max;
    if depth < most {
        return Ok(());
    }
    RecordError::rejected(format!("a value is nested more than {most} levels deep"))
}

fn check_size(size: usize, limits: &TelemetryLimits) -> Result<(), RecordError> {
    let most = limits.attributes_max;
    if size <= most {
        return Ok(());
    }
    RecordError::rejected(format!("it has a set of {size} attributes; at most {most} are accepted"))
}
