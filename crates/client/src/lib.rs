//! What Tidegate does as a client of a Tidegate or MCP server: the download of stored results ([`fetch`]), the upload of
//! rows ([`upload`]), and the bridge from standard input and output to a running server ([`bridge`]).
//!
//! A credential is sent only to the server that it was given for, and no message contains it.

mod address;
mod bearer_token;
pub mod bridge;
pub mod fetch;
mod http_client;
mod refusal;
mod tls;
pub mod upload;

pub use address::AddressError;
pub use bearer_token::{BearerToken, BearerTokenError};
pub use refusal::{ServerMessage, ServerRefusal};
pub use tls::{AuthoritiesError, TrustedAuthorities};
