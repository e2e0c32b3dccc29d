//! A slow reader slows the handler, and not the memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tidegate_runtime::{Answer, AnswerMeta, JobState, ReplyPart, SnapshotBuilder, Tool, handler_fn};

use crate::host::{Host, reply_text, run_until_idle, tool_call};

/// Sends the numbers from 0 up and counts those that the channel accepted.
fn counting_host(numbers: usize) -> (Host, Arc<AtomicUsize>) {
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = sent.clone();
    let handler = handler_fn(move |_| {
        let counter = counter.clone();
        let answer = Answer::written(move |reply| async move {
            for number in 0..numbers {
                reply.send_text(number.to_string()).await?;
                counter.fetch_add(1, Ordering::SeqCst);
            }
            Ok(AnswerMeta::default())
        });
        async move { Ok(answer) }
    });
    (Host::new(SnapshotBuilder::new().tool(Tool::new("numbers", "", handler))), sent)
}

#[tokio::test(start_paused = true)]
async fn handler_without_reader_blocks_at_buffer_size() {
    let (host, sent) = counting_host(1_000);
    let mut reply = host.begin(tool_call("numbers"));
    run_until_idle().await;
    assert_eq!(sent.load(Ordering::SeqCst), 4);
    assert_eq!(reply.job().status().state, JobState::Running);
    for read in 0..3 {
        let part = reply.next().await.unwrap();
        assert!(matches!(part, ReplyPart::Text(text) if text == read.to_string()));
    }
    run_until_idle().await;
    assert_eq!(sent.load(Ordering::SeqCst), 7);
}

#[tokio::test(start_paused = true)]
async fn everything_arrives_in_order_and_is_counted() {
    let (host, _) = counting_host(1_000);
    let reply = host.begin(tool_call("numbers"));
    let job = reply.job().clone();
    let message = reply_text(reply).await;
    let expected: Vec<String> = (0..1_000).map(|number| format!("text {number}")).collect();
    assert_eq!(message, format!("{}\ndone {{}}", expected.join("\n")));
    assert_eq!(job.usage().bytes(), 10 + 2 * 90 + 3 * 900);
}

#[tokio::test(start_paused = true)]
async fn job_ends_with_handler_even_if_unread() {
    let (host, sent) = counting_host(4);
    let reply = host.begin(tool_call("numbers"));
    run_until_idle().await;
    assert_eq!(sent.load(Ordering::SeqCst), 4);
    assert_eq!(reply.job().status().state, JobState::Done);
    assert_eq!(host.registry.jobs().open_count(), 0);
    assert_eq!(reply_text(reply).await, "text 0\ntext 1\ntext 2\ntext 3\ndone {}");
}

#[tokio::test(start_paused = true)]
async fn no_parts_after_end_from_cloned_sender() {
    let handler = handler_fn(|_| async {
        Ok(Answer::written(|reply| async move {
            tokio::spawn(async move {
                run_until_idle().await;
                let _ = reply.send_text("too late").await;
            });
            Ok(AnswerMeta::default())
        }))
    });
    let host = Host::new(SnapshotBuilder::new().tool(Tool::new("late", "", handler)));
    let mut reply = host.begin(tool_call("late"));
    assert!(matches!(reply.next().await, Some(ReplyPart::End(_))));
    run_until_idle().await;
    assert!(reply.next().await.is_none());
}
