//! An answer on standard output, printed as it comes, or in a file. What the server remarks on it goes to
//! standard error, so that a file of rows holds nothing but rows.

use std::fmt::Display;
use std::io::{StdoutLock, Write as _};

use serde_json::Value;
use tidegate_client::fetch::Destination;
use tidegate_core::{Content, ResourceBody};
use tidegate_runtime::{Chunk, Metadata, Outcome, PendingInputRequest, Reply, ReplyEvent, ReplyMessage};

use crate::command_error::CommandError;
use crate::terminal;

/// Prints `text` to standard output.
pub(crate) fn print(text: impl Display) -> Result<(), CommandError> {
    let mut output = std::io::stdout().lock();
    write!(output, "{text}")?;
    Ok(output.flush()?)
}

/// Prints `text` to standard error. Without standard error it is lost.
pub(crate) fn print_note(text: impl Display) {
    let _ = write!(anstream::stderr(), "{text}");
}

/// Prints `reply` to its end. What it asks is asked at the terminal.
pub(crate) async fn print_reply(mut reply: Reply) -> Result<(), CommandError> {
    let mut printer = ReplyPrinter { at_line_start: true, has_streamed: false };
    while let Some(reply_message) = reply.next_message().await {
        let event = match reply_message {
            ReplyMessage::Event(event) => event,
            ReplyMessage::InputRequest(pending_input_request) => {
                answer_input_request(pending_input_request, &reply).await;
                continue;
            }
        };
        // Locked for one piece at a time: a lock must not be held while waiting.
        let mut output = std::io::stdout().lock();
        match event {
            ReplyEvent::Chunk(chunk) => printer.chunk(&mut output, chunk)?,
            ReplyEvent::End(outcome) => {
                printer.end_line(&mut output)?;
                output.flush()?;
                if let Outcome::Failed(error) = outcome {
                    return Err(CommandError::Query(error));
                }
            }
        }
    }
    Ok(())
}

/// Hands on what the person answers, unless the call ends meanwhile.
async fn answer_input_request(pending_input_request: PendingInputRequest, reply: &Reply) {
    tokio::select! {
        answer = terminal::prompt_form(pending_input_request.request) => {
            if let Some(answer) = answer {
                // An error means that the call has ended.
                let _ = pending_input_request.answer_sender.send(answer);
            }
        }
        () = reply.job().cancelled() => {}
    }
}

/// An answer that is a file now.
pub(crate) struct WrittenFile {
    /// How many rows it has, if that is known.
    pub(crate) rows: Option<u64>,
    pub(crate) bytes: u64,
    /// Whether there are more rows.
    pub(crate) is_truncated: bool,
}

/// Writes the body of `reply` into `destination`.
pub(crate) async fn write_reply(mut reply: Reply, destination: &Destination) -> Result<WrittenFile, CommandError> {
    let mut file = destination.create_file()?;
    let mut facts = Metadata::new();
    while let Some(event) = reply.next().await {
        match event {
            ReplyEvent::Chunk(Chunk::Bytes(bytes)) => file.write(&bytes)?,
            // Who asks for a format gets a body alone; notices were not asked for.
            ReplyEvent::Chunk(_) => {}
            ReplyEvent::End(Outcome::Done(metadata)) => facts = metadata,
            ReplyEvent::End(Outcome::Failed(error)) => return Err(CommandError::Query(error)),
        }
    }
    let rows = facts.get("dev.tidegate/rows").and_then(Value::as_u64);
    let is_truncated = facts.get("dev.tidegate/truncated").and_then(Value::as_bool).unwrap_or(false);
    Ok(WrittenFile { rows, bytes: file.finish()?, is_truncated })
}

struct ReplyPrinter {
    at_line_start: bool,
    /// Text that streamed is the answer; a whole block after it is a remark on it.
    has_streamed: bool,
}

impl ReplyPrinter {
    fn chunk(&mut self, output: &mut StdoutLock<'_>, chunk: Chunk) -> std::io::Result<()> {
        match chunk {
            Chunk::Text(text) => {
                self.has_streamed = true;
                self.text(output, &text)
            }
            Chunk::EndOfText => self.end_line(output),
            Chunk::Block(Content::Text { text, .. }) if self.has_streamed => {
                self.end_line(output)?;
                print_note(format_args!("{text}\n"));
                Ok(())
            }
            Chunk::Block(content) | Chunk::PromptMessage(_, content) => {
                self.end_line(output)?;
                self.text(output, &describe_content(content))?;
                self.end_line(output)
            }
            // The same as the text that was printed.
            Chunk::Structured(_) if self.has_streamed => Ok(()),
            Chunk::Structured(value) => {
                self.end_line(output)?;
                self.text(output, value.get())
            }
            // Bodies come only to those who asked for a format of the call.
            Chunk::Body(_) | Chunk::Bytes(_) | Chunk::Completion(_) | Chunk::Notification(_) => Ok(()),
        }?;
        output.flush()
    }

    fn text(&mut self, output: &mut StdoutLock<'_>, text: &str) -> std::io::Result<()> {
        if !text.is_empty() {
            self.at_line_start = text.ends_with('\n');
        }
        output.write_all(text.as_bytes())
    }

    fn end_line(&mut self, output: &mut StdoutLock<'_>) -> std::io::Result<()> {
        if std::mem::replace(&mut self.at_line_start, true) { Ok(()) } else { output.write_all(b"\n") }
    }
}

fn describe_content(content: Content) -> String {
    match content {
        Content::Text { text, .. } => text,
        Content::Image { data, mime_type } | Content::Audio { data, mime_type } => {
            format!("({mime_type}, {} bytes)", data.len())
        }
        Content::Link(link) => link.uri,
        Content::Resource(contents) => match contents.body {
            ResourceBody::Text(text) => text,
            ResourceBody::Blob(data) => format!("({}, {} bytes)", contents.uri, data.len()),
        },
    }
}
