//! Arguments of tools as Rust values: output options, and paging.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use tidegate_core::{Error, ErrorKind, Format};
use tidegate_query::{Delivery, OutputOptions, OverflowPolicy, PageOptions, QueryRequest};
use tidegate_runtime::{Answer, Job};

use crate::tool_context::ToolContext;

/// The URI of an arbitrary stored result, to check whether the caller may read stored results as resources.
const PROBE_RESULT_URI: &str = "tidegate://results/00000000-0000-0000-0000-000000000000";

/// Parses arguments that the schema has accepted: a failure concerns a rule that the schema cannot express.
pub(crate) fn parse_arguments<T: DeserializeOwned>(job: &Job) -> Result<T, Error> {
    T::deserialize(job.arguments()).map_err(|error| {
        Error::new(ErrorKind::InvalidArguments, format!("the arguments of {} are wrong: {error}", job.target().name()))
    })
}

/// A text that counts as absent if it is empty, as models send it for what they leave out.
pub(crate) fn non_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty()))
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct OutputArguments {
    #[serde(default, deserialize_with = "non_empty")]
    pub(crate) format: Option<String>,
    #[serde(default)]
    pub(crate) extract: Option<String>,
}

impl OutputArguments {
    /// Whether neither is set. The reader is then probably a model, and the answer should be terse.
    pub(crate) fn is_default(&self) -> bool {
        self.format.is_none() && self.extract.is_none()
    }

    pub(crate) fn output_options(self, more: &str) -> Result<OutputOptions, Error> {
        Ok(OutputOptions { format: self.parse_format()?, extract: self.extract, overflow_hint: more.to_owned() })
    }

    pub(crate) fn parse_format(&self) -> Result<Format, Error> {
        self.format.as_deref().map_or(Ok(Format::Mcp), Format::parse_for_model)
    }
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct PagingArguments {
    #[serde(default, deserialize_with = "non_empty")]
    pub(crate) cursor: Option<String>,
    pub(crate) delivery: Option<String>,
    /// Set where the answer is a list.
    pub(crate) extract: Option<String>,
    no_cache: Option<bool>,
}

impl PagingArguments {
    pub(crate) fn read_page(
        &self,
        node: &ToolContext,
        format: Format,
        is_structured: bool,
        job: &Job,
    ) -> Option<Result<Answer, Error>> {
        let cursor = self.cursor.as_deref()?;
        let number = |name: &str| job.arguments().get(name).and_then(Value::as_u64);
        let page = PageOptions {
            format,
            is_list: self.extract.is_some(),
            // Limits in this call apply to this page; missing ones do not fall back to those of the first answer.
            rows_max: number("limit").or_else(|| number("max_rows")),
            is_structured,
        };
        Some(node.executor.resolve_cursor(cursor, job).and_then(|(result, row)| {
            node.authorize_read(&result, job.caller())?;
            Ok(node.executor.answer_page((result, row), page))
        }))
    }

    /// The maximum number of rows. A stored result without an explicit limit is unlimited.
    pub(crate) fn rows_max(&self, text: Option<u64>, default: u64) -> Option<u64> {
        text.or((self.delivery.as_deref() != Some(Delivery::Blocks.name())).then_some(default))
    }

    pub(crate) fn run_query(&self, node: &ToolContext, request: QueryRequest, job: &Job) -> Result<Answer, Error> {
        let linked = node
            .registry()
            .is_ok_and(|registry| registry.snapshot_for(job.caller()).has_resource(PROBE_RESULT_URI, job.caller()));
        let request = QueryRequest {
            overflow: OverflowPolicy::Store { linked, cached: !self.no_cache.unwrap_or(false) },
            ..request
        };
        Ok(match self.delivery.as_deref().map_or(Ok(Delivery::Inline), Delivery::parse)? {
            Delivery::Inline => node.executor.answer(request),
            Delivery::Blocks => node.executor.export(request),
        })
    }
}

pub(crate) const OUTPUT_ARGUMENTS: [&str; 2] = ["format", "extract"];

pub(crate) fn output_properties() -> Map<String, Value> {
    let formats = Format::FOR_MODELS.map(Format::name);
    Map::from_iter([
        ("format".to_owned(), json!({"type": "string", "enum": formats})),
        ("extract".to_owned(), json!({"type": "string", "description": "Only the unique values of this column"})),
    ])
}

/// Arguments of built-in tools that lists leave out, because models seldom need them.
pub(crate) const UNLISTED_ARGUMENTS: [&str; 3] = ["mode", "delivery", "no_cache"];
/// As [`UNLISTED_ARGUMENTS`], of declared tools; their own arguments may have other names.
pub(crate) const UNLISTED_OF_DECLARED: [&str; 2] = ["delivery", "no_cache"];

pub(crate) const PAGING_ARGUMENTS: [&str; 3] = ["delivery", "cursor", "no_cache"];

pub(crate) fn with_paging(mut shape: Map<String, Value>) -> Map<String, Value> {
    let described = "The next page: the cursor of an answer, with the same arguments";
    let schemas = [
        json!({"type": "string", "enum": Delivery::ALL.map(Delivery::name)}),
        json!({"type": "string", "description": described}),
        json!({"type": "boolean"}),
    ];
    shape.extend(PAGING_ARGUMENTS.map(str::to_owned).into_iter().zip(schemas));
    shape
}
