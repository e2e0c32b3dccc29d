//! Spans as rows of `otel_traces`.

use std::borrow::Cow;
use std::fmt::Write;

use super::messages::{Event, ExportTraceServiceRequest, Link, Span};
use super::scope::{RecordCounter, ResourceColumns, ScopeColumns, attributes_json, describe, share, write_attributes};
use super::{OtlpEncoding, SPAN_ID_BYTES, TRACE_ID_BYTES, check_items, decode_message, enumeration};
use crate::formats::error::{FormatError, RecordError};
use crate::formats::limits::TelemetryLimits;
use crate::formats::tables::{Cell, RowBudget, TableBatches, TableRows, TelemetryTable};
use crate::formats::text::{identifier, nanoseconds, time_text, write_string};

/// The names of `SpanKind`, by their numbers.
const KINDS: &[&str] = &["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"];
/// The names of `StatusCode`, by their numbers.
const STATUS_CODES: &[&str] = &["UNSET", "OK", "ERROR"];

/// The rows of an `ExportTraceServiceRequest`, the body of `/v1/traces`.
///
/// # Errors
/// `Malformed` if the body is not such a message; `TooLarge` and `OutOfMemory` if it exceeds `limits`.
pub fn decode_traces(
    body: &[u8],
    encoding: OtlpEncoding,
    limits: &TelemetryLimits,
) -> Result<TableBatches, FormatError> {
    let request: ExportTraceServiceRequest =
        decode_message(body, encoding, ExportTraceServiceRequest::shape(), limits)?;
    let mut counter = RecordCounter::new(limits);
    let mut table = TableRows::new(TelemetryTable::Traces);
    for (resource_index, spans) in request.resource_spans.into_iter().enumerate() {
        let resource = share(ResourceColumns::new(spans.resource.as_ref(), &spans.schema_url, limits))?;
        for (scope_index, scope) in spans.scope_spans.into_iter().enumerate() {
            let source = match &resource {
                Ok(resource) => share(ScopeColumns::new(resource, scope.scope.as_ref(), &scope.schema_url, limits))?,
                Err(reason) => Err(reason.clone()),
            };
            for (index, span) in scope.spans.into_iter().enumerate() {
                let position = || format!("resource {resource_index}, scope {scope_index}, span {index}");
                counter
                    .record(&source, position, |budget, source| push_span(&mut table, budget, &span, source, limits))?;
            }
        }
    }
    counter.finish([table])
}

fn push_span(
    table: &mut TableRows,
    budget: &mut RowBudget,
    span: &Span,
    source: &ScopeColumns<'_>,
    limits: &TelemetryLimits,
) -> Result<(), RecordError> {
    let trace_id = required_identifier("trace_id", &span.trace_id, TRACE_ID_BYTES)?;
    let span_id = required_identifier("span_id", &span.span_id, SPAN_ID_BYTES)?;
    let parent_span_id = identifier("parent_span_id", &span.parent_span_id, SPAN_ID_BYTES)?;
    let start_time = nanoseconds("start_time_unix_nano", span.start_time_unix_nano)?;
    let end_time = nanoseconds("end_time_unix_nano", span.end_time_unix_nano)?;
    let (status_code, status_message) =
        span.status.as_ref().map_or((0, ""), |status| (status.code, status.message.as_str()));
    let attributes = attributes_json(&span.attributes, limits)?;
    let events = events_json(&span.events, limits)?;
    let links = links_json(&span.links, limits)?;
    let kind: Cow<'_, str> = enumeration(KINDS, span.kind);
    let status_code = enumeration(STATUS_CODES, status_code);
    let own = [
        Cell::Text(&trace_id),
        Cell::Text(&span_id),
        Cell::from_option(parent_span_id.as_deref(), Cell::Text),
        Cell::non_empty(&span.trace_state),
        Cell::Int64(span.flags.into()),
        Cell::Text(&span.name),
        Cell::Text(&kind),
        Cell::from_option(start_time, Cell::Time),
        Cell::from_option(end_time, Cell::Time),
        // Both are positive, so that their difference does not overflow.
        Cell::from_option(start_time.zip(end_time), |(start, end)| Cell::Int64(end - start)),
        Cell::Text(&status_code),
        Cell::non_empty(status_message),
        Cell::Text(&attributes),
        Cell::Int64(span.dropped_attributes_count.into()),
        Cell::Text(&events),
        Cell::Int64(span.dropped_events_count.into()),
        Cell::Text(&links),
        Cell::Int64(span.dropped_links_count.into()),
    ];
    table.push(budget, &[&own[..], &source.cells()].concat())
}

fn required_identifier(name: &str, bytes: &[u8], length: usize) -> Result<String, RecordError> {
    identifier(name, bytes, length)?
        .ok_or_else(|| RecordError::Rejected(format!("{name} is missing or consists of zeros")))
}

/// Events as an array of objects: `time`, `name`, `attributes`, `dropped_attributes_count`.
fn events_json(events: &[Event], limits: &TelemetryLimits) -> Result<String, RecordError> {
    check_items("events", events.len(), limits)?;
    let mut output = String::from("[");
    for (index, event) in events.iter().enumerate() {
        let write = |output: &mut String| -> Result<(), RecordError> {
            output.push_str(if index == 0 { "{" } else { ",{" });
            if let Some(time) = nanoseconds("time_unix_nano", event.time_unix_nano)? {
                // Writing to a text does not fail.
                _ = write!(output, "\"time\":\"{}\",", time_text(time));
            }
            output.push_str("\"name\":");
            write_string(output, &event.name);
            output.push_str(",\"attributes\":");
            write_attributes(output, &event.attributes, limits)?;
            write_dropped(output, event.dropped_attributes_count);
            output.push('}');
            Ok(())
        };
        write(&mut output).map_err(|error| describe(&format!("event {index}"), error))?;
    }
    output.push(']');
    Ok(output)
}

/// Links as an array of objects: `trace_id`, `span_id`, `trace_state`, `flags`, `attributes`, `dropped_attributes_count`.
fn links_json(links: &[Link], limits: &TelemetryLimits) -> Result<String, RecordError> {
    check_items("links", links.len(), limits)?;
    let mut output = String::from("[");
    for (index, link) in links.iter().enumerate() {
        let write = |output: &mut String| -> Result<(), RecordError> {
            output.push_str(if index == 0 { "{" } else { ",{" });
            // Writing to a text does not fail.
            _ = write!(
                output,
                "\"trace_id\":\"{}\",\"span_id\":\"{}\"",
                hex::encode(&link.trace_id),
                hex::encode(&link.span_id)
            );
            if !link.trace_state.is_empty() {
                output.push_str(",\"trace_state\":");
                write_string(output, &link.trace_state);
            }
            _ = write!(output, ",\"flags\":{},\"attributes\":", link.flags);
            write_attributes(output, &link.attributes, limits)?;
            write_dropped(output, link.dropped_attributes_count);
            output.push('}');
            Ok(())
        };
        write(&mut output).map_err(|error| describe(&format!("link {index}"), error))?;
    }
    output.push(']');
    Ok(output)
}

fn write_dropped(output: &mut String, count: u32) {
    if count > 0 {
        // Writing to a text does not fail.
        _ = write!(output, ",\"dropped_attributes_count\":{count}");
    }
}
