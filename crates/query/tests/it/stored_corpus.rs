//! The stored corpus of the fuzz target `statement`, through the function that the target runs.

#[path = "../../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../../fuzz/src/statement.rs"]
mod statement;

#[test]
fn the_law_holds_for_what_was_found_worth_keeping() {
    for entry in corpus::corpus("statement") {
        statement::check(&entry);
    }
}
