//! A call with a person behind it: the questions, the answers and the result, as one text.

use std::collections::BTreeMap;
use std::iter::Cloned;
use std::slice::Iter;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tidegate_core::{
    CallTarget, ClientCapabilities, Content, Error, ErrorKind, InputAnswer, InputRequest, InputRequestKind,
    ProvidedAnswer,
};
use tidegate_runtime::{Call, Registry, Reply, ReplyPart};

use crate::fake::call;

/// Rounds after which a call has failed.
const ROUNDS_MAX: usize = 10;

/// How input is requested from a client.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ElicitationMode {
    /// The call ends with the input requests and is repeated with the answers.
    Rounds,
    /// The call waits for the answers.
    Live,
}

/// A completed form.
pub(super) fn filled_form(values: Value) -> InputAnswer {
    let Value::Object(values) = values else { panic!("a form is an object") };
    InputAnswer::Accepted(values)
}

/// A person's yes.
pub(super) fn consent_answer() -> InputAnswer {
    filled_form(json!({"confirm": true}))
}

/// The capabilities of a client with elicitation forms.
pub(super) fn form_capabilities() -> ClientCapabilities {
    ClientCapabilities { forms: true, ..ClientCapabilities::default() }
}

/// A call of `tool` by a client with elicitation forms.
pub(super) fn call_with_forms(tool: &str, arguments: Value) -> Call {
    Call { client_capabilities: form_capabilities(), ..call(CallTarget::Tool(tool.to_owned()), arguments) }
}

/// Makes `call` with a person who gives `answers` one after the other; a question without an answer ends it.
pub(super) async fn run_conversation(
    registry: &Arc<Registry>,
    call: Call,
    way: ElicitationMode,
    answers: &[InputAnswer],
) -> String {
    let mut talk = Conversation { answers: answers.iter().cloned(), transcript: Vec::new() };
    let end = match way {
        ElicitationMode::Rounds => talk.run_in_rounds(registry, call).await,
        ElicitationMode::Live => talk.run_live(registry, call).await,
    };
    talk.transcript.push(end.unwrap_or_else(|error| format!("{}: {error}", error.kind().name())));
    talk.transcript.join("\n")
}

struct Conversation<'a> {
    answers: Cloned<Iter<'a, InputAnswer>>,
    transcript: Vec<String>,
}

impl Conversation<'_> {
    async fn run_in_rounds(&mut self, registry: &Arc<Registry>, call: Call) -> Result<String, Error> {
        let mut answers = BTreeMap::new();
        for _ in 0..ROUNDS_MAX {
            let retried = Call { input_answers: answers.clone(), ..call.clone() };
            let error = match collect_text(registry.call(retried)?, |_| panic!("the call waits for input")).await {
                Err(error) if error.kind() == ErrorKind::InputRequired => error,
                ended => return ended,
            };
            for (key, request) in error.input_requests() {
                let Some(answer) = self.answer_request(request) else { return Ok("(no answer)".to_owned()) };
                answers.insert(
                    key.clone(),
                    ProvidedAnswer { value: answer, request_fingerprint: Some(request.fingerprint()) },
                );
            }
        }
        panic!("the call asks on and on: {:?}", self.transcript)
    }

    async fn run_live(&mut self, registry: &Arc<Registry>, call: Call) -> Result<String, Error> {
        let reply = registry.call(Call { supports_live_input: true, ..call })?;
        let ended =
            collect_text(reply, |pending_input_request| match self.answer_request(&pending_input_request.request) {
                Some(answer) => drop(pending_input_request.answer_sender.send(answer)),
                None => drop(pending_input_request.answer_sender),
            })
            .await;
        match ended {
            Err(error) if error.kind() == ErrorKind::Unavailable => Ok("(no answer)".to_owned()),
            ended => ended,
        }
    }

    fn answer_request(&mut self, request: &InputRequest) -> Option<InputAnswer> {
        let InputRequestKind::Form { message, schema } = &request.kind else { panic!("only forms are asked for") };
        assert!(!request.accepts_unsolicited);
        self.transcript.push(format!("asked: {message}\n  {}", fields(schema)));
        self.answers.next()
    }
}

/// The fields of a form, which has no other members.
fn fields(schema: &Value) -> String {
    let mut schema = schema.as_object().cloned().unwrap();
    assert_eq!(schema.remove("type"), Some(json!("object")));
    let properties: Map<String, Value> = serde_json::from_value(schema.remove("properties").unwrap()).unwrap();
    let names: Vec<&String> = properties.keys().collect();
    assert_eq!(schema.remove("required"), Some(json!(names)));
    assert!(schema.is_empty());
    json!(properties).to_string()
}

/// The text of an answer.
pub(super) async fn collect_text(
    mut reply: Reply,
    mut hear: impl FnMut(tidegate_runtime::PendingInputRequest),
) -> Result<String, Error> {
    let mut text = String::new();
    while let Some(part) = reply.next().await {
        match part {
            ReplyPart::InputRequest(pending_input_request) => hear(pending_input_request),
            ReplyPart::Text(piece) => text.push_str(&piece),
            ReplyPart::Item(Content::Text { text: block, .. }) => text.push_str(&block),
            ReplyPart::End(Ok(_)) => return Ok(format!("answer: {}", text.trim_end())),
            ReplyPart::End(Err(error)) => return Err(error),
            _ => {}
        }
    }
    panic!("the reply had no end")
}
