//! Pings and idle timeouts, over an in-memory pipe: the paused clock advances only when all tasks wait.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tidegate_transport::http::HttpOptions;
use tokio::io::DuplexStream;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use super::super::identity::revocable_key;
use super::super::in_process::InProcessRouter;
use super::Socket;
use tidegate_testkit::wait::pass_time;

const PIPE_BYTES: usize = 64 * 1024;

/// A client of the router over a pipe.
async fn open(in_process_router: &InProcessRouter) -> Socket<DuplexStream> {
    let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
    let connection = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(theirs), TowerToHyperService::new(in_process_router.app.clone()))
        .with_upgrades();
    tokio::spawn(connection);
    Socket::over(ours, "/mcp/ws", &[("Authorization", "Bearer key")]).await
}

#[tokio::test(start_paused = true)]
async fn idle_client_is_pinged_and_closed_after_30_minutes() {
    let in_process_router = InProcessRouter::new(HttpOptions::default());
    let mut socket = open(&in_process_router).await;
    let began = Instant::now();
    // Receiving answers pings.
    assert_eq!(socket.hear().await.unwrap_err(), (1000, "idle for too long".to_owned()));
    assert_eq!(began.elapsed().as_secs(), 30 * 60);
    assert_eq!(socket.pings, 59);
}

#[tokio::test(start_paused = true)]
async fn unresponsive_client_is_closed() {
    let in_process_router = InProcessRouter::new(HttpOptions::default());
    let mut socket = open(&in_process_router).await;
    socket.call(json!(1), json!([["cancelled"]])).await;
    pass_time(Duration::from_secs(1)).await;
    assert_eq!(in_process_router.host.service.registry().jobs().open_count(), 1);
    // Pinged after 30 s, missed after 60.
    pass_time(Duration::from_secs(58)).await;
    assert_eq!(in_process_router.host.service.registry().jobs().open_count(), 1);
    pass_time(Duration::from_secs(2)).await;
    assert_eq!(in_process_router.host.service.registry().jobs().open_count(), 0);
    assert_eq!(socket.closed().await, (1001, "no answer to a ping".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn unfinished_message_times_out() {
    let in_process_router = InProcessRouter::new(HttpOptions::default());
    let mut socket = open(&in_process_router).await;
    let began = Instant::now();
    let begun = Frame::message(vec![b'x'; 50_000], OpCode::Data(Data::Text), false);
    socket.put(Message::Frame(begun)).await;
    // Receiving answers pings.
    assert_eq!(socket.hear().await.unwrap_err(), (1008, "the message arrived too slowly".to_owned()));
    assert_eq!(began.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn an_open_request_keeps_the_connection() {
    let in_process_router =
        InProcessRouter::new(HttpOptions { session_idle_max: Duration::from_secs(20), ..HttpOptions::default() });
    let mut socket = open(&in_process_router).await;
    socket.call(json!(1), json!([["wait"], ["text", "done"]])).await;
    let release = in_process_router.host.release.clone();
    tokio::spawn(async move {
        pass_time(Duration::from_secs(50)).await;
        release.cancel();
    });
    let began = Instant::now();
    assert_eq!(socket.hear().await.unwrap()["id"], 1);
    assert_eq!(began.elapsed().as_secs(), 50);
    assert_eq!(socket.hear().await.unwrap_err().0, 1000);
    assert_eq!(began.elapsed().as_secs(), 70);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_revoked_while_it_is_quiet_ends_the_connection() {
    let (one_key, options) = revocable_key();
    let in_process_router = InProcessRouter::new(options);
    let mut socket = open(&in_process_router).await;
    one_key.is_revoked.store(true, Ordering::SeqCst);
    let began = Instant::now();
    assert_eq!(socket.hear().await.unwrap_err().0, 1008);
    assert_eq!(began.elapsed().as_secs(), 30);
    assert!(socket.stream.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn blocked_writes_do_not_count_as_idle() {
    let in_process_router = InProcessRouter::new(HttpOptions::default());
    let mut socket = open(&in_process_router).await;
    // More than the capacity of the pipe, and read slowly.
    socket.call(json!(1), json!([["flood", 1_000_000]])).await;
    let mut bytes = [0; 20_000];
    let mut read = 0;
    for _ in 0..20 {
        pass_time(Duration::from_secs(29)).await;
        read += tokio::io::AsyncReadExt::read(socket.stream.get_mut(), &mut bytes).await.unwrap();
    }
    assert!(read > 200_000, "{read}");
}
