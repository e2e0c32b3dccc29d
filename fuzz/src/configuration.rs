//! What must hold of whatever stands in `tidegate.yaml`: it is read, or complained of in lines that name their place.
//!
//! Run by the fuzz target `configuration`, and by a test of `tidegate` over the stored corpus.

use std::path::Path;

use crate::config::document::Document;
use crate::config::variables::VariableResolver;
use crate::config::{parsing, render_report};

/// The value of a variable of a fuzzed configuration. No message may contain it.
const HELD: &str = "s3cr3t-held-by-a-variable";
/// A report of all problems is no longer than this, whatever the file.
const REPORT_BYTES_MAX: usize = 1024 * 1024;

/// Panics when anything but that comes of `bytes`.
pub(crate) fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // The text may say what a variable holds, and `${file:…}` and `include` may name any file of the machine: none of
    // these is looked for here.
    if text.contains(HELD) || text.contains("file:") || text.contains("include") {
        return;
    }
    let path = Path::new("/nowhere/tidegate.yaml");
    let variables = VariableResolver::new(Path::new("/nowhere"), |name| (name == "SECRET").then(|| HELD.to_owned()));
    let (problems, document) = match Document::parse(path, text, &variables) {
        Err(problems) => (problems, None),
        Ok(document) => match parsing::parse_config(&document) {
            Err(problems) => (problems, Some(document)),
            Ok(_) => return assert!(document.position("").is_some(), "what was read stands nowhere"),
        },
    };
    assert!(!problems.is_empty());
    let report = render_report(&problems, path, document.as_ref());
    assert_eq!(report.lines().filter(|line| !line.starts_with(' ')).count(), problems.len(), "{report}");
    assert!(report.len() <= REPORT_BYTES_MAX, "a report of {} bytes", report.len());
    assert!(!report.contains(HELD), "a report tells what a variable holds:\n{report}");
}
