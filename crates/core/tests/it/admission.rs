//! How many calls run, wait and are refused, and what the list of jobs shows.

use std::time::Duration;

use tidegate_core::{CallLimits, Caller, JobState, Limits, Reply, SnapshotBuilder, Tool};

use crate::host::{Host, called_by, settle, somebody, told, tool_call, tool_that_says, until_cancelled};

fn host(running_calls_max: usize, open_calls_max: usize) -> Host {
    let limits = Limits { running_calls_max, open_calls_max, ended_jobs_kept: 3, ..Limits::default() };
    let hour = CallLimits { timeout: Some(Duration::from_secs(3_600)), inline: None };
    let tools = SnapshotBuilder::new()
        .tool(Tool::new("work", "", until_cancelled()))
        .tool(Tool::new("endless", "", until_cancelled()).with_limits(hour))
        .tool(tool_that_says("say", "a"));
    Host::within(limits, tools)
}

fn states(replies: &[Reply]) -> Vec<JobState> {
    replies.iter().map(|reply| reply.job().status().state).collect()
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_bound_wait_for_a_place() {
    use JobState::{Running, Waiting};
    let host = host(2, 10);
    let mut replies: Vec<Reply> = (0..4).map(|_| host.begin(tool_call("work"))).collect();
    settle().await;
    assert_eq!(states(&replies), [Running, Running, Waiting, Waiting]);
    replies[0].job().cancel();
    settle().await;
    assert_eq!(states(&replies), [JobState::Done, Running, Running, Waiting]);
    // A waiting call that nobody wants any more gives up its turn.
    drop(replies.remove(3));
    settle().await;
    assert_eq!(host.registry.jobs().open_count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_may_wait_no_longer_than_it_may_run() {
    let host = host(1, 10);
    let _endless = host.begin(tool_call("endless"));
    let waiting = host.begin(tool_call("say"));
    assert!(told(waiting).await.starts_with("failed timed_out: the call was ended after 60.0 s"));
    assert_eq!(host.registry.jobs().open_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_second_bound_are_refused_until_one_ends() {
    let host = host(1, 2);
    let first = host.begin(tool_call("work"));
    let _second = host.begin(tool_call("work"));
    settle().await;
    insta::assert_snapshot!(host.ask(tool_call("say")).await, @"refused rate_limited: more than 2 calls are open; try again later");
    drop(first);
    settle().await;
    let third = host.begin(tool_call("say"));
    assert_eq!(host.registry.jobs().open_count(), 2);
    drop(third);
    insta::assert_snapshot!(host.heard.lines(), @r"
    started tool work
    started tool work
    refused tool say: rate_limited
    ended tool work: done
    ");
}

#[tokio::test(start_paused = true)]
async fn the_list_shows_ones_own_jobs_and_the_last_that_ended() {
    let host = host(10, 10);
    let (ann, bob) = (somebody("ann", &[]), somebody("bob", &[]));
    for _ in 0..5 {
        host.ask(called_by(&ann, tool_call("say"))).await;
    }
    let reply = host.begin(called_by(&ann, tool_call("work")));
    settle().await;
    let list = |caller: &Caller| {
        let jobs = host.registry.jobs().list(&caller.principal);
        jobs.iter().map(|job| (job.state, job.target.1.clone(), job.bytes)).collect::<Vec<_>>()
    };
    let ended = (JobState::Done, "say".to_owned(), 1);
    assert_eq!(list(&ann).len(), 4);
    assert!(list(&ann).contains(&(JobState::Running, "work".to_owned(), 0)));
    assert_eq!(list(&ann).iter().filter(|job| **job == ended).count(), 3);
    assert_eq!(list(&bob), []);
    assert_eq!(list(&somebody("eve", &["operator"])).len(), 4, "an operator sees everybody's");
    drop(reply);
}
