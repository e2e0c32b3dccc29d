//! Answers that lack the rows of some nodes of a network say so, whatever their handlers do.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_core::{Budget, CallTarget, Error, ErrorKind, Format, MissingNode, MissingNodes};
use tidegate_runtime::{
    Answer, AnswerMeta, BodyMetadata, Call, Handler, ReplyPart, Resource, SnapshotBuilder, Tool, handler_fn,
};

use crate::host::{Host, call, reply_text, tool_call};

pub(crate) fn missing(names: &[&str]) -> MissingNodes {
    let node = |name: &&str| MissingNode { name: (*name).to_owned(), reason: "is away".to_owned(), rows: Some(1) };
    MissingNodes { nodes: names.iter().map(node).collect(), rows_total: Some(4) }
}

/// What a handler does after it has recorded the nodes.
#[derive(Debug, Clone, Copy)]
enum Case {
    Text,
    StatedText,
    EarlyEnd,
    Body,
    LateNodes,
    Failure,
}

fn handler(case: Case) -> Arc<dyn Handler> {
    handler_fn(move |call| async move {
        call.record_missing_nodes(&missing(&["rome"]))?;
        call.record_missing_nodes(&missing(&["oslo", "rome"]))?;
        match case {
            Case::Text => Ok(Answer::text("rows")),
            Case::StatedText => {
                call.set_missing_nodes_stated();
                Ok(Answer::text(format!("rows without {}", call.missing_nodes().unwrap().names())))
            }
            Case::EarlyEnd => Ok(Answer::text("preview").followed_by(|reply, meta| async move {
                reply.end_early(meta, Duration::from_secs(1)).await?;
                Ok(AnswerMeta::default())
            })),
            Case::Body | Case::LateNodes => Ok(Answer::written(move |reply| async move {
                reply.begin_body(BodyMetadata::new("text/csv", Budget::default())).await?;
                reply.send_bytes("rows".into()).await?;
                // Nothing new.
                reply.job().record_missing_nodes(&missing(&["oslo", "rome"]))?;
                if matches!(case, Case::LateNodes) {
                    reply.job().record_missing_nodes(&missing(&["bern"]))?;
                }
                Ok(AnswerMeta::default())
            })),
            Case::Failure => {
                Err(Error::new(ErrorKind::NotFound, "there is no such trace").with_hint("Name another one."))
            }
        }
    })
}

/// Calls the tool `work` on its own behalf and forwards blocks.
fn outer_handler(host: Arc<Mutex<Option<Arc<Host>>>>) -> Arc<dyn Handler> {
    handler_fn(move |call| {
        let host = host.lock().clone().unwrap();
        async move {
            let mut nested = Call::new(CallTarget::Tool("work".to_owned()), call.caller().clone());
            nested.on_behalf_of = Some(call.job().clone());
            let mut called = host.registry.call(nested)?;
            let mut blocks = Vec::new();
            while let Some(part) = called.next().await {
                match part {
                    ReplyPart::Item(content) => blocks.push(content),
                    ReplyPart::End(Err(error)) => return Err(error),
                    _ => {}
                }
            }
            Ok(Answer::content(blocks))
        }
    })
}

fn host_of(case: Case) -> Arc<Host> {
    let cell = Arc::new(Mutex::new(None));
    let host = Arc::new(Host::new(
        SnapshotBuilder::new()
            .tool(Tool::new("work", "works", handler(case)))
            .tool(Tool::new("outer", "calls", outer_handler(cell.clone())))
            .resource(Resource::new("demo://rows", "rows", handler(case))),
    ));
    *cell.lock() = Some(host.clone());
    host
}

async fn answer_text(case: Case) -> String {
    let mut call = tool_call("work");
    call.format = matches!(case, Case::Body | Case::LateNodes).then_some(Format::Csv);
    host_of(case).call_to_text(call).await
}

