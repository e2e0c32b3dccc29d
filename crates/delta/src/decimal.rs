//! Decimal numbers as text, exactly.

/// The text of `value` × 10^-`scale`; the scale is not negative.
pub(super) fn format_decimal(value: i128, scale: i8) -> String {
    let scale = usize::try_from(scale).unwrap_or_default();
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if value < 0 { "-" } else { "" };
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// The inverse of [`format_decimal`]. `None` if the text has an exponent or more digits than the scale.
pub(super) fn parse_decimal(text: &str, scale: i8) -> Option<i128> {
    let scale = usize::try_from(scale).ok()?;
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = if fraction.len() > scale { fraction.trim_end_matches('0') } else { fraction };
    let is_number = !whole.is_empty() && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    if !is_number || fraction.len() > scale {
        return None;
    }
    let value: i128 = format!("{whole}{fraction:0<scale$}").parse().ok()?;
    Some(if is_negative { -value } else { value })
}
