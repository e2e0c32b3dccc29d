//! Commands print through `standard_stream.rs`, which escapes control characters of data on a terminal.

use super::sources;

/// What opens a standard stream.
const OPENING: &[&str] = &["io::stdout", "io::stderr", "anstream::"];
/// Files that may open them.
const EXCEPTIONS: &[&str] = &[
    "crates/tidegate/src/standard_stream.rs",
    // MCP, which a program reads.
    "crates/tidegate/src/commands/stdio.rs",
];

#[test]
fn standard_streams_are_opened_in_one_place() {
    let opens = |text: &str| OPENING.iter().any(|opening| text.contains(opening));
    let texts = sources::rust_texts().into_iter();
    let names = texts.filter(|(name, text)| name.starts_with("crates/") && name.contains("/src/") && opens(text));
    let mut names: Vec<String> = names.map(|(name, _)| name).collect();
    names.sort();
    let mut expected = EXCEPTIONS.to_vec();
    expected.sort_unstable();
    assert_eq!(names, expected, "write to standard_output() or standard_error() of standard_stream.rs");
}
