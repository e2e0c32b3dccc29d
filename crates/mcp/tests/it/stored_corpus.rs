//! The stored corpus of the fuzz target `decoder`, through the function that the target runs.

#[path = "../../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../../fuzz/src/decoder.rs"]
mod decoder;

#[test]
fn the_law_holds_for_what_was_found_worth_keeping() {
    for entry in corpus::corpus("decoder") {
        decoder::check(&entry);
    }
}
