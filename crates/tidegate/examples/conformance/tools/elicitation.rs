//! Tools that ask the person or the client behind the call: they read as if the answer came at once, whichever way the
//! client's revision has for it.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tidegate::core::{ClientCapabilities, InputAnswer, InputRequest, JsonSchemaError};
use tidegate::runtime::{Answer, Handler, Tool, handler_fn};

/// Every tool of this kind.
pub(crate) fn all() -> Result<Vec<Tool>, JsonSchemaError> {
    let mut tools = tool_eliciting_once();
    tools.extend([
        tool_eliciting_several(),
        tool_eliciting_in_rounds(),
        tool_eliciting_by_capability(),
        needing_sampling(),
    ]);
    tools.extend([with_defaults(), with_choices(), with_prompt()?, with_message()?]);
    Ok(tools)
}

/// A form with one field of that type, which must be filled in.
pub(crate) fn form(message: &str, field: &str, of_type: &str) -> InputRequest {
    InputRequest::form(
        message,
        json!({"type": "object", "properties": {field: {"type": of_type}}, "required": [field]}),
    )
}

/// What a model shall write.
fn sampling(prompt: &str, tokens_max: u32) -> InputRequest {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    InputRequest::sampling(Map::from_iter([
        ("messages".to_owned(), json!([message])),
        ("maxTokens".to_owned(), tokens_max.into()),
    ]))
}

/// The field of a form that was filled in.
pub(crate) fn field(answer: &InputAnswer, name: &str) -> String {
    match answer {
        InputAnswer::Accepted(content) => {
            content.get(name).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        }
        _ => None,
    }
    .unwrap_or_else(|| "nobody".to_owned())
}

/// The text that a model wrote.
fn render_answer(answer: &InputAnswer) -> String {
    match answer {
        InputAnswer::Sampled(result) => result.get("content").and_then(|content| content["text"].as_str()),
        _ => None,
    }
    .unwrap_or_default()
    .to_owned()
}

/// What became of a form, and what was filled in.
fn outcome(answer: &InputAnswer) -> String {
    match answer {
        InputAnswer::Accepted(content) => format!("action=accept, content={}", Value::Object(content.clone())),
        InputAnswer::Declined => "action=decline, content={}".to_owned(),
        _ => "action=cancel, content={}".to_owned(),
    }
}

/// A handler that asks one thing and answers with one text.
fn tool_eliciting(request: InputRequest, key: &'static str, notified: fn(&InputAnswer) -> String) -> Arc<dyn Handler> {
    handler_fn(move |call| {
        let request = request.clone();
        async move {
            let answer = call.ask(key, request).await?;
            Ok(Answer::text(notified(&answer)))
        }
    })
}

/// Tools that ask one thing.
fn tool_eliciting_once() -> Vec<Tool> {
    vec![
        Tool::new(
            "test_input_required_result_elicitation",
            "Asks a person for a name, and takes one that comes along unasked.",
            tool_eliciting(form("What is your name?", "name", "string").allow_unsolicited(), "user_name", |answer| {
                format!("Hello, {}!", field(answer, "name"))
            }),
        ),
        Tool::new(
            "test_input_required_result_sampling",
            "Asks a model a question.",
            tool_eliciting(sampling("What is the capital of France?", 100), "capital_question", render_answer),
        ),
        Tool::new(
            "test_input_required_result_list_roots",
            "Asks for the client's folders.",
            tool_eliciting(InputRequest::roots(), "client_roots", |answer| format!("The folders: {answer:?}")),
        ),
        Tool::new(
            "test_input_required_result_request_state",
            "Asks for a confirmation, which counts only with the state that was handed out with the question.",
            tool_eliciting(form("Please confirm", "ok", "boolean"), "confirm", |_| "state-ok".to_owned()),
        ),
        Tool::new(
            "test_input_required_result_tampered_state",
            "Asks for a confirmation, and takes it with an untouched state only.",
            tool_eliciting(form("Please confirm", "ok", "boolean"), "confirm", |_| "confirmed".to_owned()),
        ),
    ]
}

/// All of them are asked at once; the handler goes on when it has every answer.
fn tool_eliciting_several() -> Tool {
    let handler = handler_fn(|call| async move {
        let answers = call
            .ask_all([
                ("user_name", form("What is your name?", "name", "string")),
                ("greeting", sampling("Generate a greeting", 50)),
                ("client_roots", InputRequest::roots()),
            ])
            .await?;
        Ok(Answer::text(format!("It has {} answers.", answers.len())))
    });
    Tool::new("test_input_required_result_multiple_inputs", "Asks three things at once.", handler)
}

