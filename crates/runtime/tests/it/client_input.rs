//! Input requests of handlers, answered while they run or by running them again; permits and time limits meanwhile.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tidegate_core::{
    AuthMethod, Caller, ClientCapabilities, ErrorKind, Grants, InputAnswer, InputRequest, Limits, Principal,
    ProvidedAnswer,
};
use tidegate_runtime::{
    Answer, Call, Handler, PendingInputRequest, Reply, ReplyPart, SnapshotBuilder, Tool, handler_fn,
};
use tokio::time::Instant;

use crate::host::{
    Host, LOCAL, pass_time, reply_text, run_until_idle, tool_call, tool_with_text, until_cancelled, with_arguments,
};

const FORMS: ClientCapabilities =
    ClientCapabilities { forms: true, urls: false, sampling: false, roots: false, tasks: false };
pub(crate) const ALL: ClientCapabilities =
    ClientCapabilities { forms: true, urls: true, sampling: true, roots: true, tasks: false };

pub(crate) fn name_form(message: &str) -> InputRequest {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    InputRequest::form(message, schema)
}

pub(crate) fn name_answer(name: &str) -> InputAnswer {
    accepted_answer(json!({"name": name}))
}

fn accepted_answer(content: Value) -> InputAnswer {
    InputAnswer::Accepted(content.as_object().unwrap().clone())
}

fn solicited_answer(request: &InputRequest, answer: InputAnswer) -> ProvidedAnswer {
    ProvidedAnswer { value: answer, request_fingerprint: Some(request.fingerprint()) }
}

/// Requests a name and greets.
fn greeting_handler() -> Arc<dyn Handler> {
    handler_fn(|call| async move {
        let answer = call.ask("who", name_form("Who?")).await?;
        Ok(Answer::text(format!("{answer:?}")))
    })
}

/// Requests a name, then another one.
fn two_inputs_handler() -> Arc<dyn Handler> {
    handler_fn(|call| async move {
        let first = call.ask("first", name_form("First?")).await?;
        let second = call.ask("second", name_form("Second?")).await?;
        Ok(Answer::text(format!("{first:?} {second:?}")))
    })
}

pub(crate) fn tool_with_any_arguments(name: &str, handler: Arc<dyn Handler>) -> Tool {
    Tool::new(name, "", handler).with_input_schema(json!({"type": "object"})).unwrap()
}

pub(crate) fn entries() -> SnapshotBuilder {
    SnapshotBuilder::new()
        .tool(Tool::new("greet", "", greeting_handler()))
        .tool(Tool::new("twice", "", two_inputs_handler()))
        .tool(tool_with_text("say", "a"))
}

fn host() -> Host {
    Host::new(entries())
}

pub(crate) fn one_running_call() -> Limits {
    Limits { running_calls_max: 1, ..Limits::default() }
}

/// A call with live input.
pub(crate) fn live_call(name: &str) -> Call {
    Call { client_capabilities: ALL, supports_live_input: true, ..tool_call(name) }
}

