//! `to_char` of numbers, which writes the digits of any type by a pattern, and `to_number`, which reads text by one.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type};
use datafusion::common::{Result, exec_err, plan_err};

use super::pattern::{NumberField, NumberPattern, OrdinalSuffix, PatternNode, SignPlace, ordinal_suffix};
use crate::function::FunctionCall;

/// Digits that a double has for certain.
const DOUBLE_DIGITS: usize = 15;

/// Digits that a real has for certain.
const REAL_DIGITS: usize = 6;

/// The numbers of an argument.
pub(super) enum NumberValues {
    Decimals { values: ArrayRef, scale: usize },
    Floats { values: ArrayRef, digits: usize },
}

impl NumberValues {
    pub(super) fn new(args: &FunctionCall<'_>, position: usize) -> Result<Self> {
        let values = args.array(position)?;
        match values.data_type() {
            DataType::Decimal128(_, scale) if *scale >= 0 => {
                let scale = usize::from(scale.unsigned_abs());
                Ok(Self::Decimals { values, scale })
            }
            DataType::Float32 | DataType::Float16 => {
                Ok(Self::Floats { values: cast(&values, &DataType::Float64)?, digits: REAL_DIGITS })
            }
            DataType::Float64 => Ok(Self::Floats { values, digits: DOUBLE_DIGITS }),
            integer if integer.is_integer() => {
                Ok(Self::Decimals { values: cast(&values, &DataType::Decimal128(38, 0))?, scale: 0 })
            }
            other => plan_err!("to_char() does not take {other}; cast it to numeric"),
        }
    }

    /// Writes the number of a row; false where it is null.
    pub(super) fn write(&self, row: usize, pattern: &NumberPattern, out: &mut String) -> Result<bool> {
        let (digits, is_negative, after) = match self {
            Self::Decimals { values, scale } => {
                let values = values.as_primitive::<Decimal128Type>();
                if values.is_null(row) {
                    return Ok(false);
                }
                let (digits, is_negative) = decimal_digits(values.value(row), *scale, pattern)?;
                (digits, is_negative, pattern.after)
            }
            Self::Floats { values, digits } => {
                let values = values.as_primitive::<Float64Type>();
                if values.is_null(row) {
                    return Ok(false);
                }
                float_digits(values.value(row), *digits, pattern)?
            }
        };
        if pattern.has_exponent {
            out.push(if is_negative { '-' } else { ' ' });
            out.push_str(&digits);
        } else if let Some(is_upper) = pattern.roman {
            write_roman(&digits, is_negative, is_upper, pattern, out);
        } else if pattern.has_shift || after != pattern.after {
            let before = pattern.before + pattern.shift;
            // Digits follow after `V`, so that `S` is not behind all of them.
            let sign_place = if pattern.shift > 0 { SignPlace::Before } else { pattern.sign_place };
            let moved = NumberPattern { before, after, sign_place, ..pattern.clone() };
            write_number(&digits, is_negative, &moved, out);
        } else {
            write_number(&digits, is_negative, pattern, out);
        }
        Ok(true)
    }
}

fn write_roman(digits: &str, is_negative: bool, is_upper: bool, pattern: &NumberPattern, out: &mut String) {
    let number = if is_negative { None } else { digits.parse().ok() };
    let roman = roman(number);
    let roman = if is_upper { roman } else { roman.to_ascii_lowercase() };
    for node in &pattern.nodes {
        match node {
            PatternNode::Text(character) | PatternNode::Separator(character) | PatternNode::Space(character) => {
                out.push(*character)
            }
            PatternNode::Field(node) if matches!(node.field, NumberField::Roman { .. }) => {
                let width = if pattern.is_filled { 0 } else { 15 };
                out.push_str(&format!("{roman:>width$}"));
            }
            PatternNode::Field(_) => {}
        }
    }
}

/// Returns the number of digits after the point of a pattern.
fn digits_after_point(pattern: &NumberPattern) -> usize {
    if pattern.roman.is_some() { 0 } else { pattern.after }
}

