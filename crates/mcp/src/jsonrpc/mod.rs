//! JSON-RPC 2.0 as MCP uses it: decoding of messages and encoding of errors.

mod decode;
mod error;
mod id;

pub use decode::{BATCH_MESSAGES_MAX, DecodeError, IncomingMessage, RpcNotification, RpcRequest, RpcResponse, decode};
pub(crate) use error::ceil_milliseconds;
pub use error::{CallRejection, RpcError};
pub use id::RequestId;
