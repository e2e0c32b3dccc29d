//! The answer of a call as a stream of Flight messages. Dropping it cancels the call.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_flight::FlightData;
use futures::stream::{self, BoxStream};
use tidegate_core::Caller;
use tidegate_runtime::{AnswerMeta, Reply, ReplyPart};
use tonic::Status;

use super::caller::{CallerCheck, FlightCredentials};
use super::ipc_messages::IpcMessageReader;
use super::message_size::MessageSplitter;
use super::state::FlightState;
use super::status::{internal, to_status};

/// The messages of an Arrow answer.
pub(super) struct FlightAnswer {
    state: Arc<FlightState>,
    reply: Reply,
    check: CallerCheck,
    reader: IpcMessageReader,
    splitter: MessageSplitter,
    /// Parts of a large message.
    ready: VecDeque<FlightData>,
    has_ended: bool,
    /// What the call reported at its end.
    pub(super) metadata: AnswerMeta,
}

impl FlightAnswer {
    pub(super) fn new(state: &Arc<FlightState>, reply: Reply, credentials: FlightCredentials, caller: &Caller) -> Self {
        Self {
            check: CallerCheck::new(state, credentials, caller),
            state: state.clone(),
            reply,
            reader: IpcMessageReader::default(),
            splitter: MessageSplitter::default(),
            ready: VecDeque::new(),
            has_ended: false,
            metadata: AnswerMeta::default(),
        }
    }

    pub(super) fn into_stream(self) -> BoxStream<'static, Result<FlightData, Status>> {
        Box::pin(stream::try_unfold(self, |mut answer| async move {
            let next = answer.next().await?;
            Ok(next.map(|message| (message, answer)))
        }))
    }

    /// The next message; `None` at the regular end.
    pub(super) async fn next(&mut self) -> Result<Option<FlightData>, Status> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Ok(Some(message));
            }
            let message = self.reader.next_message().map_err(|problem| self.internal(problem))?;
            if let Some(message) = message {
                self.ready = self.splitter.split(message).map_err(|problem| self.internal(problem))?;
                continue;
            }
            if self.has_ended {
                return Ok(None);
            }
            let part = self.check.run_while_admitted(self.reply.next()).await?;
            match part {
                Some(ReplyPart::Bytes(bytes)) => self.reader.push(&bytes),
                Some(ReplyPart::Body(_) | ReplyPart::Notification(_) | ReplyPart::InputRequest(_)) => {}
                Some(ReplyPart::End(Ok(metadata))) => self.end(metadata)?,
                Some(ReplyPart::End(Err(error))) => return Err(to_status(&error)),
                Some(_) => return Err(self.internal("the answer of a tool is no table")),
                None => self.has_ended = true,
            }
        }
    }

    /// A partial answer must not look complete: the client has no other way to see that rows are missing.
    fn end(&mut self, metadata: AnswerMeta) -> Result<(), Status> {
        self.has_ended = true;
        if metadata.is_truncated == Some(true) {
            let message = "the answer is larger than this server allows for one call; narrow the statement";
            return Err(Status::out_of_range(message));
        }
        if !self.reader.is_complete() {
            return Err(self.internal("an Arrow answer ended before its end mark"));
        }
        self.metadata = metadata;
        Ok(())
    }

    fn internal(&self, problem: impl Into<String>) -> Status {
        internal(self.state.registry.events(), problem)
    }
}
