//! From a document to what it says: its shape first, for people, then its types.
//!
//! Knows no engine and opens nothing: `fuzz/` compiles it by itself.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::document::Document;
use super::problem::ConfigProblem;
use super::schema_check;
use super::types::Config;

/// What `document` says; it may still make no sense.
pub(crate) fn parse_config(document: &Document) -> Result<Config, Vec<ConfigProblem>> {
    let problems = schema_check::check_schema(document, &schema());
    if !problems.is_empty() {
        return Err(problems);
    }
    serde_path_to_error::deserialize(document.value.clone()).map_err(|error| {
        let path = error.path().to_string().trim_end_matches('.').to_owned();
        vec![ConfigProblem::new(path, redacted_message(document, &error))]
    })
}

/// What a library says of a value that holds variables may quote them.
fn redacted_message(document: &Document, error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    match document.source_text(&error.path().to_string()) {
        Some(written) => format!("what {written} holds does not fit here"),
        None => error.inner().to_string(),
    }
}

/// The JSON Schema of a configuration.
pub(crate) fn schema() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Config>().to_value()
}
