//! A declared prompt: messages with arguments and embedded resources.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{
    Access, CallTarget, Caller, Content, ContentRole, Error, ErrorKind, ResourceBody, ResourceContents, percent_encode,
};
use tidegate_runtime::{Answer, Call, Handler, Job, Prompt, PromptArgument, ReplyPart, RunningCall};

use super::{DeclarationProblem, TextTemplate};
use crate::table_names::NameCompleter;
use crate::tool_services::ToolServices;

const EMBEDDED_BYTES_MAX: usize = 256 * 1024;

/// A declared prompt.
#[derive(Debug, Clone)]
pub struct DeclaredPrompt {
    /// The name.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// The description.
    pub description: String,
    /// The arguments.
    pub arguments: Vec<PromptArgument>,
    /// The messages, in order.
    pub messages: Vec<(ContentRole, PromptPart)>,
    /// What a caller must hold.
    pub access: Access,
}

/// The content of one message.
#[derive(Debug, Clone)]
pub enum PromptPart {
    /// Text.
    Text(TextTemplate),
    /// The resource at this URI, read with the caller's rights. An argument is percent-encoded as one part of the URI;
    /// a template of a single argument takes a whole URI.
    Resource(TextTemplate),
}

impl DeclaredPrompt {
    /// Builds the prompt.
    ///
    /// # Errors
    /// All errors of the declaration.
    pub fn prepare(self, services: &Arc<ToolServices>) -> Result<Prompt, Vec<DeclarationProblem>> {
        let declared: Vec<String> = self.arguments.iter().map(|argument| argument.name.clone()).collect();
        let undeclared = self.messages.iter().enumerate().flat_map(|(index, (_, part))| {
            let (PromptPart::Text(template) | PromptPart::Resource(template)) = part;
            let unknown = template.names().into_iter().filter(|name| !declared.iter().any(|other| other == name));
            let problem = |name: &str| {
                let message = format!("{{{{{name}}}}} is not declared under arguments");
                let error = Error::new(ErrorKind::InvalidArguments, message).with_choices(declared.clone());
                DeclarationProblem::new(format!("messages.{index}"), error)
            };
            unknown.map(problem).collect::<Vec<_>>()
        });
        let undeclared: Vec<DeclarationProblem> = undeclared.collect();
        if !undeclared.is_empty() {
            return Err(undeclared);
        }
        let handler = Arc::new(PromptHandler { services: services.clone(), messages: self.messages });
        let mut prompt = Prompt::new(self.name, self.description, handler);
        prompt.title = self.title;
        prompt.arguments = self.arguments;
        prompt.access = self.access;
        prompt.completer = Some(Arc::new(NameCompleter(services.clone())));
        Ok(prompt)
    }
}

struct PromptHandler {
    services: Arc<ToolServices>,
    messages: Vec<(ContentRole, PromptPart)>,
}

#[async_trait]
impl Handler for PromptHandler {
    async fn handle(&self, call: RunningCall) -> Result<Answer, Error> {
        let argument = |name: &str| call.text_argument(name).unwrap_or_default().to_owned();
        let mut messages = Vec::with_capacity(self.messages.len());
        for (role, part) in &self.messages {
            let content = match part {
                PromptPart::Text(template) => Content::text(template.fill(argument)),
                PromptPart::Resource(template) => {
                    let is_whole = template.only_argument().is_some();
                    let part = |name: &str| if is_whole { argument(name) } else { percent_encode(&argument(name)) };
                    self.read_resource(template.fill(part), call.job()).await?
                }
            };
            messages.push((*role, content));
        }
        Ok(Answer::messages(messages))
    }
}

impl PromptHandler {
    async fn read_resource(&self, uri: String, job: &Arc<Job>) -> Result<Content, Error> {
        // A prompt may use a resource of another toolset.
        let caller = Caller { toolset: None, ..job.caller().clone() };
        let mime_type = self.services.registry()?.snapshot().media_type(&uri, &caller);
        let mut call = Call::new(CallTarget::Resource(uri.clone()), caller);
        call.on_behalf_of = Some(job.clone());
        call.cancellation = job.cancellation();
        call.inline_limit.bytes = Some(EMBEDDED_BYTES_MAX);
        let mut reply = self.services.registry()?.call(call)?;
        let mut text = String::new();
        while let Some(part) = reply.next().await {
            match part {
                ReplyPart::Text(piece) => text.push_str(&piece),
                ReplyPart::EndOfText => text.push('\n'),
                ReplyPart::Item(Content::Text { text: block, .. }) => text.push_str(&block),
                ReplyPart::End(Ok(_)) => {
                    return Ok(Content::Resource(ResourceContents { uri, mime_type, body: ResourceBody::Text(text) }));
                }
                ReplyPart::End(Err(error)) => return Err(error),
                _ => {}
            }
        }
        Err(Error::new(ErrorKind::Unavailable, format!("the resource {uri:?} ended early")))
    }
}
