//! Numbers of JSON, which have as many digits as they are written with.

use std::cmp::Ordering;

use datafusion::common::{Result, exec_err};

/// Zeros that an exponent may add. The limit is below PostgreSQL's, so that a short text does not become a long one.
const EXPONENT_MAX: i64 = 400;

/// Writes a number of JSON as PostgreSQL writes a `numeric`: with all digits and without an exponent.
pub(super) fn canonicalize(number: &str) -> Result<String> {
    let (is_negative, unsigned) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().unwrap_or(i64::MAX)),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_zero = mantissa.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let mut out = String::with_capacity(number.len() + 1);
    if is_negative && !is_zero {
        out.push('-');
    }
    if exponent == 0 {
        out.push_str(mantissa);
        return Ok(out);
    }
    if exponent.unsigned_abs() > EXPONENT_MAX.unsigned_abs() {
        return exec_err!("the exponent of the JSON number {number} is out of range; the limit is {EXPONENT_MAX}");
    }
    let digits = format!("{whole}{fraction}");
    // The position of the point in the digits.
    let point = whole.len() as i64 + exponent;
    let scale = (fraction.len() as i64 - exponent).max(0) as usize;
    let (before, after) = if point <= 0 {
        ("0".to_owned(), format!("{}{digits}", "0".repeat(point.unsigned_abs() as usize)))
    } else if point as usize >= digits.len() {
        (format!("{digits}{}", "0".repeat(point as usize - digits.len())), String::new())
    } else {
        let (before, after) = digits.split_at(point as usize);
        (before.to_owned(), after.to_owned())
    };
    let before = before.trim_start_matches('0');
    out.push_str(if before.is_empty() { "0" } else { before });
    if scale > 0 {
        out.push('.');
        out.push_str(&after);
    }
    Ok(out)
}

/// Compares canonical numbers by value.
pub(super) fn compare(a: &str, b: &str) -> Ordering {
    let sign = |text: &str| -> i8 {
        if !text.bytes().any(|byte| matches!(byte, b'1'..=b'9')) {
            0
        } else if text.starts_with('-') {
            -1
        } else {
            1
        }
    };
    let signs = (sign(a), sign(b));
    match signs {
        (1, 1) => compare_magnitude(a, b),
        (-1, -1) => compare_magnitude(b.trim_start_matches('-'), a.trim_start_matches('-')),
        (a, b) => a.cmp(&b),
    }
}

fn compare_magnitude(a: &str, b: &str) -> Ordering {
    let parts = |text: &'_ str| -> (usize, usize) {
        let point = text.find('.').unwrap_or(text.len());
        (point, text.len())
    };
    let ((a_point, _), (b_point, _)) = (parts(a), parts(b));
    let (a_whole, a_fraction) = (&a[..a_point], a[a_point..].trim_start_matches('.').trim_end_matches('0'));
    let (b_whole, b_fraction) = (&b[..b_point], b[b_point..].trim_start_matches('.').trim_end_matches('0'));
    a_whole.len().cmp(&b_whole.len()).then_with(|| a_whole.cmp(b_whole)).then_with(|| a_fraction.cmp(b_fraction))
}

/// Rounds a canonical number to an integer, half away from zero; `None` if it has too many digits.
pub(super) fn round_to_integer(number: &str) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let integer: i128 = whole.parse().ok()?;
    if !fraction.starts_with(|digit: char| digit >= '5') {
        return Some(integer);
    }
    Some(if number.starts_with('-') { integer - 1 } else { integer + 1 })
}
