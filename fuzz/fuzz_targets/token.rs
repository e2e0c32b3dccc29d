//! What a caller shows, whatever it is: see `src/token.rs`.

#![no_main]

#[path = "../src/token.rs"]
mod token;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| token::check(bytes));
