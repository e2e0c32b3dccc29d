//! The columns of the resource and of the scope of a record; attributes and values as JSON text.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::messages::{AnyValue, InstrumentationScope, KeyValue, Resource, Value};
use crate::formats::error::{FormatError, RecordError, RejectedRecords, cut_text};
use crate::formats::limits::TelemetryLimits;
use crate::formats::tables::{Cell, RowBudget, TableBatch, TableBatches, TableRows};
use crate::formats::text::{write_double, write_string};

const SERVICE_NAME: &str = "service.name";
/// The number of columns of [`ScopeColumns`].
const SCOPE_COLUMNS: usize = 9;

/// The columns of a resource.
pub(super) struct ResourceColumns<'a> {
    service_name: Option<&'a str>,
    attributes: String,
    dropped_attributes_count: i64,
    schema_url: &'a str,
}

impl<'a> ResourceColumns<'a> {
    pub(super) fn new(
        resource: Option<&'a Resource>,
        schema_url: &'a str,
        limits: &TelemetryLimits,
    ) -> Result<Self, RecordError> {
        let attributes = resource.map_or(&[][..], |resource| &resource.attributes);
        Ok(Self {
            service_name: attributes.iter().find(|attribute| attribute.key == SERVICE_NAME).and_then(text_value),
            attributes: attributes_json(attributes, limits).map_err(|error| describe("the resource", error))?,
            dropped_attributes_count: resource.map_or(0, |resource| resource.dropped_attributes_count.into()),
            schema_url,
        })
    }
}

/// The columns of a resource and of a scope within it.
pub(super) struct ScopeColumns<'a> {
    resource: &'a ResourceColumns<'a>,
    name: &'a str,
    version: &'a str,
    attributes: String,
    dropped_attributes_count: i64,
    schema_url: &'a str,
}

impl<'a> ScopeColumns<'a> {
    pub(super) fn new(
        resource: &'a ResourceColumns<'a>,
        scope: Option<&'a InstrumentationScope>,
        schema_url: &'a str,
        limits: &TelemetryLimits,
    ) -> Result<Self, RecordError> {
        let attributes = scope.map_or(&[][..], |scope| &scope.attributes);
        Ok(Self {
            resource,
            name: scope.map_or("", |scope| &scope.name),
            version: scope.map_or("", |scope| &scope.version),
            attributes: attributes_json(attributes, limits).map_err(|error| describe("the scope", error))?,
            dropped_attributes_count: scope.map_or(0, |scope| scope.dropped_attributes_count.into()),
            schema_url,
        })
    }

    pub(super) fn cells(&self) -> [Cell<'_>; SCOPE_COLUMNS] {
        [
            Cell::from_option(self.resource.service_name, Cell::Text),
            Cell::Text(&self.resource.attributes),
            Cell::Int64(self.resource.dropped_attributes_count),
            Cell::non_empty(self.resource.schema_url),
            Cell::non_empty(self.name),
            Cell::non_empty(self.version),
            Cell::Text(&self.attributes),
            Cell::Int64(self.dropped_attributes_count),
            Cell::non_empty(self.schema_url),
        ]
    }
}

fn text_value(attribute: &KeyValue) -> Option<&str> {
    match attribute.value.as_ref()?.value.as_ref()? {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// The same error of a part of the record.
pub(super) fn describe(part: &str, error: RecordError) -> RecordError {
    match error {
        RecordError::Rejected(reason) => RecordError::Rejected(format!("{part}: {reason}")),
        RecordError::Refused(error) => RecordError::Refused(error),
    }
}

/// Columns that several records share, or the reason why all of them are rejected.
pub(super) type SharedColumns<T> = Result<T, String>;

/// Keeps the reason of a rejection, so that each record gets it.
pub(super) fn share<T>(source: Result<T, RecordError>) -> Result<SharedColumns<T>, FormatError> {
    match source {
        Ok(source) => Ok(Ok(source)),
        Err(RecordError::Rejected(reason)) => Ok(Err(reason)),
        Err(RecordError::Refused(error)) => Err(error),
    }
}

/// Counts the records of a body, and those that are rejected.
pub(super) struct RecordCounter {
    budget: RowBudget,
    rejected: RejectedRecords,
}

impl RecordCounter {
    pub(super) fn new(limits: &TelemetryLimits) -> Self {
        Self { budget: RowBudget::new(limits), rejected: RejectedRecords::default() }
    }

    /// Counts one record, which `push` appends to its table.
    pub(super) fn record<S>(
        &mut self,
        source: &SharedColumns<S>,
        position: impl FnOnce() -> String,
        push: impl FnOnce(&mut RowBudget, &S) -> Result<(), RecordError>,
    ) -> Result<(), FormatError> {
        self.budget.take_record()?;
        let pushed = match source {
            Ok(source) => push(&mut self.budget, source),
            Err(reason) => Err(RecordError::Rejected(reason.clone())),
        };
        match pushed {
            Ok(()) => Ok(()),
            Err(RecordError::Refused(error)) => Err(error),
            Err(RecordError::Rejected(reason)) => {
                self.rejected.add(1, || format!("{}: {reason}", position()));
                Ok(())
            }
        }
    }

    pub(super) fn finish(self, tables: impl IntoIterator<Item = TableRows>) -> Result<TableBatches, FormatError> {
        let batches: Result<Vec<Option<TableBatch>>, FormatError> = tables.into_iter().map(TableRows::finish).collect();
        Ok(TableBatches { batches: batches?.into_iter().flatten().collect(), rejected: self.rejected })
    }
}

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
