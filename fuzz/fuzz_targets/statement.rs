//! SQL of a caller, whatever it is: see `src/statement.rs`.

#![no_main]

#[path = "../src/statement.rs"]
mod statement;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| statement::check(bytes));
