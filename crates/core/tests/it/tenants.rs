//! What one tenant sees of another: nothing.

use std::sync::Arc;

use tidegate_core::{
    Access, Allowed, Caller, Grants, Limits, OnlyFor, Principal, Proof, SnapshotBuilder, Tenancy, Tool,
};

use crate::host::{Host, LOCAL, called_by, owner, saying, settle, tool_call, until_cancelled};

fn of(subject: &str, tenant: Option<&str>, access: &[&str]) -> Caller {
    let access = Allowed::matching(access.iter().copied());
    let principal = Principal::new(subject, Proof::Key, Arc::new(Grants { access, ..Grants::everything() }));
    Caller::new(Arc::new(Principal { tenant: tenant.map(str::to_owned), ..principal }), LOCAL)
}

fn tenancy() -> Tenancy {
    Tenancy::new([("shop".to_owned(), ["north".to_owned(), "east".to_owned()].into())])
}

#[test]
fn a_database_of_tenants_is_there_for_them_alone() {
    let tenancy = tenancy();
    let admits = |caller: Caller| tenancy.admits("shop", &caller.principal);
    assert!(admits(of("ann", Some("north"), &[])) && admits(of("ann", Some("east"), &[])));
    assert!(!admits(of("ann", Some("south"), &[])) && !admits(of("ann", None, &["*"])));
    assert!(!admits(Caller::new(Principal::anonymous(), LOCAL)));
    assert!(admits(owner()), "whose files they are");
    assert!(tenancy.admits("other", &of("ann", None, &[]).principal));
    let state = SnapshotBuilder::new().tenancy(tenancy).build();
    assert!(state.may_ask("shop", &of("ann", Some("north"), &[]).principal));
    assert!(!state.may_ask("shop", &of("ann", Some("south"), &[]).principal));
    let ungranted = Principal { tenant: Some("north".to_owned()), ..Principal::new("bob", Proof::Key, Arc::default()) };
    assert!(!state.may_ask("shop", &ungranted), "a tenant has no more than its roles grant");
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_carries_the_right_to_a_database_is_for_its_tenants() {
    let ann = OnlyFor::new(|principal| principal.subject == "ann");
    let entries = [("sales", Access::default()), ("hers", Access { only_for: Some(ann), ..Access::default() })];
    let tool = |(name, access): (&str, Access)| {
        Tool::new(name, "", saying("a")).with_access(tenancy().restrict("shop", access))
    };
    let host = Host::new(entries.into_iter().map(tool).fold(SnapshotBuilder::new(), SnapshotBuilder::tool));
    let seen = |caller: &Caller| {
        host.registry.snapshot().tools(caller).map(|tool| tool.name.clone()).collect::<Vec<_>>().join(" ")
    };
    let (ann, bob) = (of("ann", Some("north"), &[]), of("bob", Some("north"), &[]));
    let stranger = of("ann", Some("south"), &["*"]);
    assert_eq!((seen(&ann), seen(&bob), seen(&stranger)), ("sales hers".to_owned(), "sales".to_owned(), String::new()));
    let asked = |caller: &Caller, name: &str| host.ask(called_by(caller, tool_call(name)));
    assert_eq!(asked(&ann, "hers").await, "text a\ndone {}");
    let hidden = asked(&stranger, "sales").await;
    assert_eq!(hidden.replace("sales", "x"), asked(&stranger, "never was").await.replace("never was", "x"));
}

#[tokio::test(start_paused = true)]
async fn whoever_operates_the_node_sees_no_calls_of_another_tenant() {
    let host = Host::new(SnapshotBuilder::new().tool(Tool::new("work", "", until_cancelled())));
    let replies = [Some("north"), Some("south"), None].map(|tenant| {
        let caller = of("ann", tenant, &[]);
        host.begin(called_by(&caller, tool_call("work")))
    });
    settle().await;
    let jobs = host.registry.jobs();
    let operator = of("eve", Some("north"), &["operator"]);
    assert_eq!(jobs.list(&operator).len(), 1);
    assert!(jobs.get(&replies[1].job().id().to_string(), &operator).is_none());
    assert!(!jobs.cancel(replies[1].job().id(), &operator) && !jobs.cancel(replies[2].job().id(), &operator));
    assert_eq!((jobs.open_count_for(&operator), jobs.list(&of("ann", Some("south"), &[])).len()), (1, 1));
    assert_eq!(jobs.list(&of("eve", None, &["operator"])).len(), 1, "those of no tenant");
    assert_eq!(jobs.list(&owner()).len(), 3, "who started the node sees it all");
    assert!(jobs.cancel(replies[0].job().id(), &operator));
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_one_tenant_leave_room_for_what_ended_of_another() {
    let limits = Limits { ended_jobs_kept: 4, ..Limits::default() };
    let host = Host::within(limits, SnapshotBuilder::new().tool(Tool::new("say", "", saying("a"))));
    let calls = async |caller: &Caller, count: usize| {
        for _ in 0..count {
            host.ask(called_by(caller, tool_call("say"))).await;
        }
    };
    let (ann, bob, nobody) = (of("ann", Some("north"), &[]), of("bob", Some("south"), &[]), of("cy", None, &[]));
    let kept = || [&ann, &bob, &nobody].map(|caller| host.registry.jobs().list(caller).len());
    calls(&ann, 2).await;
    calls(&bob, 9).await;
    assert_eq!(kept(), [2, 2, 0]);
    let newest = host.registry.jobs().list(&bob)[0].id;
    calls(&bob, 1).await;
    let jobs = host.registry.jobs().list(&bob);
    assert!(jobs[0].id != newest && jobs[1].id == newest, "its own oldest goes");
    // Whoever has no tenant is not held to its share.
    calls(&nobody, 3).await;
    assert_eq!(kept(), [0, 1, 3]);
    calls(&ann, 1).await;
    assert_eq!(kept(), [1, 0, 3]);
}
