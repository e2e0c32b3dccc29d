//! Sends the pieces of an answer: as text blocks, or as a body.

use bytes::Bytes;
use tidegate_core::{Content, Error, ResourceLink};

use super::AnswerWriter;

pub(super) const PIECE_BYTES_MAX: usize = 64 * 1024;

impl AnswerWriter<'_> {
    /// Whether the answer is a body.
    pub(super) fn is_body(&self) -> bool {
        self.body.is_some()
    }

    pub(super) async fn send_text(&mut self, text: String, rows: u64) -> Result<(), Error> {
        if self.is_body() {
            return self.send_bytes(text.into(), rows).await;
        }
        self.reply.job().usage().count_rows(rows);
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
        self.reply.job().usage().count_rows(rows);
        self.sent_bytes += bytes.len();
        if let (Some(head), false) = (&self.body, std::mem::replace(&mut self.has_begun, true)) {
            self.reply.begin_body(head.clone()).await?;
        }
        while !bytes.is_empty() {
            self.reply.send_bytes(bytes.split_to(bytes.len().min(PIECE_BYTES_MAX))).await?;
        }
        Ok(())
    }

    /// Reports the number of rows, at most four times per second.
    pub(super) async fn report_progress(&mut self) -> Result<(), Error> {
        self.progress.update(self.rows, self.sent_bytes as u64).await
    }
}

pub(crate) fn stored_result_link(uri: &str) -> Content {
    Content::Link(ResourceLink {
        uri: uri.to_owned(),
        name: "stored result".to_owned(),
        title: None,
        description: Some("The manifest of the stored rows".to_owned()),
        mime_type: Some("application/json".to_owned()),
        size_bytes: None,
    })
}
