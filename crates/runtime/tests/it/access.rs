//! Access to entries by caller, transport and network: lists and calls apply the same check and reveal no hidden entry.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{
    Access, Acl, AllowedNames, AuthMethod, CallOrigin, CallTarget, Caller, CompletionReference, CompletionRequest,
    Grants, IpNetwork, Principal, PrincipalRule, Toolset, TransportKind, UriTemplate,
};
use tidegate_runtime::{CacheHint, ResourceTemplate, SnapshotBuilder, Tool};

use crate::host::{
    Host, call, called_by, caller_with_access, caller_with_grants, process_user, prompt_with_text, resource_with_text,
    text_handler, tool_call, tool_with_text,
};

fn access_with_names(names: &[&str]) -> Access {
    Access { names: names.iter().map(|name| (*name).to_owned()).collect(), ..Access::default() }
}

fn caller_from(transport: TransportKind, peer: &str) -> Caller {
    Caller::new(Principal::process_user(), CallOrigin { transport, peer: Some(peer.parse().unwrap()) })
}

fn visible_tool_names(host: &Host, caller: &Caller) -> Vec<String> {
    host.registry.snapshot().tools(caller).map(|tool| tool.name.clone()).collect()
}

/// One entry of each sort named `secret`, for those who hold `see`.
fn with_secrets() -> SnapshotBuilder {
    let mut prompt = prompt_with_text("secret", "");
    prompt.access = access_with_names(&["see"]);
    let mut resource = resource_with_text("x://secret", "");
    resource.access = access_with_names(&["see"]);
    let mut template = ResourceTemplate::new(UriTemplate::parse("y://{secret}").unwrap(), "secret", text_handler(""));
    template.access = access_with_names(&["see"]);
    SnapshotBuilder::new()
        .tool(tool_with_text("secret", "").with_access(access_with_names(&["see"])))
        .prompt(prompt)
        .resource(resource)
        .template(template)
}

fn completion(reference: CompletionReference) -> CallTarget {
    let (argument, value) = ("secret".to_owned(), String::new());
    CallTarget::Completion(CompletionRequest { reference, argument, value, context: Default::default() })
}

