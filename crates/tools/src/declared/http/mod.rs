//! Declared tools of kind `http`: a templated request to an HTTP API, whose response becomes a table if possible.
//!
//! The target of a request is checked three times, because each can change on its own: the fixed host at load, each
//! redirect target, and the resolved addresses at connection time.

mod allowed_hosts;
mod api_result;
mod client;
mod request;
mod secrets;
mod templates;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tidegate_core::{Content, Error, ErrorKind, Violation};
use tidegate_query::Executor;
use tidegate_runtime::{Answer, AnswerMeta, Handler, Job, RunningCall, Tool, ToolAnnotations};

use self::api_result::{ApiResult, body_too_large, interpret_response, rows_from_json, status_error};
use self::client::HttpResponse;
use self::request::HttpRequest;
use super::elicitation::{Confirmation, ElicitedParameters};
use super::{DeclarationProblem, DeclaredTool, FixedOutput};
use crate::arguments::{OUTPUT_ARGUMENTS, OutputArguments, output_properties, parse_arguments};
use crate::tool_services::ToolServices;

pub use self::allowed_hosts::{AllowedHosts, DnsResolver};
pub use self::client::HttpClient;
pub use self::request::HttpRequestTemplate;

/// The configuration of one http tool. `{{name}}` is an argument where the field allows it.
#[derive(Clone, Default)]
pub struct HttpDefinition {
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`; empty means `GET`.
    pub method: String,
    /// The URL. `{{name}}` is allowed in path segments and query values.
    pub url: String,
    /// Pairs that are added to the query. `{{name}}` is allowed in texts.
    pub query: Vec<(String, Value)>,
    /// Headers; their values are secrets. `{{name}}` is allowed.
    pub headers: Vec<(String, String)>,
    /// The JSON body. `{{name}}` is allowed in texts.
    pub body: Option<Value>,
    /// Values from outside the configuration (`${VARIABLE}`). They are removed from everything that callers read.
    pub secrets: Vec<String>,
    /// JSON pointer to the array of rows.
    pub rows: Option<String>,
    /// The time limit of one request, with redirects and body; without it, only the call's deadline applies.
    pub timeout: Option<Duration>,
    /// Bytes of a response body at most; 4 MiB by default.
    pub max_bytes: Option<usize>,
}

impl fmt::Debug for HttpDefinition {
    /// Omits values: headers, URLs and bodies contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpDefinition")
            .field("method", &self.method)
            .field("headers", &headers)
            .finish_non_exhaustive()
    }
}

/// An argument that the tool declares in its `input`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HttpArgument {
    /// The name.
    pub name: String,
    /// Whether it is required.
    pub is_required: bool,
    /// The default.
    pub default: Option<Value>,
}

/// An error in the configuration of http tools.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}; {hint}")]
pub struct HttpProblem {
    /// The path of the field within the tool's `http` (`headers.X-Key`, `query.limit`), or the full path
    /// (`http.allow_hosts[2]`).
    pub field: String,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub hint: String,
}

impl HttpProblem {
    fn new(field: impl Into<String>, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into(), hint: hint.into() }
    }
}

const PIECE_BYTES_MAX: usize = 64 * 1024;
const NOTE_BYTES: usize = 200;

/// A declared tool that calls an HTTP API.
#[derive(Debug)]
pub struct HttpToolHandler {
    template: HttpRequestTemplate,
    client: HttpClient,
    executor: Executor,
    elicited: ElicitedParameters,
    confirmation: Option<Confirmation>,
    output: FixedOutput,
}

impl HttpToolHandler {
    /// A tool that sends the requests of `template` through `client`, and tables through `executor`.
    pub fn new(template: HttpRequestTemplate, client: HttpClient, executor: Executor) -> Self {
        let (elicited, output) = (ElicitedParameters::default(), FixedOutput::default());
        Self { template, client, executor, elicited, confirmation: None, output }
    }

    /// Sends the request. The call and the tool's time limit can cancel it.
    async fn call_api(&self, request: HttpRequest, job: &Job) -> Result<HttpResponse, Error> {
        let limit = self.template.timeout;
        let time_limit = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                // Without a limit, the call's own deadline cancels the job.
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = job.cancelled() => Err(Error::cancelled()),
            response = self.client.fetch(request, self.template.bytes_max) => response,
            () = time_limit => {
                let (host, seconds) = (self.template.host(), limit.unwrap_or_default().as_secs_f64());
                let message = format!("{host} did not answer within {seconds:.1} s, the time limit of this tool (timeout)");
                Err(Error::new(ErrorKind::TimedOut, message))
            }
        }
    }
}

#[async_trait]
impl Handler for HttpToolHandler {
    async fn handle(&self, call: RunningCall) -> Result<Answer, Error> {
        let mut shape: OutputArguments = parse_arguments(&call)?;
        self.output.apply(&mut shape);
        // An invalid format is reported before the request is sent.
        shape.parse_format()?;
        let arguments = self.elicited.complete(&call).await?;
        let request = self.template.render(&arguments)?;
        if let Some(confirmation) = &self.confirmation {
            confirmation.request(&arguments, None, &call).await?;
        }
        call.progress(0.0, None, Some(format!("calling {}", self.template.host()))).await?;
        let response = self.call_api(request, &call).await?;
        if !response.status.is_success() {
            return Err(status_error(&response, self.template.secrets()));
        }
        if response.is_cut {
            return Err(body_too_large(&response.host, self.template.bytes_max));
        }
        match interpret_response(response, self.template.rows.as_deref(), self.template.secrets())? {
            ApiResult::Table(items) => {
                let rows = rows_from_json(items, shape.extract.as_deref())?;
                let output_options = shape.output_options("Request less with the tool's arguments.")?;
                Ok(self.executor.answer_rows(rows, output_options))
            }
            ApiResult::Text(_) if shape.extract.is_some() => {
                let message = "the answer of the API is not a table, so no column can be extracted".to_owned();
                let violation = Violation { path: "extract".to_owned(), message };
                Err(Error::invalid_arguments("the arguments do not fit the answer:", vec![violation]))
            }
            ApiResult::Text(text) => text_answer(&text, &call),
        }
    }
}

impl DeclaredTool<HttpDefinition> {
    /// Builds the tool, which sends its requests through `client`. The default annotations follow from the method.
    ///
    /// # Errors
    /// All errors of the declaration.
    pub fn prepare(self, services: &ToolServices, client: &HttpClient) -> Result<Tool, Vec<DeclarationProblem>> {
        self.check_reserved_names(&OUTPUT_ARGUMENTS)?;
        let (elicited_parameters, confirmation) = self.elicitation(false)?;
        self.output.reject_query_options("a tool with http")?;
        let arguments = self.inputs.iter().map(|input| HttpArgument {
            name: input.name.clone(),
            is_required: input.is_never_null(),
            default: input.default.clone(),
        });
        let arguments: Vec<HttpArgument> = arguments.collect();
        let template = HttpRequestTemplate::parse(&self.action, &arguments, client.allowed_hosts());
        let template =
            template.map_err(|problems| problems.into_iter().map(to_declaration_problem).collect::<Vec<_>>())?;
        let hints = template.annotations(self.annotations.destructive);
        let annotations = ToolAnnotations {
            read_only: self.annotations.read_only.or(hints.read_only),
            destructive: self.annotations.destructive.or(hints.destructive),
            idempotent: self.annotations.idempotent.or(hints.idempotent),
            open_world: self.annotations.open_world.or(hints.open_world),
        };
        let handler = HttpToolHandler::new(template, client.clone(), services.executor.clone());
        let output = self.output.clone();
        let handler = HttpToolHandler { elicited: elicited_parameters, confirmation, output, ..handler };
        self.into_tool(Arc::new(handler), annotations, output_properties())
    }
}

fn to_declaration_problem(problem: HttpProblem) -> DeclarationProblem {
    let error = Error::new(ErrorKind::InvalidArguments, problem.message).with_hint(problem.hint);
    DeclarationProblem::new(format!("http.{}", problem.field), error)
}

/// `text` within the inline budget of `job`, with a note if it is truncated.
fn text_answer(text: &str, job: &Job) -> Result<Answer, Error> {
    // The whole text is redacted before it is cut.
    let text = job.protection().redact_text(text)?;
    let bytes_max = job.limits().inline.bytes.unwrap_or(usize::MAX);
    let is_cut = text.len() > bytes_max;
    let room = if is_cut { bytes_max.saturating_sub(NOTE_BYTES) } else { bytes_max };
    let visible = &text[..text.floor_char_boundary(room)];
    let note = format!("Shown: the first {} of {} bytes; request less from the API.", visible.len(), text.len());
    let meta = AnswerMeta { bytes: Some(visible.len() as u64), is_truncated: Some(is_cut), ..AnswerMeta::default() };
    let fenced = job.protection().fence_data(visible.to_owned());
    Ok(Answer::written(move |reply| async move {
        let mut rest = fenced.as_str();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES_MAX));
            reply.send_redacted_text(piece.to_owned()).await?;
            rest = after;
        }
        reply.end_text().await?;
        if is_cut {
            reply.send_item(Content::text(note)).await?;
        }
        Ok(meta)
    }))
}
