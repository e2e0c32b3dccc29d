//! The stored corpus of the fuzz target `token`, through the function that the target runs.

#[path = "../../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../../fuzz/src/token.rs"]
mod token;

#[test]
fn fuzz_corpus_passes() {
    for entry in corpus::corpus("token") {
        token::check(&entry);
    }
}
