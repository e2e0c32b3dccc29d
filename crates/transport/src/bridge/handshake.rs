//! What a legacy client's handshake settled, kept so that it can be made again with a server that began anew.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_mcp::RequestId;

use super::failure::{Failure, Words};

/// The client's own messages, as they came, and what the server answered.
#[derive(Debug, Clone)]
pub(super) struct Handshake {
    pub(super) initialize: Bytes,
    pub(super) id: RequestId,
    /// The notification that ends it, once the client sent it.
    pub(super) initialized: Option<Bytes>,
    pub(super) terms: Terms,
}

/// What the server's answer to `initialize` says that the bridge must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) version: String,
    /// Names of the lists whose changes the server tells.
    lists: Vec<&'static str>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    result: Option<Initialized>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialized {
    protocol_version: String,
    #[serde(default)]
    capabilities: Capabilities,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Capabilities {
    tools: Option<List>,
    resources: Option<List>,
    prompts: Option<List>,
}

#[derive(Deserialize)]
struct List {
    #[serde(default, rename = "listChanged")]
    list_changed: bool,
}

impl Terms {
    /// What `answer` says.
    ///
    /// # Errors
    /// In words, when it is a refusal or nothing that a handshake can be answered with.
    pub(super) fn read(answer: &[u8]) -> Result<Self, Words> {
        let answer: Answer<'_> =
            serde_json::from_slice(answer).map_err(|error| Words::new(&error.to_string(), None))?;
        let Some(Initialized { protocol_version: version, capabilities }) = answer.result else {
            return Err(Words::new(answer.error.map_or("it gives no result", RawValue::get), None));
        };
        let lists =
            [("tools", capabilities.tools), ("resources", capabilities.resources), ("prompts", capabilities.prompts)];
        let tells = |list: Option<List>| list.is_some_and(|list| list.list_changed);
        let lists = lists.into_iter().filter_map(|(name, list)| tells(list).then_some(name)).collect();
        Ok(Self { version, lists })
    }

    /// Whether a server that answers `self` now goes on with what `before` settled.
    ///
    /// # Errors
    /// When it speaks another version than the one on which the client agreed.
    pub(super) fn go_on_from(&self, before: &Self) -> Result<(), Failure> {
        if self.version == before.version {
            return Ok(());
        }
        Err(Failure::OtherVersion { before: before.version.clone(), now: self.version.clone() })
    }

    /// Notifications upon which a client asks for the lists again, as they may have changed unheard.
    pub(super) fn list_changes(&self) -> impl Iterator<Item = Bytes> {
        self.lists
            .iter()
            .map(|list| format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/{list}/list_changed\"}}").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lists_whose_changes_are_told_are_told_of() {
        let answer = br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":
            {"tools":{"listChanged":true},"prompts":{},"logging":{},"resources":{"listChanged":true,"subscribe":true}}}}"#;
        let terms = Terms::read(answer).unwrap();
        assert_eq!(terms.version, "2025-11-25");
        let told: Vec<Bytes> = terms.list_changes().collect();
        assert_eq!(
            told,
            [
                &br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#[..],
                br#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#,
            ]
        );
    }

    #[test]
    fn a_refusal_is_told_in_its_words() {
        let refused = Terms::read(br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#).unwrap_err();
        assert_eq!(refused.to_string(), r#"; the server says: {"code":-32602,"message":"no"}"#);
    }
}
