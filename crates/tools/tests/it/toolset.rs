//! A tool that is called by `call_tool`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_core::{CallLimits, CallTarget, Limits};
use tidegate_runtime::{
    Answer, AnswerMeta, Call, Registry, ReplyPart, SnapshotBuilder, Tool, event::EventDispatcher, handler_fn,
};
use tidegate_tools::{DISCOVER_TOOLSET, register};

use crate::fake::{call, owner, services};

/// A registry with one call slot, and with a tool that sends text for its whole time limit of a minute.
fn registry() -> Arc<Registry> {
    let services = services([]);
    let talk = handler_fn(|_call| async {
        Ok(Answer::written(|reply| async move {
            while !reply.job().is_cancelled() {
                reply.send_text("again and again ").await?;
            }
            Ok(AnswerMeta::default())
        }))
    });
    let minute = CallLimits { timeout: Some(Duration::from_secs(60)), ..CallLimits::default() };
    let limits = Limits { running_calls_max: 1, ..Limits::default() };
    let entries = register(SnapshotBuilder::new(), &services);
    let entries = entries.tool(Tool::new("talk", "", talk).with_limits(minute)).limits(limits);
    let registry = Registry::new(entries.build(), EventDispatcher::default());
    services.attach(&registry);
    registry
}

/// A call through the toolset.
fn call_in_discover_toolset(registry: &Registry, arguments: Value) -> Call {
    let owner = owner();
    let toolset = registry.snapshot().toolset(DISCOVER_TOOLSET, &owner).cloned();
    Call { caller: owner.with_toolset(toolset), ..call(CallTarget::Tool("call_tool".to_owned()), arguments) }
}

#[tokio::test(start_paused = true)]
async fn stalled_reader_is_bounded_by_the_called_tools_timeout() {
    let registry = registry();
    let mut stalled = registry.call(call_in_discover_toolset(&registry, json!({"name": "talk"}))).unwrap();
    assert!(matches!(stalled.next().await, Some(ReplyPart::Text(_))));
    // Simulates a reader that stops, in paused time. Another call waits for the only slot until the time limit of the
    // stalled call.
    tokio::time::sleep(Duration::from_secs(30)).await;
    let mut next = registry.call(call(CallTarget::Tool("server_info".to_owned()), json!({}))).unwrap();
    while next.next().await.is_some() {}
    assert_eq!(next.job().status().state.name(), "done");
    let error = loop {
        match stalled.next().await {
            Some(ReplyPart::End(Err(error))) => break error,
            Some(ReplyPart::End(Ok(_))) | None => panic!("it was ended"),
            Some(_) => {}
        }
    };
    assert_eq!(error.kind().name(), "timed_out");
}
