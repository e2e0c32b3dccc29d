//! The number of concurrent calls of a principal, a tenant and a tool, and the order of waiting calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::{AuthMethod, CallLimits, CallTarget, Caller, Grants, LevelLimits, Limits, Principal, RateLimit};
use tidegate_runtime::{Answer, Call, JobState, Reply, SnapshotBuilder, Tool, handler_fn};

use crate::host::{Host, LOCAL, called_by, run_until_idle, tool_call, tool_with_text, until_cancelled};

fn calls(running: usize, waiting: usize) -> LevelLimits {
    LevelLimits { running_calls_max: Some(running), waiting_calls_max: Some(waiting), ..LevelLimits::default() }
}

fn host(limits: Limits) -> Host {
    let of_all = CallLimits { all_callers: calls(2, 1), ..CallLimits::default() };
    let tools = SnapshotBuilder::new()
        .tool(Tool::new("work", "", until_cancelled()))
        .tool(Tool::new("narrow", "", until_cancelled()).with_limits(of_all))
        .tool(tool_with_text("say", "a"));
    Host::with_limits(limits, tools)
}

fn key_caller(subject: &str, tenant: Option<&str>) -> Caller {
    caller_with_limits(subject, tenant, LevelLimits::default())
}

fn caller_with_limits(subject: &str, tenant: Option<&str>, limits: LevelLimits) -> Caller {
    let grants = Arc::new(Grants { limits, ..Grants::everything() });
    let principal = Principal { tenant: tenant.map(str::to_owned), ..Principal::new(subject, AuthMethod::Key, grants) };
    Caller::new(Arc::new(principal), LOCAL)
}

fn running_count(replies: &[Reply]) -> usize {
    replies.iter().filter(|reply| reply.job().status().state == JobState::Running).count()
}

#[tokio::test(start_paused = true)]
async fn tenant_is_limited_to_a_quarter_of_calls() {
    let host = host(Limits { running_calls_max: 8, open_calls_max: 24, ..Limits::default() }.with_default_shares());
    let begin = |caller: &Caller| host.registry.call(called_by(caller, tool_call("work")));
    let of_north: Vec<Reply> =
        (0..40).filter_map(|n| begin(&key_caller(&format!("somebody {n}"), Some("north"))).ok()).collect();
    run_until_idle().await;
    assert_eq!((of_north.len(), running_count(&of_north)), (6, 2), "of 8 that run and 16 that wait");
    let refused = begin(&key_caller("ann", Some("north"))).unwrap_err();
    insta::assert_snapshot!(refused, @"more than 6 of your tenant's calls are open; wait until one ends");
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(1)));
    for caller in [key_caller("ann", Some("south")), key_caller("ann", None)] {
        assert_eq!(host.call_to_text(called_by(&caller, tool_call("say"))).await, "block a\ndone {}", "at once");
    }
    assert!(host.recorder.lines().contains("limit of tenant: calls"));
}

