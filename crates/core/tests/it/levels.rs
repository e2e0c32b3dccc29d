//! How many calls of a principal, a tenant and a tool run at once, who waits, and that nobody's fill is another's wait.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::{
    Allowance, Call, CallLimits, Caller, Grants, JobState, Limits, Principal, Proof, Rate, Reply, ReplyEvent,
    SnapshotBuilder, Target, Tool, handler_fn,
};

use crate::host::{Host, LOCAL, called_by, settle, tool_call, tool_that_says, until_cancelled};

fn calls(running: usize, waiting: usize) -> Allowance {
    Allowance { running_calls_max: Some(running), waiting_calls_max: Some(waiting), ..Allowance::default() }
}

fn host(limits: Limits) -> Host {
    let of_all = CallLimits { of_all: calls(2, 1), ..CallLimits::default() };
    let tools = SnapshotBuilder::new()
        .tool(Tool::new("work", "", until_cancelled()))
        .tool(Tool::new("narrow", "", until_cancelled()).with_limits(of_all))
        .tool(tool_that_says("say", "a"));
    Host::within(limits, tools)
}

fn of(subject: &str, tenant: Option<&str>) -> Caller {
    with_limits(subject, tenant, Allowance::default())
}

fn with_limits(subject: &str, tenant: Option<&str>, limits: Allowance) -> Caller {
    let grants = Arc::new(Grants { limits, ..Grants::everything() });
    let principal = Principal { tenant: tenant.map(str::to_owned), ..Principal::new(subject, Proof::Key, grants) };
    Caller::new(Arc::new(principal), LOCAL)
}

fn running(replies: &[Reply]) -> usize {
    replies.iter().filter(|reply| reply.job().status().state == JobState::Running).count()
}

