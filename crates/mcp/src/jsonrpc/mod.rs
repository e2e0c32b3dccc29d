//! JSON-RPC 2.0 as MCP uses it: reading messages and writing errors.

mod decode;
mod error;
mod id;

pub use decode::{BATCH_MESSAGES_MAX, DecodeError, IncomingMessage, RpcNotification, RpcRequest, RpcResponse, decode};
pub(crate) use error::ceil_milliseconds;
pub use error::{CallRejection, RpcError};
pub use id::RequestId;
