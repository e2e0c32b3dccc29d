//! Comments use plain words: software is not personified, and there are no private images.

use std::collections::BTreeSet;

use super::sources;

/// Words that no comment contains, with what to write instead.
const BANNED_WORDS: &[(&[&str], &str)] = &[
    (&["told", "tell", "tells"], "reports, sends, notifies, is declared, distinguishes, by meaning"),
    (&["hear", "hears", "heard", "deaf"], "receives, is notified, ignores, by meaning"),
    (&["whoever"], "a client that, callers with"),
    (&["door", "doors"], "endpoint, transport"),
    (&["wall", "walls"], "defence layer"),
    (&["lane", "lanes"], "worker pool"),
    (&["breath"], "the same round trip"),
];

/// Terms of the field that contain a banned word.
const ALLOWED_TERMS: &[&str] = &["wall clock"];

#[test]
fn comments_use_plain_words() {
    let mut findings = Vec::new();
    for (name, text) in sources::rust_texts() {
        for (number, line) in (1..).zip(text.lines()) {
            let Some(comment) = comment(line) else { continue };
            for (word, instead) in banned_words(comment) {
                findings.push(format!("{name}:{number}: {word} (write: {instead})"));
            }
        }
    }
    assert!(findings.is_empty(), "{} comments use a private word:\n{}", findings.len(), findings.join("\n"));
}

/// The text of the comment in `line`. A `//` within a text or an address begins none.
fn comment(line: &str) -> Option<&str> {
    if let Some(comment) = line.trim_start().strip_prefix("//") {
        return Some(comment);
    }
    let (code, comment) = line.rsplit_once(" // ")?;
    (code.matches('"').count() % 2 == 0).then_some(comment)
}

fn banned_words(comment: &str) -> Vec<(&'static str, &'static str)> {
    let mut text = comment.to_lowercase();
    for term in ALLOWED_TERMS {
        text = text.replace(term, "");
    }
    let words: BTreeSet<&str> = text.split(|character: char| !character.is_alphanumeric()).collect();
    let banned = BANNED_WORDS.iter().flat_map(|(banned, instead)| banned.iter().map(move |word| (*word, *instead)));
    banned.filter(|(word, _)| words.contains(word)).collect()
}

#[test]
fn only_comments_count() {
    let count = |line: &str| comment(line).map_or(0, |text| banned_words(text).len());
    assert_eq!(count("    /// The one door of whoever is told."), 3);
    assert_eq!(count("let door = 1; // a wall"), 1);
    let text_line = ["let text = \"a door", "a wall\";"].join(" // ");
    assert_eq!(count(&text_line), 0);
    assert_eq!(count("// by the wall clock, in a doorway"), 0);
}
