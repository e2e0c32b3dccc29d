//! Names of indices as names of tables.

/// The longest name of a table, in bytes.
const TABLE_NAME_BYTES_MAX: usize = 128;
/// Characters that no name of an index has.
const FORBIDDEN: &[char] = &['\\', '/', '*', '?', '"', '<', '>', '|', ' ', ',', '#', ':'];
/// Dates at the end of names: digits, and the separators between them.
const DATE_FORMS: &[&str] = &["dddd.dd.dd.dd", "dddd.dd.dd", "dddd-dd-dd", "dddd_dd_dd", "dddd.dd", "dddd-dd"];
/// Dates have years of these two centuries, so that other numbers are not taken for dates.
const YEARS: std::ops::RangeInclusive<u32> = 1900..=2099;

/// The name of the table for an index: without a date at its end; each run of other characters than letters and digits
/// of ASCII is one underscore, and there is none at the beginning and the end.
///
/// # Errors
/// The reason, if it is no name of an index, or if nothing or too much remains.
pub(super) fn table_name(index: &str) -> Result<String, String> {
    if index.is_empty() {
        return Err("the name of the index is empty".to_owned());
    }
    if index.starts_with(['-', '_', '+']) {
        return Err("the name of the index begins with \"-\", \"_\" or \"+\"".to_owned());
    }
    if index.contains(FORBIDDEN) || index.chars().any(char::is_control) {
        return Err("the name of the index contains one of \\ / * ? \" < > | , # : or a blank".to_owned());
    }
    if index.chars().any(char::is_uppercase) {
        return Err("the name of the index contains capital letters".to_owned());
    }
    let mut name = String::new();
    for character in without_date(index).chars() {
        if character.is_ascii_alphanumeric() {
            name.push(character);
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
    }
    let name = name.trim_end_matches('_');
    if !name.starts_with(|character: char| character.is_ascii_lowercase()) {
        return Err("the name of the index does not begin with a letter from a to z".to_owned());
    }
    if name.len() > TABLE_NAME_BYTES_MAX {
        return Err(format!("the name of the table would have {} bytes; at most {TABLE_NAME_BYTES_MAX}", name.len()));
    }
    Ok(name.to_owned())
}

/// Shippers begin an index for each day, hour or month. A table has all of them.
fn without_date(index: &str) -> &str {
    for form in DATE_FORMS {
        let Some(start) = index.len().checked_sub(form.len()).filter(|start| index.is_char_boundary(*start)) else {
            continue;
        };
        let (before, date) = index.split_at(start);
        if !before.ends_with(['-', '_', '.']) || !has_form(date, form) {
            continue;
        }
        let name = before.trim_end_matches(['-', '_', '.']);
        if !name.is_empty() {
            return name;
        }
    }
    index
}

fn has_form(date: &str, form: &str) -> bool {
    let matches = date.bytes().zip(form.bytes()).all(|(byte, expected)| match expected {
        b'd' => byte.is_ascii_digit(),
        _ => byte == expected,
    });
    if !matches {
        return false;
    }
    let mut numbers = date.split(['.', '-', '_']).map_while(|part| part.parse::<u32>().ok());
    let is_within =
        |number: Option<u32>, range: std::ops::RangeInclusive<u32>| number.is_none_or(|number| range.contains(&number));
    is_within(numbers.next(), YEARS)
        && is_within(numbers.next(), 1..=12)
        && is_within(numbers.next(), 1..=31)
        && is_within(numbers.next(), 0..=23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_indices_become_names_of_tables() {
        for (index, table) in [
            ("logs", "logs"),
            ("logs-generic-default", "logs_generic_default"),
            ("vector-2024.01.15", "vector"),
            ("logstash-2024.01.15.23", "logstash"),
            ("app-2024-01-15", "app"),
            ("app-2024.12", "app"),
            ("filebeat-8.13.0-2024.05.01", "filebeat_8_13_0"),
            ("app-2024.13.45", "app_2024_13_45"),
            ("app-0000.01.01", "app_0000_01_01"),
            ("app2024.01.15", "app2024_01_15"),
            ("a--rejects", "a_rejects"),
            ("a__rejects", "a_rejects"),
            ("a.b__", "a_b"),
            ("café-1", "caf_1"),
            (".kibana", "kibana"),
        ] {
            assert_eq!(table_name(index).as_deref(), Ok(table), "{index}");
        }
        for index in ["", "_all", "-a", "Logs", "a/b", "a*", "日本", "2024.01.15", "a\u{0}", "a,b", "c:a"] {
            assert!(table_name(index).is_err(), "{index}");
        }
        assert!(table_name(&"a".repeat(TABLE_NAME_BYTES_MAX + 1)).is_err());
    }
}
