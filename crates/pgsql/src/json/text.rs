//! JSON as text.

use super::value::JsonValue;

/// Writes `text` as a JSON string.
pub(super) fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut plain = 0;
    for (position, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            0x08 => "\\b",
            0x0c => "\\f",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[plain..position]);
        plain = position + 1;
        if escape.is_empty() {
            out.push_str(&format!("\\u{byte:04x}"));
        } else {
            out.push_str(escape);
        }
    }
    out.push_str(&text[plain..]);
    out.push('"');
}

/// Writes `value` as `jsonb` is printed.
pub(super) fn write_value(value: &JsonValue, out: &mut String) {
    match value {
        JsonValue::Null => out.push_str("null"),
        JsonValue::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        JsonValue::Number(number) => out.push_str(number),
        JsonValue::Text(text) => write_string(text, out),
        JsonValue::Array(items) => {
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                }
                write_value(item, out);
            }
            out.push(']');
        }
        JsonValue::Object(pairs) => {
            out.push('{');
            for (position, (key, value)) in pairs.iter().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                }
                write_string(key, out);
                out.push_str(": ");
                write_value(value, out);
            }
            out.push('}');
        }
    }
}

/// Writes `value` as `jsonb_pretty` does, at `depth`.
pub(super) fn write_pretty(value: &JsonValue, depth: usize, out: &mut String) {
    let (open, close, length) = match value {
        JsonValue::Array(items) => ('[', ']', items.len()),
        JsonValue::Object(pairs) => ('{', '}', pairs.len()),
        scalar => return write_value(scalar, out),
    };
    out.push(open);
    for position in 0..length {
        out.push_str(if position > 0 { ",\n" } else { "\n" });
        indent(depth + 1, out);
        match value {
            JsonValue::Object(pairs) => {
                write_string(&pairs[position].0, out);
                out.push_str(": ");
                write_pretty(&pairs[position].1, depth + 1, out);
            }
            JsonValue::Array(items) => write_pretty(&items[position], depth + 1, out),
            _ => {}
        }
    }
    out.push('\n');
    indent(depth, out);
    out.push(close);
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("    ", depth));
}