#[tokio::test]
async fn hidden_entry_is_reported_as_not_found() {
    let (hiding, empty) = (Host::new(with_secrets()), Host::new(SnapshotBuilder::new()));
    let (stranger, friend) = (caller_with_access("stranger", &["hear"]), caller_with_access("friend", &["see"]));
    let targets = [
        CallTarget::Tool("secret".to_owned()),
        CallTarget::Tool("secre".to_owned()),
        CallTarget::Prompt("secret".to_owned()),
        CallTarget::Resource("x://secret".to_owned()),
        CallTarget::Resource("y://1".to_owned()),
        completion(CompletionReference::Prompt("secret".to_owned())),
        completion(CompletionReference::Resource("y://{secret}".to_owned())),
    ];
    for target in targets {
        let hidden = hiding.call_to_text(called_by(&stranger, call(target.clone()))).await;
        let absent = empty.call_to_text(called_by(&stranger, call(target.clone()))).await;
        assert_eq!(hidden, absent, "{target:?}");
        assert!(hidden.starts_with("refused not_found: there is no "), "{hidden}");
        if target.name() != "secre" {
            let seen = hiding.call_to_text(called_by(&friend, call(target.clone()))).await;
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
async fn authenticated_entry_is_unlisted_for_anonymous_and_rejects_its_call() {
    let asking = Access { requires_authentication: true, ..Access::default() };
    let mut prompt = prompt_with_text("mine", "");
    prompt.access = asking.clone();
    let mut resource = resource_with_text("x://mine", "");
    resource.access = asking.clone();
    let mut template = ResourceTemplate::new(UriTemplate::parse("y://{mine}").unwrap(), "mine", text_handler(""));
    template.access = asking.clone();
    let unseen = Access { requires_authentication: true, ..access_with_names(&["see"]) };
    let entries = SnapshotBuilder::new()
        .tool(tool_with_text("mine", "").with_access(asking))
        .tool(tool_with_text("unseen", "").with_access(unseen))
        .prompt(prompt)
        .resource(resource)
        .template(template);
    let host = Host::new(entries);
    let nobody =
        Caller::new(Principal::anonymous(), CallOrigin { transport: TransportKind::StreamableHttp, peer: None });
    let targets = [
        CallTarget::Tool("mine".to_owned()),
        CallTarget::Prompt("mine".to_owned()),
        CallTarget::Resource("x://mine".to_owned()),
        CallTarget::Resource("y://1".to_owned()),
    ];
    for target in targets {
        let refused = host.call_to_text(called_by(&nobody, call(target.clone()))).await;
        assert!(refused.starts_with("refused unauthenticated: "), "{target:?}: {refused}");
        let answered = host.call_to_text(called_by(&caller_with_access("ann", &[]), call(target.clone()))).await;
        assert!(answered.ends_with("done {}"), "{target:?}: {answered}");
    }
    // Entries that are hidden from authenticated callers do not exist for anonymous ones.
    assert!(host.call_to_text(called_by(&nobody, tool_call("unseen"))).await.starts_with("refused not_found: "));
    let snapshot = host.registry.snapshot();
    assert_eq!(snapshot.tools(&nobody).count(), 0);
    assert_eq!(snapshot.prompts(&nobody).count(), 0);
    assert_eq!(snapshot.resources(&nobody).count(), 0);
    assert_eq!(snapshot.templates(&nobody).count(), 0);
    assert!(!snapshot.cache_hint().public, "what depends on who calls is nothing for shared caches");
}

#[tokio::test]
async fn anonymous_caller_cannot_bypass_scopes() {
    let scoped = Access { scopes: vec!["data:write".to_owned()], ..Access::default() };
    let host = Host::new(SnapshotBuilder::new().tool(tool_with_text("change", "").with_access(scoped)));
    let nobody =
        Caller::new(Principal::anonymous(), CallOrigin { transport: TransportKind::StreamableHttp, peer: None });
    let refused = host.call_to_text(called_by(&nobody, tool_call("change"))).await;
    assert!(refused.starts_with("refused unauthenticated: "), "{refused}");
    assert_eq!(host.registry.snapshot().tools(&nobody).count(), 1, "a client may ask its user to log in");
}

#[tokio::test]
async fn scopes_apply_to_tokens_only() {
    let access = Access { scopes: vec!["data:write".to_owned()], ..Access::default() };
    let host = Host::new(SnapshotBuilder::new().tool(tool_with_text("change", "").with_access(access)));
    let by = |proof: AuthMethod, scope: Option<&str>| {
        let mut principal = Principal::new("ann", proof, Arc::new(Grants::for_anonymous()));
        principal.claims.extend(scope.map(|scope| ("scope".to_owned(), scope.into())));
        Caller::new(Arc::new(principal), CallOrigin { transport: TransportKind::StreamableHttp, peer: None })
    };
    let mut message = String::new();
    for (proof, scope) in [
        (AuthMethod::Token, Some("data:read data:write")),
        (AuthMethod::Token, Some("data:read")),
        (AuthMethod::Token, None),
        (AuthMethod::Key, None),
        (AuthMethod::Certificate, None),
        (AuthMethod::Proxy, None),
        (AuthMethod::Process, None),
    ] {
        let caller = by(proof, scope);
        assert_eq!(visible_tool_names(&host, &caller), ["change"], "lists show it all the same");
        let answer = host.call_to_text(called_by(&caller, tool_call("change"))).await;
        let (name, text) = (proof.name(), answer.split(':').next().unwrap_or_default());
        let text = if answer.ends_with("done {}") { "done" } else { text };
        message.push_str(&format!("{name} {}: {text}\n", scope.unwrap_or("-")));
    }
    insta::assert_snapshot!(message, @r"
    token data:read data:write: done
    token data:read: refused forbidden
    token -: refused forbidden
    key -: done
    certificate -: done
    proxy -: done
    process -: done
    ");
    assert!(!host.registry.snapshot().cache_hint().public, "what depends on who calls is nothing for shared caches");
}

#[tokio::test]
async fn principal_rule_restricts_entry() {
    let only_for = PrincipalRule::new(|principal| principal.subject == "ann");
    let access = Access { principal_rule: Some(only_for), ..Access::default() };
    let host = Host::new(SnapshotBuilder::new().tool(tool_with_text("hers", "").with_access(access)));
    assert!(
        host.call_to_text(called_by(&caller_with_access("ann", &[]), tool_call("hers"))).await.ends_with("done {}")
    );
    let bob = caller_with_access("bob", &[]);
    assert!(host.call_to_text(called_by(&bob, tool_call("hers"))).await.starts_with("refused not_found: "));
    assert_eq!(visible_tool_names(&host, &bob), Vec::<String>::new());
}

#[tokio::test]
async fn suggestions_contain_only_visible_names() {
    let host = Host::new(
        SnapshotBuilder::new()
            .tool(tool_with_text("orders_all", "").with_access(access_with_names(&["see"])))
            .tool(tool_with_text("orders_mine", "")),
    );
    let answer = host.call_to_text(called_by(&caller_with_access("stranger", &[]), tool_call("orders_al"))).await;
    insta::assert_snapshot!(answer, @r#"
    refused not_found: there is no tool "orders_al"
    Valid choices: orders_mine
    "#);
}

#[tokio::test]
async fn all_access_names_are_needed_and_not_just_one() {
    let host = Host::new(
        SnapshotBuilder::new().tool(tool_with_text("both", "").with_access(access_with_names(&["read", "write"]))),
    );
    for (permissions, seen) in [(&["read"][..], 0), (&["write"], 0), (&["write", "read", "more"], 1)] {
        let caller = caller_with_access("somebody", permissions);
        assert_eq!(visible_tool_names(&host, &caller).len(), seen, "{permissions:?}");
        let answer = host.call_to_text(called_by(&caller, tool_call("both"))).await;
        assert_eq!(answer.starts_with("block "), seen == 1, "{answer}");
    }
}

#[tokio::test]
async fn acl_restricts_transports_and_networks() {
    let acl = |transports: Option<Vec<TransportKind>>, networks: Option<Vec<IpNetwork>>| Access {
        acl: Acl { transports, networks },
        ..Access::default()
    };
    let office = IpNetwork { address: "10.1.0.0".parse().unwrap(), prefix_bits: 16 };
    let tool = |name: &str, access: Access| -> Tool { tool_with_text(name, "").with_access(access) };
    let host = Host::new(
        SnapshotBuilder::new()
            .tool(tool("anywhere", Access::default()))
            .tool(tool("stdio", acl(Some(vec![TransportKind::Stdio]), None)))
            .tool(tool("office", acl(None, Some(vec![office]))))
            .tool(tool("nowhere", acl(Some(Vec::new()), None))),
    );
    assert_eq!(visible_tool_names(&host, &process_user()), ["anywhere", "stdio", "office"]);
    assert_eq!(
        visible_tool_names(&host, &caller_from(TransportKind::StreamableHttp, "10.1.2.3")),
        ["anywhere", "office"]
    );
    assert_eq!(visible_tool_names(&host, &caller_from(TransportKind::StreamableHttp, "10.2.2.3")), ["anywhere"]);
    let call = called_by(&caller_from(TransportKind::StreamableHttp, "192.0.2.7"), tool_call("office"));
    assert_eq!(host.call_to_text(call).await, "refused not_found: there is no tool \"office\"");
}

#[test]
fn cache_hint_is_public_only_without_access_rules() {
    assert!(SnapshotBuilder::new().tool(tool_with_text("open", "")).build().cache_hint().public);
    assert!(!with_secrets().build().cache_hint().public);
    let mut prompt = prompt_with_text("local", "");
    prompt.access.acl.transports = Some(vec![TransportKind::Stdio]);
    assert!(!SnapshotBuilder::new().prompt(prompt).build().cache_hint().public);
}

#[tokio::test]
async fn roles_reach_what_their_toolsets_name_and_nothing_else() {
    let host = Host::new(
        with_secrets()
            .tool(tool_with_text("orders_all", "orders"))
            .tool(tool_with_text("sql", "rows"))
            .prompt(prompt_with_text("explore", "")),
    );
    let clerk = caller_with_grants(
        "clerk",
        Grants { entries: AllowedNames::matching(["orders_*", "secret"]), ..Grants::default() },
    );
    assert_eq!(visible_tool_names(&host, &clerk), ["orders_all"], "secret demands an access name");
    assert_eq!(host.registry.snapshot().prompts(&clerk).count(), 0);
    assert_eq!(
        host.call_to_text(called_by(&clerk, tool_call("sql"))).await,
        "refused not_found: there is no tool \"sql\""
    );
    assert_eq!(host.call_to_text(called_by(&clerk, tool_call("orders_all"))).await, "block orders\ndone {}");
    let nobody = caller_with_grants("nobody", Grants::default());
    assert!(visible_tool_names(&host, &nobody).is_empty());
}

#[tokio::test]
async fn a_right_to_write_rows_gives_the_tools_of_senders() {
    let mut sender = tool_with_text("receive", "");
    sender.access.is_for_senders = true;
    let host = Host::new(SnapshotBuilder::new().tool(sender).tool(tool_with_text("sql", "")));
    let grants = Grants { ingest: AllowedNames::matching(["plant.*"]), ..Grants::default() };
    assert_eq!(visible_tool_names(&host, &caller_with_grants("device", grants)), ["receive"]);
    assert!(visible_tool_names(&host, &caller_with_grants("nobody", Grants::default())).is_empty());
}

#[tokio::test]
async fn toolset_endpoint_exposes_only_its_entries() {
    let mut inside = tool_with_text("call_tool", "");
    inside.access.toolset = Some("discover".to_owned());
    let toolset = |name: &str, entries: &[&str]| Toolset {
        name: name.to_owned(),
        entries: AllowedNames::matching(entries.iter().copied()),
    };
    let host = Host::new(
        SnapshotBuilder::new()
            .tool(tool_with_text("orders_all", ""))
            .tool(tool_with_text("sql", ""))
            .tool(inside)
            .toolset(toolset("support", &["orders_*", "call_tool"]))
            .toolset(toolset("discover", &["call_tool"])),
    );
    let snapshot = host.registry.snapshot();
    let through = |caller: &Caller, name: &str| caller.clone().with_toolset(snapshot.toolset(name, caller).cloned());
    assert_eq!(
        visible_tool_names(&host, &process_user()),
        ["orders_all", "sql"],
        "what belongs to one door is behind no other"
    );
    assert_eq!(visible_tool_names(&host, &through(&process_user(), "support")), ["orders_all"]);
    assert_eq!(visible_tool_names(&host, &through(&process_user(), "discover")), ["call_tool"]);
    let refused = host.call_to_text(called_by(&through(&process_user(), "support"), tool_call("sql"))).await;
    assert_eq!(refused, "refused not_found: there is no tool \"sql\"");
    let agent =
        caller_with_grants("agent", Grants { toolsets: AllowedNames::matching(["discover"]), ..Grants::default() });
    assert_eq!(visible_tool_names(&host, &through(&agent, "discover")), ["call_tool"]);
    let clerk = caller_with_grants(
        "clerk",
        Grants { toolsets: AllowedNames::matching(["support"]), ..Grants::for_anonymous() },
    );
    assert!(snapshot.toolset("support", &clerk).is_some());
    assert!(snapshot.toolset("discover", &clerk).is_none() && snapshot.toolset("nothing", &clerk).is_none());
}

#[tokio::test]
async fn hidden_resource_does_not_fall_back_to_broader_template() {
    let mut exact = resource_with_text("x://reports/salaries", "salaries");
    exact.access = access_with_names(&["see"]);
    let mut narrow =
        ResourceTemplate::new(UriTemplate::parse("x://reports/of_{year}").unwrap(), "narrow", text_handler("year"));
    narrow.access = access_with_names(&["see"]);
    narrow.mime_type = Some("text/csv".to_owned());
    let mut broad =
        ResourceTemplate::new(UriTemplate::parse("x://reports/{name}").unwrap(), "broad", text_handler("broad"));
    broad.mime_type = Some("text/plain".to_owned());
    let host = Host::new(SnapshotBuilder::new().resource(exact).template(narrow).template(broad));
    let (stranger, friend) = (caller_with_access("stranger", &[]), caller_with_access("friend", &["see"]));
    let snapshot = host.registry.snapshot();
    for (uri, output) in [("x://reports/salaries", "salaries"), ("x://reports/of_2013", "year")] {
        let read = |caller| host.call_to_text(called_by(caller, call(CallTarget::Resource(uri.to_owned()))));
        assert_eq!(read(&stranger).await, format!("refused not_found: there is no resource {uri:?}"));
        assert!(read(&friend).await.contains(output), "{uri}");
        assert!(!snapshot.has_resource(uri, &stranger));
        assert_eq!(snapshot.media_type(uri, &stranger), None);
    }
    let other =
        host.call_to_text(called_by(&stranger, call(CallTarget::Resource("x://reports/other".to_owned())))).await;
    assert!(other.contains("broad"), "{other}");
}

#[test]
fn restricted_resource_is_not_publicly_cacheable() {
    let public = CacheHint { time_to_live: Duration::from_secs(9), public: true };
    let entries = |is_public: bool| {
        let mut guarded = resource_with_text("x://guarded", "");
        (guarded.access, guarded.cache) = (access_with_names(&["see"]), Some(public));
        let mut open = resource_with_text("x://open", "");
        open.cache = Some(public);
        SnapshotBuilder::new().resource(guarded).resource(open).allow_shared_caches(is_public)
    };
    let friend = caller_with_access("friend", &["see"]);
    let is_public = |builder: SnapshotBuilder, uri: &str| builder.build().resource_cache_hint(uri, &friend).public;
    assert!(is_public(entries(true), "x://open"));
    assert!(!is_public(entries(true), "x://guarded"));
    assert!(!is_public(entries(false), "x://open"), "where callers prove who they are");
}
