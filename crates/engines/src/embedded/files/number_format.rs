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
