//! Sizes, durations and bounds as they are written on the command line: a number with its unit.

use std::time::Duration;

const SIZE_UNITS: [(&str, u64); 9] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];
const DURATION_UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// At most so much, or as much as there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitValue<T> {
    At(T),
    Unlimited,
}

impl<T> LimitValue<T> {
    pub(crate) fn limit(self) -> Option<T> {
        match self {
            Self::At(limit) => Some(limit),
            Self::Unlimited => None,
        }
    }
}

/// Bytes: `40KB`, `1GiB`, or a bare number.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let factor = match unit {
        "" => 1,
        unit => factor(unit, &SIZE_UNITS).ok_or("write it as 4096, 40KB, 512MiB or 1GiB")?,
    };
    multiply(number, factor)
}

pub(crate) fn size_in_memory(text: &str) -> Result<usize, String> {
    to_usize(size(text)?)
}

pub(crate) fn to_usize(bytes: u64) -> Result<usize, String> {
    usize::try_from(bytes).map_err(|_| "more than this machine can address".to_owned())
}

/// A point in time, as tools read it. A relative one, such as `-15m`, is no option of the command.
pub(crate) fn moment(text: &str) -> Result<String, String> {
    match text.strip_prefix('-') {
        Some(rest) if !rest.starts_with(|first: char| first.is_ascii_digit()) => {
            Err("a time is written as -15m, today or 2026-03-01T12:00:00Z".to_owned())
        }
        _ => Ok(text.to_owned()),
    }
}

/// A duration: `500ms`, `60s`, `5m`, `1h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    duration_or_none(text).and_then(|duration| match duration {
        Duration::ZERO => Err("must be more than nothing".to_owned()),
        duration => Ok(duration),
    })
}

/// A duration that may be none: `0s`.
pub(crate) fn duration_or_none(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let factor = factor(unit, &DURATION_UNITS).ok_or("write it with its unit: 500ms, 60s, 5m, 1h or 90d")?;
    multiply(number, factor).map(Duration::from_millis)
}

pub(crate) fn size_bound(text: &str) -> Result<LimitValue<usize>, String> {
    if is_unlimited(text) { Ok(LimitValue::Unlimited) } else { size_in_memory(text).map(LimitValue::At) }
}

pub(crate) fn row_bound(text: &str) -> Result<LimitValue<u64>, String> {
    if is_unlimited(text) {
        return Ok(LimitValue::Unlimited);
    }
    text.parse().map(LimitValue::At).map_err(|_| "write a number of rows, or unlimited".to_owned())
}

fn is_unlimited(text: &str) -> bool {
    text.eq_ignore_ascii_case("unlimited")
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

fn factor(unit: &str, units: &[(&str, u64)]) -> Option<u64> {
    units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|(_, factor)| *factor)
}

fn multiply(number: &str, factor: u64) -> Result<u64, String> {
    let number: u64 = number.parse().map_err(|_| "must begin with a whole number".to_owned())?;
    number.checked_mul(factor).ok_or_else(|| "is too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_decimal_and_binary_units() {
        assert_eq!(size("40KB"), Ok(40_000));
        assert_eq!(size("1 gib"), Ok(1 << 30));
        assert_eq!(size("17"), Ok(17));
        for wrong in ["", "KB", "1.5GiB", "10K", "-1B", "99999999999999999TB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7_200)));
        for wrong in ["60", "0s", "s", "1 day"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!(duration_or_none("0s"), Ok(Duration::ZERO));
        assert!(duration_or_none("0").is_err());
    }

    #[test]
    fn limits_can_be_unlimited() {
        assert_eq!(size_bound("unlimited"), Ok(LimitValue::Unlimited));
        assert_eq!(size_bound("1MiB"), Ok(LimitValue::At(1 << 20)));
        assert_eq!(row_bound("Unlimited"), Ok(LimitValue::Unlimited));
        assert_eq!(row_bound("1000"), Ok(LimitValue::At(1_000)));
        assert!(row_bound("1k").is_err());
    }
}
