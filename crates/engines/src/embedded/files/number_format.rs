//! Number formats and null markers of text files; and which separators the numbers of a text file have, from the
//! values of its columns, and dates with points.
//!
//! Programs write `1234.5`, people also `1.234,5` or `1,234.5`. Only the configuration decides what a number means.
//! Without it, such columns are text, with a note that has the option. If a value of a table has a decimal comma or
//! points between thousands, whatever else its column has, or if a column has dates such as `15.06.2025` in files
//! without commas between values, a point in the values of another column (`1.000`) may be between thousands, so that
//! they are text, too.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use datafusion::arrow::datatypes::DataType;

use super::text_value::{infer_type, type_reason};

/// Texts that mean null in columns whose other values have a type.
const NULL_MARKERS: [&str; 10] = ["NULL", "null", "Null", "NA", "N/A", "n/a", "#N/A", "None", "-", "\\N"];

pub(crate) fn is_null_marker(value: &str) -> bool {
    NULL_MARKERS.contains(&value)
}

/// The format of numbers in a text file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NumberFormat {
    /// Decimal separator.
    pub decimal: char,
    /// Separator between groups of three digits.
    pub thousands: Option<char>,
}

impl NumberFormat {
    /// The format in which `example` is the number 1234.5: `1.234,5`.
    pub(crate) fn from_example(example: &str) -> Option<Self> {
        let rest = example.strip_prefix('1')?;
        let (thousands, rest) = match rest.strip_prefix("234") {
            Some(rest) => (None, rest),
            None => split_separator(rest)
                .and_then(|(separator, rest)| Some((Some(separator), rest.strip_prefix("234")?)))?,
        };
        let (decimal, rest) = split_separator(rest)?;
        (rest == "5" && thousands != Some(decimal)).then_some(Self { decimal, thousands })
    }

    /// The number 1234.5 in this format.
    pub(crate) fn example(self) -> String {
        let thousands = self.thousands.map(String::from).unwrap_or_default();
        format!("1{thousands}234{}5", self.decimal)
    }

    /// The formats in which `value` is a number, of those that people write and programs do not. Several if it is not known
    /// what its separator means.
    pub(crate) fn of_number(value: &str) -> Vec<Self> {
        let thousands = [',', '.', '\'', '’', ' ', '\u{a0}', '\u{202f}'].map(Some).into_iter().chain([None]);
        let formats = thousands.flat_map(|thousands| ['.', ','].map(|decimal| Self { decimal, thousands }));
        let is_written = |format: &Self| match format.thousands {
            Some(separator) => {
                value.contains(separator) && (format.decimal != ',' || separator == '.' || value.contains(','))
            }
            None => value.contains(',') && format.decimal == ',',
        };
        let differs = |format: &Self| format.thousands != Some(format.decimal);
        formats.filter(|format| differs(format) && is_written(format) && format.normalize(value).is_some()).collect()
    }

    /// The options of a table that declare the format.
    pub(crate) fn options(self) -> String {
        let decimal = (self.decimal != '.').then(|| format!("decimal: \"{}\"", self.decimal));
        let thousands = self.thousands.map(|separator| format!("thousands: \"{separator}\""));
        decimal.into_iter().chain(thousands).collect::<Vec<_>>().join(", ")
    }

    /// Converts `value` to plain notation: `-1.234,5` becomes `-1234.5`. `None` if it is not a number in this format.
    pub(crate) fn normalize<'v>(self, value: &'v str) -> Option<String> {
        let unsigned = value.strip_prefix('-').unwrap_or(value);
        let sign = &value[..value.len() - unsigned.len()];
        let split = |text, parts: Option<(&'v str, &'v str)>| parts.map_or((text, None), |(a, b)| (a, Some(b)));
        let (mantissa, exponent) = split(unsigned, unsigned.split_once(['e', 'E']));
        let (whole, fraction) = split(mantissa, mantissa.split_once(self.decimal));
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let groups: Vec<&str> = match self.thousands {
            Some(separator) => whole.split(separator).collect(),
            None => vec![whole],
        };
        let (first, others) = groups.split_first()?;
        let is_grouped = others.iter().all(|group| group.len() == 3) && (others.is_empty() || first.len() <= 3);
        let is_exponent = |text: &str| is_digits(text.strip_prefix(['+', '-']).unwrap_or(text));
        if !is_grouped
            || !groups.iter().all(|group| is_digits(group))
            || !fraction.is_none_or(is_digits)
            || !exponent.is_none_or(is_exponent)
        {
            return None;
        }
        let fraction = fraction.map(|digits| format!(".{digits}")).unwrap_or_default();
        let exponent = exponent.map(|digits| format!("e{digits}")).unwrap_or_default();
        Some(format!("{sign}{}{fraction}{exponent}", groups.concat()))
    }
}

