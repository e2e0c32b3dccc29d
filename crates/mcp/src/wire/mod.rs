//! Encodes the types of MCP. Members that a revision does not have are left out.

mod content;
mod entry;
mod input;
mod notification;
mod server;

pub use content::content_json;
pub(crate) use content::{encode_content, encode_prompt_message, encode_resource_contents};
pub use entry::tool_json;
pub(crate) use entry::{encode_prompt, encode_resource, encode_resource_template, encode_tool};
pub(crate) use input::{
    encode_client_capabilities, encode_input_request, encode_input_requests, parse_client_capabilities,
    parse_input_answer,
};
pub(crate) use notification::{
    ListKind, encode_acknowledgement, encode_list_changed, encode_notification, encode_resource_updated,
    encode_server_request, encode_task_status,
};
pub use server::ServerDescription;
pub(crate) use server::{encode_implementation, encode_server_capabilities};

use serde_json::Value;

/// An object with those `members` that have a value.
fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    members.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn text(text: Option<&String>) -> Option<Value> {
    text.map(|text| text.as_str().into())
}
