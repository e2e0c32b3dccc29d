//! Encodes `CompleteResult`.
//!
//! [MCP 2026-07-28, Completion](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion)

use bytes::Bytes;
use serde_json::json;
use tidegate_core::Completion;
use tidegate_runtime::{Chunk, Outcome};

use super::ReplyEncoder;
use super::envelope::ResponseEnvelope;
use crate::jsonrpc::RpcError;

/// Stores the completion until the end of the reply.
pub(crate) struct CompleteEncoder {
    envelope: ResponseEnvelope,
    completion: Completion,
}

impl CompleteEncoder {
    pub(crate) fn new(envelope: ResponseEnvelope) -> Self {
        Self { envelope, completion: Completion::default() }
    }
}

impl ReplyEncoder for CompleteEncoder {
    fn encode_chunk(&mut self, chunk: Chunk) -> Bytes {
        if let Chunk::Completion(completion) = chunk {
            self.completion = completion;
        }
        Bytes::new()
    }

    fn encode_outcome(&mut self, outcome: Outcome) -> (Bytes, Option<RpcError>) {
        match outcome {
            Outcome::Done(metadata) => {
                let Completion { values, total, has_more } = std::mem::take(&mut self.completion);
                let visible = &values[..values.len().min(Completion::VALUES_MAX)];
                let mut completion = json!({"values": visible, "hasMore": has_more});
                if let Some(total) = total {
                    completion["total"] = total.into();
                }
                (self.envelope.encode_response(&format!("\"completion\":{completion}"), &metadata, None), None)
            }
            Outcome::Failed(error) => {
                let error = RpcError::from_error(&error, None, self.envelope.dialect);
                (self.envelope.encode_error(&error), Some(error))
            }
        }
    }
}
