//! Divides the rows of an answer into several texts, for clients that show content as it arrives.

use std::num::NonZeroU64;

use arrow::datatypes::SchemaRef;
use tidegate_core::{Error, Format};

use super::AnswerWriter;
use crate::body::RowEncoder;

/// How the rows are divided: each text is complete in its format.
pub(super) struct TextItems {
    pub(super) rows_max: NonZeroU64,
    pub(super) format: Format,
    pub(super) is_list: bool,
    pub(super) schema: SchemaRef,
}

impl AnswerWriter<'_> {
    /// Ends the open text before the next row if it has all its rows; that row begins another one.
    pub(super) async fn end_full_item(&mut self) -> Result<(), Error> {
        let Some(items) = &self.items else { return Ok(()) };
        let Some(text) = self.encoder.text().filter(|text| text.rows >= items.rows_max.get()) else { return Ok(()) };
        text.write_end(false);
        let started = self.progress.started();
        let next = RowEncoder::for_answer(items.format, items.is_list, &items.schema, started)?;
        self.send_rest().await?;
        self.encoder = next;
        self.reply.end_text().await
    }
}
