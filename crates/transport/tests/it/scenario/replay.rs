//! Replays the steps over a channel, on connections that stay open between steps.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;

use serde_json::{Map, json};
use tidegate_runtime::Registry;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::channel::{Channel, Client};
use super::fixture::TestServer;
use super::outcome::StepResult;
use super::step::{CallAsk, Precondition, Step, StepRequest};
use crate::http::TEST_TIMEOUT;
use tidegate_testkit::wait::wait_until;

/// The user and the toolset of a connection.
type Place = (Option<String>, Option<String>);

/// A channel, its server, and the open connections.
pub(super) struct Replay {
    channel: Channel,
    pub(super) world: TestServer,
    clients: HashMap<Place, Box<dyn Client>>,
}

/// Replays all steps of `channel` and returns the result of each by its number.
pub(super) async fn replay(channel: Channel, steps: &[Step]) -> BTreeMap<usize, StepResult> {
    let mut replay = Replay::start(channel).await;
    let mut received = BTreeMap::new();
    for (number, step) in steps.iter().enumerate() {
        if !step.is_on(&channel) {
            continue;
        }
        let taken = timeout(TEST_TIMEOUT, replay.take(step)).await;
        received.insert(number, taken.unwrap_or_else(|_| panic!("{channel}: {} never ends", step.name)));
        assert_eq!(replay.world.server.open_calls(), 0, "{channel}: {} leaves a call behind", step.name);
    }
    received
}

impl Replay {
    pub(super) async fn start(channel: Channel) -> Self {
        Self { channel, world: TestServer::start().await, clients: HashMap::new() }
    }

    async fn take(&mut self, step: &Step) -> StepResult {
        let mut held = Vec::new();
        match &step.before {
            None => {}
            Some(Precondition::Revoked(person)) => self.world.revoke(person),
            Some(Precondition::Changing) => self.world.set_changing(true),
            Some(Precondition::Removed(tool)) => self.world.remove(tool),
            Some(Precondition::Open(people)) => {
                for (person, count) in people {
                    for _ in 0..count.as_u64().unwrap() {
                        held.push(hold(self.channel, &self.world, person).await);
                        until_open(self.world.server.host.service.registry(), held.len()).await;
                    }
                }
            }
        }
        let step_result = if step.is_ended { self.ask_and_end(step).await } else { self.ask_step(step).await };
        self.world.set_changing(false);
        self.world.end_calls();
        for call in held {
            call.await.unwrap();
        }
        step_result
    }

    async fn ask_step(&mut self, step: &Step) -> StepResult {
        self.ask(&step.by, &step.through, &step.ask).await
    }

    async fn ask_and_end(&mut self, step: &Step) -> StepResult {
        let registry = self.world.server.host.service.registry().clone();
        let hanging = self.world.hanging.clone();
        let hanging_before = hanging.load(Ordering::SeqCst);
        let ending = async {
            let has_sent_output = async || hanging.load(Ordering::SeqCst) != hanging_before;
            wait_until("the output of the call", has_sent_output).await;
            registry.jobs().cancel_all();
        };
        let (step_result, ()) = tokio::join!(self.ask_step(step), ending);
        step_result
    }

    /// The result of `ask` over the connection of `by`, which is opened if necessary.
    pub(super) async fn ask(&mut self, by: &Option<String>, through: &Option<String>, ask: &StepRequest) -> StepResult {
        let place = (by.clone(), through.clone());
        if !self.clients.contains_key(&place) {
            match self.channel.open(&self.world, by.as_deref(), through.as_deref()).await {
                Ok(client) => self.clients.insert(place.clone(), client),
                Err(step_result) => return step_result,
            };
        }
        let Some(client) = self.clients.get_mut(&place) else { panic!("there is no connection") };
        let step_result = client.ask(ask).await;
        if !client.is_open() {
            self.clients.remove(&place);
        }
        step_result
    }
}

/// Waits until `count` calls are open.
async fn until_open(registry: &Registry, count: usize) {
    wait_until("the open calls", async || registry.jobs().open_count() >= count).await;
}

/// A call of `person` that runs until it is ended, on its own connection.
async fn hold(channel: Channel, world: &TestServer, person: &str) -> JoinHandle<()> {
    let Ok(mut client) = channel.open(world, Some(person), None).await else { panic!("{person} is not let in") };
    let steps = Map::from_iter([("steps".to_owned(), json!([["cancelled"]]))]);
    let call = StepRequest::Call(CallAsk { arguments: steps, ..CallAsk::new("script".to_owned()) });
    tokio::spawn(async move {
        client.ask(&call).await;
    })
}