/// What a value shows of the numbers of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberNotation {
    /// `12,50`
    DecimalComma,
    /// `11.050.007`
    GroupingPoints,
}

/// Beyond it, a text is no number with its unit.
const NUMBER_BYTES_MAX: usize = 40;
/// The number of characters of a sign or a unit: `EUR`, `km/h`.
const UNIT_CHARACTERS_MAX: usize = 4;
/// What may be between thousands if the decimal separator is a comma.
const GROUP_SEPARATORS: [char; 5] = ['.', ' ', '\u{a0}', '\u{202f}', '\''];

/// The notation of the number in `value`, beside which a sign or a unit may be: `+12,50`, `12,50 €`. `None` for other texts, and
/// for what programs write or may mean otherwise: `1,234`, `1.000`.
fn find_notation(value: &str) -> Option<NumberNotation> {
    // Most values are looked at no further.
    if value.len() > NUMBER_BYTES_MAX || !value.contains(',') && value.matches('.').count() < 2 {
        return None;
    }
    let is_digit = |character: char| character.is_ascii_digit();
    let (begin, end) = (value.find(is_digit)?, value.rfind(is_digit)? + 1);
    let is_unit = |text: &str| text.trim().chars().count() <= UNIT_CHARACTERS_MAX;
    let number = value.get(begin..end).filter(|_| is_unit(&value[..begin]) && is_unit(&value[end..]))?;
    let (whole, fraction) = number.split_once(',').map_or((number, None), |(whole, rest)| (whole, Some(rest)));
    let is_digits = |text: &str| !text.is_empty() && text.chars().all(is_digit);
    let separator = whole.chars().find(|character| GROUP_SEPARATORS.contains(character));
    let groups: Vec<&str> = separator.map_or_else(|| vec![whole], |separator| whole.split(separator).collect());
    let is_grouped = groups.iter().skip(1).all(|group| group.len() == 3)
        && (separator.is_none() || whole.find(GROUP_SEPARATORS).is_some_and(|length| length <= 3));
    if !is_grouped || !groups.iter().all(|group| is_digits(group)) {
        return None;
    }
    let is_code = whole.starts_with('0');
    let is_byte = |group: &&str| group.parse::<u8>().is_ok();
    match fraction {
        Some(fraction) => {
            let is_decimal = separator.is_some() || is_code || whole.len() > 3 || fraction.len() != 3;
            (is_decimal && is_digits(fraction)).then_some(NumberNotation::DecimalComma)
        }
        // Four bytes are the address of a machine.
        None => (separator == Some('.')
            && groups.len() > 2
            && !is_code
            && !(groups.len() == 4 && groups.iter().all(is_byte)))
        .then_some(NumberNotation::GroupingPoints),
    }
}

/// The separator that `text` begins with, and what follows it.
fn split_separator(text: &str) -> Option<(char, &str)> {
    let separator = text.chars().next().filter(|first| !first.is_alphanumeric() && !matches!(first, '-' | '+'))?;
    Some((separator, text.strip_prefix(separator)?))
}

const DECIMAL_COMMA: NumberFormat = NumberFormat { decimal: ',', thousands: Some('.') };
const GROUPING_COMMA: NumberFormat = NumberFormat { decimal: '.', thousands: Some(',') };
const DECIMAL_POINT: NumberFormat = NumberFormat { decimal: '.', thousands: None };

/// What the values of a column have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NumberEvidence {
    /// Whether all are numbers whose decimal separator is a comma.
    fits_decimal_comma: bool,
    /// Whether all are numbers with commas between thousands, if they have any.
    fits_grouping_comma: bool,
    has_comma: bool,
    has_point: bool,
    /// Whether one of them has a decimal comma. There may be other texts, and signs or units: `12,50 €`.
    has_decimal_comma: bool,
    /// Whether one of them has points between thousands, in the same way: `11.050.007`.
    has_grouping_points: bool,
    /// Whether all are times in one form with points.
    fits_point_time: bool,
    /// The type with the form that those have.
    point_time: Option<&'static str>,
    /// A value with a comma, or else another one that is no whole number.
    example: Option<Example>,
    /// Whether the configuration declares the type of the column.
    is_declared: bool,
}

