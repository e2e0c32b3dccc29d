//! Declared forms of times in the letters of PostgreSQL's `to_char`: `DD.MM.YYYY HH24:MI`.

/// A part of a time in these letters and in those of strftime. Longer letters come before those that they begin with.
const LETTERS: &[(&str, &str)] = &[
    ("YYYY", "%Y"),
    ("YY", "%y"),
    ("MONTH", "%B"),
    ("MON", "%b"),
    ("MM", "%m"),
    ("MI", "%M"),
    ("MS", "%f"),
    ("US", "%f"),
    ("DDD", "%j"),
    ("DD", "%d"),
    ("DAY", "%A"),
    ("DY", "%a"),
    ("HH24", "%H"),
    ("HH12", "%I"),
    ("HH", "%H"),
    ("SS", "%S"),
    ("AM", "%p"),
    ("PM", "%p"),
    ("TZH:TZM", "%z"),
    ("TZH", "%z"),
    ("TZ", "%Z"),
    ("OF", "%z"),
];

/// The form in the letters of strftime. `HH` has 24 hours, or 12 if the form has `AM` or `PM`. The error is the position of what is
/// wrong, counted in characters from 1, and the reason.
pub(super) fn to_strftime(format: &str) -> Result<String, (usize, &'static str)> {
    let mut written = String::with_capacity(format.len());
    let mut parts: Vec<char> = Vec::new();
    let mut rest = format;
    while let Some(first) = rest.chars().next() {
        let position = format.chars().count() - rest.chars().count() + 1;
        if let Some(quoted) = rest.strip_prefix('"') {
            let (literal, behind) = quoted.split_once('"').ok_or((position, "has a quote that is not closed"))?;
            written.push_str(literal);
            rest = behind;
            continue;
        }
        let is_next = |letters: &str| rest.get(..letters.len()).is_some_and(|next| next.eq_ignore_ascii_case(letters));
        if let Some((letters, part)) = LETTERS.iter().find(|(letters, _)| is_next(letters)) {
            let kind = kind_of_part(part);
            if parts.contains(&kind) {
                return Err((position, "has a part twice (MM is the month, MI the minute)"));
            }
            parts.push(kind);
            written.push_str(part);
            rest = rest.get(letters.len()..).unwrap_or_default();
            continue;
        }
        // Between a date and its time.
        let is_separator = is_next("THH");
        if first.is_ascii_alphabetic() && !is_separator {
            return Err((position, "has an unknown letter"));
        }
        written.push(first);
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
    }
    let has_half_days = parts.contains(&'p');
    Ok(if has_half_days { written.replace("%H", "%I") } else { written })
}

/// The same letter for the ways to write a part of a time.
fn kind_of_part(part: &str) -> char {
    match part {
        "%y" => 'Y',
        "%b" | "%B" => 'm',
        "%I" => 'H',
        "%a" => 'A',
        "%Z" => 'z',
        other => other.chars().nth(1).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_become_those_of_strftime() {
        for (format, expected) in [
            ("DD.MM.YYYY", "%d.%m.%Y"),
            ("dd.mm.yyyy hh24:mi:ss", "%d.%m.%Y %H:%M:%S"),
            ("DD.MM.YYYY HH:MI", "%d.%m.%Y %H:%M"),
            ("MM/DD/YY HH:MI AM", "%m/%d/%y %I:%M %p"),
            ("YYYY-MM-DDTHH24:MI:SS.US TZH:TZM", "%Y-%m-%dT%H:%M:%S.%f %z"),
            ("DD Mon YYYY", "%d %b %Y"),
            ("YYYY\"Y\"DDD", "%YY%j"),
            ("YYYY年MM月DD日", "%Y年%m月%d日"),
        ] {
            assert_eq!(to_strftime(format).as_deref(), Ok(expected), "{format}");
        }
    }

    #[test]
    fn what_has_no_meaning_is_an_error_with_its_position() {
        assert_eq!(to_strftime("dd.MM.yyyy HH:mm").map_err(|(position, _)| position), Err(15));
        assert_eq!(to_strftime("DD.MM.JJJJ"), Err((7, "has an unknown letter")));
        assert_eq!(to_strftime("DD \"of"), Err((4, "has a quote that is not closed")));
    }
}
