//! The MCP protocol: JSON-RPC, the five revisions, dispatch. No sockets, no SQL.
//!
//! A transport passes the bytes of one message to [`decode`], and the decoded message to [`McpService::answer`]. The
//! [`RpcAnswer`] is bytes again, sent while they are produced.

mod answer;
mod encode;
mod input_rounds;
mod jsonrpc;
mod list;
mod listen;
mod messages;
mod revision;
mod service;
mod session;
mod tasks;
mod wire;

pub use answer::{ResponseFrame, ResponseStream, RpcAnswer};
pub use encode::ContentItems;
pub use jsonrpc::{
    CallRejection, DecodeError, IncomingMessage, RPC_BATCH_MESSAGES_MAX, ReadLine, RequestId, RequestMeta,
    ResponseMessage, RpcError, RpcNotification, RpcRequest, RpcResponse, decode, is_trace_parent, read_line,
};
pub use listen::{FeedPosition, ListenStream, NotificationFeed};
pub use revision::Revision;
pub use service::{McpService, NAME_BYTES_MAX, RequestContext, needs_session};
pub use session::{InFlightGuard, InFlightRequests, McpSession};
pub use tasks::TaskFolder;
pub use wire::{ServerDescription, content_json, tool_json};
