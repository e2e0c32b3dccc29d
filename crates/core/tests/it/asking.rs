//! What a handler asks: while it runs, or by being run again; and who waits for whom meanwhile.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tidegate_core::{
    Abilities, Asked, Call, Caller, ErrorKind, GivenAnswer, Grants, Handler, InputAnswer, InputRequest, Limits,
    Metadata, Outcome, Principal, Proof, Reply, ReplyEvent, Said, SnapshotBuilder, Tool, handler_fn,
};
use tokio::time::Instant;

use crate::host::{Host, LOCAL, settle, told, tool_call, tool_that_says, until_cancelled, with_arguments};

const FORMS: Abilities = Abilities { forms: true, urls: false, sampling: false, roots: false, tasks: false };
pub(crate) const ALL: Abilities = Abilities { forms: true, urls: true, sampling: true, roots: true, tasks: false };

pub(crate) fn name_form(message: &str) -> InputRequest {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    InputRequest::form(message, schema)
}

pub(crate) fn named(name: &str) -> InputAnswer {
    accepted(json!({"name": name}))
}

fn accepted(content: Value) -> InputAnswer {
    InputAnswer::Accepted(content.as_object().unwrap().clone())
}

fn asked_for(request: &InputRequest, answer: InputAnswer) -> GivenAnswer {
    GivenAnswer { answer, asked: Some(request.mark()) }
}

/// Asks for a name and greets.
fn greeting() -> Arc<dyn Handler> {
    handler_fn(|_, reply| async move {
        let answer = reply.ask_for("who", name_form("Who?")).await?;
        reply.text(format!("{answer:?}")).await?;
        Ok(Metadata::new())
    })
}

/// Asks for a name, then for another.
fn twice() -> Arc<dyn Handler> {
    handler_fn(|_, reply| async move {
        let first = reply.ask_for("first", name_form("First?")).await?;
        let second = reply.ask_for("second", name_form("Second?")).await?;
        reply.text(format!("{first:?} {second:?}")).await?;
        Ok(Metadata::new())
    })
}

pub(crate) fn taking_anything(name: &str, handler: Arc<dyn Handler>) -> Tool {
    Tool::new(name, "", handler).with_input_schema(json!({"type": "object"})).unwrap()
}

pub(crate) fn entries() -> SnapshotBuilder {
    SnapshotBuilder::new()
        .tool(Tool::new("greet", "", greeting()))
        .tool(Tool::new("twice", "", twice()))
        .tool(tool_that_says("say", "a"))
}

fn host() -> Host {
    Host::new(entries())
}

pub(crate) fn one_place() -> Limits {
    Limits { running_calls_max: 1, ..Limits::default() }
}

/// A call that somebody waits on.
pub(crate) fn live(name: &str) -> Call {
    Call { abilities: ALL, is_asked_live: true, ..tool_call(name) }
}

