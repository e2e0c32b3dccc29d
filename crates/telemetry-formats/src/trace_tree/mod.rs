//! The spans of a trace as a tree.

mod render;
mod spans;

use std::collections::HashMap;

pub use spans::{TraceSpan, trace_spans};

use crate::limits::TelemetryLimits;

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
