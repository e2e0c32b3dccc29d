//! Sends the pieces of an answer: as text blocks, or as a body.

use std::time::Instant;

use bytes::Bytes;
use serde_json::Value;
use tidegate_core::{Content, DataFence, Error, ResourceLink};
use tidegate_runtime::{BodyHead, Job, Metadata, ReplySender};

use super::progress::ProgressReporter;

pub(super) const PIECE_BYTES_MAX: usize = 64 * 1024;

pub(super) struct ResponseSink<'a> {
    job: &'a Job,
    reply: &'a ReplySender,
    /// The header of the body; `None` for text blocks.
    body: Option<BodyHead>,
    has_begun: bool,
    fence: Option<&'a DataFence>,
    fence_bytes: usize,
    is_mid_line: bool,
    pub(super) sent_bytes: usize,
    started: Instant,
    progress: &'a ProgressReporter<'a>,
}

impl<'a> ResponseSink<'a> {
    pub(super) fn new(progress: &'a ProgressReporter<'a>, body: Option<BodyHead>, started: Instant) -> Self {
        let (job, reply) = (progress.job(), progress.reply());
        let fence = job.fence().filter(|_| body.is_none());
        let fence_bytes = fence.map_or(0, DataFence::bytes_max);
        let (has_begun, is_mid_line, sent_bytes) = (false, false, 0);
        Self { job, reply, body, has_begun, fence, fence_bytes, is_mid_line, sent_bytes, started, progress }
    }

    pub(super) fn fence_bytes_left(&self) -> usize {
        self.fence_bytes
    }

    pub(super) fn is_body(&self) -> bool {
        self.body.is_some()
    }

    pub(super) async fn send_text(&mut self, text: String, rows: u64) -> Result<(), Error> {
        if self.is_body() {
            return self.send_bytes(text.into(), rows).await;
        }
        self.job.count_rows(rows);
        let text = self.open_fence(text);
        self.send_redacted(text).await
    }

    /// `text`, preceded by the opening of the fence if it is the first piece.
    fn open_fence(&mut self, text: String) -> String {
        let Some(fence) = self.fence.filter(|_| !text.is_empty()) else { return text };
        self.is_mid_line = !text.ends_with('\n');
        if std::mem::replace(&mut self.has_begun, true) {
            return text;
        }
        let opening = fence.opening();
        self.fence_bytes -= opening.len();
        opening + &text
    }

    pub(super) async fn close_fence(&mut self) -> Result<(), Error> {
        let Some(fence) = self.fence.filter(|_| self.has_begun) else { return Ok(()) };
        let closing = fence.closing(self.is_mid_line);
        self.send_redacted(closing).await
    }

    /// Sends `text`, whose rows were redacted before they were encoded.
    async fn send_redacted(&mut self, text: String) -> Result<(), Error> {
        self.sent_bytes += text.len();
        if text.len() <= PIECE_BYTES_MAX {
            return self.reply.send_redacted_text(text).await;
        }
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES_MAX));
            self.reply.send_redacted_text(piece.to_owned()).await?;
            rest = after;
        }
        Ok(())
    }

    pub(super) async fn send_bytes(&mut self, mut bytes: Bytes, rows: u64) -> Result<(), Error> {
        self.job.count_rows(rows);
        self.sent_bytes += bytes.len();
        if let (Some(head), false) = (&self.body, std::mem::replace(&mut self.has_begun, true)) {
            self.reply.begin_body(head.clone()).await?;
        }
        while !bytes.is_empty() {
            self.reply.send_bytes(bytes.split_to(bytes.len().min(PIECE_BYTES_MAX))).await?;
        }
        Ok(())
    }

    /// Ends the text block and sends `line` as a block of its own.
    pub(super) async fn send_notice_block(&self, line: String) -> Result<(), Error> {
        self.reply.end_text().await?;
        self.reply.send_block(Content::text(line)).await
    }

    pub(super) async fn send_result_link(&self, uri: &str) -> Result<(), Error> {
        self.reply.send_block(stored_result_link(uri)).await
    }

    pub(super) async fn end_text(&self) -> Result<(), Error> {
        self.reply.end_text().await
    }

    pub(super) async fn send_structured(&self, json: String) -> Result<(), Error> {
        self.reply.send_structured_json(json).await
    }

    pub(super) async fn report_progress(&mut self, rows: u64) -> Result<(), Error> {
        self.progress.update(rows, self.sent_bytes as u64).await
    }

    pub(super) fn metadata(&self, was_held: bool, rows: u64, truncated: bool) -> Metadata {
        let elapsed_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        [
            ("mode", Value::from(if was_held { "batch" } else { "streaming" })),
            ("rows", Value::from(rows)),
            ("bytes", Value::from(self.sent_bytes)),
            ("elapsed_ms", Value::from(elapsed_ms)),
            ("truncated", Value::from(truncated)),
        ]
        .into_iter()
        .map(|(name, value)| (format!("dev.tidegate/{name}"), value))
        .collect()
    }
}

pub(crate) fn stored_result_link(uri: &str) -> Content {
    Content::Link(ResourceLink {
        uri: uri.to_owned(),
        name: "stored result".to_owned(),
        title: None,
        description: Some("The manifest of all rows of this answer".to_owned()),
        mime_type: Some("application/json".to_owned()),
        size_bytes: None,
    })
}
