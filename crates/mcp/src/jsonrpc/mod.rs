//! JSON-RPC 2.0 as MCP uses it: reading messages and writing errors.

mod decode;
mod error;
mod id;

pub use decode::{BATCH_MESSAGES_MAX, Incoming, Notification, Rejection, Request, Response, decode};
pub(crate) use error::milliseconds;
pub use error::{Hindrance, RpcError};
pub use id::RequestId;
