//! Patterns of `to_char`, `to_date`, `to_timestamp` and `to_number`, split into what they consist of; those of numbers also
//! put together.

use datafusion::common::{Result, plan_datafusion_err};

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PatternNode<F> {
    Field(FieldNode<F>),
    /// Text to be written; a character each.
    Text(char),
    Separator(char),
    Space(char),
}

/// A field with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FieldNode<F> {
    pub(super) field: F,
    /// `FM`: neither zeros nor spaces fill it up. `TM` does the same to names.
    pub(super) is_filled: bool,
    pub(super) is_translated: bool,
    pub(super) ordinal: OrdinalSuffix,
}

/// The ending of a number: `th`, `TH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OrdinalSuffix {
    None,
    Lower,
    Upper,
}

/// How a name is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LetterCase {
    Upper,
    Title,
    Lower,
}

impl LetterCase {
    /// Converts `title` to this case.
    pub(super) fn apply(self, title: &str) -> String {
        match self {
            Self::Upper => title.to_ascii_uppercase(),
            Self::Title => title.to_owned(),
            Self::Lower => title.to_ascii_lowercase(),
        }
    }
}

/// The fields of dates and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeField {
    /// `AM` or `PM`, with or without points.
    Meridiem {
        case: LetterCase,
        is_dotted: bool,
    },
    /// `BC` or `AD`, with or without points.
    Era {
        case: LetterCase,
        is_dotted: bool,
    },
    Century,
    DayName(LetterCase),
    ShortDayName(LetterCase),
    DayOfYear,
    IsoDayOfYear,
    Day,
    DayOfWeek,
    IsoDayOfWeek,
    /// Digits of the fraction of a second.
    Fraction(u32),
    Exact,
    Hour24,
    Hour12,
    IsoWeek,
    /// The last digits of the ISO year.
    IsoYear(u32),
    Julian,
    Minute,
    Month,
    MonthName(LetterCase),
    ShortMonthName(LetterCase),
    Milliseconds,
    Offset,
    Quarter,
    RomanMonth(LetterCase),
    /// Seconds of the day, by four or five letters.
    SecondsOfDay(u32),
    Second,
    ZoneHours,
    ZoneMinutes,
    Zone(LetterCase),
    Microseconds,
    WeekOfYear,
    WeekOfMonth,
    GroupedYear,
    /// The last digits of the year.
    Year(u32),
}

/// All that are digits and have two cases.
const NUMBERS: &[(&str, TimeField)] = &[
    ("CC", TimeField::Century),
    ("DDD", TimeField::DayOfYear),
    ("DD", TimeField::Day),
    ("D", TimeField::DayOfWeek),
    ("FF1", TimeField::Fraction(1)),
    ("FF2", TimeField::Fraction(2)),
    ("FF3", TimeField::Fraction(3)),
    ("FF4", TimeField::Fraction(4)),
    ("FF5", TimeField::Fraction(5)),
    ("FF6", TimeField::Fraction(6)),
    ("FX", TimeField::Exact),
    ("HH24", TimeField::Hour24),
    ("HH12", TimeField::Hour12),
    ("HH", TimeField::Hour12),
    ("IDDD", TimeField::IsoDayOfYear),
    ("ID", TimeField::IsoDayOfWeek),
    ("IW", TimeField::IsoWeek),
    ("IYYY", TimeField::IsoYear(4)),
    ("IYY", TimeField::IsoYear(3)),
    ("IY", TimeField::IsoYear(2)),
    ("I", TimeField::IsoYear(1)),
    ("J", TimeField::Julian),
    ("MI", TimeField::Minute),
    ("MM", TimeField::Month),
    ("MS", TimeField::Milliseconds),
    ("OF", TimeField::Offset),
    ("Q", TimeField::Quarter),
    ("SSSSS", TimeField::SecondsOfDay(5)),
    ("SSSS", TimeField::SecondsOfDay(4)),
    ("SS", TimeField::Second),
    ("TZH", TimeField::ZoneHours),
    ("TZM", TimeField::ZoneMinutes),
    ("US", TimeField::Microseconds),
    ("WW", TimeField::WeekOfYear),
    ("W", TimeField::WeekOfMonth),
    ("Y,YYY", TimeField::GroupedYear),
    ("YYYY", TimeField::Year(4)),
    ("YYY", TimeField::Year(3)),
    ("YY", TimeField::Year(2)),
    ("Y", TimeField::Year(1)),
];

/// A field whose case defines the case of its value.
type CasedField = fn(LetterCase) -> TimeField;

const CASED_FIELDS: &[(&str, CasedField)] = &[
    ("Day", TimeField::DayName),
    ("Dy", TimeField::ShortDayName),
    ("Month", TimeField::MonthName),
    ("Mon", TimeField::ShortMonthName),
];

