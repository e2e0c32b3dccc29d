//! Arguments of tools as Rust values: output options, delivery, and times, which are text such as `-15m` or numbers since
//! 1970.

use std::time::{SystemTime, UNIX_EPOCH};

use arrow::datatypes::SchemaRef;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use tidegate_core::{Error, ErrorKind, Format, Violation};
use tidegate_query::{Delivery, OutputOptions, OverflowPolicy, QueryRequest, TableOptions};
use tidegate_runtime::{Answer, Job};
use tidegate_telemetry::logs::{TimeInput, parse_time};

use crate::result_tables::check_table_name;
use crate::tool_services::ToolServices;

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

    /// How rows are answered; `overflow_hint` says how to get more than fit.
    pub(crate) fn output_options(&self, overflow_hint: &'static str) -> Result<OutputOptions, Error> {
        let (format, extract) = (self.parse_format()?, self.extract.clone());
        Ok(OutputOptions { format, extract, overflow_hint, ..OutputOptions::default() })
    }

    pub(crate) fn parse_format(&self) -> Result<Option<Format>, Error> {
        self.format.as_deref().map(Format::parse_for_model).transpose()
    }
}

/// How the rows of a query are answered: format, inline or stored, and which page. Of all tools that return such rows.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct DeliveryArguments {
    #[serde(flatten)]
    pub(crate) output: OutputArguments,
    #[serde(default, deserialize_with = "non_empty")]
    cursor: Option<String>,
    pub(crate) delivery: Option<String>,
    /// A name for the answer as a table.
    #[serde(default, deserialize_with = "non_empty")]
    save_as: Option<String>,
    no_cache: Option<bool>,
}

impl DeliveryArguments {
    /// The page of an earlier answer, if the caller continues one; `structured` has the columns of the output schema.
    pub(crate) fn read_page(
        &self,
        services: &ToolServices,
        structured: Option<&SchemaRef>,
        job: &Job,
    ) -> Result<Option<Answer>, Error> {
        let output = self.output.output_options("")?;
        let Some(cursor) = self.cursor.as_deref() else { return Ok(None) };
        let (result, row) = services.executor.resolve_cursor(cursor, job)?;
        services.authorize_read(&result, job.caller())?;
        if self.save_as.is_some() && self.save_as != result.header().alias {
            return Err(Error::new(
                ErrorKind::InvalidArguments,
                "save_as names a whole answer, and cursor requests a page",
            )
            .with_hint("Leave out cursor to store the answer under that name."));
        }
        let number = |name: &str| job.arguments().get(name).and_then(Value::as_u64);
        // Limits in this call apply to this page; missing ones do not fall back to those of the first answer.
        let rows_max = number("limit").or_else(|| number("max_rows"));
        let output = OutputOptions { rows_max, structured: structured.cloned(), ..output };
        Ok(Some(services.executor.answer_page((result, row), output)))
    }

    /// The maximum number of rows. A stored result without an explicit limit is unlimited.
    pub(crate) fn rows_max(&self, text: Option<u64>, default: u64) -> Option<u64> {
        text.or(matches!(self.delivery(), Ok(Delivery::Inline)).then_some(default))
    }

    /// How the rows are delivered. A name for the answer requests a table.
    fn delivery(&self) -> Result<Delivery, Error> {
        let requested = self.delivery.as_deref().map(Delivery::parse).transpose()?;
        match (requested, &self.save_as) {
            (None | Some(Delivery::Table), Some(_)) => Ok(Delivery::Table),
            (Some(other), Some(_)) => {
                let message = format!("save_as makes a table of the answer, and delivery is {:?}", other.name());
                Err(Error::new(ErrorKind::InvalidArguments, message)
                    .with_hint("Leave out one of them, or use delivery: \"table\"."))
            }
            (requested, None) => Ok(requested.unwrap_or_default()),
        }
    }

    pub(crate) fn run_query(
        &self,
        services: &ToolServices,
        mut request: QueryRequest,
        job: &Job,
    ) -> Result<Answer, Error> {
        let linked = services
            .registry()
            .is_ok_and(|registry| registry.snapshot_for(job.caller()).has_resource(PROBE_RESULT_URI, job.caller()));
        let delivery = self.delivery()?;
        // An earlier answer may not have been requested as a table: it has no name, and no list has it.
        let cached = !self.no_cache.unwrap_or(false) && delivery != Delivery::Table;
        request.output.overflow = OverflowPolicy::Store { linked, cached };
        match delivery {
            Delivery::Inline => Ok(services.executor.answer(request)),
            Delivery::Blocks => Ok(services.executor.export(request)),
            Delivery::Table => {
                if let Some(name) = &self.save_as {
                    check_table_name(name)?;
                }
                services.require_result_tables(job)?;
                request.output.table = Some(TableOptions { alias: self.save_as.clone() });
                Ok(services.executor.export(request))
            }
        }
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
pub(crate) const UNLISTED_OF_DECLARED: [&str; 3] = ["delivery", "no_cache", "save_as"];

pub(crate) const DELIVERY_ARGUMENTS: [&str; 4] = ["delivery", "cursor", "no_cache", "save_as"];

pub(crate) const SAVE_AS_DESCRIPTION: &str = "Keep all rows as table results.NAME";

pub(crate) fn with_paging(mut shape: Map<String, Value>) -> Map<String, Value> {
    let described = "The next page: the cursor of an answer, with the same arguments";
    let schemas = [
        json!({"type": "string", "enum": Delivery::ALL.map(Delivery::name)}),
        json!({"type": "string", "description": described}),
        json!({"type": "boolean"}),
        json!({"type": "string", "description": SAVE_AS_DESCRIPTION}),
    ];
    shape.extend(DELIVERY_ARGUMENTS.map(str::to_owned).into_iter().zip(schemas));
    shape
}

/// The argument called `path`, as the caller wrote it. A value of another type is a violation.
pub(crate) fn time_input<'a>(
    path: &str,
    value: &'a Option<Value>,
    violations: &mut Vec<Violation>,
) -> Option<TimeInput<'a>> {
    match value {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(TimeInput::Text(text)),
        Some(Value::Number(number)) => {
            number.as_i64().map(TimeInput::Integer).or_else(|| number.as_f64().map(TimeInput::Decimal))
        }
        Some(other) => {
            let message = format!("{other} is not a time; expected text or a number");
            violations.push(Violation { path: path.to_owned(), message });
            None
        }
    }
}

/// The time that the argument called `path` names, in nanoseconds UTC; `default` without the argument.
pub(crate) fn read_time(
    path: &str,
    value: &Option<Value>,
    (now, default): (i64, i64),
    violations: &mut Vec<Violation>,
) -> i64 {
    let Some(input) = time_input(path, value, violations) else { return default };
    parse_time(input, now).unwrap_or_else(|error| {
        violations.push(Violation { path: path.to_owned(), message: error.to_string() });
        default
    })
}

/// The current time in nanoseconds UTC.
pub(crate) fn now_nanos() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX)
}
