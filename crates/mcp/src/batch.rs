//! Batches, which only 2025-03-26 has: the responses of a batch are sent together, in any order.
//!
//! [MCP 2025-03-26, Batching](https://modelcontextprotocol.io/specification/2025-03-26/basic#batching)

use bytes::Bytes;
use futures::{Stream, StreamExt};
use tidegate_core::{Budget, Caller};

use crate::answer::{AnswerFrame, RpcAnswer};
use crate::jsonrpc::{DecodeError, IncomingMessage, ResponseMessage, RpcError, RpcRequest};
use crate::request::RequestContext;
use crate::service::McpService;

const CONCURRENT_MAX: usize = 8;
/// A batch is answered as a whole, so its responses are collected in memory.
const BATCH_ANSWER_BYTES_MAX: usize = 256 * 1024;

impl McpService {
    /// Answers a batch; `None` if it contains nothing to answer. Each message has its own caller, which is
    /// authenticated when its turn comes: a batch can take minutes, and the credential may be revoked meanwhile.
    ///
    /// # Errors
    /// `-32600` if the context's revision has no batches.
    pub async fn answer_batch(
        &self,
        messages: impl Stream<Item = (Result<IncomingMessage, DecodeError>, Caller)>,
        context: &RequestContext,
    ) -> Result<Option<Bytes>, RpcError> {
        if !context.session.as_ref().is_some_and(|session| session.revision().has_batches()) {
            return Err(RpcError::invalid_request("batches exist only in revision 2025-03-26"));
        }
        let carries = context.inline_limit.and(Budget { rows: None, bytes: Some(BATCH_ANSWER_BYTES_MAX) });
        let answers: Vec<Option<Bytes>> = messages
            .map(|(message, caller)| {
                self.answer_one_of_batch(
                    message,
                    RequestContext { caller, inline_limit: carries, accepts_server_requests: false, ..context.clone() },
                )
            })
            .buffered(CONCURRENT_MAX)
            .collect()
            .await;
        let answers: Vec<Bytes> = answers.into_iter().flatten().collect();
        Ok((!answers.is_empty()).then(|| join_batch(&answers)))
    }

    async fn answer_one_of_batch(
        &self,
        message: Result<IncomingMessage, DecodeError>,
        context: RequestContext,
    ) -> Option<Bytes> {
        match message {
            Ok(IncomingMessage::Request(mut request)) => {
                // The response to a batch cannot contain notifications of a request.
                request.meta.progress_token = None;
                self.whole_answer(request, &context).await
            }
            Ok(IncomingMessage::Notification(notification)) => {
                self.handle_notification(&notification, &context);
                None
            }
            Ok(IncomingMessage::Response(response)) => {
                self.handle_response(&response, &context);
                None
            }
            Ok(IncomingMessage::Batch(_)) => {
                Some(ResponseMessage::error(None, &RpcError::invalid_request("a batch cannot contain a batch")).bytes)
            }
            Err(rejection) => Some(ResponseMessage::error(rejection.id.as_ref(), &rejection.error).bytes),
        }
    }

    async fn whole_answer(&self, request: RpcRequest, context: &RequestContext) -> Option<Bytes> {
        let id = request.id.clone();
        match self.answer(request, context).await {
            RpcAnswer::NoResponse => None,
            RpcAnswer::Whole(message) => Some(message.bytes),
            RpcAnswer::Listen(_) => {
                let error = RpcError::invalid_request("a batch cannot contain subscriptions/listen");
                Some(ResponseMessage::error(Some(&id), &error).bytes)
            }
            RpcAnswer::Stream(mut stream) => {
                let mut whole = Vec::new();
                while let Some(frame) = stream.next().await {
                    if let AnswerFrame::ResponseBytes(piece) = frame {
                        whole.extend_from_slice(&piece);
                    }
                }
                stream.is_complete().then(|| whole.into())
            }
        }
    }
}

fn join_batch(answers: &[Bytes]) -> Bytes {
    let mut batch = vec![b'['];
    for (index, answer) in answers.iter().enumerate() {
        if index > 0 {
            batch.push(b',');
        }
        batch.extend_from_slice(answer);
    }
    batch.push(b']');
    batch.into()
}
