//! Texts that list the formats of answers or of log files name each one.

use tidegate_core::Format;
use tidegate_log_formats::LogFormat;

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

const TEXTS_OF_LOG_FORMATS: [&str; 3] =
    ["crates/log-formats/src/lib.rs", "crates/tidegate/src/config/types/databases.rs", "docs/reference/files.md"];

#[test]
fn lists_of_formats_in_texts_are_complete() {
    let of_answers = TEXTS.iter().map(|(path, formats)| (*path, formats.iter().map(|format| format.name()).collect()));
    let of_logs = TEXTS_OF_LOG_FORMATS.iter().map(|path| (*path, LogFormat::names().collect()));
    let texts: Vec<(&str, Vec<&str>)> = of_answers.chain(of_logs).collect();
    for (path, names) in texts {
        let text = std::fs::read_to_string(workspace().join(path)).expect("the text is readable").to_lowercase();
        let missing_in = |paragraph: &str| {
            let words: Vec<&str> = paragraph.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            names.iter().filter(|name| !words.contains(name)).collect::<Vec<_>>()
        };
        let missing = text.split("\n\n").map(missing_in).min_by_key(Vec::len).unwrap_or_default();
        assert!(missing.is_empty(), "{path} lists no formats {missing:?}");
    }
}
