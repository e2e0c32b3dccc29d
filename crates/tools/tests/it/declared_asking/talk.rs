//! A call together with the person behind it: the questions, the answers and the end, as one text.

use std::collections::BTreeMap;
use std::iter::Cloned;
use std::slice::Iter;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tidegate_core::{
    Abilities, Call, Chunk, Content, Error, ErrorKind, GivenAnswer, InputAnswer, InputRequest, Outcome, Registry,
    Reply, ReplyEvent, Said, Target, Wanted,
};

use crate::fake::call;

/// Rounds after which a call that asks on is wrong.
const ROUNDS_MAX: usize = 10;

/// How a client is asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Way {
    /// The call ends with its questions and is made again with the answers.
    Rounds,
    /// The call waits for the answers.
    Live,
}

/// A filled in form.
pub(super) fn filled(values: Value) -> InputAnswer {
    let Value::Object(values) = values else { panic!("a form is an object") };
    InputAnswer::Accepted(values)
}

/// A person's yes.
pub(super) fn yes() -> InputAnswer {
    filled(json!({"confirm": true}))
}

/// What a client that shows forms can do.
pub(super) fn forms() -> Abilities {
    Abilities { forms: true, ..Abilities::default() }
}

/// A call of `tool` by a client that shows forms.
pub(super) fn by_client(tool: &str, arguments: Value) -> Call {
    Call { abilities: forms(), ..call(Target::Tool(tool.to_owned()), arguments) }
}

/// Makes `call` with a person behind it who gives `answers` one after the other; a question that has none is the end.
pub(super) async fn talk(registry: &Arc<Registry>, call: Call, way: Way, answers: &[InputAnswer]) -> String {
    let mut talk = Talk { answers: answers.iter().cloned(), told: Vec::new() };
    let end = match way {
        Way::Rounds => talk.in_rounds(registry, call).await,
        Way::Live => talk.live(registry, call).await,
    };
    talk.told.push(end.unwrap_or_else(|error| format!("{}: {error}", error.kind().name())));
    talk.told.join("\n")
}

struct Talk<'a> {
    answers: Cloned<Iter<'a, InputAnswer>>,
    told: Vec<String>,
}

impl Talk<'_> {
    async fn in_rounds(&mut self, registry: &Arc<Registry>, call: Call) -> Result<String, Error> {
        let mut answers = BTreeMap::new();
        for _ in 0..ROUNDS_MAX {
            let again = Call { answers: answers.clone(), ..call.clone() };
            let error = match gather(registry.call(again)?, |_| panic!("nobody waits")).await {
                Err(error) if error.kind() == ErrorKind::InputRequired => error,
                ended => return ended,
            };
            for (key, request) in error.requests() {
                let Some(answer) = self.hear(request) else { return Ok("(no answer)".to_owned()) };
                answers.insert(key.clone(), GivenAnswer { answer, asked: Some(request.mark()) });
            }
        }
        panic!("the call asks on and on: {:?}", self.told)
    }

    async fn live(&mut self, registry: &Arc<Registry>, call: Call) -> Result<String, Error> {
        let reply = registry.call(Call { is_asked_live: true, ..call })?;
        let ended = gather(reply, |asked| match self.hear(&asked.request) {
            Some(answer) => drop(asked.answer.send(answer)),
            None => drop(asked.answer),
        })
        .await;
        match ended {
            Err(error) if error.kind() == ErrorKind::Unavailable => Ok("(no answer)".to_owned()),
            ended => ended,
        }
    }

    fn hear(&mut self, request: &InputRequest) -> Option<InputAnswer> {
        let Wanted::Form { message, schema } = &request.wanted else { panic!("only forms are asked for") };
        assert!(!request.may_come_unasked);
        self.told.push(format!("asked: {message}\n  {}", fields(schema)));
        self.answers.next()
    }
}

/// The fields of a form, which is nothing else.
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
pub(super) async fn gather(mut reply: Reply, mut hear: impl FnMut(tidegate_core::Asked)) -> Result<String, Error> {
    let mut text = String::new();
    while let Some(said) = reply.next_said().await {
        match said {
            Said::Asked(asked) => hear(asked),
            Said::Event(ReplyEvent::Chunk(Chunk::Text(piece))) => text.push_str(&piece),
            Said::Event(ReplyEvent::Chunk(Chunk::Block(Content::Text { text: block, .. }))) => text.push_str(&block),
            Said::Event(ReplyEvent::Chunk(_)) => {}
            Said::Event(ReplyEvent::End(Outcome::Done(_))) => return Ok(format!("answer: {}", text.trim_end())),
            Said::Event(ReplyEvent::End(Outcome::Failed(error))) => return Err(error),
        }
    }
    panic!("the reply had no end")
}
