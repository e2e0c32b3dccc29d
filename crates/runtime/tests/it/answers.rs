//! Each kind of answer: what is sent of it, and what is sent before it fails.

use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use tidegate_core::{AnswerProtection, Budget, Content, ContentRole, Error, ErrorKind, Format};
use tidegate_runtime::{Answer, AnswerMeta, Call, ReplyPart, RunningCall, SnapshotBuilder, Tool, handler_fn};

use crate::host::{Host, reply_text, tool_call};
use crate::missing_nodes::missing;
use crate::redaction::HushRedactor;

/// A host with the tool `work`, whose handler returns `answer`.
fn host(
    protection: AnswerProtection,
    answer: impl Fn(RunningCall) -> Result<Answer, Error> + Send + Sync + 'static,
) -> Host {
    let handler = handler_fn(move |call| std::future::ready(answer(call)));
    let schema = json!({"type": "object", "properties": {"rows": {"type": "integer"}}});
    let tool = Tool::new("work", "", handler).with_output_schema(schema).unwrap();
    Host::new(SnapshotBuilder::new().tool(tool).protection(protection))
}

/// The reply to a call of a host without protection, with a budget of 40 bytes.
async fn check(answer: impl Fn(RunningCall) -> Result<Answer, Error> + Send + Sync + 'static) -> String {
    host(AnswerProtection::default(), answer).call_to_text(with_small_budget()).await
}

fn with_small_budget() -> Call {
    Call { inline_limit: Budget { rows: None, bytes: Some(40) }, ..tool_call("work") }
}

fn over_rest() -> Call {
    Call { format: Some(Format::Json), ..with_small_budget() }
}

