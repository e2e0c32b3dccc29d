//! Arguments of the built-in tools as Rust values.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{OutputFormat, OutputOptions};
use tidegate_runtime::Job;

/// Parses the arguments of `job` as a `T`.
///
/// The registry has already checked them against the tool's schema. A failure here concerns a rule that the schema
/// cannot express.
pub(crate) fn parse_arguments<T: DeserializeOwned>(job: &Job) -> Result<T, Error> {
    serde_json::from_value(Value::Object(job.arguments().clone())).map_err(|error| {
        Error::new(ErrorKind::InvalidArguments, format!("the arguments of {} are wrong: {error}", job.target().name()))
    })
}

/// Output options of every tool that returns a table.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct OutputArguments {
    #[serde(default)]
    pub(crate) format: Option<String>,
    #[serde(default)]
    pub(crate) extract: Option<String>,
}

impl OutputArguments {
    /// Whether neither is set. The reader is then probably a model, and the answer should be terse.
    pub(crate) fn is_default(&self) -> bool {
        self.format.is_none() && self.extract.is_none()
    }

    /// The output options. `more` is the hint for the rest when the budget cuts the answer.
    pub(crate) fn output_options(self, more: &str) -> Result<OutputOptions, Error> {
        Ok(OutputOptions { format: self.parse_format()?, extract: self.extract, overflow_hint: more.to_owned() })
    }

    pub(crate) fn parse_format(&self) -> Result<OutputFormat, Error> {
        self.format.as_deref().map_or(Ok(OutputFormat::Mcp), OutputFormat::parse)
    }
}
