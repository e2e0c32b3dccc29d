//! An answer that is a body of its own: what is known of it before its first byte, and the whole of it.

use bytes::{Bytes, BytesMut};
use tidegate_core::{Budget, Error};

use super::{AnswerMeta, Reply, ReplyPart};

/// The properties of a body that are known before its first byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyMetadata {
    /// Its media type, with parameters.
    pub media_type: &'static str,
    /// The limits after which it is truncated.
    pub budget: Budget,
    /// The version of a body that is the same for each request; `None` for rows, which can change.
    pub version: Option<BodyVersion>,
    /// The file that the body contains; `None` for rows.
    pub file: Option<BodyFile>,
}

impl BodyMetadata {
    /// A body of rows, which can change.
    pub fn new(media_type: &'static str, budget: Budget) -> Self {
        Self { media_type, budget, version: None, file: None }
    }
}

/// A file that is sent as a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyFile {
    /// The name without folders.
    pub name: String,
    /// The media type, as declared in the configuration.
    pub media_type: Option<String>,
}

/// The version of a body that is the same for each request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyVersion {
    /// A tag that identifies the bytes: equal tags mean equal bytes. Visible ASCII without quotes.
    pub tag: String,
    /// The length in bytes, if known before they are sent.
    pub bytes: Option<u64>,
}

impl Reply {
    /// The whole body, which is at most `bytes_max` bytes, and what is known of the answer at its end. For callers that
    /// need a short answer as one value.
    ///
    /// # Errors
    /// The error of the call; `Internal` for a longer body.
    pub async fn collect_body(&mut self, bytes_max: usize) -> Result<(Bytes, AnswerMeta), Error> {
        let mut body = BytesMut::new();
        while let Some(part) = self.next().await {
            match part {
                ReplyPart::Bytes(piece) if body.len() + piece.len() <= bytes_max => {
                    body.extend_from_slice(&piece);
                }
                ReplyPart::Bytes(_) => {
                    let name = self.job.target().name();
                    return Err(Error::internal(format!("the answer of {name} has more than {bytes_max} bytes")));
                }
                ReplyPart::End(end) => return end.map(|metadata| (body.freeze(), metadata)),
                _ => {}
            }
        }
        Err(Error::internal("the answer was read before"))
    }
}