fn decimal_digits(value: i128, scale: usize, pattern: &NumberPattern) -> Result<(String, bool)> {
    let is_negative = value < 0;
    let mut digits = value.unsigned_abs().to_string();
    if pattern.has_exponent {
        return Ok((scientific(&digits, scale, pattern.after), is_negative));
    }
    // `V` moves the point.
    let point = scale as i64 - pattern.shift as i64;
    let after = digits_after_point(pattern);
    let surplus = point - after as i64;
    if surplus > 0 {
        digits = rounded(&digits, usize::try_from(surplus).unwrap_or(0));
    } else {
        digits.push_str(&"0".repeat(usize::try_from(-surplus).unwrap_or(0)));
    }
    let is_zero = digits.bytes().all(|digit| digit == b'0');
    Ok((with_point(&digits, after), is_negative && !is_zero))
}

/// Returns the digits without the last `surplus`, rounded half away from zero.
fn rounded(digits: &str, surplus: usize) -> String {
    let padded = format!("{:0>width$}", digits, width = surplus + 1);
    let (head, tail) = padded.split_at(padded.len() - surplus);
    if tail.as_bytes().first().is_some_and(|digit| *digit >= b'5') {
        let head: u128 = head.parse().unwrap_or(0);
        return (head + 1).to_string();
    }
    head.to_owned()
}

/// Writes digits with a point before the last `after`, and at least one digit before it.
fn with_point(digits: &str, after: usize) -> String {
    let trimmed = digits.trim_start_matches('0');
    let padded = format!("{:0>width$}", trimmed, width = after + 1);
    let (whole, fraction) = padded.split_at(padded.len() - after);
    if after == 0 { whole.to_owned() } else { format!("{whole}.{fraction}") }
}

/// Writes digits in scientific notation.
fn scientific(digits: &str, scale: usize, after: usize) -> String {
    let trimmed = digits.trim_start_matches('0');
    if trimmed.is_empty() {
        let fraction = if after > 0 { format!(".{}", "0".repeat(after)) } else { String::new() };
        return format!("0{fraction}e+00");
    }
    let mut exponent = trimmed.len() as i64 - 1 - scale as i64;
    let mut mantissa = if trimmed.len() > after + 1 {
        rounded(trimmed, trimmed.len() - after - 1)
    } else {
        format!("{trimmed:0<width$}", width = after + 1)
    };
    if mantissa.len() > after + 1 {
        mantissa.pop();
        exponent += 1;
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", with_point(&mantissa, after), exponent.abs())
}

/// Returns the digits of a number, whether it is negative, and how many digits after the point the pattern has then: no more
/// than the type has for certain.
fn float_digits(value: f64, precision: usize, pattern: &NumberPattern) -> Result<(String, bool, usize)> {
    let is_negative = value.is_sign_negative() && !value.is_nan();
    if !value.is_finite() {
        if pattern.roman.is_some() {
            return exec_err!("to_char() does not write {value} as Roman numerals; select it without a pattern");
        }
        if pattern.has_exponent {
            let marks = format!("{}.{}", "#".repeat(pattern.before), "#".repeat(pattern.after + 4));
            return Ok((marks, false, pattern.after));
        }
        let word = if value.is_nan() { "NaN" } else { "Infinity" };
        return Ok((word.to_owned(), is_negative, pattern.after.min(precision.saturating_sub(word.len()))));
    }
    if pattern.has_exponent {
        let written = format!("{:.*e}", pattern.after, value.abs());
        let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        let digits = format!("{mantissa}e{sign}{:02}", exponent.abs());
        return Ok((digits, is_negative, pattern.after));
    }
    let shifted = value.abs() * 10_f64.powi(i32::try_from(pattern.shift).unwrap_or(0));
    let whole = format!("{shifted:.0}").len();
    let after = digits_after_point(pattern).min(precision.saturating_sub(whole));
    Ok((format!("{shifted:.after$}"), is_negative, after))
}

/// Converts the digits that were read to a number with `scale` digits after the point.
pub(super) fn parse_decimal(text: &str, pattern: &NumberPattern, scale: i8) -> Result<i128> {
    let unsigned = text.trim_start_matches(['-', '+']);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    if whole.is_empty() && fraction.is_empty() {
        return exec_err!("invalid input syntax for type numeric: \"{text}\"");
    }
    if whole.trim_start_matches('0').len() > pattern.before + pattern.shift {
        return exec_err!("numeric field overflow: \"{text}\" has more digits before the point than the pattern");
    }
    // `V` defines how many of the digits are after the point.
    let positions = usize::from(scale.unsigned_abs()).saturating_sub(pattern.shift);
    let digits = format!("{whole}{fraction:0<positions$}");
    match digits.parse::<i128>() {
        Ok(value) if digits.len() <= 38 => Ok(if text.starts_with('-') { -value } else { value }),
        _ => exec_err!("a value of \"{text}\" is out of range for type numeric"),
    }
}

/// Writes a number by a pattern. `digits` is its absolute value, rounded to as many digits behind the point as the
/// pattern has.
fn write_number(digits: &str, is_negative: bool, pattern: &NumberPattern, out: &mut String) {
    let whole = digits.find('.').unwrap_or(digits.len());
    let (digits, spaces) = if whole > pattern.before {
        // It does not fit.
        let mut marks = "#".repeat(pattern.before + pattern.after + 1);
        marks.replace_range(pattern.before..=pattern.before, ".");
        (marks, 0)
    } else {
        (digits.to_owned(), pattern.before - whole)
    };
    let mut writer = NumberWriter::new(digits.into_bytes(), is_negative, spaces, pattern);
    for node in &pattern.nodes {
        writer.node(node, out);
    }
}

struct NumberWriter<'a> {
    pattern: &'a NumberPattern,
    number: Vec<u8>,
    /// The next digit.
    next: usize,
    is_negative: bool,
    is_sign_written: bool,
    /// Whether the pattern has brackets.
    has_brackets: bool,
    zero_start: usize,
    /// Digits of the pattern before the first of the number.
    spaces: usize,
    /// The position of the last digit that `FM` keeps.
    last_kept: Option<usize>,
    /// Digits of the pattern so far, and all.
    position: usize,
    count: usize,
    /// Whether a digit was the last thing written.
    is_within: bool,
    /// Whether the pattern had a digit more than the number, which ends what PostgreSQL writes.
    is_ended: bool,
}