#[tokio::test(start_paused = true)]
async fn full_tool_does_not_block_other_tools() {
    let host = host(Limits { running_calls_max: 3, ..Limits::default() });
    let ann = key_caller("ann", None);
    let narrow: Vec<Reply> = (0..3).map(|_| host.begin(called_by(&ann, tool_call("narrow")))).collect();
    run_until_idle().await;
    assert_eq!(running_count(&narrow), 2);
    assert_eq!(host.call_to_text(called_by(&ann, tool_call("say"))).await, "block a\ndone {}");
    insta::assert_snapshot!(
        host.call_to_text(called_by(&ann, tool_call("narrow"))).await,
        @"refused rate_limited: more than 3 of this tool's calls are open; wait until one ends"
    );
    drop(narrow);
    run_until_idle().await;
    assert_eq!(host.registry.jobs().open_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn waiting_principal_holds_no_tool_permit() {
    let host = host(Limits { per_principal: calls(1, 9), ..Limits::default() });
    let (ann, bob) = (key_caller("ann", None), key_caller("bob", None));
    let of_ann: Vec<Reply> = (0..2).map(|_| host.begin(called_by(&ann, tool_call("narrow")))).collect();
    run_until_idle().await;
    assert_eq!(running_count(&of_ann), 1);
    let of_bob = [host.begin(called_by(&bob, tool_call("narrow")))];
    run_until_idle().await;
    assert_eq!(running_count(&of_bob), 1);
}

#[tokio::test(start_paused = true)]
async fn nested_call_does_not_wait_for_tool() {
    let host = Arc::new(host(Limits { running_calls_max: 8, ..Limits::default() }));
    let calling = host.clone();
    let call_narrow = handler_fn(move |call| {
        let host = calling.clone();
        async move {
            let mut nested = Call::new(CallTarget::Tool("narrow".to_owned()), call.caller().clone());
            nested.cancellation = call.cancellation();
            nested.on_behalf_of = Some(call.job().clone());
            let mut called = host.registry.call(nested)?;
            while called.next().await.is_some() {}
            Ok(Answer::content(vec![]))
        }
    });
    let of_all = CallLimits { all_callers: calls(2, 1), ..CallLimits::default() };
    let tools = SnapshotBuilder::new()
        .tool(Tool::new("call", "", call_narrow))
        .tool(Tool::new("narrow", "", until_cancelled()).with_limits(of_all));
    host.registry.swap(tools.limits(Limits { running_calls_max: 8, ..Limits::default() }).build());
    let ann = key_caller("ann", None);
    let first: Vec<Reply> = (0..2).map(|_| host.begin(called_by(&ann, tool_call("call")))).collect();
    run_until_idle().await;
    let refused = host.call_to_text(called_by(&ann, tool_call("call"))).await;
    assert_eq!(refused, "failed rate_limited: more than 2 of this tool's calls are open; wait until one ends");
    let direct = [host.begin(called_by(&ann, tool_call("narrow")))];
    run_until_idle().await;
    assert_eq!(running_count(&direct), 0);
    drop(first);
    run_until_idle().await;
    assert_eq!(running_count(&direct), 1);
}

#[tokio::test(start_paused = true)]
async fn limits_follow_configuration() {
    let host = host(Limits { running_calls_max: 4, ..Limits::default() });
    let tools = || SnapshotBuilder::new().tool(Tool::new("work", "", until_cancelled()));
    let mut replies: Vec<Reply> = (0..4).map(|_| host.begin(tool_call("work"))).collect();
    run_until_idle().await;
    host.registry.swap(tools().limits(Limits { running_calls_max: 2, ..Limits::default() }).build());
    replies.extend((0..2).map(|_| host.begin(tool_call("work"))));
    run_until_idle().await;
    assert_eq!(running_count(&replies), 4, "those that run go on");
    replies.drain(..2);
    run_until_idle().await;
    replies.push(host.begin(tool_call("work")));
    run_until_idle().await;
    assert!(running_count(&replies) <= 4);
    host.registry.swap(tools().limits(Limits { running_calls_max: 9, ..Limits::default() }).build());
    replies.push(host.begin(tool_call("work")));
    run_until_idle().await;
    assert_eq!(running_count(&replies), replies.len());
}

/// A step of a principal: starts a call, or ends its oldest one.
#[derive(Debug, Clone, Copy)]
enum CallAction {
    Begin(usize, bool),
    End(usize),
}

fn acts() -> impl Strategy<Value = Vec<CallAction>> {
    let act = prop_oneof![
        3 => (0usize..6, any::<bool>()).prop_map(|(caller, narrow)| CallAction::Begin(caller, narrow)),
        2 => (0usize..6).prop_map(CallAction::End),
    ];
    prop::collection::vec(act, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// The law: no level ever runs more than it may, and a call waits only while some level that it belongs to is full.
    #[test]
    fn levels_never_exceed_limits_and_waiters_are_justified(acts in acts()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let limits = Limits {
                running_calls_max: 5,
                per_principal: calls(2, 3),
                per_tenant: calls(3, 9),
                ..Limits::default()
            };
            let host = host(limits);
            let callers: Vec<Caller> = (0..6).map(|n| key_caller(&format!("p{n}"), Some(["a", "b"][n % 2]))).collect();
            let mut open: Vec<(usize, bool, Reply)> = Vec::new();
            for act in acts {
                match act {
                    CallAction::Begin(caller, narrow) => {
                        let tool = if narrow { "narrow" } else { "work" };
                        let begun = host.registry.call(called_by(&callers[caller], tool_call(tool)));
                        open.extend(begun.ok().map(|reply| (caller, narrow, reply)));
                    }
                    CallAction::End(caller) => {
                        if let Some(index) = open.iter().position(|(other, ..)| *other == caller) {
                            drop(open.remove(index));
                        }
                    }
                }
                run_until_idle().await;
                let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
                let levels = |caller: usize, narrow: bool| {
                    let tool = narrow.then(|| ("tool".to_owned(), 2));
                    let names = [(format!("principal {caller}"), 2), (format!("tenant {}", caller % 2), 3), ("node".to_owned(), 5)];
                    names.into_iter().chain(tool)
                };
                for (caller, narrow, reply) in &open {
                    let runs = usize::from(reply.job().status().state == JobState::Running);
                    for (name, bound) in levels(*caller, *narrow) {
                        counts.entry(name).or_insert((0, bound)).0 += runs;
                    }
                }
                prop_assert!(counts.values().all(|(runs, bound)| runs <= bound), "{counts:?}");
                let is_full = |name: &String| counts.get(name).is_some_and(|(runs, bound)| runs == bound);
                for (caller, narrow, reply) in &open {
                    let waits = reply.job().status().state == JobState::Waiting;
                    // Its places are held by others who run, or by others who wait for a wider level that is full.
                    let is_held_up = counts.keys().any(is_full);
                    prop_assert!(!waits || is_held_up, "{caller} {narrow} waits in vain: {counts:?}");
                }
            }
            Ok(())
        })?;
    }
}

#[tokio::test(start_paused = true)]
async fn alternating_roles_use_larger_limit() {
    let host = host(Limits::default());
    let (few, many) = (caller_with_limits("ann", None, calls(1, 50)), caller_with_limits("ann", None, calls(3, 50)));
    let replies: Vec<Reply> = (0..12).map(|n| host.begin(called_by([&few, &many][n % 2], tool_call("work")))).collect();
    run_until_idle().await;
    assert_eq!(running_count(&replies), 3);
}

#[tokio::test(start_paused = true)]
async fn tool_queue_is_fair_between_holders() {
    for (greedy, polite) in [
        ([key_caller("ann", None), key_caller("ann", None)], key_caller("bob", None)),
        ([key_caller("ann", Some("north")), key_caller("amy", Some("north"))], key_caller("bob", Some("south"))),
        ([key_caller("ann", Some("north")), key_caller("amy", Some("north"))], key_caller("bob", None)),
    ] {
        let of_all = CallLimits { all_callers: calls(2, 60), ..CallLimits::default() };
        let narrow = Tool::new("narrow", "", until_cancelled()).with_limits(of_all);
        let host = Host::with_limits(Limits::default(), SnapshotBuilder::new().tool(narrow));
        let begin = |caller: &Caller| host.registry.call(called_by(caller, tool_call("narrow")));
        let mut begun: Vec<Reply> = (0..90).filter_map(|number| begin(&greedy[number % 2]).ok()).collect();
        assert_eq!(begun.len(), 32, "two that run and half of the line");
        run_until_idle().await;
        let last = begin(&polite).unwrap();
        // Two calls run and one waits before it.
        for _ in 0..2 {
            assert_eq!(last.job().status().state, JobState::Waiting);
            let runs = begun.iter().position(|reply| reply.job().status().state == JobState::Running).unwrap();
            drop(begun.swap_remove(runs));
            run_until_idle().await;
        }
        assert_eq!(last.job().status().state, JobState::Running);
    }
}

#[tokio::test(start_paused = true)]
async fn tool_rate_and_daily_limits_are_per_tenant() {
    let rate = RateLimit::per_second(1.0, 2);
    let of_all = CallLimits { all_callers: LevelLimits { rate, ..LevelLimits::default() }, ..CallLimits::default() };
    let say = tool_with_text("say", "a").with_limits(of_all);
    let host = Host::with_limits(Limits::default(), SnapshotBuilder::new().tool(say));
    let admitted = async |caller: &Caller| {
        let mut admitted = 0;
        for _ in 0..5 {
            admitted += usize::from(host.call_to_text(called_by(caller, tool_call("say"))).await.ends_with("done {}"));
        }
        admitted
    };
    let of_north = [key_caller("ann", Some("north")), key_caller("amy", Some("north"))];
    assert_eq!((admitted(&of_north[0]).await, admitted(&of_north[1]).await), (2, 0));
    assert_eq!((admitted(&key_caller("bob", Some("south"))).await, admitted(&key_caller("eve", None)).await), (2, 2));
}
