//! Resources: a URI resolves to the resource itself, else to the most specific template.

use tidegate_core::{Access, CallTarget, UriTemplate};
use tidegate_runtime::{Answer, ResourceTemplate, SnapshotBuilder, handler_fn};

use crate::host::{Host, call, called_by, caller_with_access, process_user, resource_with_text};

/// A template that answers its text and the values of its variables.
fn template(text: &str) -> ResourceTemplate {
    let template = UriTemplate::parse(text).unwrap();
    let (text, names) = (text.to_owned(), template.variables().map(str::to_owned).collect::<Vec<_>>());
    let handler = handler_fn(move |call| {
        let values: Vec<_> = names.iter().map(|name| format!("{name}={:?}", call.variable(name).unwrap())).collect();
        let output = format!("{text} {}", values.join(" "));
        async { Ok(Answer::text(output)) }
    });
    ResourceTemplate::new(template, "template", handler)
}

fn host() -> Host {
    let mut hidden = template("data://shop/hidden/{id}");
    hidden.access = Access { names: vec!["see".to_owned()], ..Access::default() };
    let mut typed = template("data://{database}/{table}.csv");
    typed.mime_type = Some("text/csv".to_owned());
    Host::new(
        SnapshotBuilder::new()
            .resource(resource_with_text("data://shop/orders", "the resource itself"))
            .template(template("data://{database}/{table}"))
            .template(template("data://shop/{table}"))
            .template(template("data://{database}/{table}/{row}"))
            .template(typed)
            .template(hidden),
    )
}

async fn check(uri: &str) -> String {
    let call = called_by(&caller_with_access("reader", &[]), call(CallTarget::Resource(uri.to_owned())));
    let answer = host().call_to_text(call).await;
    answer.strip_suffix("\ndone {}").map_or(answer.clone(), str::to_owned)
}

#[tokio::test]
async fn exact_resource_wins_then_longest_literal_template() {
    insta::assert_snapshot!(check("data://shop/orders").await, @"block the resource itself");
    insta::assert_snapshot!(check("data://shop/customers").await, @r#"block data://shop/{table} table="customers""#);
    insta::assert_snapshot!(check("data://farm/animals").await, @r#"block data://{database}/{table} database="farm" table="animals""#);
    insta::assert_snapshot!(check("data://farm/animals.csv").await, @r#"block data://{database}/{table}.csv database="farm" table="animals""#);
    insta::assert_snapshot!(check("data://farm/animals.csv.csv").await, @r#"block data://{database}/{table}.csv database="farm" table="animals.csv""#);
}

#[tokio::test]
async fn of_templates_with_as_much_text_the_longer_one_answers() {
    let entries = SnapshotBuilder::new().template(template("a://{b}")).template(template("a://{longer}"));
    let call = call(CallTarget::Resource("a://1".to_owned()));
    insta::assert_snapshot!(Host::new(entries).call_to_text(call).await, @r#"
    block a://{longer} longer="1"
    done {}
    "#);
}

#[tokio::test]
async fn hidden_template_blocks_uri() {
    insta::assert_snapshot!(check("data://shop/hidden/7").await, @r#"refused not_found: there is no resource "data://shop/hidden/7""#);
}

#[tokio::test]
async fn values_are_percent_decoded_once() {
    insta::assert_snapshot!(check("data://a%20b/c%2Fd").await, @r#"block data://{database}/{table} database="a b" table="c/d""#);
    insta::assert_snapshot!(check("data://a%2520b/%C3%A9+").await, @r#"block data://{database}/{table} database="a%20b" table="é+""#);
}

#[tokio::test]
async fn unmatched_uri_is_not_found() {
    for uri in ["data://shop/", "data:///x", "data://a/b/c/d", "data://farm/%zz", "data://farm/%ff", "DATA://a/b", ""] {
        assert_eq!(check(uri).await, format!("refused not_found: there is no resource {uri:?}"));
    }
}

#[test]
fn the_last_template_of_a_text_wins_and_lists_hold_it_once() {
    let named = |name: &str| ResourceTemplate { name: name.to_owned(), ..template("data://{table}") };
    let snapshot = SnapshotBuilder::new().template(named("old")).template(named("new")).build();
    let names: Vec<_> = snapshot.templates(&process_user()).map(|template| template.name.as_str()).collect();
    assert_eq!(names, ["new"]);
}

#[test]
fn media_type_comes_from_matched_entry() {
    let snapshot = host().registry.snapshot();
    let media_type = |uri| snapshot.media_type(uri, &process_user());
    assert_eq!(media_type("data://farm/animals.csv").as_deref(), Some("text/csv"));
    assert_eq!(media_type("data://farm/animals"), None);
    assert_eq!(media_type("nothing"), None);
}
