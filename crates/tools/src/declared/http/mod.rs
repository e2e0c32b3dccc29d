//! Declared tools of kind `http`: a templated request to an HTTP API, whose response becomes a table if possible.
//!
//! The target of a request is checked three times, because each can change on its own: the fixed host at load, each
//! redirect target, and the resolved addresses at connection time.

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
mod tool;
mod url_template;

pub use allowed_hosts::AllowedHosts;
pub use client::HttpClient;
pub use definition::{HttpArgument, HttpDefinition, HttpProblem};
pub use request::HttpRequestTemplate;
pub use resolver::DnsResolver;
pub use tool::HttpToolHandler;
