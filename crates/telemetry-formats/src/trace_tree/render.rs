//! A tree as text and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{TraceNode, TraceTree};
use crate::error::cut_text;
use crate::text::time_text;

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
