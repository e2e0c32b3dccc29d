//! Upper and lower case of single characters, as the C library's `towupper` and `towlower` have them: a character stays
//! one character.

/// Returns the upper case of a character, one character.
pub(crate) fn simple_upper(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_uppercase();
    }
    let mut upper = character.to_uppercase();
    match (upper.next(), upper.next(), character) {
        (Some(one), None, _) => one,
        // These have an upper case of one character beside the one of two.
        (_, _, '\u{1F80}'..='\u{1F87}' | '\u{1F90}'..='\u{1F97}' | '\u{1FA0}'..='\u{1FA7}') => {
            char::from_u32(character as u32 + 8).unwrap_or(character)
        }
        (_, _, '\u{1FB3}') => '\u{1FBC}',
        (_, _, '\u{1FC3}') => '\u{1FCC}',
        (_, _, '\u{1FF3}') => '\u{1FFC}',
        _ => character,
    }
}

/// Returns the lower case of a character, one character.
pub(crate) fn simple_lower(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_lowercase();
    }
    // Only U+0130 has a lower case of two characters, of which the first is the simple one.
    character.to_lowercase().next().unwrap_or(character)
}

/// Converts `text` to lower case.
pub(crate) fn lower(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.chars().map(simple_lower).collect() }
}

/// Converts `text` to upper case.
pub(crate) fn upper(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_uppercase() } else { text.chars().map(simple_upper).collect() }
}