/// A value, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Example {
    value: String,
    /// 0 if it is not known.
    line: u64,
    location: String,
}

impl Default for NumberEvidence {
    fn default() -> Self {
        let (has_comma, has_point, has_decimal_comma, has_grouping_points) = Default::default();
        let (point_time, example, is_declared) = Default::default();
        let (fits_decimal_comma, fits_grouping_comma, fits_point_time) = (true, true, true);
        Self {
            fits_decimal_comma,
            fits_grouping_comma,
            has_comma,
            has_point,
            has_decimal_comma,
            has_grouping_points,
            fits_point_time,
            point_time,
            example,
            is_declared,
        }
    }
}

/// What the separators in the numbers of a column mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Separators {
    DecimalComma,
    GroupingComma,
    /// `1,234` is either.
    AnyComma,
    /// `1.000` is a number of programs, unless the table has decimal commas.
    AnyPoint,
}

impl NumberEvidence {
    /// That of one value of a line of the file at `location`.
    pub(crate) fn of_value(value: &str, line: u64, location: &str) -> Self {
        let mut evidence = Self::default();
        evidence.learn(value, &infer_type(value, None), line);
        evidence.at_location(location)
    }

    /// Whether further values may change something else than the notation.
    pub(crate) fn is_open(&self) -> bool {
        self.fits_decimal_comma || self.fits_grouping_comma || self.fits_point_time
    }

    /// Adds a value of this line, 0 if it is not known. `plain` is its type without a number format.
    pub(crate) fn learn(&mut self, value: &str, plain: &DataType, line: u64) {
        self.learn_notation(value);
        if !self.is_open() {
            return;
        }
        if self.fits_point_time {
            let found = point_time(value);
            self.fits_point_time = found.is_some() && self.point_time.is_none_or(|known| found == Some(known));
            self.point_time = self.point_time.or(found).filter(|_| self.fits_point_time);
        }
        // Without separators, it is a number in every format.
        if *plain == DataType::Int64 {
            return;
        }
        let is_number = |format| matches!(infer_type(value, Some(format)), DataType::Int64 | DataType::Float64);
        let (has_comma, has_point) = (value.contains(','), value.contains('.'));
        self.fits_decimal_comma = self.fits_decimal_comma && is_number(DECIMAL_COMMA);
        self.fits_grouping_comma =
            self.fits_grouping_comma && if has_comma { is_number(GROUPING_COMMA) } else { *plain == DataType::Float64 };
        if self.example.is_none() || has_comma && !self.has_comma {
            self.example = Some(Example { value: value.to_owned(), line, location: String::new() });
        }
        self.has_comma |= has_comma;
        self.has_point |= has_point;
    }

    /// Adds the notation of a value of a column that may have other texts.
    pub(crate) fn learn_notation(&mut self, value: &str) {
        if self.has_decimal_comma {
            return;
        }
        match find_notation(value) {
            Some(NumberNotation::DecimalComma) => self.has_decimal_comma = true,
            Some(NumberNotation::GroupingPoints) => self.has_grouping_points = true,
            None => {}
        }
    }

    /// Of values in the file, or the sheet, at `location`.
    pub(crate) fn at_location(mut self, location: &str) -> Self {
        let is_open = self.is_open();
        let example = self.example.take().filter(|_| is_open);
        self.example = example.map(|example| Example { location: location.to_owned(), ..example });
        self
    }

    /// Of a column whose type the configuration declares.
    pub(crate) fn declared(self) -> Self {
        Self { is_declared: true, ..self }
    }

    /// Adds that of other values of the column.
    pub(crate) fn merge(&mut self, other: &Self) {
        let is_same_form =
            self.point_time.is_none() || other.point_time.is_none_or(|form| self.point_time == Some(form));
        self.fits_point_time = self.fits_point_time && other.fits_point_time && is_same_form;
        self.point_time = self.point_time.or(other.point_time).filter(|_| self.fits_point_time);
        self.fits_decimal_comma &= other.fits_decimal_comma;
        self.fits_grouping_comma &= other.fits_grouping_comma;
        if self.example.is_none() || other.has_comma && !self.has_comma {
            self.example = other.example.clone().or(self.example.take());
        }
        self.has_comma |= other.has_comma;
        self.has_point |= other.has_point;
        self.has_decimal_comma |= other.has_decimal_comma;
        self.has_grouping_points |= other.has_grouping_points;
        self.is_declared |= other.is_declared;
    }