fn masked_and_fenced() -> AnswerProtection {
    AnswerProtection { redactor: Some(Arc::new(HushRedactor { refuses: false })), fences_data: true }
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// An object whose text has 44 bytes.
fn large_object() -> Map<String, Value> {
    object(json!({"text": "more than the budget of this call"}))
}

#[tokio::test]
async fn content_is_sent_in_whole_blocks() {
    let blocks = || vec![Content::text("one"), Content::text("other")];
    assert_eq!(check(move |_| Ok(Answer::content(blocks()))).await, "block one\nblock other\ndone {}");
    assert_eq!(check(|_| Ok(Answer::content(vec![]))).await, "done {}");
    assert_eq!(check(|_| Ok(Answer::text("one"))).await, "block one\ndone {}");
}

#[tokio::test]
async fn messages_have_roles() {
    let answer = |_| {
        let (question, answer) = (Content::text("How many?"), Content::text("Three."));
        Ok(Answer::messages(vec![(ContentRole::User, question), (ContentRole::Assistant, answer)]))
    };
    assert_eq!(check(answer).await, "User How many?\nAssistant Three.\ndone {}");
}

#[tokio::test]
async fn an_object_within_the_budget_is_one_text() {
    insta::assert_snapshot!(check(|_| Ok(Answer::json(object(json!({"rows": [1, 2]}))))).await, @r#"
    text {"rows":[1,2]}
    end of text
    done {}
    "#);
}

#[tokio::test]
async fn of_an_object_beyond_the_budget_nothing_is_sent() {
    let refused = check(|_| Ok(Answer::json(large_object()))).await;
    insta::assert_snapshot!(refused, @"
    failed too_large: the answer has 44 bytes; the maximum is 40
    Ask for less: fewer fields, columns, series or points, or a smaller limit.
    ");
    let followed = check(|_| {
        Ok(Answer::json(large_object()).followed_by(|reply, meta| async move {
            reply.send_text("a note").await?;
            Ok(meta)
        }))
    });
    assert_eq!(followed.await, refused);
}

#[tokio::test]
async fn data_has_no_budget() {
    let text = "more than the budget of this call, by many words";
    assert_eq!(check(move |_| Ok(Answer::data(text.to_owned()))).await, format!("text {text}\nend of text\ndone {{}}"));
}

#[tokio::test]
async fn objects_and_data_are_fenced_for_models() {
    let object = host(masked_and_fenced(), |_| Ok(Answer::json(object(json!({"word": "hush"})))));
    let data = host(masked_and_fenced(), |_| Ok(Answer::data("masked by its handler".to_owned())));
    for (host, text) in [(object, r#"{"word":"***"}"#), (data, "masked by its handler")] {
        let reply = host.begin(tool_call("work"));
        let job = reply.job().clone();
        let sent = reply_text(reply).await;
        assert_eq!(sent, format!("text {}\nend of text\ndone {{}}", job.protection().fence().unwrap().wrap(text)));
    }
}

#[tokio::test]
async fn objects_and_data_are_bodies_over_rest() {
    let meta = || AnswerMeta { rows: Some(1), ..AnswerMeta::default() };
    let object = host(masked_and_fenced(), move |_| {
        let object = object(json!({"word": "hush", "text": "more than the budget of this call"}));
        Ok(Answer::json(object).with_meta(meta()))
    });
    let data = host(masked_and_fenced(), move |_| Ok(Answer::data("{}".to_owned()).with_meta(meta())));
    let text = r#"{"word":"***","text":"more than the budget of this call"}"#;
    for (host, text) in [(object, text), (data, "{}")] {
        let mut reply = host.begin(over_rest());
        let Some(ReplyPart::Body(head)) = reply.next().await else { panic!("no body") };
        assert_eq!((head.media_type, head.budget), ("application/json", Budget::default()));
        let (body, metadata) = reply.collect_body(100).await.unwrap();
        assert_eq!((&body[..], metadata), (text.as_bytes(), meta()));
    }
}

#[tokio::test]
async fn an_object_names_missing_nodes_in_place_of_a_note() {
    let host = host(AnswerProtection::default(), |call| {
        call.record_missing_nodes(&missing(&["oslo"]))?;
        Ok(Answer::json(object(json!({"series": [], "reason": "No row matches."}))))
    });
    insta::assert_snapshot!(host.call_to_text(tool_call("work")).await, @r#"
    text {"series":[],"reason":"This answer is partial: it lacks the rows of 1 node, about 25 % of all rows: oslo (is away). No row matches.","partial":true,"missing_nodes":[{"name":"oslo","reason":"is away","rows":1}],"missing_rows_share":0.25}
    end of text
    done {"partial":true,"missing_nodes":[{"name":"oslo","reason":"is away","rows":1}],"missing_rows_share":0.25}
    "#);
}

#[tokio::test]
async fn structured_data_follows_its_text_and_conforms_to_the_schema() {
    let exact = || RawValue::from_string(r#"{"rows":3,"share":1.000}"#.to_owned()).unwrap();
    insta::assert_snapshot!(check(move |_| Ok(Answer::text("three").with_structured(exact()))).await, @r#"
    block three
    structured {"rows":3,"share":1.000}
    done {}
    "#);
    let wrong = || to_raw_value(&json!({"rows": "three"})).unwrap();
    insta::assert_snapshot!(check(move |_| Ok(Answer::text("three").with_structured(wrong()))).await, @"
    block three
    failed internal: internal error; the server's log has the detail under id <id>
    ");
}

#[tokio::test]
async fn what_follows_receives_what_is_known_of_the_answer() {
    let answer = |_| {
        let meta = AnswerMeta { rows: Some(3), ..AnswerMeta::default() };
        Ok(Answer::text("rows").with_meta(meta).followed_by(|reply, meta| async move {
            reply.send_item(Content::text(format!("{:?}", meta.rows))).await?;
            Ok(meta)
        }))
    };
    assert_eq!(check(answer).await, "block rows\nblock Some(3)\ndone {}");
}

#[tokio::test]
async fn a_written_answer_that_fails_late_keeps_what_it_sent() {
    let answer = |_| {
        Ok(Answer::written(|reply| async move {
            reply.send_text("rows").await?;
            Err(Error::new(ErrorKind::Unavailable, "the connection is lost"))
        }))
    };
    assert_eq!(check(answer).await, "text rows\nfailed unavailable: the connection is lost");
}
