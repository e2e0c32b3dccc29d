//! The handler of an http tool.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{Content, Error, ErrorKind, Violation};
use tidegate_query::Executor;
use tidegate_runtime::{Handler, Job, Metadata, ReplySender};

use super::api_error::{body_too_large, status_error};
use super::api_result::{ApiResult, interpret_response};
use super::client::{HttpClient, HttpResponse};
use super::json_rows::rows_from_json;
use super::request::{HttpRequest, HttpRequestTemplate};
use crate::arguments::{OutputArguments, parse_arguments};
use crate::declared::confirmation::Confirmation;
use crate::declared::elicited_parameters::ElicitedParameters;

/// Bytes of a chunk at most.
const CHUNK_BYTES_MAX: usize = 64 * 1024;
/// Bytes of the budget that are reserved for the note about truncation.
const NOTE_BYTES: usize = 200;

/// A declared tool that calls an HTTP API.
#[derive(Debug)]
pub struct HttpToolHandler {
    template: HttpRequestTemplate,
    client: HttpClient,
    executor: Executor,
    elicited: ElicitedParameters,
    confirmation: Option<Confirmation>,
}

impl HttpToolHandler {
    /// A tool that sends the requests of `template` through `client`, and tables through `executor`.
    pub fn new(template: HttpRequestTemplate, client: HttpClient, executor: Executor) -> Self {
        Self { template, client, executor, elicited: ElicitedParameters::default(), confirmation: None }
    }

    /// Adds prompts for missing arguments and for confirmation.
    pub(in crate::declared) fn with_elicitation(
        self,
        elicited_parameters: ElicitedParameters,
        confirmation: Option<Confirmation>,
    ) -> Self {
        Self { elicited: elicited_parameters, confirmation, ..self }
    }

    /// Sends the request. The call and the tool's time limit can cancel it.
    async fn call_api(&self, request: HttpRequest, job: &Job) -> Result<HttpResponse, Error> {
        let limit = self.template.timeout;
        let overdue = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                // Without a limit, the call's own deadline cancels the job.
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = job.cancelled() => Err(Error::new(ErrorKind::Cancelled, "the call was cancelled")),
            fetched = self.client.fetch(request, self.template.bytes_max) => fetched,
            () = overdue => {
                let (host, seconds) = (self.template.host(), limit.unwrap_or_default().as_secs_f64());
                let message = format!("{host} did not answer within {seconds:.1} s, the time limit of this tool (timeout)");
                Err(Error::new(ErrorKind::TimedOut, message))
            }
        }
    }
}

#[async_trait]
impl Handler for HttpToolHandler {
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
        let shape: OutputArguments = parse_arguments(&job)?;
        // An invalid format is reported before the request is sent.
        shape.parse_format()?;
        let arguments = self.elicited.complete(&job, &reply).await?;
        let request = self.template.render(&arguments)?;
        if let Some(confirmation) = &self.confirmation {
            confirmation.request(&arguments, &reply).await?;
        }
        reply.send_progress(0.0, None, Some(format!("calling {}", self.template.host()))).await?;
        let fetched = self.call_api(request, &job).await?;
        if !fetched.status.is_success() {
            return Err(status_error(&fetched, self.template.secrets()));
        }
        if fetched.is_cut {
            return Err(body_too_large(&fetched.host, self.template.bytes_max));
        }
        match interpret_response(fetched, self.template.rows.as_deref(), self.template.secrets())? {
            ApiResult::Table(items) => {
                let rows = rows_from_json(items, shape.extract.as_deref())?;
                let output_options = shape.output_options("Request less with the tool's arguments.")?;
                self.executor.answer_rows(rows, output_options, &job, &reply).await
            }
            ApiResult::Text(_) if shape.extract.is_some() => {
                let message = "the answer of the API is not a table, so no column can be extracted".to_owned();
                let violation = Violation { path: "extract".to_owned(), message };
                Err(Error::invalid_arguments("the arguments do not fit the answer:", vec![violation]))
            }
            ApiResult::Text(text) => send_text(&text, &job, &reply).await,
        }
    }
}

/// Sends `text` within the inline budget of `job`, with a note if it is truncated.
async fn send_text(text: &str, job: &Job, reply: &ReplySender) -> Result<Metadata, Error> {
    // The whole text is redacted before it is cut.
    let text = job.redact_text(text)?;
    let bytes_max = job.inline_budget().bytes.unwrap_or(usize::MAX);
    let is_cut = text.len() > bytes_max;
    let room = if is_cut { bytes_max.saturating_sub(NOTE_BYTES) } else { bytes_max };
    let visible = &text[..text.floor_char_boundary(room)];
    let fenced = job.fence().map(|fence| fence.wrap(visible));
    let mut rest = fenced.as_deref().unwrap_or(visible);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(CHUNK_BYTES_MAX));
        reply.send_text(piece).await?;
        rest = after;
    }
    reply.end_text().await?;
    if is_cut {
        let line = format!("Shown: the first {} of {} bytes; request less from the API.", visible.len(), text.len());
        reply.send_block(Content::text(line)).await?;
    }
    let facts = [("bytes", visible.len().into()), ("truncated", is_cut.into())];
    Ok(facts.into_iter().map(|(name, value)| (format!("dev.tidegate/{name}"), value)).collect())
}
