//! The stored corpus of the fuzz target `token`, through the function that the target runs.

use tidegate_testkit::fuzz_corpus;

#[path = "../../../../fuzz/src/token.rs"]
mod token;

#[test]
fn fuzz_corpus_passes() {
    for entry in fuzz_corpus::corpus("token") {
        token::check(&entry);
    }
}
