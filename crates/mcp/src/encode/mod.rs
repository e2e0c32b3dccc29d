//! Encodes results as bytes, while the reply is produced.

mod answer_meta;
mod call_tool;
mod collected;
mod content_blocks;
mod envelope;
mod read_resource;

pub(crate) use call_tool::CallToolEncoder;
pub(crate) use collected::CollectingEncoder;
pub use content_blocks::ContentBlocks;
pub(crate) use envelope::{ReplyEncoder, ResponseEnvelope, ResultType};
pub(crate) use read_resource::ReadResourceEncoder;
