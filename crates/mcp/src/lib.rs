//! The MCP protocol: JSON-RPC, the five revisions, dispatch. No sockets, no SQL.
//!
//! A transport passes the bytes of one message to [`decode`], and the decoded message to [`McpService::answer`]. The
//! [`RpcAnswer`] is bytes again, sent while they are produced.

mod answer;
mod batch;
mod bounded;
mod calls;
mod encode;
mod in_flight;
mod input_rounds;
mod jsonrpc;
mod lines;
mod list;
mod listen;
mod messages;
mod request;
mod request_meta;
mod request_state;
mod revision;
mod server_requests;
mod service;
mod session;
mod tasks;
mod tool_list_cache;
mod wire;

pub use answer::{AnswerFrame, AnswerStream, RpcAnswer};
pub use bounded::NAME_BYTES_MAX;
pub use encode::ContentBlocks;
pub use in_flight::{InFlightGuard, InFlightRequests};
pub use jsonrpc::{
    BATCH_MESSAGES_MAX, CallRejection, DecodeError, IncomingMessage, RequestId, ResponseMessage, RpcError,
    RpcNotification, RpcRequest, RpcResponse, decode,
};
pub use lines::{ReadLine, read_line};
pub use listen::{FeedPosition, ListenStream, NotificationFeed};
pub use request::RequestContext;
pub use request_meta::{RequestMeta, is_trace_parent};
pub use revision::Revision;
pub use service::McpService;
pub use session::McpSession;
pub use tasks::TaskFolder;
pub use wire::{ServerDescription, content_json, tool_json};
