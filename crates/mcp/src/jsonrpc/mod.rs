//! JSON-RPC 2.0 as MCP uses it: decoding of messages and encoding of responses.

mod decode;
mod response;

pub use decode::{BATCH_MESSAGES_MAX, DecodeError, IncomingMessage, RpcNotification, RpcRequest, RpcResponse, decode};
pub(crate) use response::ceil_milliseconds;
pub use response::{CallRejection, RequestId, ResponseMessage, RpcError};
