//! `to_char` of numbers.

use super::number_pattern::{NumberField, NumberPattern, SignPlace};
use super::pattern::{OrdinalSuffix, PatternNode, ordinal_suffix};

/// Writes a number by a pattern. `digits` is its absolute value, rounded to as many digits behind the point as the
/// pattern has.
pub(super) fn write_number(digits: &str, is_negative: bool, pattern: &NumberPattern, out: &mut String) {
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
pub(super) fn roman(number: Option<i64>) -> String {
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
