//! The stored corpus of the fuzz target `configuration`, through the function that the target runs.

#[path = "../../../../fuzz/src/configuration.rs"]
mod configuration;
#[path = "../../../../fuzz/src/corpus.rs"]
mod stored;

#[test]
fn fuzz_corpus_is_read_or_reported() {
    for entry in stored::corpus("configuration") {
        configuration::check(&entry);
    }
}
