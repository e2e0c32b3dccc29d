//! Encodes results as bytes, while the reply is produced.

mod call_tool;
mod complete;
mod content_blocks;
mod envelope;
mod get_prompt;
mod read_resource;

use bytes::Bytes;
use tidegate_runtime::{Chunk, Outcome};

use crate::jsonrpc::RpcError;

pub(crate) use call_tool::CallToolEncoder;
pub(crate) use complete::CompleteEncoder;
pub(crate) use envelope::{ResponseEnvelope, ResultType};
pub(crate) use get_prompt::GetPromptEncoder;
pub(crate) use read_resource::ReadResourceEncoder;

/// Encodes one reply as one response message, piece by piece.
pub(crate) trait ReplyEncoder: Send {
    /// The bytes for `chunk`; empty if they are sent at the end.
    fn encode_chunk(&mut self, chunk: Chunk) -> Bytes;

    /// The last bytes, and the error if the whole response is one.
    fn encode_outcome(&mut self, outcome: Outcome) -> (Bytes, Option<RpcError>);
}
