//! Values that an argument may take, within their bound.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{CallTarget, Completion, CompletionReference, CompletionRequest, Error, ErrorKind, UriTemplate};
use tidegate_runtime::{Completer, Job, ResourceTemplate, SnapshotBuilder};

use crate::host::{Host, call, prompt_with_text, text_handler};

/// `fruit` completes from a list, `flood` gives more than it may, `context` returns the context of the request, the rest fails.
struct Fruits;

#[async_trait]
impl Completer for Fruits {
    async fn complete(&self, request: &CompletionRequest, _: Arc<Job>) -> Result<Completion, Error> {
        let fruits = ["Apple", "apricot", "banana"].map(str::to_owned);
        let values = |values: Vec<String>| Completion { values, total: None, has_more: false };
        match request.argument.as_str() {
            "fruit" => Ok(Completion::matching(fruits, &request.value)),
            "flood" => Ok(values((0..150).map(|n| n.to_string()).collect())),
            "context" => Ok(values(request.context.iter().map(|(name, value)| format!("{name}={value}")).collect())),
            _ => Err(Error::new(ErrorKind::Unavailable, "no such list")),
        }
    }
}

fn host() -> Host {
    let mut prompt = prompt_with_text("salad", "");
    prompt.completer = Some(Arc::new(Fruits));
    let mut template = ResourceTemplate::new(UriTemplate::parse("fruit://{fruit}").unwrap(), "fruit", text_handler(""));
    template.completer = Some(Arc::new(Fruits));
    Host::new(SnapshotBuilder::new().prompt(prompt).prompt(prompt_with_text("plain", "")).template(template))
}

async fn check(reference: CompletionReference, argument: &str, value: &str) -> String {
    let context = BTreeMap::from([("size".to_owned(), "large".to_owned())]);
    let (argument, value) = (argument.to_owned(), value.to_owned());
    host().call_to_text(call(CallTarget::Completion(CompletionRequest { reference, argument, value, context }))).await
}

fn salad_reference() -> CompletionReference {
    CompletionReference::Prompt("salad".to_owned())
}

#[tokio::test]
async fn values_begin_with_what_was_typed_whatever_the_case() {
    insta::assert_snapshot!(check(salad_reference(), "fruit", "aP").await, @r#"
    completion ["Apple", "apricot"] of Some(2), more: false
    done {}
    "#);
    insta::assert_snapshot!(check(CompletionReference::Resource("fruit://{fruit}".to_owned()), "fruit", "b").await, @r#"
    completion ["banana"] of Some(1), more: false
    done {}
    "#);
    insta::assert_snapshot!(check(salad_reference(), "context", "").await, @r#"
    completion ["size=large"] of None, more: false
    done {}
    "#);
}

#[tokio::test]
async fn without_a_completer_there_are_no_values() {
    insta::assert_snapshot!(check(CompletionReference::Prompt("plain".to_owned()), "fruit", "").await, @r"
    completion [] of None, more: false
    done {}
    ");
}

#[tokio::test]
async fn reports_failures_and_unknown_references() {
    insta::assert_snapshot!(check(salad_reference(), "stone", "").await, @"failed unavailable: no such list");
    insta::assert_snapshot!(check(CompletionReference::Prompt("salat".to_owned()), "fruit", "").await, @r#"
    refused not_found: there is no prompt "salat"
    Valid choices: salad
    "#);
    insta::assert_snapshot!(check(CompletionReference::Resource("fruit://{x}".to_owned()), "fruit", "").await, @r#"refused not_found: there is no resource template "fruit://{x}""#);
}

#[tokio::test]
async fn truncates_to_100_values_and_sets_has_more() {
    let answer = check(salad_reference(), "flood", "").await;
    assert!(answer.ends_with("\"98\", \"99\"] of Some(150), more: true\ndone {}"), "{answer}");
}

#[test]
fn the_bound_holds_for_candidates_too() {
    let numbers = |count: usize| (0..count).map(|n| format!("n{n}"));
    let some = Completion::matching(numbers(100), "N");
    assert_eq!((some.values.len(), some.total, some.has_more), (100, Some(100), false));
    let many = Completion::matching(numbers(101), "n");
    assert_eq!((many.values.len(), many.total, many.has_more), (100, Some(101), true));
    let none = Completion::matching(numbers(101), "x");
    assert_eq!((none.values.len(), none.total, none.has_more), (0, Some(0), false));
}
