//! The content of answers: the types of MCP without their wire format, which handlers render. Stored results, as far as
//! monitoring and transports need them.

use bytes::Bytes;

use crate::principal::Caller;

/// The role of a prompt message or of the audience of an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContentRole {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// Hints for clients on how to use a piece of content.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Annotations {
    /// The intended audience; empty for all.
    pub audience: Vec<ContentRole>,
    /// 0 (least) to 1 (most important).
    pub priority: Option<f64>,
    /// A timestamp in the form of RFC 3339.
    pub last_modified: Option<String>,
}

/// An icon of an entry, for user interfaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Icon {
    /// `https:` or `data:` URI.
    pub src: String,
    /// The media type, if `src` does not determine it.
    pub mime_type: Option<String>,
    /// Sizes as `48x48` or `any`.
    pub sizes: Vec<String>,
}

/// One complete block of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// Hints.
        annotations: Option<Annotations>,
    },
    /// An image.
    Image {
        /// The bytes of the image file.
        data: Bytes,
        /// Its media type.
        mime_type: String,
    },
    /// Audio.
    Audio {
        /// The bytes of the audio file.
        data: Bytes,
        /// Its media type.
        mime_type: String,
    },
    /// A link to a resource.
    Link(ResourceLink),
    /// An embedded resource.
    Resource(ResourceContents),
}

impl Content {
    /// Text without annotations.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), annotations: None }
    }

    /// The number of bytes of text or data.
    pub fn byte_count(&self) -> usize {
        match self {
            Self::Text { text, .. } => text.len(),
            Self::Image { data, .. } | Self::Audio { data, .. } => data.len(),
            Self::Link(_) => 0,
            Self::Resource(ResourceContents { body: ResourceBody::Text(text), .. }) => text.len(),
            Self::Resource(ResourceContents { body: ResourceBody::Blob(data), .. }) => data.len(),
        }
    }
}

/// A link to a resource that the caller can read later.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceLink {
    /// The URI of the resource.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// A title for people.
    pub title: Option<String>,
    /// What the resource is.
    pub description: Option<String>,
    /// The media type.
    pub mime_type: Option<String>,
    /// The size in bytes, if known.
    pub size_bytes: Option<u64>,
}

/// The contents of one resource.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceContents {
    /// The URI of the resource.
    pub uri: String,
    /// The media type.
    pub mime_type: Option<String>,
    /// Text or bytes.
    pub body: ResourceBody,
}

/// Text or bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceBody {
    /// UTF-8 text.
    Text(String),
    /// Any other bytes.
    Blob(Bytes),
}

/// The current number and size of stored results, with counters since the process started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoredResultStats {
    /// The number of results.
    pub results: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// The number of results that are being written.
    pub running: u64,
    /// Blocks written since the process started.
    pub blocks_written: u64,
    /// Blocks that callers fetched since the process started, alone or as part of all rows.
    pub blocks_read: u64,
    /// The bytes of these blocks.
    pub block_bytes_read: u64,
    /// Results removed because they expired, since the process started.
    pub expired: u64,
    /// Results removed to make room for newer ones, since the process started.
    pub evicted: u64,
}

/// A store of results that reports its statistics.
pub trait StoredResults: Send + Sync + 'static {
    /// The current statistics. Must not block.
    fn stats(&self) -> StoredResultStats;
}

/// Verifies signed links: credentials for one stored result and a short time, for browsers and programs without other
/// credentials.
pub trait LinkVerifier: Send + Sync + 'static {
    /// The caller that created `link`, if the link is valid for the stored result `id` and has not expired. Anyone with
    /// the link can read that result with the rights of this caller, and nothing else.
    fn verify_link(&self, id: &str, link: &str) -> Option<Caller>;
}