#[tokio::test]
async fn the_content_names_missing_nodes_once() {
    let mut answers = Vec::new();
    for case in [Case::Text, Case::StatedText, Case::EarlyEnd] {
        answers.push(format!("{case:?}:\n{}", answer_text(case).await));
    }
    let resource = call(CallTarget::Resource("demo://rows".to_owned()));
    answers.push(format!("resource:\n{}", host_of(Case::Text).call_to_text(resource).await));
    let outer = host_of(Case::Text).call_to_text(tool_call("outer")).await;
    answers.push(format!("on behalf:\n{outer}"));
    insta::assert_snapshot!(answers.join("\n\n"), @r#"
    Text:
    block rows
    block This answer is partial: it lacks the rows of 2 nodes, about 50 % of all rows: oslo (is away), rome (is away).
    done {"partial":true,"missing_nodes":[{"name":"oslo","reason":"is away","rows":1},{"name":"rome","reason":"is away","rows":1}],"missing_rows_share":0.5}

    StatedText:
    block rows without oslo, rome
    done {"partial":true,"missing_nodes":[{"name":"oslo","reason":"is away","rows":1},{"name":"rome","reason":"is away","rows":1}],"missing_rows_share":0.5}

    EarlyEnd:
    block preview
    block This answer is partial: it lacks the rows of 2 nodes, about 50 % of all rows: oslo (is away), rome (is away).
    done {"partial":true,"missing_nodes":[{"name":"oslo","reason":"is away","rows":1},{"name":"rome","reason":"is away","rows":1}],"missing_rows_share":0.5}

    resource:
    block rows
    block This answer is partial: it lacks the rows of 2 nodes, about 50 % of all rows: oslo (is away), rome (is away).
    done {"partial":true,"missing_nodes":[{"name":"oslo","reason":"is away","rows":1},{"name":"rome","reason":"is away","rows":1}],"missing_rows_share":0.5}

    on behalf:
    block rows
    block This answer is partial: it lacks the rows of 2 nodes, about 50 % of all rows: oslo (is away), rome (is away).
    done {"partial":true,"missing_nodes":[{"name":"oslo","reason":"is away","rows":1},{"name":"rome","reason":"is away","rows":1}],"missing_rows_share":0.5}
    "#);
}

#[tokio::test]
async fn a_body_has_them_in_its_metadata_and_ends_if_more_nodes_fail() {
    insta::assert_snapshot!(answer_text(Case::Body).await, @r#"
    body BodyMetadata { media_type: "text/csv", budget: Budget { rows: None, bytes: None }, version: None, file: None }
    bytes b"rows"
    done {"partial":true,"missing_nodes":[{"name":"oslo","reason":"is away","rows":1},{"name":"rome","reason":"is away","rows":1}],"missing_rows_share":0.5}
    "#);
    insta::assert_snapshot!(answer_text(Case::LateNodes).await, @r#"
    body BodyMetadata { media_type: "text/csv", budget: Budget { rows: None, bytes: None }, version: None, file: None }
    bytes b"rows"
    failed unavailable: nodes failed after the answer had begun: bern
    Repeat the call.
    This answer is partial: it lacks the rows of 2 nodes, about 50 % of all rows: oslo (is away), rome (is away).
    "#);
}

#[tokio::test]
async fn an_error_names_missing_nodes_because_they_may_be_its_cause() {
    insta::assert_snapshot!(answer_text(Case::Failure).await, @"
    failed not_found: there is no such trace
    Name another one.
    This answer is partial: it lacks the rows of 2 nodes, about 50 % of all rows: oslo (is away), rome (is away).
    ");
    let outer = host_of(Case::Failure).call_to_text(tool_call("outer")).await;
    assert_eq!(outer, answer_text(Case::Failure).await, "once");
}

#[tokio::test]
async fn the_job_knows_the_nodes_before_the_answer_begins() {
    let mut reply = host_of(Case::Body).begin(tool_call("work"));
    assert!(matches!(reply.next().await, Some(ReplyPart::Body(_))));
    assert_eq!(reply.job().missing_nodes().unwrap().names(), "oslo, rome");
    assert!(reply_text(reply).await.contains("\"partial\":true"));
}
