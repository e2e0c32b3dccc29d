//! Answers that lack the rows of some nodes of a network say so, whatever their handlers do.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_core::{Budget, CallTarget, Error, ErrorKind, Format, MissingNode, MissingNodes};
use tidegate_runtime::{
    AnswerMeta, BodyMetadata, Call, Handler, Outcome, ReplyEvent, Resource, SnapshotBuilder, Tool, handler_fn,
};

use crate::host::{Host, call, reply_text, tool_call};

fn missing(names: &[&str]) -> MissingNodes {
    let node = |name: &&str| MissingNode { name: (*name).to_owned(), reason: "is away".to_owned(), rows: Some(1) };
    MissingNodes { nodes: names.iter().map(node).collect(), rows_total: Some(4) }
}

/// What a handler does after it has recorded the nodes.
#[derive(Debug, Clone, Copy)]
enum Answer {
    Text,
    StatedText,
    EarlyEnd,
    Body,
    LateNodes,
    Failure,
}

fn handler(answer: Answer) -> Arc<dyn Handler> {
    handler_fn(move |job, reply| async move {
        job.record_missing_nodes(&missing(&["rome"]))?;
        job.record_missing_nodes(&missing(&["oslo", "rome"]))?;
        match answer {
            Answer::Text => reply.send_text("rows").await?,
            Answer::StatedText => {
                reply.send_text(format!("rows without {}", job.missing_nodes().unwrap().names())).await?;
                job.set_missing_nodes_stated();
            }
            Answer::EarlyEnd => {
                reply.send_text("preview").await?;
                reply.end_early(AnswerMeta::default(), Duration::from_secs(1)).await?;
            }
            Answer::Body | Answer::LateNodes => {
                reply.begin_body(BodyMetadata::new("text/csv", Budget::default())).await?;
                reply.send_bytes("rows".into()).await?;
                // Nothing new.
                job.record_missing_nodes(&missing(&["oslo", "rome"]))?;
                if matches!(answer, Answer::LateNodes) {
                    job.record_missing_nodes(&missing(&["bern"]))?;
                }
            }
            Answer::Failure => {
                return Err(Error::new(ErrorKind::NotFound, "there is no such trace").with_hint("Name another one."));
            }
        }
        Ok(AnswerMeta::default())
    })
}

/// Calls the tool `work` on its own behalf and forwards text.
fn outer_handler(host: Arc<Mutex<Option<Arc<Host>>>>) -> Arc<dyn Handler> {
    handler_fn(move |job, reply| {
        let host = host.lock().clone().unwrap();
        async move {
            let mut call = Call::new(CallTarget::Tool("work".to_owned()), job.caller().clone());
            call.on_behalf_of = Some(job);
            let mut called = host.registry.call(call)?;
            while let Some(event) = called.next().await {
                match event {
                    ReplyEvent::Chunk(tidegate_runtime::Chunk::Block(content)) => reply.send_block(content).await?,
                    ReplyEvent::Chunk(_) => {}
                    ReplyEvent::End(Outcome::Done(_)) => break,
                    ReplyEvent::End(Outcome::Failed(error)) => return Err(error),
                }
            }
            Ok(AnswerMeta::default())
        }
    })
}

fn host_of(answer: Answer) -> Arc<Host> {
    let cell = Arc::new(Mutex::new(None));
    let host = Arc::new(Host::new(
        SnapshotBuilder::new()
            .tool(Tool::new("work", "works", handler(answer)))
            .tool(Tool::new("outer", "calls", outer_handler(cell.clone())))
            .resource(Resource::new("demo://rows", "rows", handler(answer))),
    ));
    *cell.lock() = Some(host.clone());
    host
}

async fn answer_text(answer: Answer) -> String {
    let mut call = tool_call("work");
    call.format = matches!(answer, Answer::Body | Answer::LateNodes).then_some(Format::Csv);
    host_of(answer).call_to_text(call).await
}

