//! One scenario, replayed over every transport: the same requests have the same results, apart from the envelope.
//!
//! - `scenario.json`: the steps: caller, request, precondition, and the expected answer or refusal.
//! - `step`: a step of the file, and the transports that support it.
//! - `outcome`: the result of a step, without its envelope.
//! - `fixture`: the server of a replay, its users and their access.
//! - `channel`: the transports in each era that they support; `wire`: how each transmits an MCP message.
//! - `mcp`, `rest`: from a step to a request, and from its answer to an outcome.
//! - `replay`: all steps over one channel; `comparison`: which channels differ, and how.

mod channel;
mod comparison;
mod fixture;
mod mcp;
mod outcome;
mod replay;
mod rest;
mod step;
mod wire;

use std::collections::BTreeSet;

use futures::future::join_all;
use serde_json::{Map, Value};
use tidegate_runtime::Snapshot;

use self::channel::{Channel, Transport};
use self::comparison::differences;
use self::outcome::Outcome;
use self::replay::{Replay, replay};
use self::step::{CallAsk, List, ListAsk, PromptAsk, Step, StepRequest};

/// The minimum number of refusals that all five transports must share.
const SHARED_REFUSALS_MIN: usize = 30;

#[tokio::test(flavor = "multi_thread")]
async fn every_step_agrees_on_every_transport() {
    let steps = Step::all();
    let replays = join_all(Channel::all().map(|channel| tokio::spawn(replay(channel, steps)))).await;
    let replays: Vec<_> = replays.into_iter().map(Result::unwrap).collect();
    for (channel, received) in Channel::all().iter().zip(&replays) {
        let ran: BTreeSet<usize> = received.keys().copied().collect();
        let due: BTreeSet<usize> = (0..steps.len()).filter(|step| steps[*step].is_on(channel)).collect();
        assert_eq!(ran, due, "{channel} was not taken through each of its steps");
    }
    let message = differences(steps, &Channel::all(), &replays);
    assert!(message.is_empty(), "{message}");
}

#[test]
fn the_scenario_asks_enough_of_every_transport() {
    let steps = Step::all();
    let names: BTreeSet<&str> = steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names.len(), steps.len(), "two steps have one name");
    let on = |transport| steps.iter().filter(move |step| Channel::of(transport).any(|channel| step.is_on(&channel)));
    let shared = steps.iter().filter(|step| step.is_refused_alike());
    let shared = shared.filter(|step| Channel::all().iter().all(|channel| step.is_on(channel))).count();
    assert!(shared >= SHARED_REFUSALS_MIN, "all transports share no more than {shared} refusals");
    for transport in Transport::ALL {
        let refusals = on(transport).filter(|step| step.is_refused_alike()).count();
        assert!(refusals > SHARED_REFUSALS_MIN, "{transport:?} has no more than {refusals} refusals");
        assert!(on(transport).count() - refusals >= 15, "{transport:?} has too few answers");
    }
    for step in steps {
        assert!(step.answered.is_some() != step.refused.is_some(), "{}: answered or refused", step.name);
        let is_partial = step.on.is_some() || step.since.is_some() || step.until.is_some() || step.differs();
        assert_eq!(is_partial, step.because.is_some(), "{}: a step says why it is not the same everywhere", step.name);
        let known = |name: &String| Transport::ALL.iter().any(|transport| transport.name() == name);
        assert!(step.on.iter().flatten().all(known), "{}: there is no such transport", step.name);
        assert!(Channel::all().iter().any(|channel| step.is_on(channel)), "{} is never taken", step.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_agree_with_calls_on_every_channel() {
    let checks = Channel::all().map(|channel| tokio::spawn(lists_agree_with_calls(channel)));
    for checked in join_all(checks).await {
        checked.unwrap();
    }
}

async fn lists_agree_with_calls(channel: Channel) {
    let mut replay = Replay::start(channel).await;
    let snapshot = replay.world.snapshot();
    for person in fixture::PEOPLE {
        let by = Some(person.to_owned());
        for list in [List::Tools, List::Prompts, List::Resources] {
            if channel.transport == Transport::Rest && list != List::Tools {
                continue;
            }
            let Outcome::Answered(listed) = replay.ask(&by, &None, &list_of(list)).await.outcome else {
                panic!("{channel}: {person} may not list");
            };
            let listed: BTreeSet<String> =
                listed.as_array().unwrap().iter().map(|entry| list.key_of(entry).to_owned()).collect();
            let mut reached = BTreeSet::new();
            for (name, ask) in entries(&snapshot, list) {
                let step_result = replay.ask(&by, &None, &ask).await;
                if !step_result.outcome.is_refused_as("not_found") {
                    reached.insert(name);
                }
            }
            assert_eq!(listed, reached, "{channel}: {person}'s {list:?}");
        }
    }
}

fn list_of(list: List) -> StepRequest {
    StepRequest::List(ListAsk { of: list, cursor: None })
}

/// Every entry of this kind for every caller, and a call of it that fails because of its arguments.
fn entries(snapshot: &Snapshot, list: List) -> Vec<(String, StepRequest)> {
    let of = |kind| snapshot.entries().filter(move |entry| entry.kind == kind).map(|entry| entry.name.to_owned());
    let arguments = Map::from_iter([("no such argument".to_owned(), Value::Null)]);
    let call = |tool| StepRequest::Call(CallAsk { tool, arguments: arguments.clone(), progress: false });
    let prompt = |name| StepRequest::Prompt(PromptAsk { name, arguments: arguments.clone() });
    match list {
        List::Tools => of("tool").map(|name| (name.clone(), call(name))).collect(),
        List::Prompts => of("prompt").map(|name| (name.clone(), prompt(name))).collect(),
        List::Resources => fixture::URIS.map(|uri| (uri.to_owned(), StepRequest::Read(uri.to_owned()))).into(),
        List::Templates => Vec::new(),
    }
}
