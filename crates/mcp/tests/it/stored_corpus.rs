//! The stored corpus of the fuzz target `decoder`, through the function that the target runs.

use tidegate_testkit::fuzz_corpus;

#[path = "../../../../fuzz/src/decoder.rs"]
mod decoder;

#[test]
fn stored_fuzz_inputs_decode_safely() {
    for entry in fuzz_corpus::corpus("decoder") {
        decoder::check(&entry);
    }
}