    /// Whether its points are between thousands if the file has decimal commas.
    pub(crate) fn has_ambiguous_points(&self) -> bool {
        self.separators() == Some(Separators::AnyPoint)
    }

    fn separators(&self) -> Option<Separators> {
        match (self.has_comma, self.fits_decimal_comma, self.fits_grouping_comma) {
            (true, true, true) => Some(Separators::AnyComma),
            (true, true, false) => Some(Separators::DecimalComma),
            (true, false, true) => Some(Separators::GroupingComma),
            (false, true, _) if self.has_point => Some(Separators::AnyPoint),
            _ => None,
        }
    }
}

/// Whether `text` is a number or a time as people write them, which is text unless the configuration declares it: `-1,50`,
/// `12,50 €`, `15.06.2025`.
pub(super) fn is_local_value(text: &str) -> bool {
    let is_number = || matches!(infer_type(text, Some(DECIMAL_COMMA)), DataType::Int64 | DataType::Float64);
    point_time(text).is_some() || find_notation(text).is_some() || is_number()
}

/// The declared type that reads a time such as `15.06.2025 17:30`.
fn point_time(text: &str) -> Option<&'static str> {
    let (date, time) = text.split_once(' ').map_or((text, None), |(date, time)| (date, Some(time)));
    let number = |text: &str, digits: usize| {
        let is_number = (1..=digits).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|_| is_number)
    };
    let (day, rest) = date.split_once('.')?;
    let (month, year) = rest.split_once('.')?;
    let year = number(year, 4).filter(|year| *year >= 1_000).and_then(|year| i32::try_from(year).ok())?;
    NaiveDate::from_ymd_opt(year, number(month, 2)?, number(day, 2)?)?;
    let Some(time) = time else { return Some("date DD.MM.YYYY") };
    let bounds = [24, 60, 60];
    let parts: Vec<&str> = time.split(':').collect();
    let is_time = parts
        .iter()
        .zip(bounds)
        .all(|(part, bound)| part.len() == 2 && number(part, 2).is_some_and(|value| value < bound));
    match parts.len() {
        2 if is_time => Some("timestamp DD.MM.YYYY HH24:MI"),
        3 if is_time => Some("timestamp DD.MM.YYYY HH24:MI:SS"),
        _ => None,
    }
}

/// A column of a table, or of several files that are one.
pub(crate) struct ReviewedColumn<'a> {
    pub(crate) name: &'a str,
    pub(crate) evidence: NumberEvidence,
    /// The detected type, which the review may change to text.
    pub(crate) data_type: DataType,
}

impl ReviewedColumn<'_> {
    fn is(&self, separators: Separators) -> bool {
        self.evidence.separators() == Some(separators)
    }
}

