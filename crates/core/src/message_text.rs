//! Parts of messages: alternatives, and texts that may be long.

/// `a, b or c`.
pub fn join_alternatives(mut names: Vec<String>) -> String {
    let last = names.pop().unwrap_or_default();
    if names.is_empty() { last } else { format!("{} or {last}", names.join(", ")) }
}

/// The first `characters_max` characters of `text`, with an ellipsis if there are more.
pub fn shorten(text: impl Into<String>, characters_max: usize) -> String {
    let mut text = text.into();
    if let Some((end, _)) = text.char_indices().nth(characters_max) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_end_with_an_ellipsis() {
        assert_eq!(["größe", "größer", ""].map(|text| shorten(text, 5)), ["größe", "größe…", ""]);
    }
}