impl<'a> NumberWriter<'a> {
    fn new(number: Vec<u8>, is_negative: bool, spaces: usize, pattern: &'a NumberPattern) -> Self {
        let mut has_brackets = pattern.has_brackets;
        let is_sign_written = if pattern.has_plus || pattern.has_minus {
            !pattern.has_plus || pattern.has_minus
        } else {
            if !is_negative && pattern.is_filled {
                has_brackets = false;
            }
            !is_negative && pattern.is_filled && !pattern.has_locale_sign
        };
        let last_kept = if pattern.is_filled && pattern.has_point { last_kept(&number, pattern, spaces) } else { None };
        let mut count = (pattern.before + pattern.after).saturating_sub(1);
        if !is_sign_written && spaces == 0 {
            count += 1;
        }
        Self {
            pattern,
            number,
            next: 0,
            is_negative,
            is_sign_written,
            has_brackets,
            zero_start: pattern.zero_start.saturating_sub(1),
            spaces,
            last_kept,
            position: 0,
            count,
            is_within: false,
            is_ended: false,
        }
    }

    fn node(&mut self, node: &PatternNode<NumberField>, out: &mut String) {
        if self.is_ended {
            return;
        }
        let field = match node {
            PatternNode::Text(character) | PatternNode::Separator(character) | PatternNode::Space(character) => {
                return out.push(*character);
            }
            PatternNode::Field(node) => node.field,
        };
        let is_filled = self.pattern.is_filled;
        match field {
            NumberField::Nine | NumberField::Zero | NumberField::Point => self.digit(field, out),
            NumberField::Comma | NumberField::Group => match (self.is_within, is_filled) {
                (true, _) => out.push(','),
                (false, false) => out.push(' '),
                (false, true) => {}
            },
            NumberField::Currency => out.push(' '),
            NumberField::Ordinal { is_upper } => {
                let is_none = self.pattern.roman.is_some() || self.number.first() == Some(&b'#');
                if !is_none && !self.is_negative && !self.pattern.has_point {
                    let digits: String = self.number.iter().map(|digit| char::from(*digit)).collect();
                    out.push_str(ordinal_suffix(
                        &digits,
                        if is_upper { OrdinalSuffix::Upper } else { OrdinalSuffix::Lower },
                    ));
                }
            }
            NumberField::Minus if self.is_negative => out.push('-'),
            NumberField::Plus if !self.is_negative => out.push('+'),
            NumberField::Minus | NumberField::Plus if is_filled => {}
            NumberField::Minus | NumberField::Plus => out.push(' '),
            NumberField::Sign => out.push(if self.is_negative { '-' } else { '+' }),
            _ => {}
        }
    }

