//! The spans of a trace, read from rows of `otel_traces`, as a tree; the tree as text and as JSON.

use std::collections::HashMap;
use std::fmt::Write;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, TimeUnit, TimestampNanosecondType};
use serde_json::{Value, json};

use crate::formats::error::{FormatError, cut_text};
use crate::formats::limits::TelemetryLimits;
use crate::formats::tables::UTC;
use crate::formats::text::time_text;

/// Why spans are no tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceTreeError {
    /// There are no spans.
    #[error("the trace has no spans")]
    Empty,
    /// There are more spans than the limit.
    #[error("the trace has {count} spans; at most {limit} are accepted")]
    TooManySpans {
        /// How many there are.
        count: usize,
        /// [`TelemetryLimits::tree_spans_max`]
        limit: usize,
    },
    /// Spans are nested too deeply.
    #[error("the spans of the trace are nested more than {limit} levels deep")]
    TooDeep {
        /// [`TelemetryLimits::tree_depth_max`]
        limit: usize,
    },
    /// The spans belong to several traces.
    #[error("the spans belong to several traces: {one:?} and {other:?}")]
    SeveralTraces {
        /// The trace of the first span.
        one: String,
        /// Another one.
        other: String,
    },
    /// Two different spans have the same identifier.
    #[error("there are different spans with the identifier {span_id:?}")]
    SameIdentifier {
        /// The identifier.
        span_id: String,
    },
    /// A span is its own ancestor.
    #[error("the span {span_id:?} is its own ancestor, or below one that is")]
    Cycle {
        /// The first such span.
        span_id: String,
    },
}

/// A trace as a tree. Spans whose parent is missing are roots with a mark.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceTree {
    trace_id: String,
    nodes: Vec<TraceNode>,
    repeated_spans: usize,
}

/// A span in its tree.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceNode {
    /// The span.
    pub span: TraceSpan,
    /// The position of the parent in [`TraceTree::nodes`].
    pub parent: Option<usize>,
    /// The number of ancestors.
    pub depth: usize,
    /// The time from start to end, in nanoseconds; negative if the end is before the start. Nothing if either is unknown.
    pub duration_nanos: Option<i64>,
    /// The part of the duration that no child covers, in nanoseconds. Nothing if the duration is unknown or negative.
    pub self_nanos: Option<i64>,
    /// Whether the span names a parent that is missing.
    pub is_orphan: bool,
    /// Whether it is the last child of its parent, or the last root.
    is_last: bool,
}

impl TraceTree {
    /// Builds the tree. Rows that are completely equal are one span.
    ///
    /// # Errors
    /// If the spans are no tree, or exceed the bounds for trees in `limits`.
    pub fn build(spans: Vec<TraceSpan>, limits: &TelemetryLimits) -> Result<Self, TraceTreeError> {
        let limit = limits.tree_spans_max;
        if spans.len() > limit {
            return Err(TraceTreeError::TooManySpans { count: spans.len(), limit });
        }
        let count = spans.len();
        let spans = distinct_spans(spans)?;
        let trace_id = spans.first().ok_or(TraceTreeError::Empty)?.trace_id.clone();
        if let Some(other) = spans.iter().find(|span| span.trace_id != trace_id) {
            return Err(TraceTreeError::SeveralTraces { one: trace_id, other: other.trace_id.clone() });
        }
        let repeated_spans = count - spans.len();
        let nodes = nodes_in_order(spans, limits.tree_depth_max)?;
        Ok(Self { trace_id, nodes, repeated_spans })
    }

    /// The identifier of the trace.
    #[must_use]
    pub fn trace_id(&self) -> &str {
        &self.trace_id
    }

    /// The spans: each after its parent, children by their start.
    #[must_use]
    pub fn nodes(&self) -> &[TraceNode] {
        &self.nodes
    }

    /// How many rows were left out because they were equal to another one.
    #[must_use]
    pub const fn repeated_spans(&self) -> usize {
        self.repeated_spans
    }

    /// The time from the first start to the last end, in nanoseconds. Nothing if no span has both times.
    #[must_use]
    pub fn duration_nanos(&self) -> Option<i64> {
        let start = self.nodes.iter().filter_map(|node| node.span.start_time).min()?;
        let end = self.nodes.iter().filter_map(|node| node.span.end_time).max()?;
        end.checked_sub(start)
    }
}

