//! What Tidegate does as a client of a Tidegate or MCP server: the download of stored results ([`fetch`]), the upload of
//! rows ([`upload`]), and the bridge from standard input and output to a running server ([`bridge`]).
//!
//! A credential is sent only to the server that it was given for, and no message contains it.

pub mod bridge;
pub mod fetch;
mod server;
pub mod upload;

pub use server::{
    AddressError, AuthoritiesError, BearerToken, BearerTokenError, ServerMessage, ServerRefusal, TrustedAuthorities,
};