/// A call that is run again with the answers.
pub(crate) fn again(name: &str, answers: impl IntoIterator<Item = (&'static str, GivenAnswer)>) -> Call {
    let answers = answers.into_iter().map(|(key, answer)| (key.to_owned(), answer)).collect();
    Call { abilities: ALL, answers, ..tool_call(name) }
}

pub(crate) async fn question(reply: &mut Reply) -> Asked {
    match reply.next_said().await {
        Some(Said::Asked(asked)) => asked,
        other => panic!("no question: {other:?}"),
    }
}

/// What the handler asks instead of an answer.
pub(crate) async fn required(host: &Host, call: Call) -> Vec<(String, InputRequest)> {
    let mut reply = host.begin(call);
    let Some(ReplyEvent::End(Outcome::Failed(error))) = reply.next().await else { panic!("it did not fail") };
    assert_eq!(error.kind(), ErrorKind::InputRequired);
    error.requests().to_vec()
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_waited_for() {
    let host = host();
    let mut reply = host.begin(live("greet"));
    let asked = question(&mut reply).await;
    assert_eq!((asked.key.as_str(), &asked.request), ("who", &name_form("Who?")));
    asked.answer.send(named("Ann")).unwrap();
    assert_eq!(told(reply).await, "text Accepted({\"name\": String(\"Ann\")})\ndone {}");
}

#[tokio::test(start_paused = true)]
async fn a_second_question_follows_the_first() {
    let host = host();
    let mut reply = host.begin(live("twice"));
    for (key, name) in [("first", "a"), ("second", "b")] {
        let asked = question(&mut reply).await;
        assert_eq!(asked.key, key);
        asked.answer.send(named(name)).unwrap();
    }
    assert!(
        told(reply).await.starts_with("text Accepted({\"name\": String(\"a\")}) Accepted({\"name\": String(\"b\")})")
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_an_answer_leaves_its_place_to_others() {
    let host = Host::within(one_place(), entries());
    let mut reply = host.begin(live("greet"));
    let asked = question(&mut reply).await;
    settle().await;
    assert_eq!(host.ask(tool_call("say")).await, "text a\ndone {}");
    // It goes on only when it has a place again.
    let mut other = host.begin(live("greet"));
    let other_asked = question(&mut other).await;
    settle().await;
    asked.answer.send(named("Ann")).unwrap();
    other_asked.answer.send(named("Bob")).unwrap();
    assert!(told(reply).await.contains("Ann"));
    assert!(told(other).await.contains("Bob"));
    assert_eq!(host.ask(tool_call("say")).await, "text a\ndone {}");
}

#[tokio::test(start_paused = true)]
async fn a_call_with_an_answer_waits_for_a_place_again() {
    let busy = Tool::new("busy", "", until_cancelled());
    let host = Host::within(one_place(), entries().tool(busy));
    let mut reply = host.begin(live("greet"));
    let asked = question(&mut reply).await;
    settle().await;
    let busy = host.begin(tool_call("busy"));
    settle().await;
    asked.answer.send(named("Ann")).unwrap();
    let said = tokio::time::timeout(Duration::from_secs(30), reply.next_said()).await;
    assert!(said.is_err(), "it runs beside the one that has the only place: {said:?}");
    drop(busy);
    assert!(told(reply).await.contains("Ann"));
}

#[tokio::test(start_paused = true)]
async fn questions_side_by_side_take_one_place_again() {
    let asks = handler_fn(|_, reply| async move {
        let (one, other) =
            tokio::try_join!(reply.ask_for("one", name_form("One?")), reply.ask_for("other", name_form("Other?")))?;
        reply.text(format!("{one:?} {other:?}")).await?;
        Ok(Metadata::new())
    });
    let host = Host::within(one_place(), entries().tool(Tool::new("both", "", asks)));
    let mut reply = host.begin(live("both"));
    let (one, other) = (question(&mut reply).await, question(&mut reply).await);
    // The clock stands still until the last of them is answered.
    tokio::time::sleep(Duration::from_secs(300)).await;
    one.answer.send(named("a")).unwrap();
    tokio::time::sleep(Duration::from_secs(299)).await;
    other.answer.send(named("b")).unwrap();
    assert!(told(reply).await.starts_with("text Accepted"));
    assert_eq!(host.ask(tool_call("say")).await, "text a\ndone {}");
}

/// Works for forty seconds, asks, and works for as long as its argument says.
fn working() -> Tool {
    let handler = handler_fn(|job, reply| async move {
        tokio::time::sleep(Duration::from_secs(40)).await;
        reply.ask_for("who", name_form("Who?")).await?;
        let seconds = job.arguments().get("seconds").and_then(Value::as_u64).unwrap_or_default();
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Ok(Metadata::new())
    });
    taking_anything("work", handler)
}

#[tokio::test(start_paused = true)]
async fn the_time_that_somebody_takes_to_answer_is_not_the_call_s() {
    let host = Host::new(entries().tool(working()));
    for (seconds, outcome) in [(19, "done {}"), (25, "failed timed_out: the call was ended after")] {
        let mut reply = host.begin(with_arguments(live("work"), json!({"seconds": seconds})));
        let asked = question(&mut reply).await;
        tokio::time::sleep(Duration::from_secs(599)).await;
        asked.answer.send(named("Ann")).unwrap();
        let told = told(reply).await;
        assert!(told.starts_with(outcome), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_is_not_waited_on_for_ever() {
    let host = host();
    let began = Instant::now();
    let mut reply = host.begin(live("greet"));
    let asked = question(&mut reply).await;
    assert_eq!(told(reply).await, "failed timed_out: the call asked for something, and nobody answered in time");
    assert_eq!(began.elapsed().as_secs(), 600);
    assert!(asked.answer.send(named("Ann")).is_err(), "a late answer is told so");
    assert_eq!(host.registry.jobs().open_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_an_answer_can_be_cancelled() {
    let host = Host::within(one_place(), entries());
    let mut reply = host.begin(live("greet"));
    let asked = question(&mut reply).await;
    reply.job().cancel();
    assert_eq!(told(reply).await, "failed cancelled: the call was cancelled");
    assert!(asked.answer.is_closed());
    // So does hanging up.
    let mut reply = host.begin(live("greet"));
    let asked = question(&mut reply).await;
    drop(reply);
    settle().await;
    assert!(asked.answer.is_closed());
    assert_eq!(host.registry.jobs().open_count(), 0);
    assert_eq!(host.ask(tool_call("say")).await, "text a\ndone {}");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_takes_ends_the_call() {
    let host = host();
    let mut reply = host.begin(live("greet"));
    drop(question(&mut reply).await);
    assert_eq!(told(reply).await, "failed unavailable: the client was asked for \"who\" and gave no answer");
    // An adapter that hears no questions.
    let unheard = "failed unavailable: the client was asked for \"who\" and gave no answer";
    assert_eq!(host.ask(live("greet")).await, unheard);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_fit_is_told_so() {
    let host = host();
    for (answer, wrong) in [
        (accepted(json!({})), "\"name\" is a required property"),
        (accepted(json!({"name": 7})), "name: 7 is not of type \"string\""),
        (InputAnswer::Roots(Vec::new()), "it is an answer to something else"),
    ] {
        let mut reply = host.begin(live("greet"));
        question(&mut reply).await.answer.send(answer).unwrap();
        let told = told(reply).await;
        assert!(told.starts_with("failed invalid_arguments: the answer to \"who\" does not fit: "), "{told}");
        assert!(told.contains(wrong), "{told}");
    }
    let mut reply = host.begin(live("greet"));
    question(&mut reply).await.answer.send(InputAnswer::Declined).unwrap();
    assert_eq!(told(reply).await, "text Declined\ndone {}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_waits_on_ends_with_its_questions() {
    let host = host();
    let requests = required(&host, again("twice", [])).await;
    assert_eq!(requests, [("first".to_owned(), name_form("First?"))]);
    let first = asked_for(&name_form("First?"), named("a"));
    let requests = required(&host, again("twice", [("first", first.clone())])).await;
    assert_eq!(requests, [("second".to_owned(), name_form("Second?"))]);
    let second = asked_for(&name_form("Second?"), named("b"));
    let told = host.ask(again("twice", [("first", first), ("second", second)])).await;
    assert!(told.starts_with("text Accepted({\"name\": String(\"a\")}) Accepted({\"name\": String(\"b\")})"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_count_is_asked_again_with_the_reason() {
    let host = host();
    let unasked = GivenAnswer { answer: named("Ann"), asked: None };
    let of_another = asked_for(&name_form("Shall I delete 3 rows?"), named("Ann"));
    let of_another_kind = asked_for(&name_form("Who?"), InputAnswer::Sampled(Map::new()));
    let misfit = asked_for(&name_form("Who?"), accepted(json!({"name": 7})));
    for (given, wrong) in [
        (unasked, "it came before it was asked for"),
        (of_another, "it was given to another question"),
        (of_another_kind, "it is an answer to something else"),
        (misfit, "name: 7 is not of type \"string\""),
    ] {
        let requests = required(&host, again("greet", [("who", given)])).await;
        let [(key, request)] = &requests[..] else { panic!("{requests:?}") };
        assert_eq!(key, "who");
        assert!(request.remark.as_ref().unwrap().contains(wrong), "{request:?}");
        assert!(request.told().unwrap().starts_with("Who?\n(The last answer did not fit: "));
        // It is the same question, so that the next answer counts.
        assert_eq!(request.mark(), name_form("Who?").mark());
        let told = host.ask(again("greet", [("who", asked_for(request, named("Ann")))])).await;
        assert!(told.contains("Ann"), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unasked_answer_counts_where_its_handler_says_so() {
    let asks = handler_fn(|_, reply| async move {
        let answer = reply.ask_for("who", name_form("Who?").or_unasked()).await?;
        reply.text(format!("{answer:?}")).await?;
        Ok(Metadata::new())
    });
    let host = Host::new(entries().tool(Tool::new("lax", "", asks)));
    let unasked = GivenAnswer { answer: named("Ann"), asked: None };
    assert!(host.ask(again("lax", [("who", unasked)])).await.contains("Ann"));
    let misfit = GivenAnswer { answer: accepted(json!({})), asked: None };
    assert_eq!(required(&host, again("lax", [("who", misfit)])).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_client_cannot_answer_is_not_asked() {
    let asks = handler_fn(|job, reply| async move {
        let requests = job.arguments().keys().map(|key| {
            let request = match key.as_str() {
                "form" => name_form("Who?"),
                "url" => InputRequest::url("Go", "https://example.test/"),
                "sampling" => InputRequest::sampling(Map::new()),
                _ => InputRequest::roots(),
            };
            (key.as_str(), request)
        });
        reply.ask(requests.collect::<Vec<_>>()).await?;
        Ok(Metadata::new())
    });
    let host = Host::new(entries().tool(taking_anything("ask", asks)));
    for (abilities, wants, lacks) in [
        (Abilities::default(), json!({"form": 1}), "elicitation (form)"),
        (FORMS, json!({"url": 1}), "elicitation (url)"),
        (FORMS, json!({"form": 1, "sampling": 1, "roots": 1}), "elicitation (form), sampling, roots"),
    ] {
        for is_asked_live in [false, true] {
            let call = Call { abilities, is_asked_live, ..with_arguments(tool_call("ask"), wants.clone()) };
            let mut reply = host.begin(call);
            let Some(Said::Event(ReplyEvent::End(Outcome::Failed(error)))) = reply.next_said().await else { panic!() };
            assert_eq!(error.kind(), ErrorKind::Incapable);
            assert!(error.message().ends_with(lacks), "{error}");
            assert!(!abilities.include(error.needs()));
        }
    }
    // An answer that came along does not make up for an ability.
    let given = again("greet", [("who", asked_for(&name_form("Who?"), named("Ann")))]);
    assert!(host.ask(Call { abilities: Abilities::default(), ..given }).await.starts_with("failed incapable"));
}

#[tokio::test(start_paused = true)]
async fn too_many_questions_at_once_are_a_fault() {
    let asks = handler_fn(|_, reply| async move {
        let keys: Vec<String> = (0..21).map(|number| number.to_string()).collect();
        reply.ask(keys.iter().map(|key| (key.as_str(), InputRequest::roots()))).await?;
        Ok(Metadata::new())
    });
    let host = Host::new(entries().tool(Tool::new("ask", "", asks)));
    assert!(host.ask(live("ask")).await.starts_with("failed internal"));
}

#[tokio::test(start_paused = true)]
async fn the_principal_s_share_is_given_back_too() {
    let limits = Limits { running_calls_max: 4, ..Limits::default() }.shared();
    let host = Host::within(limits, entries());
    let principal = Principal::new("ann", Proof::Key, Arc::new(Grants::everything()));
    let ann = Caller::new(Arc::new(principal), LOCAL);
    let of_ann = |call: Call| Call { caller: ann.clone(), ..call };
    let mut reply = host.begin(of_ann(live("greet")));
    let asked = question(&mut reply).await;
    settle().await;
    assert_eq!(host.ask(of_ann(tool_call("say"))).await, "text a\ndone {}");
    asked.answer.send(named("Ann")).unwrap();
    assert!(told(reply).await.contains("Ann"));
}