/// The spans without repeated rows.
fn distinct_spans(mut spans: Vec<TraceSpan>) -> Result<Vec<TraceSpan>, TraceTreeError> {
    spans.sort_by(|one, other| one.order().cmp(&other.order()));
    spans.dedup();
    let mut identifiers: Vec<&str> = spans.iter().map(|span| span.span_id.as_str()).collect();
    identifiers.sort_unstable();
    if let Some([twice, _]) = identifiers.array_windows().find(|[one, next]| one == next) {
        return Err(TraceTreeError::SameIdentifier { span_id: (*twice).to_owned() });
    }
    Ok(spans)
}

/// The positions of the roots and of the children of each span, which are in the order of `spans`.
struct Families {
    roots: Vec<usize>,
    children: Vec<Vec<usize>>,
    orphans: Vec<bool>,
}

impl Families {
    fn new(spans: &[TraceSpan]) -> Self {
        let positions: HashMap<&str, usize> =
            spans.iter().enumerate().map(|(position, span)| (span.span_id.as_str(), position)).collect();
        let mut families =
            Self { roots: Vec::new(), children: vec![Vec::new(); spans.len()], orphans: vec![false; spans.len()] };
        for (position, span) in spans.iter().enumerate() {
            let parent = span.parent_span_id.as_deref();
            match parent.map(|parent| positions.get(parent)) {
                Some(Some(parent)) => families.children[*parent].push(position),
                other => {
                    families.orphans[position] = other.is_some();
                    families.roots.push(position);
                }
            }
        }
        families
    }
}

/// A span that is to be placed: its position, its parent in the result, its depth, whether it is the last child.
struct OpenSpan {
    position: usize,
    parent: Option<usize>,
    depth: usize,
    is_last: bool,
}

fn nodes_in_order(spans: Vec<TraceSpan>, depth_max: usize) -> Result<Vec<TraceNode>, TraceTreeError> {
    let families = Families::new(&spans);
    let mut nodes: Vec<TraceNode> = Vec::with_capacity(spans.len());
    let mut is_placed = vec![false; spans.len()];
    let mut open = Vec::new();
    push_children(&mut open, &families.roots, None, 0);
    while let Some(OpenSpan { position, parent, depth, is_last }) = open.pop() {
        if depth >= depth_max {
            return Err(TraceTreeError::TooDeep { limit: depth_max });
        }
        let children = &families.children[position];
        push_children(&mut open, children, Some(nodes.len()), depth + 1);
        is_placed[position] = true;
        let span = &spans[position];
        nodes.push(TraceNode {
            span: span.clone(),
            parent,
            depth,
            duration_nanos: span.duration_nanos(),
            self_nanos: self_nanos(span, children.iter().map(|child| &spans[*child])),
            is_orphan: families.orphans[position],
            is_last,
        });
    }
    // What no root leads to is a cycle, or below one.
    match is_placed.iter().position(|is_placed| !is_placed) {
        Some(position) => Err(TraceTreeError::Cycle { span_id: spans[position].span_id.clone() }),
        None => Ok(nodes),
    }
}

/// Puts children on the stack, the first one on top.
fn push_children(open: &mut Vec<OpenSpan>, children: &[usize], parent: Option<usize>, depth: usize) {
    let last = children.last().copied();
    open.extend(children.iter().rev().map(|position| OpenSpan {
        position: *position,
        parent,
        depth,
        is_last: Some(*position) == last,
    }));
}

/// The part of a span that no child covers. Children are in the order of their start.
fn self_nanos<'a>(span: &TraceSpan, children: impl Iterator<Item = &'a TraceSpan>) -> Option<i64> {
    let (start, end) = span.start_time.zip(span.end_time)?;
    let duration = end.checked_sub(start).filter(|duration| *duration >= 0)?;
    let mut covered = 0;
    let mut covered_until = start;
    for child in children {
        let Some((child_start, child_end)) = child.start_time.zip(child.end_time) else { continue };
        let from = child_start.max(covered_until);
        let until = child_end.min(end);
        if until > from {
            // Both are within the span, whose duration does not overflow.
            covered += until - from;
            covered_until = until;
        }
    }
    Some(duration - covered)
}

/// The columns of a span that a tree needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceSpan {
    /// The trace.
    pub trace_id: String,
    /// The span within its trace.
    pub span_id: String,
    /// The parent. Nothing for a root.
    pub parent_span_id: Option<String>,
    /// What the span describes.
    pub name: String,
    /// The service that sent it.
    pub service_name: Option<String>,
    /// `SERVER` and the like.
    pub kind: Option<String>,
    /// `UNSET`, `OK` or `ERROR`.
    pub status_code: Option<String>,
    /// The start, in nanoseconds since 1970.
    pub start_time: Option<i64>,
    /// The end, in nanoseconds since 1970.
    pub end_time: Option<i64>,
}

