//! A step of the scenario file.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_mcp::Revision;

use super::channel::{Channel, Transport};

/// One step: caller, request, and expected result.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    pub(super) name: String,
    /// The user whose key is sent; null for no key.
    #[serde(default = "ann")]
    pub(super) by: Option<String>,
    /// The toolset of the endpoint.
    #[serde(default)]
    pub(super) through: Option<String>,
    /// The precondition.
    #[serde(default)]
    pub(super) before: Option<Precondition>,
    /// Whether an operator cancels the call while it runs.
    #[serde(default)]
    pub(super) is_ended: bool,
    pub(super) ask: StepRequest,
    pub(super) answered: Option<Value>,
    pub(super) refused: Option<ExpectedRefusal>,
    /// The transports to which it applies; by default all that support it.
    pub(super) on: Option<Vec<String>>,
    /// The first and the last revision to which it applies.
    pub(super) since: Option<String>,
    pub(super) until: Option<String>,
    /// Why it differs between transports.
    pub(super) because: Option<String>,
}

fn ann() -> Option<String> {
    Some("ann".to_owned())
}

/// The precondition of a step.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Precondition {
    /// The key of this user is revoked.
    Revoked(String),
    /// A new configuration is being applied until the step is done.
    Changing,
    /// This tool is removed.
    Removed(String),
    /// These users have the given number of calls open, over the transport of the replay.
    Open(Map<String, Value>),
}

/// The request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StepRequest {
    Call(CallAsk),
    /// A call of a tool whose name has this many bytes.
    CallOfName(usize),
    /// A call with arrays nested this deep.
    CallOfDepth(usize),
    List(ListAsk),
    Read(String),
    Prompt(PromptAsk),
    Complete(Value),
    /// Any method of MCP.
    Method {
        name: String,
        params: Value,
    },
    /// A complete message or body, unchanged.
    Bytes(String),
    /// A complete message or body of this many bytes.
    Filler(usize),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallAsk {
    pub(super) tool: String,
    #[serde(default)]
    pub(super) arguments: Map<String, Value>,
    /// Whether the caller requests progress.
    #[serde(default)]
    pub(super) progress: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListAsk {
    pub(super) of: List,
    pub(super) cursor: Option<String>,
}

/// The kinds of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum List {
    Tools,
    Prompts,
    Resources,
    Templates,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PromptAsk {
    pub(super) name: String,
    #[serde(default)]
    pub(super) arguments: Map<String, Value>,
}

/// A refusal that the scenario expects.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedRefusal {
    pub(super) kind: String,
    pub(super) message: Message,
}

/// The message; by transport where it differs.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Message {
    Everywhere(String),
    ByTransport(Map<String, Value>),
}

impl Step {
    /// The whole scenario.
    pub(super) fn all() -> &'static [Self] {
        static STEPS: LazyLock<Vec<Step>> =
            LazyLock::new(|| serde_json::from_str(include_str!("scenario.json")).unwrap());
        &STEPS
    }

    /// Whether the step applies to `channel`.
    pub(super) fn is_on(&self, channel: &Channel) -> bool {
        let is_named = self.on.as_ref().is_none_or(|names| names.iter().any(|name| name == channel.transport.name()));
        let revision = |name: &Option<String>| name.as_deref().map(|name| Revision::parse(name).unwrap());
        let is_late_enough = revision(&self.since).is_none_or(|since| channel.revision >= since);
        let is_early_enough = revision(&self.until).is_none_or(|until| channel.revision <= until);
        is_named && is_late_enough && is_early_enough && self.can_be_sent(channel.transport)
    }

    /// REST has only tools, and one endpoint.
    fn can_be_sent(&self, transport: Transport) -> bool {
        transport != Transport::Rest || (self.ask.is_of_tools() && self.through.is_none())
    }

    /// Whether it is refused with the same message on all its transports.
    pub(super) fn is_refused_alike(&self) -> bool {
        self.refused.is_some() && !self.differs()
    }

    /// Whether the message differs.
    pub(super) fn differs(&self) -> bool {
        self.refused.as_ref().is_some_and(|refused| matches!(refused.message, Message::ByTransport(_)))
    }
}

impl StepRequest {
    fn is_of_tools(&self) -> bool {
        match self {
            Self::Call(_) | Self::CallOfName(_) | Self::CallOfDepth(_) | Self::Bytes(_) | Self::Filler(_) => true,
            Self::List(list) => list.of == List::Tools,
            Self::Read(_) | Self::Prompt(_) | Self::Complete(_) | Self::Method { .. } => false,
        }
    }

    /// The call, if the step is one.
    pub(super) fn call(&self) -> Option<CallAsk> {
        match self {
            Self::Call(call) => Some(call.clone()),
            Self::CallOfName(bytes) => Some(CallAsk::new("x".repeat(*bytes))),
            Self::CallOfDepth(depth) => {
                let steps = (0..*depth).fold(json!([]), |inner, _| json!([inner]));
                let arguments = Map::from_iter([("steps".to_owned(), steps)]);
                Some(CallAsk { arguments, ..CallAsk::new("script".to_owned()) })
            }
            _ => None,
        }
    }

    /// The bytes, if the step is not a request.
    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Bytes(text) => Some(text.clone().into_bytes()),
            Self::Filler(bytes) => Some(vec![b'x'; *bytes]),
            _ => None,
        }
    }
}

impl CallAsk {
    /// A call without arguments.
    pub(super) fn new(tool: String) -> Self {
        Self { tool, arguments: Map::new(), progress: false }
    }
}

impl List {
    /// The member of a result that contains the list.
    pub(super) fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The method that returns the list.
    pub(super) fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// The identifier of an entry.
    pub(super) fn key_of(self, entry: &Value) -> &str {
        let key = match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        };
        entry[key].as_str().unwrap()
    }

    /// An entry without members that only some revisions have.
    pub(super) fn bare(self, entry: &Value) -> Value {
        const BARE: [&str; 6] = ["name", "description", "inputSchema", "uri", "uriTemplate", "mimeType"];
        let members = entry.as_object().unwrap().iter().filter(|(name, _)| BARE.contains(&name.as_str()));
        members.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}
