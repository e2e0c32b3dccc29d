//! How many calls run, wait and are refused, and what the list of jobs shows.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;
use tidegate_core::{
    AuthMethod, CallLimits, CallOrigin, Caller, Error, ErrorKind, Grants, Limits, Principal, TransportKind,
};
use tidegate_runtime::{JobState, Reply, Resource, ResourceLister, SnapshotBuilder, Tool};

use crate::host::{
    Host, LOCAL, called_by, caller_with_access, process_user, reply_text, run_until_idle, tool_call, tool_with_text,
    until_cancelled,
};

fn host(running_calls_max: usize, open_calls_max: usize) -> Host {
    let limits = Limits { running_calls_max, open_calls_max, ended_jobs_max: 3, ..Limits::default() };
    let hour = CallLimits { timeout: Some(Duration::from_secs(3_600)), ..CallLimits::default() };
    let tools = SnapshotBuilder::new()
        .tool(Tool::new("work", "", until_cancelled()))
        .tool(Tool::new("endless", "", until_cancelled()).with_limits(hour))
        .tool(tool_with_text("say", "a"));
    Host::with_limits(limits, tools)
}

fn states(replies: &[Reply]) -> Vec<JobState> {
    replies.iter().map(|reply| reply.job().status().state).collect()
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_running_limit_wait() {
    use JobState::{Running, Waiting};
    let host = host(2, 10);
    let mut replies: Vec<Reply> = (0..4).map(|_| host.begin(tool_call("work"))).collect();
    run_until_idle().await;
    assert_eq!(states(&replies), [Running, Running, Waiting, Waiting]);
    replies[0].job().cancel();
    run_until_idle().await;
    assert_eq!(states(&replies), [JobState::Done, Running, Running, Waiting]);
    // A waiting call that is cancelled leaves the queue.
    drop(replies.remove(3));
    run_until_idle().await;
    assert_eq!(host.registry.jobs().open_count(), 2);
}

#[tokio::test(start_paused = true)]
async fn one_job_is_found_by_its_id_while_it_runs_and_after_it() {
    let host = host(2, 10);
    let reply = host.begin(tool_call("work"));
    run_until_idle().await;
    let (id, jobs) = (reply.job().id(), host.registry.jobs().clone());
    let (owner, stranger) = (reply.job().caller().clone(), caller_with_access("stranger", &[]));
    let state = |caller: &Caller| jobs.get(&id.to_string(), caller).map(|job| job.state);
    assert_eq!((state(&owner), state(&stranger)), (Some(JobState::Running), None));
    drop(reply);
    run_until_idle().await;
    assert_eq!((state(&owner).map(JobState::has_ended), state(&stranger)), (Some(true), None));
}

#[tokio::test(start_paused = true)]
async fn a_call_may_wait_no_longer_than_it_may_run() {
    let host = host(1, 10);
    let _endless = host.begin(tool_call("endless"));
    let waiting = host.begin(tool_call("say"));
    assert!(reply_text(waiting).await.starts_with("failed timed_out: the call exceeded its time limit of 60.0 s"));
    assert_eq!(host.registry.jobs().open_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn rejects_calls_beyond_open_limit() {
    let host = host(1, 2);
    let first = host.begin(tool_call("work"));
    let _second = host.begin(tool_call("work"));
    run_until_idle().await;
    insta::assert_snapshot!(host.call_to_text(tool_call("say")).await, @"refused rate_limited: more than 2 calls are open; try again later");
    drop(first);
    run_until_idle().await;
    let third = host.begin(tool_call("say"));
    assert_eq!(host.registry.jobs().open_count(), 2);
    drop(third);
    insta::assert_snapshot!(host.recorder.lines(), @r"
    started tool work
    started tool work
    limit of node: calls
    refused tool say: rate_limited
    ended tool work: done
    ");
}

#[tokio::test(start_paused = true)]
async fn list_shows_own_jobs_and_recently_ended() {
    let host = host(10, 10);
    let (ann, bob) = (caller_with_access("ann", &[]), caller_with_access("bob", &[]));
    for _ in 0..5 {
        host.call_to_text(called_by(&ann, tool_call("say"))).await;
    }
    let reply = host.begin(called_by(&ann, tool_call("work")));
    run_until_idle().await;
    let list = |caller: &Caller| {
        let jobs = host.registry.jobs().list(caller);
        jobs.iter().map(|job| (job.state, job.target.1.clone(), job.bytes)).collect::<Vec<_>>()
    };
    let ended = (JobState::Done, "say".to_owned(), 1);
    assert_eq!(list(&ann).len(), 4);
    assert!(list(&ann).contains(&(JobState::Running, "work".to_owned(), 0)));
    assert_eq!(list(&ann).iter().filter(|job| **job == ended).count(), 3);
    assert_eq!(list(&bob), []);
    assert_eq!(list(&caller_with_access("eve", &["operator"])).len(), 4, "an operator sees everybody's");
    drop(reply);
}

/// A caller with a key.
fn key_caller(subject: &str) -> Caller {
    let principal = Principal::new(subject, AuthMethod::Key, Arc::new(Grants::everything()));
    Caller::new(Arc::new(principal), LOCAL)
}

#[tokio::test(start_paused = true)]
async fn principal_is_limited_to_its_share() {
    use JobState::{Running, Waiting};
    let limits = Limits { running_calls_max: 8, open_calls_max: 16, ..Limits::default() }.with_default_shares();
    let tools = SnapshotBuilder::new().tool(Tool::new("work", "", until_cancelled())).tool(tool_with_text("say", "a"));
    let host = Host::with_limits(limits, tools);
    let (ann, bob) = (key_caller("ann"), key_caller("bob"));
    let mut of_ann: Vec<Reply> = (0..4).map(|_| host.begin(called_by(&ann, tool_call("work")))).collect();
    run_until_idle().await;
    assert_eq!(states(&of_ann), [Running, Running, Waiting, Waiting], "a quarter of the places");
    let refused = host.call_to_text(called_by(&ann, tool_call("say"))).await;
    assert_eq!(refused, "refused rate_limited: more than 4 of your calls are open; wait until one ends");
    assert_eq!(host.call_to_text(called_by(&bob, tool_call("say"))).await, "block a\ndone {}");
    // The user of the process has no bound of its own.
    let of_owner: Vec<Reply> = (0..6).map(|_| host.begin(tool_call("work"))).collect();
    run_until_idle().await;
    assert!(states(&of_owner).iter().all(|state| *state == Running));
    drop(of_ann.remove(0));
    run_until_idle().await;
    assert_eq!(states(&of_ann), [Running, Running, Waiting]);
    let next = host.begin(called_by(&ann, tool_call("say")));
    drop((of_ann, of_owner));
    assert_eq!(reply_text(next).await, "block a\ndone {}");
}

#[tokio::test(start_paused = true)]
async fn anonymous_callers_are_limited_by_address() {
    let host = host(10, 10);
    let at = |peer: &str| {
        let origin = CallOrigin { transport: TransportKind::StreamableHttp, peer: Some(peer.parse().unwrap()) };
        Caller::new(Principal::anonymous(), origin)
    };
    let (one, same, other) = (at("192.0.2.1"), at("::ffff:192.0.2.1"), at("192.0.2.2"));
    let reply = host.begin(called_by(&one, tool_call("work")));
    run_until_idle().await;
    let (jobs, id) = (host.registry.jobs(), reply.job().id());
    assert!(jobs.list(&other).is_empty());
    assert!(!jobs.cancel(id, &other));
    assert_eq!(jobs.list(&same).len(), 1);
    assert!(jobs.cancel(id, &same));
}

/// Lists nothing, when it comes to it.
struct EmptyLister;

#[async_trait]
impl ResourceLister for EmptyLister {
    async fn list(&self, _: &Principal) -> Result<Vec<Resource>, Error> {
        Ok(Vec::new())
    }
}

#[tokio::test(start_paused = true)]
async fn listing_resources_needs_a_permit() {
    let host = host(1, 10);
    assert!(host.registry.list_resources(&EmptyLister, &process_user()).await.is_ok());
    let busy = host.begin(tool_call("endless"));
    run_until_idle().await;
    let late = host.registry.list_resources(&EmptyLister, &process_user()).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::TimedOut);
    drop(busy);
    assert!(host.registry.list_resources(&EmptyLister, &process_user()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn waiting_listings_are_bounded() {
    let host = host(1, 10);
    let busy = host.begin(tool_call("endless"));
    run_until_idle().await;
    let caller = process_user();
    let mut waiting: Vec<_> = (0..10).map(|_| Box::pin(host.registry.list_resources(&EmptyLister, &caller))).collect();
    for listed in &mut waiting {
        assert!(listed.now_or_never().is_none());
    }
    let refused = host.registry.list_resources(&EmptyLister, &caller).await.unwrap_err();
    assert_eq!(refused.to_string(), "more than 10 calls are open; try again later");
    // Waiting calls get permits when there are some, and permits of ended calls are free.
    drop(busy);
    for listed in waiting {
        assert!(listed.await.is_ok());
    }
    assert!(host.registry.list_resources(&EmptyLister, &caller).await.is_ok());
}
