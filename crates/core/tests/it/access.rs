//! Who may see and call what, and from where: asked at list and at call, and silent about what is hidden.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{
    Access, Acl, Allowed, CacheHint, Caller, CompletionRequest, Grants, Network, OnlyFor, Origin, Principal, Proof,
    Reference, ResourceTemplate, SnapshotBuilder, Target, Tool, Toolset, TransportKind, UriTemplate,
};

use crate::host::{
    Host, call, called_by, granted, owner, prompt_that_says, resource_that_says, saying, somebody, tool_call,
    tool_that_says,
};

fn demanding(names: &[&str]) -> Access {
    Access { names: names.iter().map(|name| (*name).to_owned()).collect(), ..Access::default() }
}

fn from(transport: TransportKind, peer: &str) -> Caller {
    Caller::new(Principal::owner(), Origin { transport, peer: Some(peer.parse().unwrap()) })
}

fn names(host: &Host, caller: &Caller) -> Vec<String> {
    host.registry.snapshot().tools(caller).map(|tool| tool.name.clone()).collect()
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
    let (stranger, friend) = (somebody("stranger", &["hear"]), somebody("friend", &["see"]));
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
    assert_eq!(snapshot.tools(&stranger).count(), 0);
    assert_eq!(snapshot.prompts(&stranger).count(), 0);
    assert_eq!(snapshot.resources(&stranger).count(), 0);
    assert_eq!(snapshot.templates(&stranger).count(), 0);
    assert_eq!(snapshot.media_type("x://secret", &stranger), None);
    assert_eq!(snapshot.tools(&friend).count(), 1);
}

#[tokio::test]
async fn what_asks_who_calls_is_in_no_list_of_nobodys_and_says_so_when_called() {
    let asking = Access { asks_who: true, ..Access::default() };
    let mut prompt = prompt_that_says("mine", "");
    prompt.access = asking.clone();
    let mut resource = resource_that_says("x://mine", "");
    resource.access = asking.clone();
    let mut template = ResourceTemplate::new(UriTemplate::parse("y://{mine}").unwrap(), "mine", saying(""));
    template.access = asking.clone();
    let unseen = Access { asks_who: true, ..demanding(&["see"]) };
    let entries = SnapshotBuilder::new()
        .tool(tool_that_says("mine", "").with_access(asking))
        .tool(tool_that_says("unseen", "").with_access(unseen))
        .prompt(prompt)
        .resource(resource)
        .template(template);
    let host = Host::new(entries);
    let nobody = Caller::new(Principal::anonymous(), Origin { transport: TransportKind::StreamableHttp, peer: None });
    let targets = [
        Target::Tool("mine".to_owned()),
        Target::Prompt("mine".to_owned()),
        Target::Resource("x://mine".to_owned()),
        Target::Resource("y://1".to_owned()),
    ];
    for target in targets {
        let refused = host.ask(called_by(&nobody, call(target.clone()))).await;
        assert!(refused.starts_with("refused unauthenticated: "), "{target:?}: {refused}");
        let answered = host.ask(called_by(&somebody("ann", &[]), call(target.clone()))).await;
        assert!(answered.ends_with("done {}"), "{target:?}: {answered}");
    }
    // What they could not reach as somebody either does not exist for them.
    assert!(host.ask(called_by(&nobody, tool_call("unseen"))).await.starts_with("refused not_found: "));
    let snapshot = host.registry.snapshot();
    assert_eq!(snapshot.tools(&nobody).count(), 0);
    assert_eq!(snapshot.prompts(&nobody).count(), 0);
    assert_eq!(snapshot.resources(&nobody).count(), 0);
    assert_eq!(snapshot.templates(&nobody).count(), 0);
    assert!(!snapshot.cache().public, "what depends on who calls is nothing for shared caches");
}

#[tokio::test]
async fn scopes_are_not_escaped_by_showing_nothing() {
    let scoped = Access { scopes: vec!["data:write".to_owned()], ..Access::default() };
    let host = Host::new(SnapshotBuilder::new().tool(tool_that_says("change", "").with_access(scoped)));
    let nobody = Caller::new(Principal::anonymous(), Origin { transport: TransportKind::StreamableHttp, peer: None });
    let refused = host.ask(called_by(&nobody, tool_call("change"))).await;
    assert!(refused.starts_with("refused unauthenticated: "), "{refused}");
    assert_eq!(host.registry.snapshot().tools(&nobody).count(), 1, "a client may ask its user to log in");
}

