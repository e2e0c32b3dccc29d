//! Calls on behalf of others: their input requests, and when both become a task.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use tidegate_core::{CallTarget, ClientCapabilities, Limits};
use tidegate_runtime::{Answer, AnswerMeta, Call, ReplyPart, SnapshotBuilder, Tool, handler_fn};

use crate::client_input::{
    ALL, entries, live_call, name_answer, name_form, next_input_request, one_running_call, required_inputs,
    retried_call, tool_with_any_arguments,
};
use crate::host::{Host, pass_time, reply_text, run_until_idle, tool_call, with_arguments};

/// Calls the tool that its argument names, on its own behalf, and forwards its input requests.
fn calling_tool(host: &Arc<Mutex<Option<Arc<Host>>>>) -> Tool {
    let host = host.clone();
    let handler = handler_fn(move |call| {
        let host = host.lock().clone().unwrap();
        async move {
            let name = call.arguments()["name"].as_str().unwrap().to_owned();
            let mut nested = Call::new(CallTarget::Tool(name), call.caller().clone());
            nested.client_capabilities = call.request().client_capabilities;
            nested.input_answers = call.request().input_answers.clone();
            nested.cancellation = call.cancellation();
            nested.on_behalf_of = Some(call.job().clone());
            let mut called = host.registry.call(nested)?;
            Ok(Answer::written(|reply| async move {
                while let Some(part) = called.next().await {
                    match part {
                        ReplyPart::InputRequest(_) => reply.forward(part).await?,
                        ReplyPart::End(Err(error)) => return Err(error),
                        _ => {}
                    }
                }
                Ok(AnswerMeta::default())
            }))
        }
    });
    tool_with_any_arguments("call", handler)
}

fn calling_host(limits: Limits, entries: SnapshotBuilder) -> Arc<Host> {
    let cell = Arc::new(Mutex::new(None));
    let host = Arc::new(Host::with_limits(limits, entries.tool(calling_tool(&cell))));
    *cell.lock() = Some(host.clone());
    host
}

#[tokio::test(start_paused = true)]
async fn nested_call_forwards_input_requests() {
    let host = calling_host(one_running_call(), entries());
    let mut reply = host.begin(with_arguments(live_call("call"), json!({"name": "greet"})));
    let pending_input_request = next_input_request(&mut reply).await;
    run_until_idle().await;
    assert_eq!(host.call_to_text(tool_call("say")).await, "block a\ndone {}", "neither holds a place");
    pass_time(Duration::from_secs(590)).await;
    pending_input_request.answer_sender.send(name_answer("Ann")).unwrap();
    assert_eq!(reply_text(reply).await, "done {}", "neither has lost time");
    assert_eq!(host.call_to_text(tool_call("say")).await, "block a\ndone {}");
    let requested = required_inputs(&host, with_arguments(retried_call("call", []), json!({"name": "greet"}))).await;
    assert_eq!(requested, [("who".to_owned(), name_form("Who?"))]);
}

/// Becomes a task if it can, requests input, and then works for ten minutes.
fn long_tool() -> Tool {
    let handler = handler_fn(|call| async move {
        let can = call.request_task();
        call.ask("who", name_form("Who?")).await?;
        pass_time(Duration::from_secs(600)).await;
        Ok(Answer::text(can.to_string()))
    });
    Tool::new("long", "", handler)
}

#[tokio::test(start_paused = true)]
async fn task_requests_input_live_and_has_task_timeout() {
    let host = calling_host(Limits::default(), entries().tool(long_tool()));
    let tasks = ClientCapabilities { tasks: true, ..ALL };
    for call in [tool_call("long"), with_arguments(tool_call("call"), json!({"name": "long"}))] {
        let mut reply = host.begin(Call { client_capabilities: tasks, ..call });
        let job = reply.job().clone();
        job.task_requested().await;
        let pending_input_request = next_input_request(&mut reply).await;
        run_until_idle().await;
        // The adapter notices it only now, while no time passes.
        job.continue_as_task();
        run_until_idle().await;
        pass_time(Duration::from_secs(500)).await;
        pending_input_request.answer_sender.send(name_answer("Ann")).unwrap();
        let message = reply_text(reply).await;
        assert!(message.ends_with("done {}"), "{message}");
    }
    // A client that cannot fetch the result of a task gets none, and receives input requests in its own way.
    assert_eq!(required_inputs(&host, retried_call("long", [])).await.len(), 1);
}