    /// Whether the zero before the point is left out, as in `.5`.
    fn is_zero_left_out(&self) -> bool {
        !self.pattern.has_zero && self.next == 0 && self.number.first() == Some(&b'0') && self.pattern.after != 0
    }

    fn is_point_last(&self) -> bool {
        self.last_kept.is_some_and(|last| self.number.get(last) == Some(&b'.'))
    }

    fn sign(&mut self, out: &mut String) {
        let is_due = self.position >= self.spaces || (self.pattern.has_zero && self.zero_start == self.position);
        if self.is_sign_written || !is_due || (self.is_zero_left_out() && !self.is_point_last()) {
            return;
        }
        if self.pattern.has_locale_sign {
            if self.pattern.sign_place != SignPlace::Before {
                return;
            }
            out.push(if self.is_negative { '-' } else { '+' });
        } else if self.has_brackets {
            out.push(if self.is_negative { '<' } else { ' ' });
        } else if self.is_negative {
            out.push('-');
        } else if !self.pattern.is_filled {
            out.push(' ');
        }
        self.is_sign_written = true;
    }

    fn digit(&mut self, field: NumberField, out: &mut String) {
        let pattern = self.pattern;
        self.is_within = false;
        self.sign(out);
        if self.position < self.spaces && (self.zero_start > self.position || !pattern.has_zero) {
            if !pattern.is_filled {
                out.push(' ');
            }
        } else if pattern.has_zero && self.position < self.spaces {
            out.push('0');
            self.is_within = true;
        } else {
            let current = self.number.get(self.next).copied();
            if current == Some(b'.') {
                if !self.is_point_last() || pattern.is_filled {
                    out.push('.');
                }
            } else if self.last_kept.is_some_and(|last| self.next > last) && field != NumberField::Zero {
                // Zeros at the end are left out.
            } else if self.is_zero_left_out() {
                if !pattern.is_filled {
                    out.push(' ');
                } else if self.is_point_last() {
                    out.push('0');
                }
            } else if let Some(digit) = current {
                out.push(char::from(digit));
                self.is_within = true;
            } else {
                self.is_ended = true;
            }
            if current.is_some() {
                self.next += 1;
            }
        }
        if self.is_ended {
            return;
        }
        let mut end = self.count + usize::from(self.spaces > 0) + usize::from(pattern.has_point);
        if self.last_kept == Some(self.next) {
            end = self.position;
        }
        if self.position + 1 == end {
            if self.is_sign_written && self.has_brackets {
                out.push(if self.is_negative { '>' } else { ' ' });
            } else if pattern.has_locale_sign && pattern.sign_place == SignPlace::After {
                out.push(if self.is_negative { '-' } else { '+' });
            }
        }
        self.position += 1;
    }
}

/// Returns the position of the last digit after the point that is not 0 or belongs to a `0` of the pattern.
fn last_kept(number: &[u8], pattern: &NumberPattern, spaces: usize) -> Option<usize> {
    let point = number.iter().position(|byte| *byte == b'.')?;
    let last = number.iter().rposition(|byte| *byte != b'0').map_or(point, |last| last.max(point));
    if pattern.zero_end > spaces {
        let last_zero = (pattern.zero_end - spaces).min(number.len().saturating_sub(1));
        return Some(last.max(last_zero));
    }
    Some(last)
}

