//! `subscriptions/listen`: a stream of the requested notifications, until the server ends it. Legacy sessions subscribe
//! to resources with `resources/subscribe`.
//!
//! Pending changes are stored as flags and the set of URIs of a [`tidegate_runtime::ChangeListener`], and are encoded when the
//! client is ready to receive. A slow client therefore receives one notification per list and resource, however often
//! they changed, and uses no memory. A client that reads nothing at all is disconnected by the write timeout of its
//! transport, as for any answer.
//!
//! [MCP 2026-07-28, Subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions),
//! [MCP 2025-11-25, Subscriptions](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions)

mod feed;
mod methods;

pub use self::feed::{FeedPosition, ListenStream, NotificationFeed};
