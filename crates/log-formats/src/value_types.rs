//! Types of the values of members: which one a value has, and the value with the type of its column.

use crate::column::EntryColumnType;
use crate::entry::{EntryFields, Slot};
use crate::time::TimeResolver;

/// The value with the type of its column, or `None` if it has no such value.
pub(crate) fn typed(
    value: Slot,
    column_type: EntryColumnType,
    text: &str,
    fields: &mut EntryFields,
    times: &mut TimeResolver,
) -> Option<Slot> {
    let piece = match value {
        Slot::Null => return Some(Slot::Null),
        Slot::Boolean(boolean) => {
            return match column_type {
                EntryColumnType::Boolean => Some(value),
                EntryColumnType::Text => {
                    let word = if boolean { "true" } else { "false" };
                    Some(Slot::Text(fields.write_scratch(|scratch| scratch.push_str(word))))
                }
                _ => None,
            };
        }
        Slot::Json(piece) => return (column_type == EntryColumnType::Text).then_some(Slot::Text(piece)),
        Slot::Text(piece) | Slot::Number(piece) => piece,
        Slot::Integer(_) | Slot::Float(_) | Slot::Timestamp(_) => return None,
    };
    let content = fields.resolve(piece, text);
    match column_type {
        EntryColumnType::Text => Some(Slot::Text(piece)),
        EntryColumnType::Integer => is_integer(content).then(|| content.parse().ok()).flatten().map(Slot::Integer),
        EntryColumnType::Float => is_json_number(content).then(|| content.parse().ok()).flatten().map(Slot::Float),
        EntryColumnType::Boolean => content.parse().ok().map(Slot::Boolean),
        EntryColumnType::Timestamp => times.any_time(content).map(Slot::Timestamp),
    }
}

/// Whether a text is an integer in the form that integers are written in, so that no text such as `007` loses a part.
pub(crate) fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let has_leading_zero = digits.len() > 1 && digits.starts_with('0');
    !digits.is_empty() && !has_leading_zero && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text is a number of JSON.
pub(crate) fn is_json_number(text: &str) -> bool {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(position) => {
            let (mantissa, exponent) = text.split_at_checked(position).unwrap_or((text, ""));
            let exponent = exponent.get(1..).unwrap_or_default();
            (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
        }
        None => (text, None),
    };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    is_integer(whole) && fraction.is_none_or(is_digits) && exponent.is_none_or(is_digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_numbers() {
        for text in ["0", "-1", "123"] {
            assert!(is_integer(text) && is_json_number(text), "{text}");
        }
        for text in ["1.5", "-0.25", "1e3", "1.5E-3"] {
            assert!(!is_integer(text) && is_json_number(text), "{text}");
        }
        for text in ["", "-", "007", "+1", ".5", "1.", "1e", "NaN", "0x1", "1_000"] {
            assert!(!is_integer(text) && !is_json_number(text), "{text}");
        }
    }
}
