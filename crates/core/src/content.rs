//! The content of answers: the types of MCP without their wire format. Handlers render them.

use bytes::Bytes;

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