/// Makes columns text whose points may be between thousands, and returns why columns are text, by their positions. `numbers` is
/// the declared format, and `suggest` says where to declare an option. `has_comma_delimiter`: programs that write commas between
/// values do not write them in numbers.
pub(crate) fn review_separators(
    columns: &mut [ReviewedColumn<'_>],
    numbers: Option<NumberFormat>,
    has_comma_delimiter: bool,
    suggest: impl Fn(&str) -> String,
) -> BTreeMap<usize, String> {
    let review = Review::new(columns, numbers, has_comma_delimiter);
    let mut notes = BTreeMap::new();
    for (position, column) in columns.iter_mut().enumerate() {
        if column.evidence.is_declared {
            continue;
        }
        let is_meant = review.is_meant(&column.evidence);
        if is_meant && column.data_type == DataType::Float64 && numbers.is_none() {
            column.data_type = DataType::Utf8;
        }
        let advice = match column.evidence.point_time {
            Some(declared) => {
                let kind = declared.split(' ').next().unwrap_or_default();
                Some(format!("for {kind}s, write {}", suggest(&column_option(column.name, declared))))
            }
            None if is_meant && review.may_advise => Some(review.advice(column, &suggest)),
            None => None,
        };
        if let (DataType::Utf8, Some(advice), Some(example)) = (&column.data_type, advice, &column.evidence.example) {
            let reason = type_reason(&DataType::Utf8, &example.value, example.line, &example.location);
            notes.insert(position, format!("{reason}; {advice}"));
        }
    }
    notes
}

/// What is known of the numbers of a table.
struct Review {
    /// Whether commas are decimal, from any value.
    has_decimal_comma: bool,
    has_grouping_comma: bool,
    /// Whether a number has a point that cannot be between thousands.
    has_decimal_point: bool,
    /// The number of columns whose points may be between thousands.
    ambiguous_points: usize,
    /// Whether numbers with decimal commas have points between thousands.
    has_grouping_point: bool,
    /// Whether options may be advised: another format would be wrong for the columns that the declared one fits.
    may_advise: bool,
}

impl Review {
    fn new(columns: &[ReviewedColumn<'_>], numbers: Option<NumberFormat>, has_comma_delimiter: bool) -> Self {
        let any = |separators| columns.iter().any(|column| column.is(separators));
        let has_decimal_point =
            columns.iter().any(|column| column.data_type == DataType::Float64 && !column.evidence.fits_decimal_comma);
        let has_notation =
            |column: &ReviewedColumn<'_>| column.evidence.has_decimal_comma || column.evidence.has_grouping_points;
        let has_point_time = columns.iter().any(|column| column.evidence.point_time.is_some());
        Self {
            has_decimal_comma: any(Separators::DecimalComma)
                || columns.iter().any(has_notation)
                || numbers.is_some_and(|declared| declared.decimal == ',')
                || has_point_time && !has_comma_delimiter && !has_decimal_point && !any(Separators::GroupingComma),
            has_grouping_comma: any(Separators::GroupingComma),
            has_decimal_point,
            ambiguous_points: columns.iter().filter(|column| column.is(Separators::AnyPoint)).count(),
            has_grouping_point: columns
                .iter()
                .any(|column| column.is(Separators::DecimalComma) && column.evidence.has_point),
            may_advise: numbers.is_none_or(|declared| declared == NumberFormat { thousands: None, ..DECIMAL_COMMA }),
        }
    }

    /// Whether the separators of the column mean something else than in the notation of programs.
    fn is_meant(&self, column: &NumberEvidence) -> bool {
        match column.separators() {
            Some(Separators::AnyPoint) => self.has_decimal_comma,
            separators => separators.is_some(),
        }
    }

    /// The options with which the column has numbers: those of the table, unless they would change other columns.
    fn advice(&self, column: &ReviewedColumn<'_>, suggest: impl Fn(&str) -> String) -> String {
        let write = |option: &str| format!("write {}", suggest(option));
        let of_column = |declared: &str, format: NumberFormat| {
            column_option(column.name, &format!("{declared} {}", format.example()))
        };
        let (with_points, without) = (DECIMAL_COMMA, NumberFormat { thousands: None, ..DECIMAL_COMMA });
        let is_other_changed = self.has_decimal_point || self.has_grouping_comma;
        let is_point_changed = self.ambiguous_points > 0 && (self.has_grouping_point || !self.has_decimal_comma);
        let decimal = match self.has_grouping_point {
            _ if is_other_changed || is_point_changed => {
                of_column("number", if column.evidence.has_point { with_points } else { without })
            }
            true => "decimal: \",\", thousands: \".\"".to_owned(),
            false => "decimal: \",\"".to_owned(),
        };
        let grouping = match self.has_decimal_comma {
            true => of_column("number", GROUPING_COMMA),
            false => "thousands: \",\"".to_owned(),
        };
        let is_any = column.is(Separators::AnyComma) && !self.has_decimal_comma;
        if column.is(Separators::AnyPoint) {
            let whole = match is_other_changed || self.ambiguous_points > 1 {
                true => of_column("integer", with_points),
                false => "decimal: \",\", thousands: \".\"".to_owned(),
            };
            let point = of_column("number", DECIMAL_POINT);
            match column.evidence.has_grouping_points {
                true => format!("for points between thousands, {}", write(&whole)),
                false => format!("if points are between thousands, {}; if they are decimal, {point}", write(&whole)),
            }
        } else if is_any && !is_other_changed {
            format!("if commas are between thousands, {}; if they are decimal, {decimal}", write(&grouping))
        } else if is_any || column.is(Separators::GroupingComma) {
            format!("for commas between thousands, {}", write(&grouping))
        } else {
            format!("for decimal commas, {}", write(&decimal))
        }
    }
}

/// The option that declares the type of a column.
fn column_option(name: &str, declared: &str) -> String {
    format!("columns: {{{name:?}: '{declared}'}}")
}

#[cfg(test)]
mod tests {
    use super::super::table_options::suggest_yaml;
    use super::*;

    #[test]
    fn normalizes_each_number_format() {
        let german = NumberFormat { decimal: ',', thousands: Some('.') };
        for (value, expected) in [
            ("1.234,56", Some("1234.56")),
            ("-1.234.567", Some("-1234567")),
            ("1234,5", Some("1234.5")),
            ("12,5e-3", Some("12.5e-3")),
            // Must not become a number that is a hundred times too large.
            ("12.34", None),
            ("1.2345", None),
            ("1234.567", None),
            ("1,234.5", None),
            ("", None),
            (",5", None),
            ("5,", None),
            ("-", None),
            ("abc", None),
        ] {
            assert_eq!(german.normalize(value).as_deref(), expected, "{value}");
        }
        let swiss = NumberFormat { decimal: '.', thousands: Some('\'') };
        assert_eq!(swiss.normalize("1'234.5").as_deref(), Some("1234.5"));
        let plain = NumberFormat { decimal: ',', thousands: None };
        assert_eq!(plain.normalize("1.234"), None);
    }

    #[test]
    fn a_value_with_a_sign_or_a_unit_has_a_notation() {
        for value in [
            "12,5",
            "+12,50",
            "-2,50",
            "12,50 €",
            "€ 12,50",
            "12,50\u{a0}EUR",
            "12,5%",
            "1 234,50",
            "1.234,50-",
            "1.234,567",
            "1'234,5",
            "0,125",
            "1234,567",
            "(12,50)",
        ] {
            assert_eq!(find_notation(value), Some(NumberNotation::DecimalComma), "{value}");
        }
        for value in ["11.050.007", "-1.234.567 EUR", "1.234.567.890"] {
            assert_eq!(find_notation(value), Some(NumberNotation::GroupingPoints), "{value}");
        }
        for value in [
            "",
            "k.A.",
            ",5",
            "5,",
            "1,234",
            "1,234.5",
            "1,234,567",
            "3,7,9",
            "1.000",
            "12.5",
            "1.2.3",
            "15.06.2025",
            "192.168.178.100",
            "012.345.678",
            "5, 2025",
            "a, b",
            "costs 12,50",
            "12,50 pieces",
            "1234.567,5",
            "1.23,5",
        ] {
            assert_eq!(find_notation(value), None, "{value}");
        }
    }

    #[test]
    fn numbers_of_people_have_the_options_that_read_them() {
        for (value, expected) in [
            ("1,699.52", r#"thousands: ",""#),
            ("1.699,52", r#"decimal: ",", thousands: ".""#),
            ("1699,52", r#"decimal: ",""#),
            ("1,699", r#"thousands: "," or decimal: ",""#),
            ("-1.234.567", r#"decimal: ",", thousands: ".""#),
            ("1'234", r#"thousands: "'""#),
            ("1 234,5", r#"decimal: ",", thousands: " ""#),
            ("1234.5", ""),
            ("1234", ""),
            ("15.06.2025", ""),
            ("12.34", ""),
            ("1, 2", ""),
            ("late", ""),
            ("", ""),
        ] {
            let options: Vec<String> = NumberFormat::of_number(value).into_iter().map(NumberFormat::options).collect();
            assert_eq!(options.join(" or "), expected, "{value}");
        }
    }

    #[test]
    fn a_format_is_declared_by_an_example() {
        for (example, decimal, thousands) in [
            ("1234.5", '.', None),
            ("1234,5", ',', None),
            ("1.234,5", ',', Some('.')),
            ("1'234.5", '.', Some('\'')),
            ("1\u{a0}234,5", ',', Some('\u{a0}')),
        ] {
            let format = NumberFormat { decimal, thousands };
            assert_eq!(NumberFormat::from_example(example), Some(format), "{example}");
            assert_eq!(format.example(), example);
        }
        for wrong in ["", "1", "1234", "1.234.5", "1234,50", "12345", "1x234,5", "1-234,5", "1.234", "DE"] {
            assert_eq!(NumberFormat::from_example(wrong), None, "{wrong}");
        }
    }

    /// The types and the notes of columns with these values, whose names are `a`, `b` and so on.
    fn review(columns: &[&[&str]], numbers: Option<NumberFormat>) -> (Vec<DataType>, BTreeMap<usize, String>) {
        let mut reviewed = Vec::new();
        for (values, name) in columns.iter().zip(["a", "b", "c", "d"]) {
            let mut evidence = NumberEvidence::default();
            let plain: Vec<DataType> = values.iter().map(|value| infer_type(value, None)).collect();
            (2..).zip(values.iter().zip(&plain)).for_each(|(line, (value, plain))| evidence.learn(value, plain, line));
            let is_float = plain.contains(&DataType::Float64) && !plain.contains(&DataType::Utf8);
            let data_type = if is_float { DataType::Float64 } else { DataType::Utf8 };
            reviewed.push(ReviewedColumn { name, evidence: evidence.at_location("t.csv"), data_type });
        }
        let notes = review_separators(&mut reviewed, numbers, false, |option| suggest_yaml("t.csv", option));
        (reviewed.into_iter().map(|column| column.data_type).collect(), notes)
    }

    fn notes(columns: &[&[&str]]) -> Vec<String> {
        review(columns, None).1.into_values().collect()
    }

    #[test]
    fn notes_have_the_option_for_the_numbers_of_all_columns() {
        assert_eq!(
            notes(&[&["12", "1.234,50", "12,5"]]),
            ["text, because line 3 of t.csv has \"1.234,50\"; for decimal commas, write in tidegate.yaml, under its \
              database, tables: {t: {decimal: \",\", thousands: \".\"}}"]
        );
        for (columns, end) in [
            (&[&["12,5"][..]][..], "tables: {t: {decimal: \",\"}}"),
            (&[&["1,234.5"], &["0.5"]], "tables: {t: {thousands: \",\"}}"),
            (&[&["1,234"], &["0.5"]], "tables: {t: {thousands: \",\"}}"),
            (&[&["1,234"]], "if they are decimal, decimal: \",\""),
        ] {
            assert!(matches!(notes(columns).as_slice(), [note] if note.ends_with(end)), "{columns:?}");
        }
        for text in ["a,b", "1,5 m", "1.2.3", "10,20,30", "00,5", "31.02.2025", "1.2.25", "15.06.2025 24:00"] {
            assert_eq!(notes(&[&[text]]), [""; 0], "{text}");
        }
    }

    #[test]
    fn an_option_of_the_table_is_advised_only_if_it_changes_no_other_column() {
        let of_column =
            |name: &str, declared: &str| format!("tables: {{t: {{columns: {{\"{name}\": '{declared}'}}}}}}");
        let found = notes(&[&["1,5"], &["52.5200"]]);
        assert!(matches!(found.as_slice(), [note] if note.ends_with(&of_column("a", "number 1234,5"))), "{found:?}");
        let found = notes(&[&["1.234,5"], &["52.520"]]);
        assert!(found[0].ends_with(&of_column("a", "number 1.234,5")), "{found:?}");
        assert!(found[1].contains("if they are decimal, columns: {\"b\": 'number 1234.5'}"), "{found:?}");
        let found = notes(&[&["1,5"], &["1,234.5"]]);
        assert!(found[0].ends_with(&of_column("a", "number 1234,5")), "{found:?}");
        assert!(found[1].ends_with(&of_column("b", "number 1,234.5")), "{found:?}");
        // Both may be decimal.
        let found = notes(&[&["1,234"], &["1.250"]]);
        assert!(found[0].ends_with("if they are decimal, columns: {\"a\": 'number 1234,5'}"), "{found:?}");
    }

    #[test]
    fn points_are_decimal_unless_the_table_has_decimal_commas() {
        let thousands: &[&str] = &["1.000", "2.500"];
        assert_eq!(review(&[thousands], None).0, [DataType::Float64]);
        for evidence in ["12,5", "15.06.2025", "15.06.2025 17:30"] {
            let (types, notes) = review(&[thousands, &[evidence]], None);
            assert_eq!(types, [DataType::Utf8, DataType::Utf8]);
            let advice = "if points are between thousands, write in tidegate.yaml, under its database, tables: {t: {decimal: \",\", \
                          thousands: \".\"}}; if they are decimal, columns: {\"a\": 'number 1234.5'}";
            assert!(notes[&0].ends_with(advice) && notes.len() == 2, "{notes:?}");
        }
        // The evidence may be beside other texts, and have signs and units.
        for evidence in
            [&["2,50", "k.A."][..], &["+12,50", "-2,50"], &["12,50 €"], &["x", "1.234,50-"], &["11.050.007"]]
        {
            let (types, notes) = review(&[thousands, evidence], None);
            assert_eq!(types, [DataType::Utf8, DataType::Utf8], "{evidence:?}");
            assert!(notes[&0].contains("; if points are between thousands, write "), "{notes:?}");
        }
        for other in ["1,234", "1.2.3", "192.168.178.100", "costs 2,50"] {
            assert_eq!(review(&[thousands, &[other, "x"]], None).0[0], DataType::Float64, "{other}");
        }
        let found = review(&[&["11.050.007"]], None).1;
        assert!(
            found[&0].contains("; for points between thousands, write ") && found[&0].ends_with("thousands: \".\"}}")
        );
        let (types, _) = review(&[&["0.25"], &["12,5"]], None);
        assert_eq!(types, [DataType::Float64, DataType::Utf8]);
        // A number with a point is stronger than dates.
        assert_eq!(review(&[thousands, &["15.06.2025"], &["0.25"]], None).0[0], DataType::Float64);
        let both = review(&[thousands, thousands, &["15.06.2025"]], None).1;
        assert!(
            both[&0].contains("tables: {t: {columns: {\"a\": 'integer 1.234,5'}}}; if they are decimal"),
            "{both:?}"
        );
    }

    #[test]
    fn dates_with_points_have_the_type_that_reads_them() {
        for (values, declared) in [
            (["15.06.2025", "1.1.1999"], "date DD.MM.YYYY"),
            (["15.06.2025 17:30", "01.01.1999 00:00"], "timestamp DD.MM.YYYY HH24:MI"),
            (["15.06.2025 17:30:59", "01.01.1999 00:00:00"], "timestamp DD.MM.YYYY HH24:MI:SS"),
        ] {
            let found = notes(&[&values]);
            let end = format!(
                "s, write in tidegate.yaml, under its database, tables: {{t: {{columns: {{\"a\": '{declared}'}}}}}}"
            );
            assert!(matches!(found.as_slice(), [note] if note.ends_with(&end)), "{found:?}");
        }
        assert_eq!(notes(&[&["15.06.2025", "15.06.2025 17:30"]]), [""; 0]);
        assert_eq!(notes(&[&["15.06.2025", "unknown"]]), [""; 0]);
    }

    #[test]
    fn evidence_of_other_values_is_merged() {
        let of_value = |value: &str| NumberEvidence::of_value(value, 7, "late.csv");
        let merged = |values: &[&str]| {
            let mut evidence = NumberEvidence::default();
            values.iter().for_each(|value| evidence.merge(&of_value(value)));
            evidence
        };
        assert_eq!(merged(&["12", "1.000"]).separators(), Some(Separators::AnyPoint));
        assert_eq!(merged(&["1.000", "12,5"]).separators(), Some(Separators::DecimalComma));
        assert_eq!(merged(&["12,5", "0.25"]).separators(), None);
        assert_eq!(merged(&["15.06.2025", "16.06.2025"]).point_time, Some("date DD.MM.YYYY"));
        assert_eq!(merged(&["15.06.2025", "16.06.2025 10:00"]).point_time, None);
        assert_eq!(merged(&["1.000", "12,5"]).example.unwrap().value, "12,5");
    }

    #[test]
    fn a_declared_format_is_completed_only() {
        let comma = NumberFormat { decimal: ',', thousands: None };
        let (_, notes) = review(&[&["1.234,5"]], Some(comma));
        assert!(notes.values().all(|note| note.ends_with("{decimal: \",\", thousands: \".\"}}")) && notes.len() == 1);
        let swiss = NumberFormat { decimal: '.', thousands: Some('\'') };
        assert_eq!(review(&[&["1.234,5"]], Some(swiss)).1, BTreeMap::new());
    }
}