/// Names of two cases.
const PAIRS: &[(&str, CasedField)] = &[
    ("A.D.", |case| TimeField::Era { case, is_dotted: true }),
    ("B.C.", |case| TimeField::Era { case, is_dotted: true }),
    ("AD", |case| TimeField::Era { case, is_dotted: false }),
    ("BC", |case| TimeField::Era { case, is_dotted: false }),
    ("A.M.", |case| TimeField::Meridiem { case, is_dotted: true }),
    ("P.M.", |case| TimeField::Meridiem { case, is_dotted: true }),
    ("AM", |case| TimeField::Meridiem { case, is_dotted: false }),
    ("PM", |case| TimeField::Meridiem { case, is_dotted: false }),
    ("RM", TimeField::RomanMonth),
    ("TZ", TimeField::Zone),
];

/// Parses the longest field at the start of `text`, and returns its length in bytes.
fn time_field(text: &str) -> Option<(TimeField, usize)> {
    let mut longest: Option<(TimeField, usize)> = None;
    let mut offer = |field: TimeField, name: &str| {
        if text.starts_with(name) && longest.is_none_or(|(_, length)| name.len() > length) {
            longest = Some((field, name.len()));
        }
    };
    for (name, field) in NUMBERS {
        offer(*field, name);
        offer(*field, &name.to_ascii_lowercase());
    }
    for (name, field) in CASED_FIELDS {
        offer(field(LetterCase::Title), name);
        offer(field(LetterCase::Upper), &name.to_ascii_uppercase());
        offer(field(LetterCase::Lower), &name.to_ascii_lowercase());
    }
    for (name, field) in PAIRS {
        offer(field(LetterCase::Upper), name);
        offer(field(LetterCase::Lower), &name.to_ascii_lowercase());
    }
    longest
}

/// Splits a pattern of dates and times into its parts.
pub(super) fn parse_time_pattern(pattern: &str) -> Vec<PatternNode<TimeField>> {
    let mut nodes = Vec::new();
    let mut rest = pattern;
    while !rest.is_empty() {
        let (mut is_filled, mut is_translated, mut after) = (false, false, rest);
        loop {
            match after.get(..2) {
                Some("FM" | "fm") => is_filled = true,
                Some("TM" | "tm") => is_translated = true,
                _ => break,
            }
            after = &after[2..];
        }
        if let Some((field, length)) = time_field(after) {
            rest = &after[length..];
            let mut ordinal = OrdinalSuffix::None;
            match rest.get(..2) {
                Some("TH") => ordinal = OrdinalSuffix::Upper,
                Some("th") => ordinal = OrdinalSuffix::Lower,
                _ => {}
            }
            if ordinal != OrdinalSuffix::None || matches!(rest.get(..2), Some("SP" | "sp")) {
                rest = &rest[2..];
            }
            nodes.push(PatternNode::Field(FieldNode { field, is_filled, is_translated, ordinal }));
            continue;
        }
        rest = take_literal(after, &mut nodes, true);
    }
    nodes
}

/// Takes the text that a pattern begins with, which is no field.
fn take_literal<'a, F>(text: &'a str, nodes: &mut Vec<PatternNode<F>>, has_separators: bool) -> &'a str {
    let mut characters = text.chars();
    match characters.next() {
        Some('"') => {
            while let Some(character) = characters.next() {
                match character {
                    '"' => break,
                    '\\' => nodes.push(PatternNode::Text(characters.next().unwrap_or('\\'))),
                    other => nodes.push(PatternNode::Text(other)),
                }
            }
        }
        Some('\\') if characters.as_str().starts_with('"') => {
            characters.next();
            nodes.push(PatternNode::Text('"'));
        }
        Some(character) if has_separators && is_separator(character) => nodes.push(PatternNode::Separator(character)),
        Some(character) if character.is_ascii_whitespace() => nodes.push(PatternNode::Space(character)),
        Some(character) => nodes.push(PatternNode::Text(character)),
        None => {}
    }
    characters.as_str()
}

/// Whether a separator of a pattern matches the character.
pub(super) fn is_separator(character: char) -> bool {
    character.is_ascii_graphic() && !character.is_ascii_alphanumeric()
}

/// Returns the ordinal suffix of a number.
pub(super) fn ordinal_suffix(digits: &str, ordinal: OrdinalSuffix) -> &'static str {
    let bytes = digits.as_bytes();
    let before = bytes.len().checked_sub(2).and_then(|position| bytes.get(position));
    let (lower, upper) = match (before, bytes.last()) {
        (Some(b'1'), _) => ("th", "TH"),
        (_, Some(b'1')) => ("st", "ST"),
        (_, Some(b'2')) => ("nd", "ND"),
        (_, Some(b'3')) => ("rd", "RD"),
        _ => ("th", "TH"),
    };
    match ordinal {
        OrdinalSuffix::None => "",
        OrdinalSuffix::Lower => lower,
        OrdinalSuffix::Upper => upper,
    }
}

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

const NUMBER_FIELDS: &[(&str, NumberField)] = &[
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
    let found =
        NUMBER_FIELDS.iter().find(|(name, _)| text.starts_with(name) || text.starts_with(&name.to_ascii_lowercase()));
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
                let node = FieldNode { field, is_filled: false, is_translated: false, ordinal: OrdinalSuffix::None };
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
