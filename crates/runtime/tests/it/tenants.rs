//! What one tenant sees of another: nothing.

use std::sync::Arc;

use tidegate_core::{
    Access, AllowedNames, AuthMethod, Caller, DatabaseTenants, Grants, Limits, Principal, PrincipalRule,
};
use tidegate_runtime::{SnapshotBuilder, Tool};

use crate::host::{Host, LOCAL, called_by, process_user, run_until_idle, text_handler, tool_call, until_cancelled};

fn tenant_caller(subject: &str, tenant: Option<&str>, access: &[&str]) -> Caller {
    let access = AllowedNames::matching(access.iter().copied());
    let principal = Principal::new(subject, AuthMethod::Key, Arc::new(Grants { access, ..Grants::everything() }));
    Caller::new(Arc::new(Principal { tenant: tenant.map(str::to_owned), ..principal }), LOCAL)
}

fn tenancy() -> DatabaseTenants {
    DatabaseTenants::new([("shop".to_owned(), ["north".to_owned(), "east".to_owned()].into())])
}

#[test]
fn tenant_database_is_hidden_from_others() {
    let tenancy = tenancy();
    let admits = |caller: Caller| tenancy.admits("shop", &caller.principal);
    assert!(admits(tenant_caller("ann", Some("north"), &[])) && admits(tenant_caller("ann", Some("east"), &[])));
    assert!(!admits(tenant_caller("ann", Some("south"), &[])) && !admits(tenant_caller("ann", None, &["*"])));
    assert!(!admits(Caller::new(Principal::anonymous(), LOCAL)));
    assert!(admits(process_user()), "whose files they are");
    assert!(tenancy.admits("other", &tenant_caller("ann", None, &[]).principal));
    let state = SnapshotBuilder::new().database_tenants(tenancy).build();
    assert!(state.can_query_database("shop", &tenant_caller("ann", Some("north"), &[]).principal));
    assert!(!state.can_query_database("shop", &tenant_caller("ann", Some("south"), &[]).principal));
    let ungranted =
        Principal { tenant: Some("north".to_owned()), ..Principal::new("bob", AuthMethod::Key, Arc::default()) };
    assert!(!state.can_query_database("shop", &ungranted), "a tenant has no more than its roles grant");
}

#[tokio::test(start_paused = true)]
async fn restricted_entry_is_for_database_tenants() {
    let ann = PrincipalRule::new(|principal| principal.subject == "ann");
    let entries = [("sales", Access::default()), ("hers", Access { principal_rule: Some(ann), ..Access::default() })];
    let tool = |(name, access): (&str, Access)| {
        Tool::new(name, "", text_handler("a")).with_access(tenancy().restrict("shop", access))
    };
    let host = Host::new(entries.into_iter().map(tool).fold(SnapshotBuilder::new(), SnapshotBuilder::tool));
    let seen = |caller: &Caller| {
        host.registry.snapshot().tools(caller).map(|tool| tool.name.clone()).collect::<Vec<_>>().join(" ")
    };
    let (ann, bob) = (tenant_caller("ann", Some("north"), &[]), tenant_caller("bob", Some("north"), &[]));
    let stranger = tenant_caller("ann", Some("south"), &["*"]);
    assert_eq!((seen(&ann), seen(&bob), seen(&stranger)), ("sales hers".to_owned(), "sales".to_owned(), String::new()));
    let requested = |caller: &Caller, name: &str| host.call_to_text(called_by(caller, tool_call(name)));
    assert_eq!(requested(&ann, "hers").await, "block a\ndone {}");
    let hidden = requested(&stranger, "sales").await;
    assert_eq!(hidden.replace("sales", "x"), requested(&stranger, "never was").await.replace("never was", "x"));
}

#[tokio::test(start_paused = true)]
async fn operator_sees_only_calls_of_own_tenant() {
    let host = Host::new(SnapshotBuilder::new().tool(Tool::new("work", "", until_cancelled())));
    let replies = [Some("north"), Some("south"), None].map(|tenant| {
        let caller = tenant_caller("ann", tenant, &[]);
        host.begin(called_by(&caller, tool_call("work")))
    });
    run_until_idle().await;
    let jobs = host.registry.jobs();
    let operator = tenant_caller("eve", Some("north"), &["operator"]);
    assert_eq!(jobs.list(&operator).len(), 1);
    assert!(jobs.get(&replies[1].job().id().to_string(), &operator).is_none());
    assert!(!jobs.cancel(replies[1].job().id(), &operator) && !jobs.cancel(replies[2].job().id(), &operator));
    assert_eq!((jobs.open_count_for(&operator), jobs.list(&tenant_caller("ann", Some("south"), &[])).len()), (1, 1));
    assert_eq!(jobs.list(&tenant_caller("eve", None, &["operator"])).len(), 1, "those of no tenant");
    assert_eq!(jobs.list(&process_user()).len(), 3, "who started the node sees it all");
    assert!(jobs.cancel(replies[0].job().id(), &operator));
}

#[tokio::test(start_paused = true)]
async fn ended_jobs_are_shared_between_tenants() {
    let limits = Limits { ended_jobs_max: 4, ..Limits::default() };
    let host = Host::with_limits(limits, SnapshotBuilder::new().tool(Tool::new("say", "", text_handler("a"))));
    let calls = async |caller: &Caller, count: usize| {
        for _ in 0..count {
            host.call_to_text(called_by(caller, tool_call("say"))).await;
        }
    };
    let (ann, bob, nobody) = (
        tenant_caller("ann", Some("north"), &[]),
        tenant_caller("bob", Some("south"), &[]),
        tenant_caller("cy", None, &[]),
    );
    let kept = || [&ann, &bob, &nobody].map(|caller| host.registry.jobs().list(caller).len());
    calls(&ann, 2).await;
    calls(&bob, 9).await;
    assert_eq!(kept(), [2, 2, 0]);
    let newest = host.registry.jobs().list(&bob)[0].id;
    calls(&bob, 1).await;
    let jobs = host.registry.jobs().list(&bob);
    assert!(jobs[0].id != newest && jobs[1].id == newest, "its own oldest goes");
    // The share of a tenant does not apply to callers without one.
    calls(&nobody, 3).await;
    assert_eq!(kept(), [0, 1, 3]);
    calls(&ann, 1).await;
    assert_eq!(kept(), [1, 0, 3]);
}
