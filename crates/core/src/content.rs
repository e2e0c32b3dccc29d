//! What answers are made of, named as MCP names it but without its wire form.

use bytes::Bytes;

/// Who speaks in a prompt message or is meant by an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContentRole {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// Hints for clients on how to treat a piece of content.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Annotations {
    /// Who it is for; empty for everybody.
    pub audience: Vec<ContentRole>,
    /// 0 (least) to 1 (most important).
    pub priority: Option<f64>,
    /// RFC 3339.
    pub last_modified: Option<String>,
}

/// A picture of an entry, for user interfaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Icon {
    /// `https:` or `data:` URI.
    pub src: String,
    /// Media type, if `src` does not tell.
    pub mime_type: Option<String>,
    /// Sizes as `48x48` or `any`.
    pub sizes: Vec<String>,
}

/// One whole block of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// Hints.
        annotations: Option<Annotations>,
    },
    /// A picture.
    Image {
        /// The bytes of the image file.
        data: Bytes,
        /// Its media type.
        mime_type: String,
    },
    /// Sound.
    Audio {
        /// The bytes of the audio file.
        data: Bytes,
        /// Its media type.
        mime_type: String,
    },
    /// A pointer to a resource.
    Link(ResourceLink),
    /// A resource, embedded.
    Resource(ResourceContents),
}

impl Content {
    /// Text without annotations.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), annotations: None }
    }

    /// How many bytes of text or data it carries.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Text { text, .. } => text.len(),
            Self::Image { data, .. } | Self::Audio { data, .. } => data.len(),
            Self::Link(_) => 0,
            Self::Resource(ResourceContents { body: ResourceBody::Text(text), .. }) => text.len(),
            Self::Resource(ResourceContents { body: ResourceBody::Blob(data), .. }) => data.len(),
        }
    }
}

/// A pointer to a resource that the caller may read later.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceLink {
    /// Where.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Media type.
    pub mime_type: Option<String>,
    /// Size in bytes, if known.
    pub size_bytes: Option<u64>,
}

/// The contents of one resource.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceContents {
    /// Which resource.
    pub uri: String,
    /// Media type.
    pub mime_type: Option<String>,
    /// Text or bytes.
    pub body: ResourceBody,
}

/// Text or bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceBody {
    /// UTF-8.
    Text(String),
    /// Anything else.
    Blob(Bytes),
}
