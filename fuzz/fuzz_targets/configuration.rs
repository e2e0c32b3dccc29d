//! A configuration, whatever it is: see `src/configuration.rs`.
//!
//! Its reader lives in the binary's crate, beside the whole engine. What reads, from the text to the typed configuration,
//! knows nothing of the engine, and is compiled here as it stands.

#![no_main]
#![allow(dead_code, unused_imports, reason = "the rest of the crate uses what is not used here")]

#[path = "../../crates/tidegate/src/quantity.rs"]
mod quantity;

#[path = "../../crates/tidegate/src/config"]
mod config {
    /// The kinds of databases have their keys where they are opened, with the engine. Here, a database has any keys.
    mod databases {
        pub(crate) type DatabaseConfig = std::collections::BTreeMap<String, serde_json::Value>;

        pub(super) fn advice(_: &str, _: &str) -> Option<&'static str> {
            None
        }
    }
    pub(crate) mod document;
    mod file_hashes;
    mod includes;
    pub(crate) mod parsing;
    mod problem;
    pub(crate) mod quantities;
    mod types;
    pub(crate) mod variables;
    mod yaml_errors;
    mod yaml_tree;

    pub(crate) use file_hashes::FileHashes;
    pub(crate) use document::render_report;
    pub(crate) use problem::ConfigProblem;
    pub(crate) use types::Config;
}

// Values of variables are escaped for templates. The crate of the templates depends on the engine, their file does not.
extern crate self as tidegate_tools;

#[path = "../../crates/tools/src/declared/template.rs"]
mod template;

pub mod declared {
    pub use crate::template::escape_braces;
}

#[path = "../src/configuration.rs"]
mod configuration;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| configuration::check(bytes));
