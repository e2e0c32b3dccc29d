//! The handshake of a legacy client, stored so that it can be repeated with a restarted server.

use bytes::Bytes;
use serde_json::Value;
use tidegate_mcp::RequestId;

use super::error::BridgeError;
use super::request::ClientRequest;
use crate::refusal::ServerMessage;

/// The client's own messages, unchanged, and the parameters that the server negotiated.
#[derive(Debug, Clone)]
pub(super) struct Handshake {
    pub(super) initialize: Bytes,
    pub(super) id: RequestId,
    /// The notification that completes the handshake, once the client has sent it.
    pub(super) initialized: Option<Bytes>,
    pub(super) negotiated: NegotiatedProtocol,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NegotiatedProtocol {
    pub(super) version: String,
    lists: Vec<&'static str>,
}

impl Handshake {
    /// The handshake of `request`, which the server answered with `negotiated`; `None` for a batch.
    pub(super) fn new(request: &ClientRequest, negotiated: NegotiatedProtocol) -> Option<Self> {
        let [id] = request.ids.as_slice() else { return None };
        Some(Self { initialize: request.line.clone(), id: id.clone(), initialized: None, negotiated })
    }
}

impl NegotiatedProtocol {
    /// Parses an answer to `initialize`. The error is the server's message, or why the answer is invalid.
    pub(super) fn parse(answer: &[u8]) -> Result<Self, ServerMessage> {
        let answer: Value =
            serde_json::from_slice(answer).map_err(|error| ServerMessage::new(&error.to_string(), None))?;
        let Some(version) = answer["result"]["protocolVersion"].as_str() else {
            let error = answer.get("error").map(Value::to_string);
            let reason = error.as_deref().unwrap_or("the answer names no protocol version");
            return Err(ServerMessage::new(reason, None));
        };
        let capabilities = &answer["result"]["capabilities"];
        let mut lists = vec!["tools", "resources", "prompts"];
        lists.retain(|list| capabilities[list]["listChanged"] == true);
        Ok(Self { version: version.to_owned(), lists })
    }

    /// Checks that a restarted server that answers `self` has the protocol version of `before`.
    pub(super) fn check_compatible(&self, before: &Self) -> Result<(), BridgeError> {
        if self.version == before.version {
            return Ok(());
        }
        Err(BridgeError::VersionChanged { before: before.version.clone(), now: self.version.clone() })
    }

    /// Notifications that make a client reload its lists, since changes may have been missed.
    pub(super) fn list_changed_notifications(&self) -> impl Iterator<Item = Bytes> {
        self.lists
            .iter()
            .map(|list| format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/{list}/list_changed\"}}").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifies_only_lists_with_list_changed() {
        let answer = br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":
            {"tools":{"listChanged":true},"prompts":{},"logging":{},"resources":{"listChanged":true,"subscribe":true}}}}"#;
        let negotiated = NegotiatedProtocol::parse(answer).unwrap();
        assert_eq!(negotiated.version, "2025-11-25");
        let message: Vec<Bytes> = negotiated.list_changed_notifications().collect();
        assert_eq!(
            message,
            [
                &br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#[..],
                br#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#,
            ]
        );
    }

    #[test]
    fn initialize_error_keeps_the_server_message() {
        let refused = NegotiatedProtocol::parse(br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#)
            .unwrap_err();
        assert_eq!(refused.to_string(), r#"; the server reports: {"code":-32602,"message":"no"}"#);
    }
}
