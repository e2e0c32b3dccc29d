//! The handler of an http tool: fill in, send, read, answer.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{Content, Error, ErrorKind, Handler, Job, Metadata, ReplySender, Violation};
use tidegate_query::Executor;

use super::answer::{ApiAnswer, read};
use super::client::{Fetched, HttpClient};
use super::refusal::{refusal, too_large};
use super::request::{HttpRequest, HttpRequestTemplate};
use super::rows::table;
use crate::arguments::{Shape, arguments};
use crate::declared::asked::AskedParameters;
use crate::declared::consent::Consent;

/// Text that leaves at once, in bytes.
const PIECE_BYTES_MAX: usize = 64 * 1024;
/// Kept free in the budget for the line that says what was not shown.
const LINE_BYTES: usize = 200;

/// A declared tool that calls an HTTP API.
#[derive(Debug)]
pub struct HttpTool {
    template: HttpRequestTemplate,
    client: HttpClient,
    executor: Executor,
    asked: AskedParameters,
    consent: Option<Consent>,
}

impl HttpTool {
    /// The tool that sends the requests of `template` through `client`, and tables through `executor`.
    pub fn new(template: HttpRequestTemplate, client: HttpClient, executor: Executor) -> Self {
        Self { template, client, executor, asked: AskedParameters::default(), consent: None }
    }

    /// The same, which asks the person behind a call for what it leaves out, and for consent.
    pub(in crate::declared) fn asking(self, asked: AskedParameters, consent: Option<Consent>) -> Self {
        Self { asked, consent, ..self }
    }

    /// The answer of the API, or what became of the request instead.
    async fn fetch(&self, request: HttpRequest, job: &Job) -> Result<Fetched, Error> {
        let limit = self.template.timeout;
        let overdue = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                // The call's own deadline cancels the job, whatever the tool's limit is.
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
impl Handler for HttpTool {
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
        let shape: Shape = arguments(&job)?;
        // A wrong format is told before the API does anything.
        shape.format()?;
        let arguments = self.asked.complete(&job, &reply).await?;
        let request = self.template.render(&arguments)?;
        if let Some(consent) = &self.consent {
            consent.get(&arguments, &reply).await?;
        }
        reply.progress(0.0, None, Some(format!("{} is asked", self.template.host()))).await?;
        let fetched = self.fetch(request, &job).await?;
        if !fetched.status.is_success() {
            return Err(refusal(&fetched, self.template.secrets()));
        }
        if fetched.is_cut {
            return Err(too_large(&fetched.host, self.template.bytes_max));
        }
        match read(fetched, self.template.rows.as_deref(), self.template.secrets())? {
            ApiAnswer::Table(items) => {
                let rows = table(items, shape.extract.as_deref())?;
                let presentation = shape.presentation("Ask the API for less with the tool's arguments.")?;
                self.executor.answer_rows(rows, presentation, &job, &reply).await
            }
            ApiAnswer::Text(_) if shape.extract.is_some() => {
                let message = "the answer of the API is no table, so that no column can be extracted".to_owned();
                let violation = Violation { path: "extract".to_owned(), message };
                Err(Error::invalid_arguments("the arguments do not fit the answer:", vec![violation]))
            }
            ApiAnswer::Text(text) => answer_text(&text, &job, &reply).await,
        }
    }
}

/// Sends `text` within the inline budget of `job`, and says so when that is not all of it.
async fn answer_text(text: &str, job: &Job, reply: &ReplySender) -> Result<Metadata, Error> {
    // As a whole, before it is cut.
    let text = job.screened(text)?;
    let bytes_max = job.inline_budget().bytes.unwrap_or(usize::MAX);
    let is_cut = text.len() > bytes_max;
    let room = if is_cut { bytes_max.saturating_sub(LINE_BYTES) } else { bytes_max };
    let shown = &text[..text.floor_char_boundary(room)];
    let fenced = job.fence().map(|fence| fence.around(shown));
    let mut rest = fenced.as_deref().unwrap_or(shown);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES_MAX));
        reply.text(piece).await?;
        rest = after;
    }
    reply.end_text().await?;
    if is_cut {
        let line = format!("Shown: the first {} of {} bytes; ask the API for less.", shown.len(), text.len());
        reply.block(Content::text(line)).await?;
    }
    let facts = [("bytes", shown.len().into()), ("truncated", is_cut.into())];
    Ok(facts.into_iter().map(|(name, value)| (format!("dev.tidegate/{name}"), value)).collect())
}
