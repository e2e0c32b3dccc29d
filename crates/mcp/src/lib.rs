//! The language MCP: JSON-RPC, the five revisions, dispatch. No sockets, no SQL.
//!
//! A transport hands the bytes of one message to [`decode`], and what came out to
//! [`Service::answer`]; the [`Answer`] is bytes again, written while they are produced.

mod answer;
mod batch;
mod bounded;
mod calls;
mod cursor;
mod encode;
mod in_flight;
mod jsonrpc;
mod list;
mod listen;
mod questions;
mod request_meta;
mod request_state;
mod revision;
mod rounds;
mod service;
mod session;
mod subscribe;
mod tasks;
mod wire;

pub use answer::{Answer, AnswerStream, Frame, Message};
pub use bounded::NAME_BYTES_MAX;
pub use in_flight::{InFlight, InFlightGuard};
pub use jsonrpc::{
    BATCH_MESSAGES_MAX, Hindrance, Incoming, Notification, Rejection, Request, RequestId, Response, RpcError, decode,
};
pub use listen::{Feed, Heard, ListenStream};
pub use request_meta::{RequestMeta, is_trace_parent};
pub use revision::Revision;
pub use service::{Peer, Service};
pub use session::Session;
pub use tasks::TaskFolder;
pub use wire::{About, content_json, tool_json};