/// One question after the other.
fn tool_eliciting_in_rounds() -> Tool {
    let handler = handler_fn(|call| async move {
        let name = call.ask("step1", form("Step 1: What is your name?", "name", "string")).await?;
        let color = call.ask("step2", form("Step 2: What is your favorite color?", "color", "string")).await?;
        Ok(Answer::text(format!("{} likes {}.", field(&name, "name"), field(&color, "color"))))
    });
    Tool::new("test_input_required_result_multi_round", "Asks two things, one after the other.", handler)
}

/// A handler may look at what its client can do, and ask no more than that.
fn tool_eliciting_by_capability() -> Tool {
    let handler = handler_fn(|call| async move {
        let ClientCapabilities { forms, sampling: samples, .. } = call.request().client_capabilities;
        let mut requests = Vec::new();
        if forms {
            requests.push(("user_name", form("What is your name?", "name", "string")));
        }
        if samples {
            requests.push(("greeting", sampling("Generate a greeting", 50)));
        }
        let answers = call.ask_all(requests).await?;
        Ok(Answer::text(format!("It has {} answers.", answers.len())))
    });
    Tool::new("test_input_required_result_capabilities", "Asks what its client can answer.", handler)
}

/// A client that has not declared the required capability receives an error, and no request.
fn needing_sampling() -> Tool {
    let handler = tool_eliciting(sampling("Say something.", 50), "something", render_answer);
    Tool::new("test_missing_capability", "Needs a client whose model writes something.", handler)
}

/// The client shows these values unless the person changes them.
fn with_defaults() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "User name", "default": "John Doe"},
            "age": {"type": "integer", "description": "User age", "default": 30},
            "score": {"type": "number", "description": "User score", "default": 95.5},
            "status": {
                "type": "string",
                "description": "User status",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": {"type": "boolean", "description": "Verification status", "default": true},
        },
        "required": [],
    });
    let request = InputRequest::form("Please review and update the form fields with defaults", schema);
    let handler = tool_eliciting(request, "form", |answer| format!("Elicitation completed: {}", outcome(answer)));
    Tool::new("test_elicitation_sep1034_defaults", "Shows a form with values filled in.", handler)
}

/// One or several of a few choices, with titles or without.
fn with_choices() -> Tool {
    let titled = |prefix: &str, title: &str| -> Vec<Value> {
        let nouns = ["First", "Second", "Third"].into_iter().zip(1..);
        nouns
            .map(|(noun, number)| json!({"const": format!("{prefix}{number}"), "title": format!("{noun} {title}")}))
            .collect()
    };
    let schema = json!({
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
            "titledSingle": {"type": "string", "oneOf": titled("value", "Option")},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled("value", "Choice")}},
        },
        "required": [],
    });
    let request = InputRequest::form("Please select options from the enum fields", schema);
    let handler = tool_eliciting(request, "form", |answer| format!("Elicitation completed: {}", outcome(answer)));
    Tool::new("test_elicitation_sep1330_enums", "Shows a form of choices.", handler)
}

/// What is asked may come from the arguments.
fn with_prompt() -> Result<Tool, JsonSchemaError> {
    let handler = handler_fn(|call| async move {
        let prompt = call.text_argument("prompt").unwrap_or_default();
        let answer = call.ask("response", sampling(prompt, 100)).await?;
        Ok(Answer::text(format!("LLM response: {}", render_answer(&answer))))
    });
    Tool::new("test_sampling", "Asks a model what it is told to.", handler).with_input_schema(requiring("prompt"))
}

fn with_message() -> Result<Tool, JsonSchemaError> {
    let handler = handler_fn(|call| async move {
        let message = call.text_argument("message").unwrap_or_default();
        let schema = json!({
            "type": "object",
            "properties": {
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"},
            },
            "required": ["username", "email"],
        });
        let answer = call.ask("response", InputRequest::form(message, schema)).await?;
        Ok(Answer::text(format!("User response: {}", outcome(&answer))))
    });
    Tool::new("test_elicitation", "Asks a person what it is told to.", handler).with_input_schema(requiring("message"))
}

/// One argument, a text.
fn requiring(name: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]})
}
