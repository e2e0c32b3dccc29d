//! Arguments of the built-in tools as Rust values.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tidegate_core::{Error, ErrorKind, Job};
use tidegate_query::{OutputFormat, OutputOptions};

/// The arguments of `job` as a `T`.
///
/// The registry has checked them against the tool's schema already, so a failure here is a shape
/// that the schema leaves to us.
pub(crate) fn parse_arguments<T: DeserializeOwned>(job: &Job) -> Result<T, Error> {
    serde_json::from_value(Value::Object(job.arguments().clone())).map_err(|error| {
        Error::new(ErrorKind::InvalidArguments, format!("the arguments of {} are wrong: {error}", job.target().name()))
    })
}

/// How a table is to be shown; every tool that answers with one takes these two arguments.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct OutputArguments {
    #[serde(default)]
    pub(crate) format: Option<String>,
    #[serde(default)]
    pub(crate) extract: Option<String>,
}

impl OutputArguments {
    /// Whether nothing was said: then a model reads the answer, which has to be terse.
    pub(crate) fn is_default(&self) -> bool {
        self.format.is_none() && self.extract.is_none()
    }

    /// The presentation; `more` tells how to ask for the rest when the budget cuts the answer.
    pub(crate) fn output_options(self, more: &str) -> Result<OutputOptions, Error> {
        Ok(OutputOptions { format: self.parse_format()?, extract: self.extract, overflow_hint: more.to_owned() })
    }

    pub(crate) fn parse_format(&self) -> Result<OutputFormat, Error> {
        self.format.as_deref().map_or(Ok(OutputFormat::Mcp), OutputFormat::parse)
    }
}
