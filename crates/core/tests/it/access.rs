//! Who may see and call what, and from where: asked at list and at call, and silent about what is hidden.

use std::sync::Arc;

use tidegate_core::{
    Access, Acl, CompletionRequest, Network, Origin, Principal, Reference, ResourceTemplate, SnapshotBuilder, Target,
    Tool, TransportKind, UriTemplate,
};

use crate::host::{
    Host, LOCAL, call, called_by, caller, prompt_that_says, resource_that_says, saying, tool_call, tool_that_says,
};

fn demanding(permissions: &[&str]) -> Access {
    Access { permissions: permissions.iter().map(|name| (*name).to_owned()).collect(), acl: Acl::default() }
}

fn from(transport: TransportKind, peer: &str) -> Origin {
    Origin { transport, peer: Some(peer.parse().unwrap()) }
}

fn names(host: &Host, principal: &Arc<Principal>, origin: Origin) -> Vec<String> {
    host.registry.snapshot().tools(principal, origin).map(|tool| tool.name.clone()).collect()
}

/// One entry of each sort named `secret`, for those who hold `see`.
fn with_secrets() -> SnapshotBuilder {
    let mut prompt = prompt_that_says("secret", "");
    prompt.access = demanding(&["see"]);
    let mut resource = resource_that_says("x://secret", "");
    resource.access = demanding(&["see"]);
    let mut template = ResourceTemplate::new(UriTemplate::parse("y://{secret}").unwrap(), "secret", saying(""));
    template.access = demanding(&["see"]);
    SnapshotBuilder::new()
        .tool(tool_that_says("secret", "").with_access(demanding(&["see"])))
        .prompt(prompt)
        .resource(resource)
        .template(template)
}

fn completion(reference: Reference) -> Target {
    let (argument, value) = ("secret".to_owned(), String::new());
    Target::Completion(CompletionRequest { reference, argument, value, context: Default::default() })
}

#[tokio::test]
async fn what_is_hidden_answers_as_if_it_were_absent() {
    let (hiding, empty) = (Host::new(with_secrets()), Host::new(SnapshotBuilder::new()));
    let (stranger, friend) = (caller("stranger", &["hear"]), caller("friend", &["see"]));
    let targets = [
        Target::Tool("secret".to_owned()),
        Target::Tool("secre".to_owned()),
        Target::Prompt("secret".to_owned()),
        Target::Resource("x://secret".to_owned()),
        Target::Resource("y://1".to_owned()),
        completion(Reference::Prompt("secret".to_owned())),
        completion(Reference::Resource("y://{secret}".to_owned())),
    ];
    for target in targets {
        let hidden = hiding.ask(called_by(&stranger, call(target.clone()))).await;
        let absent = empty.ask(called_by(&stranger, call(target.clone()))).await;
        assert_eq!(hidden, absent, "{target:?}");
        assert!(hidden.starts_with("refused not_found: there is no "), "{hidden}");
        if target.name() != "secre" {
            let seen = hiding.ask(called_by(&friend, call(target.clone()))).await;
            assert!(seen.ends_with("done {}"), "{target:?}: {seen}");
        }
    }
    let snapshot = hiding.registry.snapshot();
    assert_eq!(snapshot.tools(&stranger, LOCAL).count(), 0);
    assert_eq!(snapshot.prompts(&stranger, LOCAL).count(), 0);
    assert_eq!(snapshot.resources(&stranger, LOCAL).count(), 0);
    assert_eq!(snapshot.templates(&stranger, LOCAL).count(), 0);
    assert_eq!(snapshot.media_type("x://secret", &stranger, LOCAL), None);
    assert_eq!(snapshot.tools(&friend, LOCAL).count(), 1);
}

#[tokio::test]
async fn the_nearest_names_are_those_that_the_caller_may_see() {
    let host = Host::new(
        SnapshotBuilder::new()
            .tool(tool_that_says("orders_all", "").with_access(demanding(&["see"])))
            .tool(tool_that_says("orders_mine", "")),
    );
    let answer = host.ask(called_by(&caller("stranger", &[]), tool_call("orders_al"))).await;
    insta::assert_snapshot!(answer, @r#"
    refused not_found: there is no tool "orders_al"
    Valid choices: orders_mine
    "#);
}

#[tokio::test]
async fn all_permissions_are_needed_and_not_just_one() {
    let host =
        Host::new(SnapshotBuilder::new().tool(tool_that_says("both", "").with_access(demanding(&["read", "write"]))));
    for (permissions, seen) in [(&["read"][..], 0), (&["write"], 0), (&["write", "read", "more"], 1)] {
        let principal = caller("somebody", permissions);
        assert_eq!(names(&host, &principal, LOCAL).len(), seen, "{permissions:?}");
        let answer = host.ask(called_by(&principal, tool_call("both"))).await;
        assert_eq!(answer.starts_with("text "), seen == 1, "{answer}");
    }
}

#[tokio::test]
async fn an_entry_may_be_reachable_from_some_places_only() {
    let acl = |transports: Option<Vec<TransportKind>>, networks: Option<Vec<Network>>| Access {
        permissions: Vec::new(),
        acl: Acl { transports, networks },
    };
    let office = Network { address: "10.1.0.0".parse().unwrap(), prefix_bits: 16 };
    let tool = |name: &str, access: Access| -> Tool { tool_that_says(name, "").with_access(access) };
    let host = Host::new(
        SnapshotBuilder::new()
            .tool(tool("anywhere", Access::default()))
            .tool(tool("stdio", acl(Some(vec![TransportKind::Stdio]), None)))
            .tool(tool("office", acl(None, Some(vec![office]))))
            .tool(tool("nowhere", acl(Some(Vec::new()), None))),
    );
    let owner = Principal::owner();
    assert_eq!(names(&host, &owner, LOCAL), ["anywhere", "stdio", "office"]);
    assert_eq!(names(&host, &owner, from(TransportKind::StreamableHttp, "10.1.2.3")), ["anywhere", "office"]);
    assert_eq!(names(&host, &owner, from(TransportKind::StreamableHttp, "10.2.2.3")), ["anywhere"]);
    let mut call = tool_call("office");
    call.origin = from(TransportKind::StreamableHttp, "192.0.2.7");
    assert_eq!(host.ask(call).await, "refused not_found: there is no tool \"office\"");
}

#[test]
fn lists_are_public_only_when_everybody_sees_the_same() {
    assert!(SnapshotBuilder::new().tool(tool_that_says("open", "")).build().cache().public);
    assert!(!with_secrets().build().cache().public);
    let mut prompt = prompt_that_says("local", "");
    prompt.access.acl.transports = Some(vec![TransportKind::Stdio]);
    assert!(!SnapshotBuilder::new().prompt(prompt).build().cache().public);
}