#[tokio::test(start_paused = true)]
async fn a_tenant_has_a_quarter_of_the_calls_and_starves_nobody() {
    let host = host(Limits { running_calls_max: 8, open_calls_max: 24, ..Limits::default() }.shared());
    let begin = |caller: &Caller| host.registry.call(called_by(caller, tool_call("work")));
    let of_north: Vec<Reply> =
        (0..40).filter_map(|n| begin(&of(&format!("somebody {n}"), Some("north"))).ok()).collect();
    settle().await;
    assert_eq!((of_north.len(), running(&of_north)), (6, 2), "of 8 that run and 16 that wait");
    let refused = begin(&of("ann", Some("north"))).unwrap_err();
    insta::assert_snapshot!(refused, @"more than 6 of your tenant's calls are open; wait until one ends");
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(1)));
    for caller in [of("ann", Some("south")), of("ann", None)] {
        assert_eq!(host.ask(called_by(&caller, tool_call("say"))).await, "text a\ndone {}", "at once");
    }
    assert!(host.heard.lines().contains("limit of tenant: calls"));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_has_its_fill_keeps_no_other_call_waiting() {
    let host = host(Limits { running_calls_max: 3, ..Limits::default() });
    let ann = of("ann", None);
    let narrow: Vec<Reply> = (0..3).map(|_| host.begin(called_by(&ann, tool_call("narrow")))).collect();
    settle().await;
    assert_eq!(running(&narrow), 2);
    assert_eq!(host.ask(called_by(&ann, tool_call("say"))).await, "text a\ndone {}");
    insta::assert_snapshot!(
        host.ask(called_by(&ann, tool_call("narrow"))).await,
        @"refused rate_limited: more than 3 of this tool's calls are open; wait until one ends"
    );
    drop(narrow);
    settle().await;
    assert_eq!(host.registry.jobs().open_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_its_own_fill_holds_no_place_of_the_tool() {
    let host = host(Limits { of_principal: calls(1, 9), ..Limits::default() });
    let (ann, bob) = (of("ann", None), of("bob", None));
    let of_ann: Vec<Reply> = (0..2).map(|_| host.begin(called_by(&ann, tool_call("narrow")))).collect();
    settle().await;
    assert_eq!(running(&of_ann), 1);
    let of_bob = [host.begin(called_by(&bob, tool_call("narrow")))];
    settle().await;
    assert_eq!(running(&of_bob), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_on_behalf_of_another_waits_for_no_tool() {
    let host = Arc::new(host(Limits { running_calls_max: 8, ..Limits::default() }));
    let calling = host.clone();
    let call_narrow = handler_fn(move |job, _| {
        let host = calling.clone();
        async move {
            let mut call = Call::new(Target::Tool("narrow".to_owned()), job.caller().clone());
            call.cancellation = job.cancellation();
            call.on_behalf_of = Some(job);
            let mut called = host.registry.call(call)?;
            while let Some(ReplyEvent::Chunk(_)) = called.next().await {}
            Ok(Default::default())
        }
    });
    let of_all = CallLimits { of_all: calls(2, 1), ..CallLimits::default() };
    let tools = SnapshotBuilder::new()
        .tool(Tool::new("call", "", call_narrow))
        .tool(Tool::new("narrow", "", until_cancelled()).with_limits(of_all));
    host.registry.swap(tools.limits(Limits { running_calls_max: 8, ..Limits::default() }).build());
    let ann = of("ann", None);
    let first: Vec<Reply> = (0..2).map(|_| host.begin(called_by(&ann, tool_call("call")))).collect();
    settle().await;
    let refused = host.ask(called_by(&ann, tool_call("call"))).await;
    assert_eq!(refused, "failed rate_limited: more than 2 of this tool's calls are open; wait until one ends");
    let direct = [host.begin(called_by(&ann, tool_call("narrow")))];
    settle().await;
    assert_eq!(running(&direct), 0);
    drop(first);
    settle().await;
    assert_eq!(running(&direct), 1);
}

#[tokio::test(start_paused = true)]
async fn bounds_change_with_the_configuration() {
    let host = host(Limits { running_calls_max: 4, ..Limits::default() });
    let tools = || SnapshotBuilder::new().tool(Tool::new("work", "", until_cancelled()));
    let mut replies: Vec<Reply> = (0..4).map(|_| host.begin(tool_call("work"))).collect();
    settle().await;
    host.registry.swap(tools().limits(Limits { running_calls_max: 2, ..Limits::default() }).build());
    replies.extend((0..2).map(|_| host.begin(tool_call("work"))));
    settle().await;
    assert_eq!(running(&replies), 4, "those that run go on");
    replies.drain(..2);
    settle().await;
    replies.push(host.begin(tool_call("work")));
    settle().await;
    assert!(running(&replies) <= 4);
    host.registry.swap(tools().limits(Limits { running_calls_max: 9, ..Limits::default() }).build());
    replies.push(host.begin(tool_call("work")));
    settle().await;
    assert_eq!(running(&replies), replies.len());
}

/// What somebody does: begins a call, or ends its oldest one.
#[derive(Debug, Clone, Copy)]
enum Act {
    Begin(usize, bool),
    End(usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => (0usize..6, any::<bool>()).prop_map(|(who, narrow)| Act::Begin(who, narrow)),
        2 => (0usize..6).prop_map(Act::End),
    ];
    prop::collection::vec(act, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// The law: no level ever runs more than it may, and a call waits only while some level that it belongs to is full.
    #[test]
    fn no_level_runs_more_than_it_may_and_nobody_waits_in_vain(acts in acts()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let limits = Limits {
                running_calls_max: 5,
                of_principal: calls(2, 3),
                of_tenant: calls(3, 9),
                ..Limits::default()
            };
            let host = host(limits);
            let callers: Vec<Caller> = (0..6).map(|n| of(&format!("p{n}"), Some(["a", "b"][n % 2]))).collect();
            let mut open: Vec<(usize, bool, Reply)> = Vec::new();
            for act in acts {
                match act {
                    Act::Begin(who, narrow) => {
                        let tool = if narrow { "narrow" } else { "work" };
                        let begun = host.registry.call(called_by(&callers[who], tool_call(tool)));
                        open.extend(begun.ok().map(|reply| (who, narrow, reply)));
                    }
                    Act::End(who) => {
                        if let Some(index) = open.iter().position(|(other, ..)| *other == who) {
                            drop(open.remove(index));
                        }
                    }
                }
                settle().await;
                let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
                let levels = |who: usize, narrow: bool| {
                    let tool = narrow.then(|| ("tool".to_owned(), 2));
                    let names = [(format!("principal {who}"), 2), (format!("tenant {}", who % 2), 3), ("node".to_owned(), 5)];
                    names.into_iter().chain(tool)
                };
                for (who, narrow, reply) in &open {
                    let runs = usize::from(reply.job().status().state == JobState::Running);
                    for (name, bound) in levels(*who, *narrow) {
                        counts.entry(name).or_insert((0, bound)).0 += runs;
                    }
                }
                prop_assert!(counts.values().all(|(runs, bound)| runs <= bound), "{counts:?}");
                let is_full = |name: &String| counts.get(name).is_some_and(|(runs, bound)| runs == bound);
                for (who, narrow, reply) in &open {
                    let waits = reply.job().status().state == JobState::Waiting;
                    // Its places are held by others who run, or by others who wait for a wider level that is full.
                    let is_held_up = counts.keys().any(is_full);
                    prop_assert!(!waits || is_held_up, "{who} {narrow} waits in vain: {counts:?}");
                }
            }
            Ok(())
        })?;
    }
}

#[tokio::test(start_paused = true)]
async fn who_comes_with_other_roles_by_turns_runs_no_more_than_the_larger_says() {
    let host = host(Limits::default());
    let (few, many) = (with_limits("ann", None, calls(1, 50)), with_limits("ann", None, calls(3, 50)));
    let replies: Vec<Reply> = (0..12).map(|n| host.begin(called_by([&few, &many][n % 2], tool_call("work")))).collect();
    settle().await;
    assert_eq!(running(&replies), 3);
}

#[tokio::test(start_paused = true)]
async fn in_the_line_of_a_tool_holders_take_turns() {
    for (greedy, polite) in [
        ([of("ann", None), of("ann", None)], of("bob", None)),
        ([of("ann", Some("north")), of("amy", Some("north"))], of("bob", Some("south"))),
        ([of("ann", Some("north")), of("amy", Some("north"))], of("bob", None)),
    ] {
        let of_all = CallLimits { of_all: calls(2, 60), ..CallLimits::default() };
        let narrow = Tool::new("narrow", "", until_cancelled()).with_limits(of_all);
        let host = Host::within(Limits::default(), SnapshotBuilder::new().tool(narrow));
        let begin = |caller: &Caller| host.registry.call(called_by(caller, tool_call("narrow")));
        let mut begun: Vec<Reply> = (0..90).filter_map(|number| begin(&greedy[number % 2]).ok()).collect();
        assert_eq!(begun.len(), 32, "two that run and half of the line");
        settle().await;
        let last = begin(&polite).unwrap();
        // Two run and one stands before it.
        for _ in 0..2 {
            assert_eq!(last.job().status().state, JobState::Waiting);
            let runs = begun.iter().position(|reply| reply.job().status().state == JobState::Running).unwrap();
            drop(begun.swap_remove(runs));
            settle().await;
        }
        assert_eq!(last.job().status().state, JobState::Running);
    }
}

#[tokio::test(start_paused = true)]
async fn the_rate_and_the_day_of_a_tool_are_each_tenants_own() {
    let rate = Rate::per_second(1.0, 2);
    let of_all = CallLimits { of_all: Allowance { rate, ..Allowance::default() }, ..CallLimits::default() };
    let say = tool_that_says("say", "a").with_limits(of_all);
    let host = Host::within(Limits::default(), SnapshotBuilder::new().tool(say));
    let admitted = async |caller: &Caller| {
        let mut admitted = 0;
        for _ in 0..5 {
            admitted += usize::from(host.ask(called_by(caller, tool_call("say"))).await.ends_with("done {}"));
        }
        admitted
    };
    let of_north = [of("ann", Some("north")), of("amy", Some("north"))];
    assert_eq!((admitted(&of_north[0]).await, admitted(&of_north[1]).await), (2, 0));
    assert_eq!((admitted(&of("bob", Some("south"))).await, admitted(&of("eve", None)).await), (2, 2));
}
