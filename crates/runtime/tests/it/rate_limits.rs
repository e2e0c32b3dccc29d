//! The rates of requests: no time span has more than the limit, for each caller and for all together.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::{
    AuthMethod, CallLimits, CallOrigin, Caller, Grants, LevelLimits, Limits, Principal, RateLimit, TransportKind,
};
use tidegate_runtime::SnapshotBuilder;
use tokio::time::Instant;

use crate::host::{Host, LOCAL, called_by, process_user, run_until_idle, tool_call, tool_with_text};

fn rate(each_second: f64, burst: u32) -> Option<RateLimit> {
    Some(RateLimit::per_second(each_second, burst).unwrap())
}

fn allowance_with_rate(each_second: f64, burst: u32) -> LevelLimits {
    LevelLimits { rate: rate(each_second, burst), ..LevelLimits::default() }
}

fn host(limits: Limits) -> Host {
    Host::with_limits(limits, SnapshotBuilder::new().tool(tool_with_text("say", "a")))
}

/// A caller with a key, whose roles have `limits`.
fn key_caller_with_limits(subject: &str, tenant: Option<&str>, limits: LevelLimits) -> Caller {
    let grants = Arc::new(Grants { limits, ..Grants::everything() });
    let principal = Principal { tenant: tenant.map(str::to_owned), ..Principal::new(subject, AuthMethod::Key, grants) };
    Caller::new(Arc::new(principal), LOCAL)
}

fn key(subject: &str) -> Caller {
    key_caller_with_limits(subject, None, LevelLimits::default())
}

fn anonymous(address: &str) -> Caller {
    let peer: IpAddr = address.parse().unwrap();
    Caller::new(Principal::anonymous(), CallOrigin { transport: TransportKind::Rest, peer: Some(peer) })
}

/// The number of admitted requests among `permit_count` concurrent ones.
fn count_admitted(host: &Host, caller: &Caller, count: usize) -> usize {
    (0..count).filter(|_| host.registry.count_request(caller).is_ok()).count()
}

#[tokio::test(start_paused = true)]
async fn principal_has_own_rate_and_gets_retry_after() {
    let host = host(Limits { per_principal: allowance_with_rate(10.0, 4), ..Limits::default() });
    let (ann, bob) = (key("ann"), key("bob"));
    assert_eq!((count_admitted(&host, &ann, 9), count_admitted(&host, &bob, 9)), (4, 4));
    let refused = host.registry.count_request(&ann).unwrap_err();
    insta::assert_snapshot!(refused, @"too many requests from you; try again in 0.1 s");
    let retry_after = refused.retry_after().unwrap();
    assert!(retry_after <= Duration::from_millis(100), "{retry_after:?}");
    tokio::time::advance(retry_after).await;
    assert_eq!(count_admitted(&host, &ann, 2), 1);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(count_admitted(&host, &ann, 9), 4, "what is not used is not saved up");
    assert_eq!(count_admitted(&host, &process_user(), 50), 50, "the node is that of who started it");
    assert!(host.recorder.lines().starts_with("limit of principal: requests"));
}

#[tokio::test(start_paused = true)]
async fn anonymous_callers_are_limited_by_address_and_network() {
    let host = host(Limits { per_principal: allowance_with_rate(1.0, 2), ..Limits::default() });
    assert_eq!(count_admitted(&host, &anonymous("192.0.2.1"), 5), 2);
    assert_eq!(count_admitted(&host, &anonymous("::ffff:192.0.2.1"), 5), 0);
    assert_eq!(count_admitted(&host, &anonymous("192.0.2.2"), 5), 2);
    assert_eq!(count_admitted(&host, &anonymous("2001:db8::1"), 5), 2);
    assert_eq!(count_admitted(&host, &anonymous("2001:db8::2"), 5), 0, "one who has an address has its network");
    assert_eq!(count_admitted(&host, &anonymous("2001:db8:0:1::2"), 5), 2);
}

