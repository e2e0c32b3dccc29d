//! JSON: the text of values, and the records of documents.

pub(crate) mod cursor;
pub(crate) mod document;
pub(crate) mod lines;
mod scanner;

pub use cursor::{JsonCursor, JsonKind, JsonSyntaxError};
pub use scanner::JsonScanner;
