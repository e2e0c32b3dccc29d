//! Declared tools of kind `http`: a templated request to an existing HTTP API, its answer as a table when it is one.
//!
//! Where a request may go is decided three times, because each time something else could have changed it: the fixed
//! host at load, every target of a redirect, and the addresses behind a name when it is connected to.

mod address_class;
mod allowed_hosts;
mod api_error;
mod api_result;
mod body_template;
mod call_arguments;
mod client;
mod definition;
mod json_rows;
mod request;
mod resolver;
mod secrets;
mod template;
mod tool;
mod url_template;

pub use allowed_hosts::AllowedHosts;
pub use client::HttpClient;
pub use definition::{HttpArgument, HttpDefinition, HttpProblem};
pub use request::{HttpRequestTemplate, RESERVED_ARGUMENTS};
pub use resolver::DnsResolver;
pub use template::escape_braces;
pub use tool::HttpToolHandler;
