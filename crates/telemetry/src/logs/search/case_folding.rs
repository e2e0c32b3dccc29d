//! Full case folding: texts that differ in case only have the same folded text, also where folding changes the length,
//! as for `ß` and `SS`.

/// Appends the folded `text` to `out`.
pub(super) fn fold_into(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            character if character.is_ascii() => out.push(character.to_ascii_lowercase()),
            // Dotless i is a letter of its own, although its upper case is that of i.
            'ı' => out.push(character),
            // The upper case first: it makes one of the several lower forms of a letter, such as σ and ς.
            character => out.extend(character.to_uppercase().flat_map(char::to_lowercase)),
        }
    }
}

/// The folded `text`.
pub(super) fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    fold_into(text, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cases_of_a_letter_fold_to_the_same_text() {
        for (one, other) in [("Straße", "STRASSE"), ("ΣΊΣΥΦΟΣ", "σίσυφος"), ("\u{212a}", "k"), ("ſ", "S"), ("ﬁ", "FI")]
        {
            assert_eq!(fold(one), fold(other), "{one} {other}");
        }
        assert_eq!(fold("É"), "é");
        assert_ne!(fold("ı"), fold("i"));
    }

    proptest! {
        #[test]
        fn folding_ignores_case_and_is_stable(character in any::<char>()) {
            let text = character.to_string();
            prop_assert_eq!(fold(&fold(&text)), fold(&text));
            if character != 'ı' {
                prop_assert_eq!(fold(&text.to_uppercase()), fold(&text));
            }
        }
    }
}
