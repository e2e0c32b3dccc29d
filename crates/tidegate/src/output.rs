//! Writes answers to standard output as they arrive, or to a file. Notes of the server go to standard error, so that the
//! output contains only rows.

use std::fmt::Display;
use std::io::{Stdout, Write as _};

use tidegate_client::fetch::{ArrowFileConverter, OutputFile};
use tidegate_core::{Content, ResourceBody};
use tidegate_runtime::{AnswerMeta, PendingInputRequest, Reply, ReplyPart};

use crate::command_error::CommandError;
use crate::standard_stream::{StandardStream, standard_error, standard_output};
use crate::terminal;

pub(crate) fn print(text: impl Display) -> Result<(), CommandError> {
    let mut output = standard_output();
    write!(output, "{text}")?;
    Ok(output.flush()?)
}

/// Prints `text` to standard error. Without standard error it is lost.
pub(crate) fn print_note(text: impl Display) {
    let _ = write!(standard_error(), "{text}");
}

pub(crate) async fn print_reply(mut reply: Reply) -> Result<(), CommandError> {
    let mut printer = ReplyPrinter { output: standard_output(), at_line_start: true, has_streamed: false };
    while let Some(part) = reply.next().await {
        match part {
            ReplyPart::InputRequest(pending) => answer_input_request(pending, &reply).await,
            ReplyPart::End(end) => {
                printer.end_line()?;
                printer.output.flush()?;
                end.map_err(CommandError::Query)?;
            }
            part => printer.print(part)?,
        }
    }
    Ok(())
}

/// Forwards the person's answer, unless the call ends first.
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

pub(crate) struct WrittenFile {
    pub(crate) rows: Option<u64>,
    pub(crate) bytes: u64,
    pub(crate) is_truncated: bool,
    /// A sentence about missing nodes.
    pub(crate) missing: Option<String>,
}

pub(crate) async fn write_reply(mut reply: Reply, output_file: &OutputFile) -> Result<WrittenFile, CommandError> {
    let mut file = output_file.create_file()?;
    let mut converter = output_file.is_arrow_file().then(ArrowFileConverter::default);
    let mut metadata = AnswerMeta::default();
    while let Some(part) = reply.next().await {
        match part {
            ReplyPart::Bytes(bytes) => match &mut converter {
                Some(converter) => file.write(&converter.write(bytes)?)?,
                None => file.write(&bytes)?,
            },
            ReplyPart::End(end) => metadata = end.map_err(CommandError::Query)?,
            // A call with a format is answered by a body only; progress was not requested.
            _ => {}
        }
    }
    if let Some(converter) = converter {
        file.write(&converter.finish()?)?;
    }
    let is_truncated = metadata.is_truncated == Some(true);
    let missing = metadata.missing_nodes.map(|missing| missing.to_string());
    Ok(WrittenFile { rows: metadata.rows, bytes: file.finish()?, is_truncated, missing })
}

struct ReplyPrinter {
    output: StandardStream<Stdout>,
    at_line_start: bool,
    /// After streamed text, which is the answer, a block is a note about it.
    has_streamed: bool,
}

impl ReplyPrinter {
    fn print(&mut self, part: ReplyPart) -> std::io::Result<()> {
        match part {
            ReplyPart::Text(text) => {
                self.has_streamed = true;
                self.text(&text)
            }
            ReplyPart::EndOfText => self.end_line(),
            ReplyPart::Item(Content::Text { text, .. }) if self.has_streamed => {
                self.end_line()?;
                print_note(format_args!("{text}\n"));
                Ok(())
            }
            ReplyPart::Item(content) | ReplyPart::PromptMessage(_, content) => {
                self.end_line()?;
                self.text(&describe_content(content))?;
                self.end_line()
            }
            // The same as the text that was printed.
            ReplyPart::Structured(_) if self.has_streamed => Ok(()),
            ReplyPart::Structured(value) => {
                self.end_line()?;
                self.text(value.get())
            }
            // Only calls with a format are answered by bodies.
            _ => Ok(()),
        }?;
        self.output.flush()
    }

    fn text(&mut self, text: &str) -> std::io::Result<()> {
        if !text.is_empty() {
            self.at_line_start = text.ends_with('\n');
        }
        self.output.write_all(text.as_bytes())
    }

    fn end_line(&mut self) -> std::io::Result<()> {
        if std::mem::replace(&mut self.at_line_start, true) { Ok(()) } else { self.output.write_all(b"\n") }
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
