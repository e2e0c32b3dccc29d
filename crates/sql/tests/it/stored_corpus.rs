//! The stored corpus of the fuzz target `statement`, through the function that the target runs.

use tidegate_testkit::fuzz_corpus;

#[path = "../../../../fuzz/src/statement.rs"]
mod statement;

#[test]
fn fuzz_corpus_upholds_statement_invariants() {
    for entry in fuzz_corpus::corpus("statement") {
        statement::check(&entry);
    }
}
