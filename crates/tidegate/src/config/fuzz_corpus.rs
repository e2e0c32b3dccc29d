//! The stored corpus of the fuzz target `configuration`, through the function that the target runs.

use tidegate_testkit::fuzz_corpus;

#[path = "../../../../fuzz/src/configuration.rs"]
mod configuration;

#[test]
fn fuzz_corpus_is_read_or_reported() {
    for entry in fuzz_corpus::corpus("configuration") {
        configuration::check(&entry);
    }
}
