//! Calls on behalf of others: what the one behind asks, and when both become a task.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use tidegate_core::{
    Abilities, Call, Limits, Metadata, Outcome, ReplyEvent, Said, SnapshotBuilder, Target, Tool, handler_fn,
};

use crate::asking::{ALL, again, entries, live, name_form, named, one_place, question, required, taking_anything};
use crate::host::{Host, settle, told, tool_call, with_arguments};

/// Calls the tool that its argument names, on its own behalf, and hands on what that one asks.
fn calling(host: &Arc<Mutex<Option<Arc<Host>>>>) -> Tool {
    let host = host.clone();
    let handler = handler_fn(move |job, reply| {
        let host = host.lock().clone().unwrap();
        async move {
            let name = job.arguments()["name"].as_str().unwrap().to_owned();
            let mut call = Call::new(Target::Tool(name), job.caller().clone());
            call.abilities = job.abilities();
            call.answers = job.answers().clone();
            call.cancellation = job.cancellation();
            call.on_behalf_of = Some(job);
            let mut called = host.registry.call(call)?;
            loop {
                match called.next_said().await {
                    Some(Said::Asked(asked)) => reply.hand_on(asked).await?,
                    Some(Said::Event(ReplyEvent::Chunk(_))) => {}
                    Some(Said::Event(ReplyEvent::End(Outcome::Done(metadata)))) => return Ok(metadata),
                    Some(Said::Event(ReplyEvent::End(Outcome::Failed(error)))) => return Err(error),
                    None => return Ok(Metadata::new()),
                }
            }
        }
    });
    taking_anything("call", handler)
}

fn calling_host(limits: Limits, entries: SnapshotBuilder) -> Arc<Host> {
    let cell = Arc::new(Mutex::new(None));
    let host = Arc::new(Host::within(limits, entries.tool(calling(&cell))));
    *cell.lock() = Some(host.clone());
    host
}

#[tokio::test(start_paused = true)]
async fn a_call_on_behalf_of_another_asks_for_both() {
    let host = calling_host(one_place(), entries());
    let mut reply = host.begin(with_arguments(live("call"), json!({"name": "greet"})));
    let asked = question(&mut reply).await;
    settle().await;
    assert_eq!(host.ask(tool_call("say")).await, "text a\ndone {}", "neither holds a place");
    tokio::time::sleep(Duration::from_secs(590)).await;
    asked.answer.send(named("Ann")).unwrap();
    assert_eq!(told(reply).await, "done {}", "neither has lost time");
    assert_eq!(host.ask(tool_call("say")).await, "text a\ndone {}");
    let asked = required(&host, with_arguments(again("call", []), json!({"name": "greet"}))).await;
    assert_eq!(asked, [("who".to_owned(), name_form("Who?"))]);
}

/// Becomes a task if it can, asks, and then works for ten minutes.
fn long() -> Tool {
    let handler = handler_fn(|_, reply| async move {
        let can = reply.become_task();
        reply.ask_for("who", name_form("Who?")).await?;
        tokio::time::sleep(Duration::from_secs(600)).await;
        reply.text(format!("{can}")).await?;
        Ok(Metadata::new())
    });
    Tool::new("long", "", handler)
}

#[tokio::test(start_paused = true)]
async fn a_task_asks_live_and_keeps_the_time_of_tasks() {
    let host = calling_host(Limits::default(), entries().tool(long()));
    let tasks = Abilities { tasks: true, ..ALL };
    for call in [tool_call("long"), with_arguments(tool_call("call"), json!({"name": "long"}))] {
        let mut reply = host.begin(Call { abilities: tasks, ..call });
        let job = reply.job().clone();
        job.wants_to_be_task().await;
        let asked = question(&mut reply).await;
        settle().await;
        // The adapter notices only now, while the clock stands still.
        job.go_on_as_task();
        settle().await;
        tokio::time::sleep(Duration::from_secs(500)).await;
        asked.answer.send(named("Ann")).unwrap();
        let told = told(reply).await;
        assert!(told.ends_with("done {}"), "{told}");
    }
    // Whoever cannot come back for a task gets none, and is asked in its own way.
    assert_eq!(required(&host, again("long", [])).await.len(), 1);
}
