//! Tools and content blocks in the encoding of the newest revision, for other adapters.

use serde_json::Value;
use tidegate_core::Content;
use tidegate_runtime::Tool;

use crate::revision::Revision;

/// One content block.
pub fn content_json(content: &Content) -> Value {
    super::encode_content(content, Revision::V2026_07_28.dialect())
}

/// A tool of the registry.
pub fn tool_json(tool: &Tool) -> Value {
    super::encode_tool(tool, Revision::V2026_07_28.dialect())
}