#[tokio::test]
async fn the_content_names_missing_nodes_once() {
    let mut answers = Vec::new();
    for answer in [Answer::Text, Answer::StatedText, Answer::EarlyEnd] {
        answers.push(format!("{answer:?}:\n{}", answer_text(answer).await));
    }
    let resource = call(CallTarget::Resource("demo://rows".to_owned()));
    answers.push(format!("resource:\n{}", host_of(Answer::Text).call_to_text(resource).await));
    let outer = host_of(Answer::Text).call_to_text(tool_call("outer")).await;
    answers.push(format!("on behalf:\n{outer}"));
    insta::assert_snapshot!(answers.join("\n\n"), @r#"
    Text:
    text rows
    block This answer is partial: it lacks the rows of 2 nodes, about 50 % of all rows: oslo (is away), rome (is away).
    done {"partial":true,"missing_nodes":[{"name":"oslo","reason":"is away","rows":1},{"name":"rome","reason":"is away","rows":1}],"missing_rows_share":0.5}

    StatedText:
    text rows without oslo, rome
    done {"partial":true,"missing_nodes":[{"name":"oslo","reason":"is away","rows":1},{"name":"rome","reason":"is away","rows":1}],"missing_rows_share":0.5}

    EarlyEnd:
    text preview
    block This answer is partial: it lacks the rows of 2 nodes, about 50 % of all rows: oslo (is away), rome (is away).
    done {"partial":true,"missing_nodes":[{"name":"oslo","reason":"is away","rows":1},{"name":"rome","reason":"is away","rows":1}],"missing_rows_share":0.5}

    resource:
    text rows
    block This answer is partial: it lacks the rows of 2 nodes, about 50 % of all rows: oslo (is away), rome (is away).
    done {"partial":true,"missing_nodes":[{"name":"oslo","reason":"is away","rows":1},{"name":"rome","reason":"is away","rows":1}],"missing_rows_share":0.5}

    on behalf:
    block This answer is partial: it lacks the rows of 2 nodes, about 50 % of all rows: oslo (is away), rome (is away).
    done {"partial":true,"missing_nodes":[{"name":"oslo","reason":"is away","rows":1},{"name":"rome","reason":"is away","rows":1}],"missing_rows_share":0.5}
    "#);
}

#[tokio::test]
async fn a_body_has_them_in_its_metadata_and_ends_if_more_nodes_fail() {
    insta::assert_snapshot!(answer_text(Answer::Body).await, @r#"
    body BodyMetadata { media_type: "text/csv", budget: Budget { rows: None, bytes: None }, version: None, file: None }
    bytes b"rows"
    done {"partial":true,"missing_nodes":[{"name":"oslo","reason":"is away","rows":1},{"name":"rome","reason":"is away","rows":1}],"missing_rows_share":0.5}
    "#);
    insta::assert_snapshot!(answer_text(Answer::LateNodes).await, @r#"
    body BodyMetadata { media_type: "text/csv", budget: Budget { rows: None, bytes: None }, version: None, file: None }
    bytes b"rows"
    failed unavailable: nodes failed after the answer had begun: bern
    Repeat the call.
    This answer is partial: it lacks the rows of 2 nodes, about 50 % of all rows: oslo (is away), rome (is away).
    "#);
}

#[tokio::test]
async fn an_error_names_missing_nodes_because_they_may_be_its_cause() {
    insta::assert_snapshot!(answer_text(Answer::Failure).await, @"
    failed not_found: there is no such trace
    Name another one.
    This answer is partial: it lacks the rows of 2 nodes, about 50 % of all rows: oslo (is away), rome (is away).
    ");
    let outer = host_of(Answer::Failure).call_to_text(tool_call("outer")).await;
    assert_eq!(outer, answer_text(Answer::Failure).await, "once");
}

#[tokio::test]
async fn the_job_knows_the_nodes_before_the_answer_begins() {
    let mut reply = host_of(Answer::Body).begin(tool_call("work"));
    assert!(matches!(reply.next().await, Some(ReplyEvent::Chunk(_))));
    assert_eq!(reply.job().missing_nodes().unwrap().names(), "oslo, rome");
    assert!(reply_text(reply).await.contains("\"partial\":true"));
}
