//! Number formats and null markers of text files.

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
pub(crate) enum NumberNotation {
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
pub(crate) fn find_notation(value: &str) -> Option<NumberNotation> {
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

#[cfg(test)]
mod tests {
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
}