impl TraceSpan {
    fn duration_nanos(&self) -> Option<i64> {
        self.end_time?.checked_sub(self.start_time?)
    }

    /// By start, with unknown ones last; then by the other columns, so that equal rows are neighbours.
    fn order(&self) -> impl Ord + '_ {
        (
            (self.start_time.is_none(), self.start_time, self.end_time),
            (&self.span_id, &self.trace_id, &self.parent_span_id, &self.name),
            (&self.service_name, &self.kind, &self.status_code),
        )
    }
}

/// The spans of rows with the columns of `otel_traces`. The columns `service_name`, `kind` and `status_code` may be missing,
/// and there may be others.
///
/// # Errors
/// `Malformed` if a column is missing, has another type, or has a null that it cannot have.
pub fn trace_spans(batches: &[RecordBatch]) -> Result<Vec<TraceSpan>, FormatError> {
    let time = DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into()));
    let mut spans = Vec::new();
    for batch in batches {
        let trace_ids = required(batch, "trace_id", &DataType::Utf8)?;
        let span_ids = required(batch, "span_id", &DataType::Utf8)?;
        let parents = required(batch, "parent_span_id", &DataType::Utf8)?;
        let names = required(batch, "name", &DataType::Utf8)?;
        let starts = required(batch, "start_time", &time)?;
        let ends = required(batch, "end_time", &time)?;
        let services = column(batch, "service_name", &DataType::Utf8)?;
        let kinds = column(batch, "kind", &DataType::Utf8)?;
        let statuses = column(batch, "status_code", &DataType::Utf8)?;
        for row in 0..batch.num_rows() {
            let not_null = |array: &ArrayRef, name: &str| {
                text(array, row).ok_or_else(|| FormatError::Malformed(format!("the column {name:?} has a null")))
            };
            spans.push(TraceSpan {
                trace_id: not_null(&trace_ids, "trace_id")?,
                span_id: not_null(&span_ids, "span_id")?,
                parent_span_id: text(&parents, row),
                name: not_null(&names, "name")?,
                service_name: services.as_ref().and_then(|array| text(array, row)),
                kind: kinds.as_ref().and_then(|array| text(array, row)),
                status_code: statuses.as_ref().and_then(|array| text(array, row)),
                start_time: nanoseconds(&starts, row),
                end_time: nanoseconds(&ends, row),
            });
        }
    }
    Ok(spans)
}

fn required(batch: &RecordBatch, name: &str, data_type: &DataType) -> Result<ArrayRef, FormatError> {
    let missing = || FormatError::Malformed(format!("the rows have no column {name:?}"));
    column(batch, name, data_type)?.ok_or_else(missing)
}

/// A column in the type that is read here; engines return text in several layouts.
fn column(batch: &RecordBatch, name: &str, data_type: &DataType) -> Result<Option<ArrayRef>, FormatError> {
    let Some(array) = batch.column_by_name(name) else { return Ok(None) };
    let is_time = |data_type: &DataType| matches!(data_type, DataType::Timestamp(..));
    let is_text = |data_type: &DataType| match data_type {
        DataType::Dictionary(_, values) => values.is_string(),
        _ => data_type.is_string(),
    };
    if is_time(array.data_type()) != is_time(data_type) || is_text(array.data_type()) != is_text(data_type) {
        return Err(FormatError::Malformed(format!("the column {name:?} has the type {}", array.data_type())));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let cast = cast_with_options(array, data_type, &options);
    cast.map(Some).map_err(|error| FormatError::Malformed(format!("the column {name:?} cannot be read: {error}")))
}

fn text(array: &ArrayRef, row: usize) -> Option<String> {
    let texts = array.as_string_opt::<i32>()?;
    texts.is_valid(row).then(|| texts.value(row).to_owned())
}

fn nanoseconds(array: &ArrayRef, row: usize) -> Option<i64> {
    let times = array.as_primitive_opt::<TimestampNanosecondType>()?;
    times.is_valid(row).then(|| times.value(row))
}

/// The longest name in a line of text, in bytes. JSON has names whole.
const LINE_NAME_BYTES_MAX: usize = 200;
/// Units of durations, from the largest.
const UNITS: [(i64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")];

impl TraceTree {
    /// One line for each span, with lines that connect it with its parent:
    ///
    /// ```text
    /// trace 0af7651916cd43dd8448eb211c80319c, 2 spans, 12.5 ms
    /// GET /checkout [shop] SERVER 12.5 ms, self 4.5 ms
    /// └─ SELECT [shop] CLIENT 8 ms, ERROR
    /// ```
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut output = String::new();
        // Writing to a text does not fail.
        _ = write!(output, "trace {}, {}", self.trace_id, counted(self.nodes.len(), "span"));
        if let Some(duration) = self.duration_nanos() {
            _ = write!(output, ", {}", duration_text(duration));
        }
        if self.repeated_spans > 0 {
            _ = write!(output, ", {} left out", counted(self.repeated_spans, "repeated row"));
        }
        output.push('\n');
        // Whether the ancestor at each depth is the last one of its siblings.
        let mut last_ancestors: Vec<bool> = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            last_ancestors.truncate(node.depth);
            // Roots are not connected with each other.
            for is_last in last_ancestors.iter().skip(1) {
                output.push_str(if *is_last { "   " } else { "│  " });
            }
            if node.depth > 0 {
                output.push_str(if node.is_last { "└─ " } else { "├─ " });
            }
            last_ancestors.push(node.is_last);
            let has_children = self.nodes.get(index + 1).is_some_and(|next| next.depth > node.depth);
            write_line(&mut output, node, has_children);
        }
        output
    }

    /// An object with the spans in the order of [`TraceTree::nodes`], so that the depth of the tree does not nest it.
    /// Durations are in nanoseconds, times in text.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let spans: Vec<Value> = self.nodes.iter().map(node_json).collect();
        json!({
            "trace_id": self.trace_id,
            "span_count": self.nodes.len(),
            "repeated_spans": self.repeated_spans,
            "duration_nanos": self.duration_nanos(),
            "spans": spans,
        })
    }
}

