//! How often somebody may ask: never more than is said in any span of time, each for itself, and in all.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::{
    Allowance, CallLimits, Caller, Grants, Limits, Origin, Principal, Proof, Rate, SnapshotBuilder, TransportKind,
};
use tokio::time::Instant;

use crate::host::{Host, LOCAL, called_by, owner, settle, tool_call, tool_that_says};

fn rate(each_second: f64, burst: u32) -> Option<Rate> {
    Some(Rate::per_second(each_second, burst).unwrap())
}

fn of_rate(each_second: f64, burst: u32) -> Allowance {
    Allowance { rate: rate(each_second, burst), ..Allowance::default() }
}

fn host(limits: Limits) -> Host {
    Host::within(limits, SnapshotBuilder::new().tool(tool_that_says("say", "a")))
}

/// Somebody with a key, whose roles say `limits`.
fn somebody(subject: &str, tenant: Option<&str>, limits: Allowance) -> Caller {
    let grants = Arc::new(Grants { limits, ..Grants::everything() });
    let principal = Principal { tenant: tenant.map(str::to_owned), ..Principal::new(subject, Proof::Key, grants) };
    Caller::new(Arc::new(principal), LOCAL)
}

fn key(subject: &str) -> Caller {
    somebody(subject, None, Allowance::default())
}

fn anonymous(address: &str) -> Caller {
    let peer: IpAddr = address.parse().unwrap();
    Caller::new(Principal::anonymous(), Origin { transport: TransportKind::Rest, peer: Some(peer) })
}

/// How many of `count` requests at once are let in.
fn admitted(host: &Host, caller: &Caller, count: usize) -> usize {
    (0..count).filter(|_| host.registry.count_request(caller).is_ok()).count()
}

#[tokio::test(start_paused = true)]
async fn each_principal_has_a_rate_of_its_own_and_is_told_when_to_come_again() {
    let host = host(Limits { of_principal: of_rate(10.0, 4), ..Limits::default() });
    let (ann, bob) = (key("ann"), key("bob"));
    assert_eq!((admitted(&host, &ann, 9), admitted(&host, &bob, 9)), (4, 4));
    let refused = host.registry.count_request(&ann).unwrap_err();
    insta::assert_snapshot!(refused, @"too many requests of yours; try again in 0.1 s");
    let retry_after = refused.retry_after().unwrap();
    assert!(retry_after <= Duration::from_millis(100), "{retry_after:?}");
    tokio::time::advance(retry_after).await;
    assert_eq!(admitted(&host, &ann, 2), 1);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(admitted(&host, &ann, 9), 4, "what is not used is not saved up");
    assert_eq!(admitted(&host, &owner(), 50), 50, "the node is that of who started it");
    assert!(host.heard.lines().starts_with("limit of principal: requests"));
}

