//! The stored corpus of the fuzz target `statement`, through the function that the target runs.

#[path = "../../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../../fuzz/src/statement.rs"]
mod statement;

#[test]
fn fuzz_corpus_upholds_statement_invariants() {
    for entry in corpus::corpus("statement") {
        statement::check(&entry);
    }
}
