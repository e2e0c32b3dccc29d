//! Log records as rows of `otel_logs`.

use super::messages::{ExportLogsServiceRequest, LogRecord};
use super::scope::{RecordCounter, ResourceColumns, ScopeColumns, attributes_json, body_text, share};
use super::{OtlpEncoding, SPAN_ID_BYTES, TRACE_ID_BYTES, decode_message};
use crate::formats::error::{FormatError, RecordError};
use crate::formats::limits::TelemetryLimits;
use crate::formats::tables::{Cell, RowBudget, TableBatches, TableRows, TelemetryTable};
use crate::formats::text::{identifier, nanoseconds};

/// The rows of an `ExportLogsServiceRequest`, the body of `/v1/logs`.
///
/// # Errors
/// `Malformed` if the body is not such a message; `TooLarge` and `OutOfMemory` if it exceeds `limits`.
pub fn decode_logs(body: &[u8], encoding: OtlpEncoding, limits: &TelemetryLimits) -> Result<TableBatches, FormatError> {
    let request: ExportLogsServiceRequest = decode_message(body, encoding, ExportLogsServiceRequest::shape(), limits)?;
    let mut counter = RecordCounter::new(limits);
    let mut table = TableRows::new(TelemetryTable::Logs);
    for (resource_index, logs) in request.resource_logs.into_iter().enumerate() {
        let resource = share(ResourceColumns::new(logs.resource.as_ref(), &logs.schema_url, limits))?;
        for (scope_index, scope) in logs.scope_logs.into_iter().enumerate() {
            let source = match &resource {
                Ok(resource) => share(ScopeColumns::new(resource, scope.scope.as_ref(), &scope.schema_url, limits))?,
                Err(reason) => Err(reason.clone()),
            };
            for (index, record) in scope.log_records.into_iter().enumerate() {
                let position = || format!("resource {resource_index}, scope {scope_index}, log record {index}");
                counter.record(&source, position, |budget, source| {
                    push_record(&mut table, budget, record, source, limits)
                })?;
            }
        }
    }
    counter.finish([table])
}

fn push_record(
    table: &mut TableRows,
    budget: &mut RowBudget,
    record: LogRecord,
    source: &ScopeColumns<'_>,
    limits: &TelemetryLimits,
) -> Result<(), RecordError> {
    let observed_time = nanoseconds("observed_time_unix_nano", record.observed_time_unix_nano)?;
    let time = nanoseconds("time_unix_nano", record.time_unix_nano)?.or(observed_time);
    let severity_number = Some(record.severity_number).filter(|number| *number != 0);
    let body = body_text(record.body, limits)?;
    let trace_id = identifier("trace_id", &record.trace_id, TRACE_ID_BYTES)?;
    let span_id = identifier("span_id", &record.span_id, SPAN_ID_BYTES)?;
    let attributes = attributes_json(&record.attributes, limits)?;
    let own = [
        Cell::from_option(time, Cell::Time),
        Cell::from_option(observed_time, Cell::Time),
        Cell::from_option(severity_number, Cell::Int32),
        Cell::non_empty(&record.severity_text),
        Cell::from_option(body.as_deref(), Cell::Text),
        Cell::non_empty(&record.event_name),
        Cell::from_option(trace_id.as_deref(), Cell::Text),
        Cell::from_option(span_id.as_deref(), Cell::Text),
        Cell::Int64(record.flags.into()),
        Cell::Text(&attributes),
        Cell::Int64(record.dropped_attributes_count.into()),
    ];
    table.push(budget, &[&own[..], &source.cells()].concat())
}
