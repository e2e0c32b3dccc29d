//! What a reader is told: who calls, links, files that cannot be written.

use std::sync::atomic::{AtomicUsize, Ordering};

use tidegate_fetch::{Bearer, Destination, FetchError, FetchOptions};

use super::scene::{Scene, hasty};
use super::server::Answer;

fn bearing(token: &str) -> FetchOptions {
    FetchOptions { bearer: Some(Bearer::parse(token).unwrap()), ..hasty() }
}

/// What is told of a server that always answers so.
async fn told(status: &'static str, detail: &'static str, query: &str, options: FetchOptions) -> String {
    let scene = Scene::with(1, move |_, _| Answer::problem(status, detail)).await;
    let url = format!("{}{query}", scene.url());
    let error = scene.fetch_from(&url, "out.csv", options).await.unwrap_err();
    assert!(scene.names().is_empty());
    assert_eq!(scene.server.asked().len(), 1, "it is not asked again");
    scene.named(&error.to_string())
}

#[tokio::test]
async fn refusals_say_what_would_be_right() {
    insta::assert_snapshot!(
        told("401 Unauthorized", "a key is needed", "", hasty()).await,
        @"http://HOST/results/ID: the server wants to know who calls (401); give a token with --bearer or TIDEGATE_BEARER; the server says: a key is needed"
    );
    insta::assert_snapshot!(
        told("401 Unauthorized", "tide_abc is no key", "", bearing("tide_abc")).await,
        @"http://HOST/results/ID: the server does not accept the bearer token (401); check --bearer or TIDEGATE_BEARER; the server says: … is no key"
    );
    insta::assert_snapshot!(
        told("401 Unauthorized", "", "?link=secret", bearing("tide_abc")).await,
        @"http://HOST/results/ID: the link is no longer good (401), as links are for a few minutes; whoever has a key takes a fresh one from the manifest; the server says: No"
    );
    insta::assert_snapshot!(
        told("403 Forbidden", "not from there", "", bearing("tide_abc")).await,
        @"http://HOST/results/ID: the server refuses this caller (403); the server says: not from there"
    );
    insta::assert_snapshot!(
        told("404 Not Found", "this result has expired", "", hasty()).await,
        @"http://HOST/results/ID: there is no such result; it may have expired, or belong to somebody else; the server says: this result has expired"
    );
    insta::assert_snapshot!(
        told("308 Permanent Redirect", "", "", hasty()).await,
        @"http://HOST/results/ID: the server redirects (308), which is not followed; give the address that it redirects to"
    );
    insta::assert_snapshot!(
        told("500 Internal Server Error", "internal error", "", hasty()).await,
        @"http://HOST/results/ID: the server refuses the request (500); the server says: internal error"
    );
}

#[tokio::test]
async fn what_is_no_manifest_is_told() {
    let scene = Scene::with(1, |_, _| Answer::json("<html>")).await;
    let error = scene.fetch("out.csv", hasty()).await.unwrap_err();
    insta::assert_snapshot!(
        scene.named(&error.to_string()),
        @"http://HOST/results/ID: this is no answer of a server that keeps results: its manifest cannot be read: expected value at line 1 column 1"
    );
}

#[tokio::test]
async fn a_token_is_shown_with_every_request() {
    let scene = Scene::new(2).await;
    scene.fetch("out.csv", bearing("tide_abc")).await.unwrap();
    for asked in scene.server.asked() {
        assert_eq!(asked.header("authorization"), Some("Bearer tide_abc"), "{}", asked.path);
        assert_eq!((asked.method.as_str(), asked.query.as_str()), ("GET", ""));
    }
}

#[tokio::test]
async fn a_link_goes_along_and_with_a_fresh_one_the_same_command_goes_on() {
    let given = AtomicUsize::new(0);
    let scene = Scene::with(4, move |stored, asked| {
        // The first is over in the middle.
        let is_good = match asked.query.as_str() {
            "link=key%2B0" => given.fetch_add(1, Ordering::SeqCst) < 3,
            other => other == "link=key%2B1",
        };
        if is_good { stored.answer(asked) } else { Answer::problem("401 Unauthorized", "an old link") }
    })
    .await;
    let options = || FetchOptions { parallel: 1, ..bearing("tide_abc") };
    let address = |link: &str| format!("{}/data?link={link}", scene.url());
    let error = scene.fetch_from(&address("key%2B0"), "out.arrow", options()).await.unwrap_err();
    assert!(error.to_string().contains("the link is no longer good"), "{error}");
    scene.fetch_from(&address("key%2B1"), "out.arrow", options()).await.unwrap();
    assert_eq!(scene.rows_of("out.arrow"), scene.rows());
    let with_the_second = scene.server.asked();
    let with_the_second = with_the_second.iter().filter(|asked| asked.query == "link=key%2B1" && !asked.is_manifest());
    assert_eq!(with_the_second.count(), 2, "what was fetched stays");
    assert!(
        scene.server.asked().iter().all(|asked| asked.header("authorization").is_none()),
        "it is for another server"
    );
}

#[tokio::test]
async fn a_file_that_exists_is_left_alone() {
    let scene = Scene::new(1).await;
    std::fs::write(scene.file("out.csv"), "mine").unwrap();
    let error = scene.fetch("out.csv", hasty()).await.unwrap_err();
    assert!(matches!(error, FetchError::Exists { .. }) && error.is_usage(), "{error}");
    assert_eq!(std::fs::read_to_string(scene.file("out.csv")).unwrap(), "mine");
    assert!(scene.server.asked().is_empty(), "nothing is fetched for nothing");

    let address = tidegate_fetch::ResultAddress::parse(&scene.url()).unwrap();
    let destination = Destination::new(scene.file("out.csv"), None, true).unwrap();
    tidegate_fetch::fetch(&address, &destination, hasty(), &scene.stop).await.unwrap();
    assert!(std::fs::read_to_string(scene.file("out.csv")).unwrap().starts_with("id,name,share"));
}

#[tokio::test]
async fn a_file_that_came_to_be_meanwhile_is_left_alone() {
    let scene = Scene::new(1).await;
    let address = tidegate_fetch::ResultAddress::parse(&scene.url()).unwrap();
    let destination = Destination::new(scene.file("out.csv"), None, false).unwrap();
    std::fs::write(scene.file("out.csv"), "mine").unwrap();
    let error = tidegate_fetch::fetch(&address, &destination, hasty(), &scene.stop).await.unwrap_err();
    assert!(matches!(error.cause(), FetchError::Exists { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(scene.file("out.csv")).unwrap(), "mine");
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_to_is_told() {
    let scene = Scene::new(1).await;
    std::fs::write(scene.file(".out.csv.partial"), "in the way").unwrap();
    let error = scene.fetch("out.csv", hasty()).await.unwrap_err();
    let told = scene.named(&error.to_string());
    assert!(told.starts_with("FOLDER/.out.csv.partial could not be written to: "), "{told}");
    assert!(scene.server.blocks_asked().is_empty());
    assert_eq!(scene.names(), [".out.csv.partial"]);
}
