//! The bytes of one message, whatever they are: see `src/decoder.rs`.

#![no_main]

#[path = "../src/decoder.rs"]
mod decoder;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decoder::check(bytes));