#[tokio::test(start_paused = true)]
async fn tenant_and_node_rates_ignore_rejected_requests() {
    let limits = Limits {
        rate: rate(1.0, 10),
        per_tenant: allowance_with_rate(1.0, 6),
        per_principal: allowance_with_rate(1.0, 4),
        ..Limits::default()
    };
    let host = host(limits);
    let of = |subject, tenant| key_caller_with_limits(subject, Some(tenant), LevelLimits::default());
    assert_eq!(count_admitted(&host, &of("ann", "north"), 100), 4);
    assert_eq!(count_admitted(&host, &of("bob", "north"), 100), 2);
    assert_eq!(count_admitted(&host, &of("ann", "south"), 100), 4, "the same name, and somebody else");
    assert_eq!(count_admitted(&host, &key("eve"), 1), 0);
    let lines = host.recorder.lines();
    for message in ["limit of principal: requests", "limit of tenant: requests", "limit of node: requests"] {
        assert!(lines.contains(message), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn roles_override_default_rate() {
    let host = host(Limits { per_principal: allowance_with_rate(1.0, 4), ..Limits::default() });
    let (two, six) = (allowance_with_rate(1.0, 2), allowance_with_rate(1.0, 6));
    assert_eq!(count_admitted(&host, &key_caller_with_limits("ann", None, two), 9), 2);
    let both = Grants { limits: two, ..Grants::default() }.or(&Grants { limits: six, ..Grants::default() });
    assert_eq!(count_admitted(&host, &key_caller_with_limits("bob", None, both.limits), 9), 6, "the larger one");
    let silent = Grants { limits: two, ..Grants::default() }.or(&Grants::default());
    assert_eq!(silent.limits, two, "a role that says nothing takes nothing away and adds nothing");
    let local = Principal::new("local", AuthMethod::Process, Arc::new(Grants { limits: two, ..Grants::everything() }));
    assert_eq!(count_admitted(&host, &Caller::new(Arc::new(local), LOCAL), 9), 2, "of its roles alone");
}

#[tokio::test(start_paused = true)]
async fn alternating_roles_do_not_reset_burst() {
    let host = host(Limits::default());
    let (few, many) = (
        key_caller_with_limits("ann", None, allowance_with_rate(1.0, 5)),
        key_caller_with_limits("ann", None, allowance_with_rate(1.0, 10)),
    );
    let let_in: usize = (0..100).map(|_| count_admitted(&host, &many, 1) + count_admitted(&host, &few, 1)).sum();
    assert!(let_in <= 10, "{let_in}");
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(count_admitted(&host, &few, 20), 5);
}

#[tokio::test(start_paused = true)]
async fn tool_has_own_rate() {
    let of_all = allowance_with_rate(2.0, 2);
    let tool = tool_with_text("slow", "a").with_limits(CallLimits { all_callers: of_all, ..CallLimits::default() });
    let host = Host::new(SnapshotBuilder::new().tool(tool).tool(tool_with_text("say", "a")));
    for caller in [key("ann"), process_user()] {
        assert_eq!(host.call_to_text(called_by(&caller, tool_call("slow"))).await, "block a\ndone {}");
    }
    let refused = host.registry.call(called_by(&key("bob"), tool_call("slow"))).unwrap_err();
    insta::assert_snapshot!(refused, @"too many requests to this tool; try again in 0.5 s");
    assert_eq!(host.call_to_text(tool_call("say")).await, "block a\ndone {}");
    tokio::time::advance(Duration::from_millis(500)).await;
    run_until_idle().await;
    assert_eq!(host.call_to_text(tool_call("slow")).await, "block a\ndone {}");
}

#[tokio::test(start_paused = true)]
async fn many_callers_are_bounded_and_keep_spent_rate() {
    let host = host(Limits { per_principal: allowance_with_rate(0.01, 1), ..Limits::default() });
    let ann = key("ann");
    assert_eq!(count_admitted(&host, &ann, 2), 1);
    let let_in: usize = (0..70_000).map(|n| count_admitted(&host, &key(&format!("stranger {n}")), 1)).sum();
    assert!((65_535..=65_537).contains(&let_in), "{let_in}: those for whom there is no room share one");
    assert_eq!(count_admitted(&host, &ann, 1), 0);
    tokio::time::advance(Duration::from_secs(200)).await;
    assert_eq!(count_admitted(&host, &key("late"), 2), 1, "there is room again");
    assert_eq!(count_admitted(&host, &ann, 2), 1);
}

#[test]
fn a_rate_is_above_zero() {
    for (each_second, burst) in [(0.0, 1), (-1.0, 1), (f64::NAN, 1), (f64::INFINITY, 1), (1.0, 0), (1e10, 1)] {
        assert_eq!(RateLimit::per_second(each_second, burst), None, "{each_second} {burst}");
    }
    let slow = RateLimit::per_second(0.5, 3).unwrap();
    assert_eq!((slow.period(), slow.burst()), (Duration::from_secs(2), NonZeroU32::new(3).unwrap()));
}

/// The caller and the time of each request, in milliseconds.
fn requests() -> impl Strategy<Value = Vec<(u64, usize)>> {
    prop::collection::vec((0u64..400, 0usize..3), 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// In any time span, at most the burst and one for each whole period are admitted. A caller with fewer requests than
    /// its rate is never refused, whatever others do.
    #[test]
    fn rate_holds_in_any_time_span(requests in requests(), each_second in 1u32..20, burst in 1u32..6) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let period = Duration::from_secs_f64(1.0 / f64::from(each_second));
        let (message, polite_refused) = runtime.block_on(async {
            let host = host(Limits { per_principal: allowance_with_rate(each_second.into(), burst), ..Limits::default() });
            let callers = [key("ann"), key("bob"), key("cat")];
            let polite = key("polite");
            let mut message: [Vec<Instant>; 3] = Default::default();
            let (mut polite_at, mut polite_refused) = (Instant::now(), 0);
            for (wait_ms, caller) in requests {
                tokio::time::advance(Duration::from_millis(wait_ms)).await;
                for _ in 0..3 {
                    if host.registry.count_request(&callers[caller]).is_ok() {
                        message[caller].push(Instant::now());
                    }
                }
                if polite_at.elapsed() >= period + Duration::from_micros(1) {
                    polite_at = Instant::now();
                    polite_refused += usize::from(host.registry.count_request(&polite).is_err());
                }
            }
            (message, polite_refused)
        });
        prop_assert_eq!(polite_refused, 0);
        for message in &message {
            for (index, from) in message.iter().enumerate() {
                for (before, to) in message[index..].iter().enumerate() {
                    let periods = to.duration_since(*from).as_nanos() / period.as_nanos().max(1);
                    let allowed = u128::from(burst) + periods;
                    prop_assert!(allowed > before as u128, "more than {allowed} in {:?}", to.duration_since(*from));
                }
            }
        }
    }
}