#[tokio::test]
async fn scopes_are_asked_of_tokens_alone() {
    let access = Access { scopes: vec!["data:write".to_owned()], ..Access::default() };
    let host = Host::new(SnapshotBuilder::new().tool(tool_that_says("change", "").with_access(access)));
    let by = |proof: Proof, scope: Option<&str>| {
        let mut principal = Principal::new("ann", proof, Arc::new(Grants::open()));
        principal.claims.extend(scope.map(|scope| ("scope".to_owned(), scope.into())));
        Caller::new(Arc::new(principal), Origin { transport: TransportKind::StreamableHttp, peer: None })
    };
    let mut told = String::new();
    for (proof, scope) in [
        (Proof::Token, Some("data:read data:write")),
        (Proof::Token, Some("data:read")),
        (Proof::Token, None),
        (Proof::Key, None),
        (Proof::Certificate, None),
        (Proof::Proxy, None),
        (Proof::Process, None),
    ] {
        let caller = by(proof, scope);
        assert_eq!(names(&host, &caller), ["change"], "lists show it all the same");
        let answer = host.ask(called_by(&caller, tool_call("change"))).await;
        let (name, said) = (proof.name(), answer.split(':').next().unwrap_or_default());
        let said = if answer.ends_with("done {}") { "done" } else { said };
        told.push_str(&format!("{name} {}: {said}\n", scope.unwrap_or("-")));
    }
    insta::assert_snapshot!(told, @r"
    token data:read data:write: done
    token data:read: refused forbidden
    token -: refused forbidden
    key -: done
    certificate -: done
    proxy -: done
    process -: done
    ");
    assert!(!host.registry.snapshot().cache().public, "what depends on who calls is nothing for shared caches");
}

#[tokio::test]
async fn whoever_brought_an_entry_may_say_whom_it_is_for() {
    let only_for = OnlyFor::new(|principal| principal.subject == "ann");
    let access = Access { only_for: Some(only_for), ..Access::default() };
    let host = Host::new(SnapshotBuilder::new().tool(tool_that_says("hers", "").with_access(access)));
    assert!(host.ask(called_by(&somebody("ann", &[]), tool_call("hers"))).await.ends_with("done {}"));
    let bob = somebody("bob", &[]);
    assert!(host.ask(called_by(&bob, tool_call("hers"))).await.starts_with("refused not_found: "));
    assert_eq!(names(&host, &bob), Vec::<String>::new());
}

#[tokio::test]
async fn the_nearest_names_are_those_that_the_caller_may_see() {
    let host = Host::new(
        SnapshotBuilder::new()
            .tool(tool_that_says("orders_all", "").with_access(demanding(&["see"])))
            .tool(tool_that_says("orders_mine", "")),
    );
    let answer = host.ask(called_by(&somebody("stranger", &[]), tool_call("orders_al"))).await;
    insta::assert_snapshot!(answer, @r#"
    refused not_found: there is no tool "orders_al"
    Valid choices: orders_mine
    "#);
}

#[tokio::test]
async fn all_access_names_are_needed_and_not_just_one() {
    let host =
        Host::new(SnapshotBuilder::new().tool(tool_that_says("both", "").with_access(demanding(&["read", "write"]))));
    for (permissions, seen) in [(&["read"][..], 0), (&["write"], 0), (&["write", "read", "more"], 1)] {
        let caller = somebody("somebody", permissions);
        assert_eq!(names(&host, &caller).len(), seen, "{permissions:?}");
        let answer = host.ask(called_by(&caller, tool_call("both"))).await;
        assert_eq!(answer.starts_with("text "), seen == 1, "{answer}");
    }
}

#[tokio::test]
async fn an_entry_may_be_reachable_from_some_places_only() {
    let acl = |transports: Option<Vec<TransportKind>>, networks: Option<Vec<Network>>| Access {
        acl: Acl { transports, networks },
        ..Access::default()
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
    assert_eq!(names(&host, &owner()), ["anywhere", "stdio", "office"]);
    assert_eq!(names(&host, &from(TransportKind::StreamableHttp, "10.1.2.3")), ["anywhere", "office"]);
    assert_eq!(names(&host, &from(TransportKind::StreamableHttp, "10.2.2.3")), ["anywhere"]);
    let call = called_by(&from(TransportKind::StreamableHttp, "192.0.2.7"), tool_call("office"));
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

#[tokio::test]
async fn roles_reach_what_their_toolsets_name_and_nothing_else() {
    let host = Host::new(
        with_secrets()
            .tool(tool_that_says("orders_all", "orders"))
            .tool(tool_that_says("sql", "rows"))
            .prompt(prompt_that_says("explore", "")),
    );
    let clerk = granted("clerk", Grants { entries: Allowed::matching(["orders_*", "secret"]), ..Grants::default() });
    assert_eq!(names(&host, &clerk), ["orders_all"], "secret demands an access name");
    assert_eq!(host.registry.snapshot().prompts(&clerk).count(), 0);
    assert_eq!(host.ask(called_by(&clerk, tool_call("sql"))).await, "refused not_found: there is no tool \"sql\"");
    assert_eq!(host.ask(called_by(&clerk, tool_call("orders_all"))).await, "text orders\ndone {}");
    let nobody = granted("nobody", Grants::default());
    assert!(names(&host, &nobody).is_empty());
}

#[tokio::test]
async fn a_toolset_is_a_door_to_a_part_of_the_registry() {
    let mut inside = tool_that_says("call_tool", "");
    inside.access.toolset = Some("discover".to_owned());
    let toolset = |name: &str, entries: &[&str]| Toolset {
        name: name.to_owned(),
        entries: Allowed::matching(entries.iter().copied()),
    };
    let host = Host::new(
        SnapshotBuilder::new()
            .tool(tool_that_says("orders_all", ""))
            .tool(tool_that_says("sql", ""))
            .tool(inside)
            .toolset(toolset("support", &["orders_*", "call_tool"]))
            .toolset(toolset("discover", &["call_tool"])),
    );
    let snapshot = host.registry.snapshot();
    let through = |caller: &Caller, name: &str| caller.clone().through(snapshot.toolset(name, caller).cloned());
    assert_eq!(names(&host, &owner()), ["orders_all", "sql"], "what belongs to one door is behind no other");
    assert_eq!(names(&host, &through(&owner(), "support")), ["orders_all"]);
    assert_eq!(names(&host, &through(&owner(), "discover")), ["call_tool"]);
    let refused = host.ask(called_by(&through(&owner(), "support"), tool_call("sql"))).await;
    assert_eq!(refused, "refused not_found: there is no tool \"sql\"");
    let clerk = granted("clerk", Grants { toolsets: Allowed::matching(["support"]), ..Grants::open() });
    assert!(snapshot.toolset("support", &clerk).is_some());
    assert!(snapshot.toolset("discover", &clerk).is_none() && snapshot.toolset("nothing", &clerk).is_none());
}

#[tokio::test]
async fn a_hidden_resource_is_not_answered_for_by_a_broader_one() {
    let mut exact = resource_that_says("x://reports/salaries", "salaries");
    exact.access = demanding(&["see"]);
    let mut narrow =
        ResourceTemplate::new(UriTemplate::parse("x://reports/of_{year}").unwrap(), "narrow", saying("year"));
    narrow.access = demanding(&["see"]);
    narrow.mime_type = Some("text/csv".to_owned());
    let mut broad = ResourceTemplate::new(UriTemplate::parse("x://reports/{name}").unwrap(), "broad", saying("broad"));
    broad.mime_type = Some("text/plain".to_owned());
    let host = Host::new(SnapshotBuilder::new().resource(exact).template(narrow).template(broad));
    let (stranger, friend) = (somebody("stranger", &[]), somebody("friend", &["see"]));
    let snapshot = host.registry.snapshot();
    for (uri, said) in [("x://reports/salaries", "salaries"), ("x://reports/of_2013", "year")] {
        let read = |caller| host.ask(called_by(caller, call(Target::Resource(uri.to_owned()))));
        assert_eq!(read(&stranger).await, format!("refused not_found: there is no resource {uri:?}"));
        assert!(read(&friend).await.contains(said), "{uri}");
        assert!(!snapshot.has_resource(uri, &stranger));
        assert_eq!(snapshot.media_type(uri, &stranger), None);
    }
    let other = host.ask(called_by(&stranger, call(Target::Resource("x://reports/other".to_owned())))).await;
    assert!(other.contains("broad"), "{other}");
}

#[test]
fn what_not_everybody_may_read_is_no_matter_of_shared_caches() {
    let public = CacheHint { time_to_live: Duration::from_secs(9), public: true };
    let entries = |is_public: bool| {
        let mut guarded = resource_that_says("x://guarded", "");
        (guarded.access, guarded.cache) = (demanding(&["see"]), Some(public));
        let mut open = resource_that_says("x://open", "");
        open.cache = Some(public);
        SnapshotBuilder::new().resource(guarded).resource(open).cache(CacheHint { public: is_public, ..public })
    };
    let friend = somebody("friend", &["see"]);
    let is_public = |builder: SnapshotBuilder, uri: &str| builder.build().read_cache(uri, &friend).public;
    assert!(is_public(entries(true), "x://open"));
    assert!(!is_public(entries(true), "x://guarded"));
    assert!(!is_public(entries(false), "x://open"), "where callers prove who they are");
}
