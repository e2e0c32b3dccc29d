//! Declared tools of kind `http`: a templated request to an existing HTTP API, its answer as a table when it is one.
//!
//! Where a request may go is decided three times, because each time something else could have changed it: the fixed
//! host at load, every target of a redirect, and the addresses behind a name when it is connected to.

mod address;
mod answer;
mod body;
mod client;
mod definition;
mod given;
mod host;
mod network;
mod refusal;
mod request;
mod resolver;
mod rows;
mod secrets;
mod template;
mod tool;

pub use client::HttpClient;
pub use definition::{HttpArgument, HttpDefinition, HttpProblem};
pub use host::AllowedHosts;
pub use request::{HttpRequestTemplate, RESERVED_ARGUMENTS};
pub use resolver::Names;
pub use template::escape_braces;
pub use tool::HttpTool;
