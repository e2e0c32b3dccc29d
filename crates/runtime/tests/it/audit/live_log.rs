//! A file that is moved or deleted while in use, and refused messages.

use std::fs;
use std::net::IpAddr;

use tidegate_core::{LimitLevel, LimitMeasure, TransportKind};
use tidegate_runtime::audit::{LogHead, VerifyOptions, verify};
use tidegate_runtime::event::{Event, Subscriber as _};

use super::fixture::{LogFolder, TestNode, ann, text, until, visible_lines};

/// Waits until the head of the log at `place` records the line `seq`, which takes about a second.
async fn until_head_knows(place: &LogFolder, seq: u64) {
    until(|| LogHead::read(&place.file(), None).unwrap().is_some_and(|head| head.seq >= seq)).await;
}

#[cfg(unix)]
#[tokio::test]
async fn continues_in_a_new_file_after_a_move() {
    let place = LogFolder::new();
    let scene = TestNode::open(&place.options());
    scene.ask_often(2).await;
    let rewritten = place.file().with_extension("moved");
    fs::rename(place.file(), &rewritten).unwrap();
    until_head_knows(&place, 3).await;
    until(|| place.file().exists()).await;
    scene.ask_often(2).await;
    scene.close().await;
    assert_eq!((text(&rewritten).lines().count(), text(&place.file()).lines().count()), (3, 2));
    let both = verify(&[rewritten, place.file()], &VerifyOptions::default()).unwrap();
    assert_eq!((both.first, both.last.seq), (1, 5));
    let error = verify(&[place.file()], &VerifyOptions::default()).unwrap_err().to_string();
    assert!(error.ends_with("line 1: is number 4, but the head of the log begins at line 1"), "{error}");
    // A restart does not lose it.
    let scene = TestNode::open(&place.options());
    scene.close().await;
    assert!(verify(&[place.file()], &VerifyOptions::default()).is_err());
}

#[tokio::test]
async fn repeated_refusals_make_two_lines() {
    let place = LogFolder::new();
    let scene = TestNode::open(&place.options());
    let peer = |text: &str| Some(text.parse::<IpAddr>().unwrap());
    let refuse = |peer, reason| {
        let transport = TransportKind::StreamableHttp;
        scene.log.on_event(Event::MessageRefused { transport, peer, reason });
    };
    for _ in 0..100_000 {
        refuse(peer("192.0.2.1"), "the key or token is not valid");
    }
    refuse(peer("192.0.2.2"), "there is no method \"x\"");
    scene.ask_often(1).await;
    let caller = ann();
    for _ in 0..9 {
        let (level, measure) = (LimitLevel::Principal, LimitMeasure::Requests);
        scene.log.on_event(Event::LimitReached { caller: &caller, level, measure });
    }
    scene.close().await;
    // Counted messages are logged in any order.
    let visible = visible_lines(&place.file());
    let mut lines: Vec<&str> = visible.lines().skip(1).map(|line| line.split_once("\"kind\":").unwrap().1).collect();
    lines.sort_by_key(|line| (line.contains("times"), line.contains("ann")));
    insta::assert_snapshot!(lines.join("\n"));
    assert_eq!(scene.figures().1, 0, "lines were dropped");
    verify(&[place.file()], &VerifyOptions::default()).unwrap();
}
