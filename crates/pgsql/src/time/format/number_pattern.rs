//! Patterns of numbers.

use datafusion::common::{Result, plan_datafusion_err};

use super::pattern::{PatternNode, take_literal};

/// A part of a pattern of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberField {
    Comma,
    Point,
    Zero,
    Nine,
    Blank,
    Exponent,
    Fill,
    Group,
    Currency,
    Minus,
    Plus,
    Brackets,
    Roman { is_upper: bool },
    Sign,
    LocaleSign,
    Ordinal { is_upper: bool },
    Shift,
}

const NAMES: &[(&str, NumberField)] = &[
    (",", NumberField::Comma),
    (".", NumberField::Point),
    ("0", NumberField::Zero),
    ("9", NumberField::Nine),
    ("B", NumberField::Blank),
    ("D", NumberField::Point),
    ("EEEE", NumberField::Exponent),
    ("FM", NumberField::Fill),
    ("G", NumberField::Group),
    ("L", NumberField::Currency),
    ("MI", NumberField::Minus),
    ("PL", NumberField::Plus),
    ("PR", NumberField::Brackets),
    ("RN", NumberField::Roman { is_upper: true }),
    ("SG", NumberField::Sign),
    ("S", NumberField::LocaleSign),
    ("TH", NumberField::Ordinal { is_upper: true }),
    ("V", NumberField::Shift),
];

/// The position of the sign of the locale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum SignPlace {
    #[default]
    None,
    Before,
    After,
}

/// A pattern, and the properties of the whole.
#[derive(Debug, Clone, Default)]
pub(super) struct NumberPattern {
    pub(super) nodes: Vec<PatternNode<NumberField>>,
    /// Digits before the point, after it, and after `V`.
    pub(super) before: usize,
    pub(super) after: usize,
    pub(super) shift: usize,
    pub(super) zero_start: usize,
    pub(super) zero_end: usize,
    pub(super) digits_before_sign: usize,
    pub(super) sign_place: SignPlace,
    pub(super) has_zero: bool,
    pub(super) has_point: bool,
    pub(super) has_shift: bool,
    pub(super) is_filled: bool,
    pub(super) has_locale_sign: bool,
    pub(super) has_minus: bool,
    pub(super) has_plus: bool,
    pub(super) has_brackets: bool,
    pub(super) roman: Option<bool>,
    pub(super) has_exponent: bool,
}

fn field(text: &str) -> Option<(NumberField, usize)> {
    // `th` differs by its case, the others do not.
    if text.starts_with("th") {
        return Some((NumberField::Ordinal { is_upper: false }, 2));
    }
    if text.starts_with("rn") {
        return Some((NumberField::Roman { is_upper: false }, 2));
    }
    let found = NAMES.iter().find(|(name, _)| text.starts_with(name) || text.starts_with(&name.to_ascii_lowercase()));
    found.map(|(name, field)| (*field, name.len()))
}

impl NumberPattern {
    /// Reads a pattern.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut pattern = Self::default();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some((field, length)) = field(rest) {
                rest = &rest[length..];
                pattern
                    .add(field)
                    .map_err(|reason| plan_datafusion_err!("invalid number format \"{text}\": {reason}"))?;
                let node = super::pattern::FieldNode {
                    field,
                    is_filled: false,
                    is_translated: false,
                    ordinal: super::pattern::OrdinalSuffix::None,
                };
                pattern.nodes.push(PatternNode::Field(node));
                continue;
            }
            rest = take_literal(rest, &mut pattern.nodes, false);
        }
        if pattern.sign_place == SignPlace::Before && pattern.before == pattern.digits_before_sign {
            pattern.sign_place = SignPlace::After;
        }
        Ok(pattern)
    }

    /// Counts a field.
    fn add(&mut self, field: NumberField) -> Result<(), &'static str> {
        if self.has_exponent && field != NumberField::Exponent {
            return Err("\"EEEE\" must be the last pattern used");
        }
        match field {
            NumberField::Nine if self.has_brackets => return Err("\"9\" must be ahead of \"PR\""),
            NumberField::Zero if self.has_brackets => return Err("\"0\" must be ahead of \"PR\""),
            NumberField::Nine if self.has_shift => self.shift += 1,
            NumberField::Nine if self.has_point => self.after += 1,
            NumberField::Nine => self.before += 1,
            NumberField::Zero => {
                if !self.has_zero && !self.has_point {
                    self.has_zero = true;
                    self.zero_start = self.before + 1;
                }
                if self.has_point {
                    self.after += 1
                } else {
                    self.before += 1
                }
                self.zero_end = self.before + self.after;
            }
            NumberField::Point if self.has_point => return Err("multiple decimal points"),
            NumberField::Point if self.has_shift => return Err("cannot use \"V\" and decimal point together"),
            NumberField::Point => self.has_point = true,
            NumberField::Fill => self.is_filled = true,
            NumberField::LocaleSign => {
                if self.has_locale_sign {
                    return Err("cannot use \"S\" twice");
                }
                if self.has_plus || self.has_minus || self.has_brackets {
                    return Err("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together");
                }
                self.has_locale_sign = true;
                if self.has_point {
                    self.sign_place = SignPlace::After;
                } else {
                    self.sign_place = SignPlace::Before;
                    self.digits_before_sign = self.before;
                }
            }
            NumberField::Minus | NumberField::Plus | NumberField::Sign if self.has_locale_sign => {
                return Err("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\" together");
            }
            NumberField::Minus => self.has_minus = true,
            NumberField::Plus => self.has_plus = true,
            NumberField::Sign => (self.has_minus, self.has_plus) = (true, true),
            NumberField::Brackets if self.has_locale_sign || self.has_plus || self.has_minus => {
                return Err("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together");
            }
            NumberField::Brackets => self.has_brackets = true,
            NumberField::Roman { is_upper } => self.roman = Some(is_upper),
            NumberField::Shift if self.has_point => return Err("cannot use \"V\" and decimal point together"),
            NumberField::Shift => self.has_shift = true,
            NumberField::Exponent if self.has_exponent => return Err("cannot use \"EEEE\" twice"),
            NumberField::Exponent => {
                let has_others = self.is_filled || self.has_locale_sign || self.has_brackets || self.has_minus;
                if has_others || self.has_plus || self.roman.is_some() || self.has_shift {
                    return Err("\"EEEE\" may only be used together with digit and decimal point patterns");
                }
                self.has_exponent = true;
            }
            NumberField::Comma | NumberField::Group | NumberField::Currency | NumberField::Blank => {}
            NumberField::Ordinal { .. } => {}
        }
        Ok(())
    }
}
