//! A tool that is called by `call_tool`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_core::event::Events;
use tidegate_core::{
    Call, CallLimits, Limits, Metadata, Outcome, Registry, ReplyEvent, SnapshotBuilder, Target, Tool, handler_fn,
};
use tidegate_tools::{DISCOVER, register};

use crate::fake::{call, owner, view};

/// A registry with one place, and with a tool that talks without an end for as long as it may: a minute.
fn registry() -> Arc<Registry> {
    let view = view([]);
    let talk = handler_fn(|job, reply| async move {
        while !job.is_cancelled() {
            reply.text("again and again ").await?;
        }
        Ok(Metadata::new())
    });
    let minute = CallLimits { timeout: Some(Duration::from_secs(60)), ..CallLimits::default() };
    let limits = Limits { running_calls_max: 1, ..Limits::default() };
    let entries = register(SnapshotBuilder::new(), &view);
    let entries = entries.tool(Tool::new("talk", "", talk).with_limits(minute)).limits(limits);
    let registry = Registry::new(entries.build(), Events::default());
    view.attach(&registry);
    registry
}

/// A call through the door of the toolset.
fn discovering(registry: &Registry, arguments: Value) -> Call {
    let owner = owner();
    let toolset = registry.snapshot().toolset(DISCOVER, &owner).cloned();
    Call { caller: owner.through(toolset), ..call(Target::Tool("call_tool".to_owned()), arguments) }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stalls_holds_a_place_no_longer_than_the_called_tool_may_run() {
    let registry = registry();
    let mut stalled = registry.call(discovering(&registry, json!({"name": "talk"}))).unwrap();
    assert!(matches!(stalled.next().await, Some(ReplyEvent::Chunk(_))));
    // Nobody reads on, and another call waits for the only place: a little longer than it may wait itself.
    tokio::time::sleep(Duration::from_secs(30)).await;
    let next = registry.call(call(Target::Tool("server_info".to_owned()), json!({}))).unwrap();
    tokio::time::sleep(Duration::from_secs(35)).await;
    assert_eq!(next.job().status().state.name(), "done");
    let error = loop {
        match stalled.next().await {
            Some(ReplyEvent::End(Outcome::Failed(error))) => break error,
            Some(ReplyEvent::End(Outcome::Done(_))) | None => panic!("it was ended"),
            Some(ReplyEvent::Chunk(_)) => {}
        }
    };
    assert_eq!(error.kind().name(), "timed_out");
}
