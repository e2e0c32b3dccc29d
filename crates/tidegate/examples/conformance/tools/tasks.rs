//! Tools that take their time: a client that can come back for the result gets a task.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate::core::{ClientCapabilities, Error, ErrorKind, JsonSchemaError};
use tidegate::runtime::{Answer, Job, Tool, handler_fn};
use tokio::time::sleep;

use super::elicitation::{field, form};

/// Every tool of this kind, and one that never takes long.
pub(crate) fn all() -> Result<Vec<Tool>, JsonSchemaError> {
    Ok(vec![greet()?, computing()?, failing(), breaking(), confirming()?, asking_twice(), asking_first()])
}

const TASKS: ClientCapabilities =
    ClientCapabilities { forms: false, urls: false, sampling: false, roots: false, tasks: true };

fn greet() -> Result<Tool, JsonSchemaError> {
    let handler = handler_fn(|call| async move {
        let name = call.text_argument("name").unwrap_or_default();
        Ok(Answer::text(format!("Hello, {name}!")))
    });
    Tool::new("greet", "Greets at once.", handler).with_input_schema(json!({
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    }))
}

/// It becomes a task when there is something to wait for; without that ability its caller waits.
fn computing() -> Result<Tool, JsonSchemaError> {
    let handler = handler_fn(|call| async move {
        let seconds = call.arguments().get("seconds").and_then(Value::as_f64).unwrap_or_default();
        if seconds > 0.0 {
            call.request_task();
        }
        tokio::select! {
            () = sleep(Duration::from_secs_f64(seconds)) => {}
            () = call.cancelled() => return Err(Error::cancelled()),
        }
        let label = call.text_argument("label").unwrap_or_default();
        Ok(Answer::text(format!("{label} took {seconds} s.")))
    });
    Tool::new("slow_compute", "Takes as long as it is told to.", handler).with_input_schema(json!({
        "type": "object",
        "properties": {"seconds": {"type": "number", "minimum": 0, "maximum": 3600}, "label": {"type": "string"}},
        "required": ["seconds"],
    }))
}

/// A call that is of no use without a task refuses clients that cannot come back for one.
fn must_be_task(job: &Job) -> Result<(), Error> {
    if job.request_task() { Ok(()) } else { Err(Error::missing_client_capability(TASKS)) }
}

/// A task whose tool fails is completed all the same: the failure is its result.
fn failing() -> Tool {
    let handler = handler_fn(|call| async move {
        must_be_task(&call)?;
        sleep(Duration::from_secs(1)).await;
        Err(Error::new(ErrorKind::Unavailable, "This job intentionally fails."))
    });
    Tool::new("failing_job", "Fails after a second, as a task.", handler)
}

/// A fault of the server is no result of the tool.
fn breaking() -> Tool {
    let handler = handler_fn(|call| async move {
        must_be_task(&call)?;
        Err(Error::internal("this job breaks on purpose"))
    });
    Tool::new("protocol_error_job", "Breaks, as a task.", handler)
}

/// What a task asks is part of its status, and it goes on when the answer has come.
fn confirming() -> Result<Tool, JsonSchemaError> {
    let handler = handler_fn(|call| async move {
        call.request_task();
        let file = call.text_argument("filename").unwrap_or_default();
        let answer = call.ask("confirm", form(&format!("Delete {file}?"), "confirm", "boolean")).await?;
        let notified = if field(&answer, "confirm") == "true" { "deleted" } else { "kept" };
        Ok(Answer::text(format!("{file} was {notified}.")))
    });
    Tool::new("confirm_delete", "Deletes nothing, after a confirmation.", handler).with_input_schema(json!({
        "type": "object",
        "properties": {"filename": {"type": "string"}},
        "required": ["filename"],
    }))
}

/// Two questions that may be answered one by one.
fn asking_twice() -> Tool {
    let handler = handler_fn(|call| async move {
        call.request_task();
        let answers = call
            .ask_all([
                ("first", form("The first name?", "name", "string")),
                ("second", form("The second name?", "name", "string")),
            ])
            .await?;
        let names: Vec<String> = answers.values().map(|answer| field(answer, "name")).collect();
        Ok(Answer::text(names.join(" and ")))
    });
    Tool::new("multi_input", "Asks two things at once, as a task.", handler)
}

/// It asks in rounds, while its client still waits, and becomes a task when it knows enough.
fn asking_first() -> Tool {
    let handler = handler_fn(|call| async move {
        if !call.request().client_capabilities.tasks {
            return Err(Error::missing_client_capability(TASKS));
        }
        let name = call.ask("user_name", form("What is your name?", "name", "string")).await?;
        must_be_task(&call)?;
        Ok(Answer::text(format!("Hello, {}!", field(&name, "name"))))
    });
    Tool::new("test_tool_with_task", "Asks for a name and greets as a task.", handler)
}
