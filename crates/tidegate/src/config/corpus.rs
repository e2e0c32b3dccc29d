//! The stored corpus of the fuzz target `configuration`, through the function that the target runs.

#[path = "../../../../fuzz/src/configuration.rs"]
mod configuration;
#[path = "../../../../fuzz/src/corpus.rs"]
mod stored;

#[test]
fn the_law_holds_for_what_was_found_worth_keeping() {
    for entry in stored::corpus("configuration") {
        configuration::check(&entry);
    }
}