/// Returns a number from 1 to 3999 as Roman numerals; others as `#`.
fn roman(number: Option<i64>) -> String {
    const NUMERALS: [(i64, &str); 13] = [
        (1_000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let Some(mut rest) = number.filter(|number| (1..4_000).contains(number)) else { return "#".repeat(15) };
    let mut text = String::new();
    for (value, numeral) in NUMERALS {
        while rest >= value {
            text.push_str(numeral);
            rest -= value;
        }
    }
    text
}

/// Reads the digits at the positions of the pattern's digits, with their sign and point.
pub(super) fn read_number(text: &str, pattern: &NumberPattern) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut reader = NumberReader {
        pattern,
        text: &characters,
        at: 0,
        sign: None,
        digits: String::new(),
        before: 0,
        after: 0,
        has_point: false,
        was_read: false,
    };
    for node in &pattern.nodes {
        if reader.at >= reader.text.len() {
            break;
        }
        reader.node(node);
    }
    let digits = reader.digits.trim_end_matches('.');
    format!("{}{digits}", reader.sign.map_or(String::new(), String::from))
}

struct NumberReader<'a> {
    pattern: &'a NumberPattern,
    text: &'a [char],
    at: usize,
    sign: Option<char>,
    digits: String,
    before: usize,
    after: usize,
    has_point: bool,
    was_read: bool,
}

impl NumberReader<'_> {
    fn current(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn is_data(character: char) -> bool {
        character.is_ascii_digit() || matches!(character, '.' | ',' | '+' | '-')
    }

    /// Skips up to `count` characters that cannot belong to a number.
    fn skip_other(&mut self, count: usize) {
        for _ in 0..count {
            if self.current().is_none_or(Self::is_data) {
                break;
            }
            self.at += 1;
        }
    }

    fn node(&mut self, node: &PatternNode<NumberField>) {
        let PatternNode::Field(node) = node else {
            self.at += 1;
            return;
        };
        match node.field {
            NumberField::Nine | NumberField::Zero | NumberField::Point => {
                self.digit(node.field);
                self.at += 1;
            }
            NumberField::Comma | NumberField::Group
                if self.current() == Some(',') && (self.was_read || !self.pattern.is_filled || self.before > 0) =>
            {
                self.at += 1;
            }
            NumberField::Currency => self.skip_other(1),
            NumberField::Ordinal { .. } => self.skip_other(2),
            NumberField::Minus if self.current() == Some('-') => self.take_sign('-'),
            NumberField::Plus if self.current() == Some('+') => self.take_sign('+'),
            NumberField::Minus | NumberField::Plus => self.skip_other(1),
            NumberField::Sign => match self.current() {
                Some('-') => self.take_sign('-'),
                Some('+') => self.take_sign('+'),
                _ => self.skip_other(1),
            },
            _ => {}
        }
    }

    fn take_sign(&mut self, sign: char) {
        self.sign = Some(sign);
        self.at += 1;
    }

    fn digit(&mut self, field: NumberField) {
        let pattern = self.pattern;
        let mut is_read = false;
        if self.current() == Some(' ') {
            self.at += 1;
        }
        if self.current().is_none() {
            return;
        }
        if self.sign.is_none() && field != NumberField::Point && self.before + self.after == 0 {
            let is_open = pattern.has_brackets && self.current() == Some('<');
            if !pattern.has_locale_sign || pattern.sign_place == SignPlace::Before {
                match self.current() {
                    Some('-') => self.take_sign('-'),
                    Some('+') => self.take_sign('+'),
                    _ if is_open => self.take_sign('-'),
                    _ => {}
                }
            } else if matches!(self.current(), Some('-' | '+')) {
                self.sign = self.current();
                self.at += 1;
            }
        }
        let Some(current) = self.current() else { return };
        if current.is_ascii_digit() {
            if self.has_point && self.after == pattern.after {
                // Characters without a counterpart in the pattern are not read.
                return;
            }
            self.digits.push(current);
            if self.has_point {
                self.after += 1
            } else {
                self.before += 1
            }
            is_read = true;
        } else if pattern.has_point && !self.has_point && current == '.' {
            self.digits.push('.');
            self.has_point = true;
            is_read = true;
        }
        self.was_read = is_read;
        if self.sign.is_some() || self.before + self.after == 0 {
            return;
        }
        let next = self.text.get(self.at + 1).copied();
        if pattern.has_locale_sign && is_read && matches!(next, Some('-' | '+')) {
            self.sign = next;
            self.at += 1;
        } else if !is_read
            && !pattern.has_locale_sign
            && (pattern.has_plus || pattern.has_minus)
            && matches!(current, '-' | '+')
        {
            self.sign = Some(current);
        }
    }
}
