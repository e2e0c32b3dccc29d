//! Texts that list the formats of answers name each one.

use tidegate_core::Format;

use super::workspace;

const TEXTS: [(&str, &[Format]); 8] = [
    ("crates/tools/src/lib.rs", &Format::FOR_MODELS),
    ("crates/tidegate/src/config/types/mod.rs", &Format::FOR_MODELS),
    ("crates/tidegate/src/config/types/resources_and_prompts.rs", &Format::FOR_MODELS),
    ("crates/transport/src/http/rest/page.html", &Format::FOR_REST),
    ("docs/reference/answers.md", &Format::FOR_MODELS),
    ("docs/reference/transports/rest.md", &Format::FOR_REST),
    ("docs/reference/transports/results.md", &Format::FOR_DOWNLOADS),
    ("docs/reference/features.md", Format::ALL),
];

#[test]
fn lists_of_formats_in_texts_are_complete() {
    for (path, formats) in TEXTS {
        let text = std::fs::read_to_string(workspace().join(path)).expect("the text is readable").to_lowercase();
        let missing_in = |paragraph: &str| {
            let words: Vec<&str> = paragraph.split(|c: char| !c.is_alphanumeric()).collect();
            let names = formats.iter().map(|format| format.name());
            names.filter(|name| !words.contains(name)).collect::<Vec<_>>()
        };
        let missing = text.split("\n\n").map(missing_in).min_by_key(Vec::len).unwrap_or_default();
        assert!(missing.is_empty(), "{path} lists no formats {missing:?}");
    }
}
