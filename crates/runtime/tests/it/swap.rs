//! A new state while calls run.

use std::sync::Arc;

use tidegate_core::{AuthMethod, Caller, Grants, Principal};
use tidegate_runtime::{Answer, SnapshotBuilder, Tool, handler_fn};
use tokio_util::sync::CancellationToken;

use crate::host::{Host, LOCAL, called_by, process_user, reply_text, run_until_idle, tool_call, tool_with_text};

#[tokio::test(start_paused = true)]
async fn running_calls_keep_the_state_they_began_with() {
    let cancellation_token = CancellationToken::new();
    let opened = cancellation_token.clone();
    let old = Tool::new(
        "version",
        "",
        handler_fn(move |_| {
            let opened = opened.clone();
            async move {
                opened.cancelled().await;
                Ok(Answer::text("old"))
            }
        }),
    );
    let host = Host::new(SnapshotBuilder::new().tool(old));
    let (kept, running) = (host.registry.snapshot(), host.begin(tool_call("version")));
    run_until_idle().await;
    host.registry.swap(SnapshotBuilder::new().tool(tool_with_text("version", "new")).build());
    assert_eq!(host.call_to_text(tool_call("version")).await, "block new\ndone {}");
    cancellation_token.cancel();
    assert_eq!(reply_text(running).await, "block old\ndone {}");
    assert_eq!((kept.version(), host.registry.snapshot().version()), (1, 2));
}

#[tokio::test]
async fn each_new_version_is_announced() {
    let host = Host::new(SnapshotBuilder::new());
    let mut versions = host.registry.versions();
    assert!(!versions.has_changed().unwrap());
    host.registry.swap(SnapshotBuilder::new().tool(tool_with_text("a", "")).build());
    versions.changed().await.unwrap();
    assert_eq!(*versions.borrow_and_update(), 2);
    assert_eq!(host.registry.snapshot().version(), 2, "who hears of a version finds it");
    host.registry.swap(SnapshotBuilder::new().build());
    host.registry.swap(SnapshotBuilder::new().build());
    versions.changed().await.unwrap();
    assert_eq!(*versions.borrow_and_update(), 4);
    insta::assert_snapshot!(host.recorder.lines(), @r"
    registry 2
    registry 3
    registry 4
    ");
}

#[test]
fn tools_are_listed_in_the_order_they_were_added_and_the_last_of_a_name_wins() {
    let titled = |name: &str, title: &str| tool_with_text(name, "").with_title(title);
    let snapshot =
        SnapshotBuilder::new().tool(titled("zebra", "1")).tool(titled("ape", "2")).tool(titled("zebra", "3")).build();
    let listed: Vec<_> = snapshot.tools(&process_user()).map(|tool| (tool.name.clone(), tool.title.clone())).collect();
    let expected = [("ape", "2"), ("zebra", "3")].map(|(name, title)| (name.to_owned(), Some(title.to_owned())));
    assert_eq!(listed, expected);
}

#[tokio::test]
async fn a_principal_reaches_the_entries_of_its_own_configuration_only() {
    let of = |generation: u64| {
        let principal =
            Principal { generation, ..Principal::new("ann", AuthMethod::Key, Arc::new(Grants::everything())) };
        Arc::new(principal)
    };
    let host = Host::new(SnapshotBuilder::new().tool(tool_with_text("old", "old")).generation(1));
    let earlier = host.registry.snapshot();
    assert!(earlier.clone().create_caller(of(2), LOCAL).is_none());
    let pinned = earlier.create_caller(of(1), LOCAL).unwrap();
    host.registry.swap(SnapshotBuilder::new().tool(tool_with_text("new", "new")).generation(2).build());
    for (generation, name) in [(1, "old"), (1, "new"), (2, "old")] {
        let caller = Caller::new(of(generation), LOCAL);
        assert_eq!(host.registry.snapshot_for(&caller).tools(&caller).count(), usize::from(generation == 2));
        let answer = host.call_to_text(called_by(&caller, tool_call(name))).await;
        assert!(answer.starts_with("refused not_found"), "{generation} {name}: {answer}");
    }
    assert_eq!(host.call_to_text(called_by(&Caller::new(of(2), LOCAL), tool_call("new"))).await, "block new\ndone {}");
    // A caller that was authenticated before the change sees the earlier entries.
    assert_eq!(host.call_to_text(called_by(&pinned, tool_call("old"))).await, "block old\ndone {}");
}
