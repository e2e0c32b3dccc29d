//! JSON: the text of values, and the records of documents.

pub(crate) mod cursor;
pub(crate) mod document;
pub(crate) mod lines;

/// Half of a pair of escapes stands for no character.
const MALFORMED_STRING: &str = "a string has half of a pair of \\u escapes, which is no character";
