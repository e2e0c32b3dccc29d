//! Prompts: messages made from arguments that a person fills in, with completion for those who type.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use tidegate::core::{
    Completion, CompletionRequest, Content, ContentRole, Error, InputAnswer, InputRequest, ResourceBody,
    ResourceContents,
};
use tidegate::runtime::{Answer, Completer, Handler, Job, Prompt, PromptArgument, handler_fn};

use crate::media::pixel;

/// Every prompt.
pub(crate) fn all() -> Vec<Prompt> {
    vec![simple(), with_arguments(), with_embedded_resource(), with_image(), asking()]
}

fn simple() -> Prompt {
    let handler = saying(|_job| vec![Content::text("This is a simple prompt for testing.")]);
    Prompt::new("test_simple_prompt", "A message without arguments.", handler)
}

/// Required arguments are there when the handler runs: a call without them never reaches it.
fn with_arguments() -> Prompt {
    let handler = saying(|job| {
        let [arg1, arg2] = ["arg1", "arg2"].map(|name| job.text_argument(name).unwrap_or_default());
        vec![Content::text(format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))]
    });
    let mut prompt = Prompt::new("test_prompt_with_arguments", "A message made of two arguments.", handler);
    prompt.arguments = vec![required("arg1", "First test argument"), required("arg2", "Second test argument")];
    prompt.completer = Some(Arc::new(WordCompleter));
    prompt
}

fn with_embedded_resource() -> Prompt {
    let handler = saying(|job| {
        let resource = ResourceContents {
            uri: job.text_argument("resourceUri").unwrap_or_default().to_owned(),
            mime_type: Some("text/plain".to_owned()),
            body: ResourceBody::Text("Embedded resource content for testing.".to_owned()),
        };
        vec![Content::Resource(resource), Content::text("Please process the embedded resource above.")]
    });
    let mut prompt = Prompt::new("test_prompt_with_embedded_resource", "A message about a resource.", handler);
    prompt.arguments = vec![required("resourceUri", "URI of the resource to embed")];
    prompt
}

fn with_image() -> Prompt {
    let handler = saying(|_job| vec![pixel(), Content::text("Please analyze the image above.")]);
    Prompt::new("test_prompt_with_image", "A message about a picture.", handler)
}

/// A prompt may ask for what it needs to know, as a tool may.
fn asking() -> Prompt {
    let handler = handler_fn(|call| async move {
        let schema = json!({"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]});
        let request = InputRequest::form("What context should the prompt use?", schema);
        let context = match call.ask("user_context", request).await? {
            InputAnswer::Accepted(content) => {
                content.get("context").and_then(|value| value.as_str()).map(str::to_owned)
            }
            _ => None,
        };
        let context = context.unwrap_or_else(|| "none".to_owned());
        Ok(Answer::messages(vec![(ContentRole::User, Content::text(format!("The context is: {context}")))]))
    });
    Prompt::new("test_input_required_result_prompt", "A message in a context that is asked for.", handler)
}

/// A handler that lets the person say one message for each piece of content.
fn saying(messages: impl Fn(&Job) -> Vec<Content> + Send + Sync + 'static) -> Arc<dyn Handler> {
    handler_fn(move |call| {
        let messages = messages(&call).into_iter().map(|content| (ContentRole::User, content)).collect();
        async { Ok(Answer::messages(messages)) }
    })
}

fn required(name: &str, description: &str) -> PromptArgument {
    PromptArgument { name: name.to_owned(), title: None, description: Some(description.to_owned()), required: true }
}

/// Completes every argument from the same few words.
struct WordCompleter;

#[async_trait]
impl Completer for WordCompleter {
    async fn complete(&self, request: &CompletionRequest, _job: Arc<Job>) -> Result<Completion, Error> {
        let words = ["paris", "park", "party", "test", "tide"].map(str::to_owned);
        Ok(Completion::matching(words, &request.value))
    }
}
