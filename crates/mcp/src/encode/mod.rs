//! Results as bytes, written while the reply is produced.

mod call_tool;
mod complete;
mod envelope;
mod get_prompt;
mod read_resource;
mod text;

use bytes::Bytes;
use tidegate_core::{Chunk, Outcome};

use crate::jsonrpc::RpcError;

pub(crate) use call_tool::CallToolEncoder;
pub(crate) use complete::CompleteEncoder;
pub(crate) use envelope::{Envelope, ResultType};
pub(crate) use get_prompt::GetPromptEncoder;
pub(crate) use read_resource::ReadResourceEncoder;

/// Turns one reply into one response message, piece by piece.
pub(crate) trait ReplyEncoder: Send {
    /// The bytes that `chunk` adds; empty when it waits for the end.
    fn chunk(&mut self, chunk: Chunk) -> Bytes;

    /// The last bytes, and the error if the whole response is one.
    fn end(&mut self, outcome: Outcome) -> (Bytes, Option<RpcError>);
}
