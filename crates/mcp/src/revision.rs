//! The revisions of MCP, oldest first, and what each changes: its [`Dialect`], derived from the previous one.

use tidegate_core::ClientCapabilities;

/// A revision of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are dates")]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is one independent difference between revisions")]
pub(crate) struct Dialect {
    /// Messages may be sent in JSON-RPC batches.
    pub batches: bool,
    /// Tools have annotations; content may be audio; progress has a message; completion is a capability.
    pub annotations: bool,
    /// Entries have titles; tools have output schemas and structured content; content may be a resource link;
    /// completion has a context.
    pub titles: bool,
    /// Entries have icons.
    pub icons: bool,
    /// A server can request that a person fills in a form.
    pub elicitation: bool,
    /// A server can request that a person opens a URL.
    pub elicitation_by_url: bool,
    /// Requests are independent: `_meta` contains revision and capabilities, results contain `resultType` and the
    /// server's identity, lists contain cache hints.
    pub stateless: bool,
    /// The error for a missing resource is `-32002`.
    pub resource_not_found_is_32002: bool,
    /// Structured content may be any JSON value, not only an object.
    pub structured_content_is_any_value: bool,
}

impl Dialect {
    /// The capabilities of `declared` that a server can use in this revision.
    pub(crate) fn usable_capabilities(&self, declared: ClientCapabilities) -> ClientCapabilities {
        ClientCapabilities {
            forms: declared.forms && self.elicitation,
            urls: declared.urls && self.elicitation_by_url,
            tasks: declared.tasks && self.stateless,
            ..declared
        }
    }
}

impl Revision {
    /// All revisions, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// The newest revision with a handshake.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;

    /// The date that identifies it.
    pub fn name(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision with that date.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.name() == name)
    }

    /// Whether it starts with `initialize` and has sessions.
    pub fn is_legacy(self) -> bool {
        self <= Self::NEWEST_LEGACY
    }

    /// Whether messages may be sent in JSON-RPC batches.
    pub fn has_batches(self) -> bool {
        self.dialect().batches
    }

    pub(crate) fn dialect(self) -> &'static Dialect {
        match self {
            Self::V2024_11_05 => &V2024_11_05,
            Self::V2025_03_26 => &V2025_03_26,
            Self::V2025_06_18 => &V2025_06_18,
            Self::V2025_11_25 => &V2025_11_25,
            Self::V2026_07_28 => &V2026_07_28,
        }
    }
}

/// [2024-11-05](https://modelcontextprotocol.io/specification/2024-11-05): the first revision.
const V2024_11_05: Dialect = Dialect {
    batches: false,
    annotations: false,
    titles: false,
    icons: false,
    elicitation: false,
    elicitation_by_url: false,
    stateless: false,
    resource_not_found_is_32002: true,
    structured_content_is_any_value: false,
};

/// [2025-03-26](https://modelcontextprotocol.io/specification/2025-03-26/changelog): Streamable
/// HTTP, JSON-RPC batches, tool annotations, audio, the completions capability.
const V2025_03_26: Dialect = Dialect { batches: true, annotations: true, ..V2024_11_05 };

/// [2025-06-18](https://modelcontextprotocol.io/specification/2025-06-18/changelog): no JSON-RPC batches;
/// structured content, resource links, titles, elicitation.
const V2025_06_18: Dialect = Dialect { batches: false, titles: true, elicitation: true, ..V2025_03_26 };

/// [2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25/changelog): icons, elicitation by
/// URL.
/// Invalid arguments are reported as an error of the tool, which the model sees; here this applies to every revision.
const V2025_11_25: Dialect = Dialect { icons: true, elicitation_by_url: true, ..V2025_06_18 };

/// [2026-07-28](https://modelcontextprotocol.io/specification/2026-07-28/changelog): no handshake
/// and no sessions; result types, cache hints, `-32602` for a missing resource.
const V2026_07_28: Dialect = Dialect {
    stateless: true,
    resource_not_found_is_32002: false,
    structured_content_is_any_value: true,
    ..V2025_11_25
};
