//! Exemplars as JSON text.

use std::fmt::Write;

use super::super::attributes::write_attributes;
use super::super::check_items;
use super::super::messages::metrics::Exemplar;
use super::super::source::describe;
use crate::error::RecordError;
use crate::limits::TelemetryLimits;
use crate::text::{nanoseconds, time_text, write_double};

/// Exemplars as an array of objects: `time`, `value`, `trace_id`, `span_id`, `filtered_attributes`.
pub(super) fn exemplars_json(exemplars: &[Exemplar], limits: &TelemetryLimits) -> Result<String, RecordError> {
    check_items("exemplars", exemplars.len(), limits)?;
    let mut output = String::from("[");
    for (index, exemplar) in exemplars.iter().enumerate() {
        if index > 0 {
            output.push(',');
        }
        write_exemplar(&mut output, exemplar, limits).map_err(|error| describe(&format!("exemplar {index}"), error))?;
    }
    output.push(']');
    Ok(output)
}

fn write_exemplar(output: &mut String, exemplar: &Exemplar, limits: &TelemetryLimits) -> Result<(), RecordError> {
    output.push('{');
    if let Some(time) = nanoseconds("time_unix_nano", exemplar.time_unix_nano)? {
        // Writing to a text does not fail.
        _ = write!(output, "\"time\":\"{}\",", time_text(time));
    }
    output.push_str("\"value\":");
    match (exemplar.as_double, exemplar.as_int) {
        (Some(value), None) => write_double(output, value),
        (None, Some(value)) => _ = write!(output, "{value}"),
        (None, None) => output.push_str("null"),
        (Some(_), Some(_)) => return RecordError::rejected("it has two values"),
    }
    for (name, identifier) in [("trace_id", &exemplar.trace_id), ("span_id", &exemplar.span_id)] {
        if !identifier.is_empty() {
            _ = write!(output, ",\"{name}\":\"{}\"", hex::encode(identifier));
        }
    }
    output.push_str(",\"filtered_attributes\":");
    write_attributes(output, &exemplar.filtered_attributes, limits)?;
    output.push('}');
    Ok(())
}