fn node_json(node: &TraceNode) -> Value {
    let span = &node.span;
    json!({
        "span_id": span.span_id,
        "parent_span_id": span.parent_span_id,
        "depth": node.depth,
        "is_orphan": node.is_orphan,
        "name": span.name,
        "service_name": span.service_name,
        "kind": span.kind,
        "status_code": span.status_code,
        "start_time": span.start_time.map(time_text),
        "end_time": span.end_time.map(time_text),
        "duration_nanos": node.duration_nanos,
        "self_nanos": node.self_nanos,
    })
}

fn write_line(output: &mut String, node: &TraceNode, has_children: bool) {
    let span = &node.span;
    write_name(output, &span.name);
    if let Some(service) = &span.service_name {
        output.push_str(" [");
        write_name(output, service);
        output.push(']');
    }
    if let Some(kind) = span.kind.as_deref().filter(|kind| *kind != "UNSPECIFIED") {
        output.push(' ');
        write_name(output, kind);
    }
    match node.duration_nanos {
        // Writing to a text does not fail.
        Some(duration) => _ = write!(output, " {}", duration_text(duration)),
        None => output.push_str(" (duration unknown)"),
    }
    if let Some(own) = node.self_nanos.filter(|_| has_children) {
        _ = write!(output, ", self {}", duration_text(own));
    }
    if let Some(status) = span.status_code.as_deref().filter(|status| *status != "UNSET") {
        output.push_str(", ");
        write_name(output, status);
    }
    if let Some(parent) = span.parent_span_id.as_deref().filter(|_| node.is_orphan) {
        output.push_str(" (its parent ");
        write_name(output, parent);
        output.push_str(" is missing)");
    }
    output.push('\n');
}

/// A name in one line: without line breaks and other control characters, and not longer than the limit.
fn write_name(output: &mut String, name: &str) {
    let cut = cut_text(name, LINE_NAME_BYTES_MAX);
    output.extend(cut.chars().map(|character| if character.is_control() { '\u{fffd}' } else { character }));
    if cut.len() < name.len() {
        output.push('…');
    }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A duration in its largest unit, with at most three digits after the point. JSON has all digits.
fn duration_text(nanoseconds: i64) -> String {
    let size = nanoseconds.unsigned_abs();
    let sign = if nanoseconds < 0 { "-" } else { "" };
    for (unit, name) in UNITS {
        let unit = unit.unsigned_abs();
        if size >= unit {
            let thousandths = size / (unit / 1_000);
            let text = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
            let text = text.trim_end_matches('0').trim_end_matches('.');
            return format!("{sign}{text} {name}");
        }
    }
    format!("{sign}{size} ns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (nanoseconds, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1 µs"),
            (12_500_000, "12.5 ms"),
            (61_000_000_000, "61 s"),
            (100_000_000_000, "100 s"),
            (-1_500, "-1.5 µs"),
            (i64::MIN, "-9223372036.854 s"),
        ] {
            assert_eq!(duration_text(nanoseconds), text);
        }
    }
}