#[tokio::test(start_paused = true)]
async fn those_who_show_nothing_are_told_apart_by_address_and_network() {
    let host = host(Limits { of_principal: of_rate(1.0, 2), ..Limits::default() });
    assert_eq!(admitted(&host, &anonymous("192.0.2.1"), 5), 2);
    assert_eq!(admitted(&host, &anonymous("::ffff:192.0.2.1"), 5), 0);
    assert_eq!(admitted(&host, &anonymous("192.0.2.2"), 5), 2);
    assert_eq!(admitted(&host, &anonymous("2001:db8::1"), 5), 2);
    assert_eq!(admitted(&host, &anonymous("2001:db8::2"), 5), 0, "one who has an address has its network");
    assert_eq!(admitted(&host, &anonymous("2001:db8:0:1::2"), 5), 2);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_and_all_together_have_rates_too_and_who_is_refused_takes_nothing_of_them() {
    let limits =
        Limits { rate: rate(1.0, 10), of_tenant: of_rate(1.0, 6), of_principal: of_rate(1.0, 4), ..Limits::default() };
    let host = host(limits);
    let of = |subject, tenant| somebody(subject, Some(tenant), Allowance::default());
    assert_eq!(admitted(&host, &of("ann", "north"), 100), 4);
    assert_eq!(admitted(&host, &of("bob", "north"), 100), 2);
    assert_eq!(admitted(&host, &of("ann", "south"), 100), 4, "the same name, and somebody else");
    assert_eq!(admitted(&host, &key("eve"), 1), 0);
    let lines = host.heard.lines();
    for told in ["limit of principal: requests", "limit of tenant: requests", "limit of node: requests"] {
        assert!(lines.contains(told), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn roles_say_more_or_less_than_what_everybody_has() {
    let host = host(Limits { of_principal: of_rate(1.0, 4), ..Limits::default() });
    let (two, six) = (of_rate(1.0, 2), of_rate(1.0, 6));
    assert_eq!(admitted(&host, &somebody("ann", None, two), 9), 2);
    let both = Grants { limits: two, ..Grants::default() }.or(&Grants { limits: six, ..Grants::default() });
    assert_eq!(admitted(&host, &somebody("bob", None, both.limits), 9), 6, "the larger one");
    let silent = Grants { limits: two, ..Grants::default() }.or(&Grants::default());
    assert_eq!(silent.limits, two, "a role that says nothing takes nothing away and adds nothing");
    let local = Principal::new("local", Proof::Process, Arc::new(Grants { limits: two, ..Grants::everything() }));
    assert_eq!(admitted(&host, &Caller::new(Arc::new(local), LOCAL), 9), 2, "of its roles alone");
}

#[tokio::test(start_paused = true)]
async fn who_comes_with_other_roles_by_turns_gains_nothing() {
    let host = host(Limits::default());
    let (few, many) = (somebody("ann", None, of_rate(1.0, 5)), somebody("ann", None, of_rate(1.0, 10)));
    let let_in: usize = (0..100).map(|_| admitted(&host, &many, 1) + admitted(&host, &few, 1)).sum();
    assert!(let_in <= 10, "{let_in}");
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(admitted(&host, &few, 20), 5);
}

#[tokio::test(start_paused = true)]
async fn a_tool_has_a_rate_of_its_own_whoever_calls() {
    let of_all = of_rate(2.0, 2);
    let tool = tool_that_says("slow", "a").with_limits(CallLimits { of_all, ..CallLimits::default() });
    let host = Host::new(SnapshotBuilder::new().tool(tool).tool(tool_that_says("say", "a")));
    for caller in [key("ann"), owner()] {
        assert_eq!(host.ask(called_by(&caller, tool_call("slow"))).await, "text a\ndone {}");
    }
    let refused = host.registry.call(called_by(&key("bob"), tool_call("slow"))).unwrap_err();
    insta::assert_snapshot!(refused, @"too many requests to this tool; try again in 0.5 s");
    assert_eq!(host.ask(tool_call("say")).await, "text a\ndone {}");
    tokio::time::advance(Duration::from_millis(500)).await;
    settle().await;
    assert_eq!(host.ask(tool_call("slow")).await, "text a\ndone {}");
}

#[tokio::test(start_paused = true)]
async fn many_strangers_neither_fill_the_memory_nor_free_who_has_spent_its_own() {
    let host = host(Limits { of_principal: of_rate(0.01, 1), ..Limits::default() });
    let ann = key("ann");
    assert_eq!(admitted(&host, &ann, 2), 1);
    let let_in: usize = (0..70_000).map(|n| admitted(&host, &key(&format!("stranger {n}")), 1)).sum();
    assert!((65_535..=65_537).contains(&let_in), "{let_in}: those for whom there is no room share one");
    assert_eq!(admitted(&host, &ann, 1), 0);
    tokio::time::advance(Duration::from_secs(200)).await;
    assert_eq!(admitted(&host, &key("late"), 2), 1, "there is room again");
    assert_eq!(admitted(&host, &ann, 2), 1);
}

#[test]
fn a_rate_is_above_zero() {
    for (each_second, burst) in [(0.0, 1), (-1.0, 1), (f64::NAN, 1), (f64::INFINITY, 1), (1.0, 0), (1e10, 1)] {
        assert_eq!(Rate::per_second(each_second, burst), None, "{each_second} {burst}");
    }
    let slow = Rate::per_second(0.5, 3).unwrap();
    assert_eq!((slow.period(), slow.burst()), (Duration::from_secs(2), NonZeroU32::new(3).unwrap()));
}

/// Who asks at what time, in milliseconds.
fn requests() -> impl Strategy<Value = Vec<(u64, usize)>> {
    prop::collection::vec((0u64..400, 0usize..3), 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// The law: in any span of time no more than the burst and one for each whole period in it; and nobody who asks
    /// less often than its period is ever refused, whatever others do.
    #[test]
    fn no_span_of_time_has_more_than_is_allowed(requests in requests(), each_second in 1u32..20, burst in 1u32..6) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let period = Duration::from_secs_f64(1.0 / f64::from(each_second));
        let (told, polite_refused) = runtime.block_on(async {
            let host = host(Limits { of_principal: of_rate(each_second.into(), burst), ..Limits::default() });
            let callers = [key("ann"), key("bob"), key("cat")];
            let polite = key("polite");
            let mut told: [Vec<Instant>; 3] = Default::default();
            let (mut polite_at, mut polite_refused) = (Instant::now(), 0);
            for (wait_ms, who) in requests {
                tokio::time::advance(Duration::from_millis(wait_ms)).await;
                for _ in 0..3 {
                    if host.registry.count_request(&callers[who]).is_ok() {
                        told[who].push(Instant::now());
                    }
                }
                if polite_at.elapsed() >= period + Duration::from_micros(1) {
                    polite_at = Instant::now();
                    polite_refused += usize::from(host.registry.count_request(&polite).is_err());
                }
            }
            (told, polite_refused)
        });
        prop_assert_eq!(polite_refused, 0);
        for told in &told {
            for (index, from) in told.iter().enumerate() {
                for (before, to) in told[index..].iter().enumerate() {
                    let periods = to.duration_since(*from).as_nanos() / period.as_nanos().max(1);
                    let allowed = u128::from(burst) + periods;
                    prop_assert!(allowed > before as u128, "more than {allowed} in {:?}", to.duration_since(*from));
                }
            }
        }
    }
}