/// A call that is run again with the answers.
pub(crate) fn retried_call(name: &str, answers: impl IntoIterator<Item = (&'static str, ProvidedAnswer)>) -> Call {
    let answers = answers.into_iter().map(|(key, answer)| (key.to_owned(), answer)).collect();
    Call { client_capabilities: ALL, input_answers: answers, ..tool_call(name) }
}

pub(crate) async fn next_input_request(reply: &mut Reply) -> PendingInputRequest {
    match reply.next().await {
        Some(ReplyPart::InputRequest(pending_input_request)) => pending_input_request,
        other => panic!("no question: {other:?}"),
    }
}

/// The input requests that end the call.
pub(crate) async fn required_inputs(host: &Host, call: Call) -> Vec<(String, InputRequest)> {
    let mut reply = host.begin(call);
    let Some(ReplyPart::End(Err(error))) = reply.next().await else { panic!("it did not fail") };
    assert_eq!(error.kind(), ErrorKind::InputRequired);
    error.input_requests().to_vec()
}

#[tokio::test(start_paused = true)]
async fn live_call_waits_for_answer() {
    let host = host();
    let mut reply = host.begin(live_call("greet"));
    let pending_input_request = next_input_request(&mut reply).await;
    assert_eq!((pending_input_request.key.as_str(), &pending_input_request.request), ("who", &name_form("Who?")));
    pending_input_request.answer_sender.send(name_answer("Ann")).unwrap();
    assert_eq!(reply_text(reply).await, "block Accepted({\"name\": String(\"Ann\")})\ndone {}");
}

#[tokio::test(start_paused = true)]
async fn a_second_question_follows_the_first() {
    let host = host();
    let mut reply = host.begin(live_call("twice"));
    for (key, name) in [("first", "a"), ("second", "b")] {
        let pending_input_request = next_input_request(&mut reply).await;
        assert_eq!(pending_input_request.key, key);
        pending_input_request.answer_sender.send(name_answer(name)).unwrap();
    }
    assert!(
        reply_text(reply)
            .await
            .starts_with("block Accepted({\"name\": String(\"a\")}) Accepted({\"name\": String(\"b\")})")
    );
}

#[tokio::test(start_paused = true)]
async fn waiting_for_input_releases_permit() {
    let host = Host::with_limits(one_running_call(), entries());
    let mut reply = host.begin(live_call("greet"));
    let pending_input_request = next_input_request(&mut reply).await;
    run_until_idle().await;
    assert_eq!(host.call_to_text(tool_call("say")).await, "block a\ndone {}");
    // It continues only when it has a permit again.
    let mut other = host.begin(live_call("greet"));
    let other_requested = next_input_request(&mut other).await;
    run_until_idle().await;
    pending_input_request.answer_sender.send(name_answer("Ann")).unwrap();
    other_requested.answer_sender.send(name_answer("Bob")).unwrap();
    assert!(reply_text(reply).await.contains("Ann"));
    assert!(reply_text(other).await.contains("Bob"));
    assert_eq!(host.call_to_text(tool_call("say")).await, "block a\ndone {}");
}

#[tokio::test(start_paused = true)]
async fn answered_call_reacquires_permit() {
    let busy = Tool::new("busy", "", until_cancelled());
    let host = Host::with_limits(one_running_call(), entries().tool(busy));
    let mut reply = host.begin(live_call("greet"));
    let pending_input_request = next_input_request(&mut reply).await;
    run_until_idle().await;
    let busy = host.begin(tool_call("busy"));
    run_until_idle().await;
    pending_input_request.answer_sender.send(name_answer("Ann")).unwrap();
    let text = tokio::time::timeout(Duration::from_secs(30), reply.next()).await;
    assert!(text.is_err(), "it runs beside the one that has the only place: {text:?}");
    drop(busy);
    assert!(reply_text(reply).await.contains("Ann"));
}

#[tokio::test(start_paused = true)]
async fn concurrent_inputs_reacquire_one_permit() {
    let asks = handler_fn(|call| async move {
        let (one, other) =
            tokio::try_join!(call.ask("one", name_form("One?")), call.ask("other", name_form("Other?")))?;
        Ok(Answer::text(format!("{one:?} {other:?}")))
    });
    let host = Host::with_limits(one_running_call(), entries().tool(Tool::new("both", "", asks)));
    let mut reply = host.begin(live_call("both"));
    let (one, other) = (next_input_request(&mut reply).await, next_input_request(&mut reply).await);
    // The timer is paused until the last of them is answered.
    pass_time(Duration::from_secs(300)).await;
    one.answer_sender.send(name_answer("a")).unwrap();
    pass_time(Duration::from_secs(299)).await;
    other.answer_sender.send(name_answer("b")).unwrap();
    assert!(reply_text(reply).await.starts_with("block Accepted"));
    assert_eq!(host.call_to_text(tool_call("say")).await, "block a\ndone {}");
}

/// Works for forty seconds, requests input, and works for the time in its argument.
fn working_tool() -> Tool {
    let handler = handler_fn(|call| async move {
        pass_time(Duration::from_secs(40)).await;
        call.ask("who", name_form("Who?")).await?;
        let seconds = call.arguments().get("seconds").and_then(Value::as_u64).unwrap_or_default();
        pass_time(Duration::from_secs(seconds)).await;
        Ok(Answer::content(vec![]))
    });
    tool_with_any_arguments("work", handler)
}

#[tokio::test(start_paused = true)]
async fn input_wait_does_not_count_as_call_time() {
    let host = Host::new(entries().tool(working_tool()));
    for (seconds, outcome) in [(19, "done {}"), (25, "failed timed_out: the call exceeded its time limit")] {
        let mut reply = host.begin(with_arguments(live_call("work"), json!({"seconds": seconds})));
        let pending_input_request = next_input_request(&mut reply).await;
        pass_time(Duration::from_secs(599)).await;
        pending_input_request.answer_sender.send(name_answer("Ann")).unwrap();
        let message = reply_text(reply).await;
        assert!(message.starts_with(outcome), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn input_request_times_out() {
    let host = host();
    let began = Instant::now();
    let mut reply = host.begin(live_call("greet"));
    let pending_input_request = next_input_request(&mut reply).await;
    assert_eq!(
        reply_text(reply).await,
        "failed timed_out: the call requested input and received none within the time limit"
    );
    assert_eq!(began.elapsed().as_secs(), 600);
    assert!(pending_input_request.answer_sender.send(name_answer("Ann")).is_err(), "a late answer is told so");
    assert_eq!(host.registry.jobs().open_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_an_answer_can_be_cancelled() {
    let host = Host::with_limits(one_running_call(), entries());
    let mut reply = host.begin(live_call("greet"));
    let pending_input_request = next_input_request(&mut reply).await;
    reply.job().cancel();
    assert_eq!(reply_text(reply).await, "failed cancelled: the call was cancelled");
    assert!(pending_input_request.answer_sender.is_closed());
    // So does hanging up.
    let mut reply = host.begin(live_call("greet"));
    let pending_input_request = next_input_request(&mut reply).await;
    drop(reply);
    run_until_idle().await;
    assert!(pending_input_request.answer_sender.is_closed());
    assert_eq!(host.registry.jobs().open_count(), 0);
    assert_eq!(host.call_to_text(tool_call("say")).await, "block a\ndone {}");
}

#[tokio::test(start_paused = true)]
async fn dropped_input_request_fails_call() {
    let host = host();
    let mut reply = host.begin(live_call("greet"));
    drop(next_input_request(&mut reply).await);
    assert_eq!(reply_text(reply).await, "failed unavailable: the client did not answer the input request \"who\"");
    // An adapter that ignores input requests.
    let unheard = "failed unavailable: the client did not answer the input request \"who\"";
    assert_eq!(host.call_to_text(live_call("greet")).await, unheard);
}

#[tokio::test(start_paused = true)]
async fn rejects_invalid_answer() {
    let host = host();
    for (answer, wrong) in [
        (accepted_answer(json!({})), "name: is required"),
        (accepted_answer(json!({"name": 7})), "name: 7 is not of type \"string\""),
        (InputAnswer::Roots(Vec::new()), "it answers a different kind of request"),
    ] {
        let mut reply = host.begin(live_call("greet"));
        next_input_request(&mut reply).await.answer_sender.send(answer).unwrap();
        let message = reply_text(reply).await;
        assert!(message.starts_with("failed invalid_arguments: invalid answer to \"who\": "), "{message}");
        assert!(message.contains(wrong), "{message}");
    }
    let mut reply = host.begin(live_call("greet"));
    next_input_request(&mut reply).await.answer_sender.send(InputAnswer::Declined).unwrap();
    assert_eq!(reply_text(reply).await, "block Declined\ndone {}");
}

#[tokio::test(start_paused = true)]
async fn non_live_call_ends_with_input_required() {
    let host = host();
    let requests = required_inputs(&host, retried_call("twice", [])).await;
    assert_eq!(requests, [("first".to_owned(), name_form("First?"))]);
    let first = solicited_answer(&name_form("First?"), name_answer("a"));
    let requests = required_inputs(&host, retried_call("twice", [("first", first.clone())])).await;
    assert_eq!(requests, [("second".to_owned(), name_form("Second?"))]);
    let second = solicited_answer(&name_form("Second?"), name_answer("b"));
    let message = host.call_to_text(retried_call("twice", [("first", first), ("second", second)])).await;
    assert!(
        message.starts_with("block Accepted({\"name\": String(\"a\")}) Accepted({\"name\": String(\"b\")})"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn invalid_answer_is_requested_again_with_reason() {
    let host = host();
    let unasked = ProvidedAnswer { value: name_answer("Ann"), request_fingerprint: None };
    let of_another = solicited_answer(&name_form("Shall I delete 3 rows?"), name_answer("Ann"));
    let of_another_kind = solicited_answer(&name_form("Who?"), InputAnswer::Sampled(Map::new()));
    let misfit = solicited_answer(&name_form("Who?"), accepted_answer(json!({"name": 7})));
    for (given, wrong) in [
        (unasked, "it was sent before it was requested"),
        (of_another, "it answers a different request"),
        (of_another_kind, "it answers a different kind of request"),
        (misfit, "name: 7 is not of type \"string\""),
    ] {
        let requests = required_inputs(&host, retried_call("greet", [("who", given)])).await;
        let [(key, request)] = &requests[..] else { panic!("{requests:?}") };
        assert_eq!(key, "who");
        assert!(request.previous_error.as_ref().unwrap().contains(wrong), "{request:?}");
        assert!(request.client_message().unwrap().starts_with("Who?\n(The last answer was invalid: "));
        // It is the same question, so that the next answer counts.
        assert_eq!(request.fingerprint(), name_form("Who?").fingerprint());
        let notified =
            host.call_to_text(retried_call("greet", [("who", solicited_answer(request, name_answer("Ann")))])).await;
        assert!(notified.contains("Ann"), "{notified}");
    }
}

#[tokio::test(start_paused = true)]
async fn unsolicited_answer_is_accepted_if_allowed() {
    let asks = handler_fn(|call| async move {
        let answer = call.ask("who", name_form("Who?").allow_unsolicited()).await?;
        Ok(Answer::text(format!("{answer:?}")))
    });
    let host = Host::new(entries().tool(Tool::new("lax", "", asks)));
    let unasked = ProvidedAnswer { value: name_answer("Ann"), request_fingerprint: None };
    assert!(host.call_to_text(retried_call("lax", [("who", unasked)])).await.contains("Ann"));
    let misfit = ProvidedAnswer { value: accepted_answer(json!({})), request_fingerprint: None };
    assert_eq!(required_inputs(&host, retried_call("lax", [("who", misfit)])).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn rejects_input_that_client_does_not_support() {
    let asks = handler_fn(|call| async move {
        let requests = call.arguments().keys().map(|key| {
            let request = match key.as_str() {
                "form" => name_form("Who?"),
                "url" => InputRequest::url("Go", "https://example.test/"),
                "sampling" => InputRequest::sampling(Map::new()),
                _ => InputRequest::roots(),
            };
            (key.as_str(), request)
        });
        call.ask_all(requests.collect::<Vec<_>>()).await?;
        Ok(Answer::content(vec![]))
    });
    let host = Host::new(entries().tool(tool_with_any_arguments("ask", asks)));
    for (abilities, wants, lacks) in [
        (ClientCapabilities::default(), json!({"form": 1}), "elicitation (form)"),
        (FORMS, json!({"url": 1}), "elicitation (url)"),
        (FORMS, json!({"form": 1, "sampling": 1, "roots": 1}), "elicitation (form), sampling, roots"),
    ] {
        for is_requested_live in [false, true] {
            let call = Call {
                client_capabilities: abilities,
                supports_live_input: is_requested_live,
                ..with_arguments(tool_call("ask"), wants.clone())
            };
            let mut reply = host.begin(call);
            let Some(ReplyPart::End(Err(error))) = reply.next().await else { panic!() };
            assert_eq!(error.kind(), ErrorKind::MissingClientCapability);
            assert!(error.message().ends_with(lacks), "{error}");
            assert!(!abilities.includes(error.missing_capabilities()));
        }
    }
    // An answer that came along does not make up for an ability.
    let given = retried_call("greet", [("who", solicited_answer(&name_form("Who?"), name_answer("Ann")))]);
    assert!(
        host.call_to_text(Call { client_capabilities: ClientCapabilities::default(), ..given })
            .await
            .starts_with("failed incapable")
    );
}

#[tokio::test(start_paused = true)]
async fn too_many_inputs_at_once_are_internal_error() {
    let asks = handler_fn(|call| async move {
        let keys: Vec<String> = (0..21).map(|number| number.to_string()).collect();
        call.ask_all(keys.iter().map(|key| (key.as_str(), InputRequest::roots()))).await?;
        Ok(Answer::content(vec![]))
    });
    let host = Host::new(entries().tool(Tool::new("ask", "", asks)));
    assert!(host.call_to_text(live_call("ask")).await.starts_with("failed internal"));
}

#[tokio::test(start_paused = true)]
async fn input_wait_releases_principal_permit() {
    let limits = Limits { running_calls_max: 4, ..Limits::default() }.with_default_shares();
    let host = Host::with_limits(limits, entries());
    let principal = Principal::new("ann", AuthMethod::Key, Arc::new(Grants::everything()));
    let ann = Caller::new(Arc::new(principal), LOCAL);
    let of_ann = |call: Call| Call { caller: ann.clone(), ..call };
    let mut reply = host.begin(of_ann(live_call("greet")));
    let pending_input_request = next_input_request(&mut reply).await;
    run_until_idle().await;
    assert_eq!(host.call_to_text(of_ann(tool_call("say"))).await, "block a\ndone {}");
    pending_input_request.answer_sender.send(name_answer("Ann")).unwrap();
    assert!(reply_text(reply).await.contains("Ann"));
}
