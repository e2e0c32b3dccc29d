//! Errors of a download: credentials, links, files that cannot be written.

use std::sync::atomic::{AtomicUsize, Ordering};

use tidegate_client::BearerToken;
use tidegate_client::fetch::{FetchError, FetchOptions, OutputFile};

use super::fixture::{DownloadFixture, short_delay_options};
use super::test_server::TestResponse;

fn options_with_bearer(token: &str) -> FetchOptions {
    FetchOptions { bearer: Some(BearerToken::parse(token).unwrap()), ..short_delay_options() }
}

/// The error for a server that always gives this answer.
async fn error_message(status: &'static str, detail: &'static str, query: &str, options: FetchOptions) -> String {
    let scene = DownloadFixture::with(1, move |_, _| TestResponse::problem(status, detail)).await;
    let url = format!("{}{query}", scene.url());
    let error = scene.fetch_from(&url, "out.csv", options).await.unwrap_err();
    assert!(scene.list_files().is_empty());
    assert_eq!(scene.server.requests().len(), 1, "it is not asked again");
    scene.with_placeholders(&error.to_string())
}

#[tokio::test]
async fn status_errors_suggest_the_remedy() {
    insta::assert_snapshot!(
        error_message("401 Unauthorized", "a key is needed", "", short_delay_options()).await,
        @r#"http://HOST/results/ID: the server requires authentication (401); pass --bearer TOKEN, or set TIDEGATE_BEARER in the environment; the server reports: a key is needed"#
    );
    insta::assert_snapshot!(
        error_message("401 Unauthorized", "tide_abc is no key", "", options_with_bearer("tide_abc")).await,
        @r#"http://HOST/results/ID: the server rejected the bearer token (401); check --bearer or TIDEGATE_BEARER; the server reports: … is no key"#
    );
    insta::assert_snapshot!(
        error_message("401 Unauthorized", "", "?link=secret", options_with_bearer("tide_abc")).await,
        @"http://HOST/results/ID: the link has expired (401); links are valid for five minutes; request a new one from the manifest with an API key; the server reports: No"
    );
    insta::assert_snapshot!(
        error_message("403 Forbidden", "not from there", "", options_with_bearer("tide_abc")).await,
        @r#"http://HOST/results/ID: the server denied access (403); pass a token that has access with --bearer TOKEN; the server reports: not from there"#
    );
    insta::assert_snapshot!(
        error_message("404 Not Found", "this result has expired", "", short_delay_options()).await,
        @"http://HOST/results/ID: the result does not exist; it may have expired, or belong to another caller, or no toolset of your roles contains stored_result*; the server reports: this result has expired"
    );
    insta::assert_snapshot!(
        error_message("308 Permanent Redirect", "", "", short_delay_options()).await,
        @"http://HOST/results/ID: the server redirects (308), and redirects are not followed; use the target of the redirect"
    );
    insta::assert_snapshot!(
        error_message("500 Internal Server Error", "internal error", "", short_delay_options()).await,
        @"http://HOST/results/ID: the server refuses the request (500); the server reports: internal error"
    );
}

#[tokio::test]
async fn rejects_invalid_manifest() {
    let scene = DownloadFixture::with(1, |_, _| TestResponse::json("<html>")).await;
    let error = scene.fetch("out.csv", short_delay_options()).await.unwrap_err();
    insta::assert_snapshot!(
        scene.with_placeholders(&error.to_string()),
        @"http://HOST/results/ID: this is not a valid response of a server with stored results: its manifest is invalid: expected value at line 1 column 1"
    );
}

#[tokio::test]
async fn sends_token_with_every_request() {
    let scene = DownloadFixture::new(2).await;
    scene.fetch("out.csv", options_with_bearer("tide_abc")).await.unwrap();
    for recorded_request in scene.server.requests() {
        assert_eq!(recorded_request.header("authorization"), Some("Bearer tide_abc"), "{}", recorded_request.path);
        assert_eq!((recorded_request.method.as_str(), recorded_request.query.as_str()), ("GET", ""));
    }
}

#[tokio::test]
async fn resumes_with_a_fresh_link() {
    let given = AtomicUsize::new(0);
    let scene = DownloadFixture::with(4, move |stored, recorded_request| {
        // The first is over in the middle.
        let is_good = match recorded_request.query.as_str() {
            "link=key%2B0" => given.fetch_add(1, Ordering::SeqCst) < 3,
            other => other == "link=key%2B1",
        };
        if is_good {
            stored.respond(recorded_request)
        } else {
            TestResponse::problem("401 Unauthorized", "an old link")
        }
    })
    .await;
    let options = || FetchOptions { parallel: 1, ..options_with_bearer("tide_abc") };
    let address = |link: &str| format!("{}/data?link={link}", scene.url());
    let error = scene.fetch_from(&address("key%2B0"), "out.arrow", options()).await.unwrap_err();
    assert!(error.to_string().contains("the link has expired"), "{error}");
    scene.fetch_from(&address("key%2B1"), "out.arrow", options()).await.unwrap();
    assert_eq!(scene.read_rows("out.arrow"), scene.expected_rows());
    let with_the_second = scene.server.requests();
    let with_the_second = with_the_second
        .iter()
        .filter(|recorded_request| recorded_request.query == "link=key%2B1" && !recorded_request.is_manifest());
    assert_eq!(with_the_second.count(), 2, "what was fetched stays");
    assert!(
        scene.server.requests().iter().all(|recorded_request| recorded_request.header("authorization").is_none()),
        "it is for another server"
    );
}

#[tokio::test]
async fn existing_file_is_not_overwritten() {
    let scene = DownloadFixture::new(1).await;
    std::fs::write(scene.file("out.csv"), "mine").unwrap();
    let error = scene.fetch("out.csv", short_delay_options()).await.unwrap_err();
    assert!(matches!(error, FetchError::DestinationExists { .. }) && error.is_usage(), "{error}");
    assert_eq!(std::fs::read_to_string(scene.file("out.csv")).unwrap(), "mine");
    assert!(scene.server.requests().is_empty(), "nothing is fetched for nothing");

    let address = tidegate_client::fetch::ResultAddress::parse(&scene.url()).unwrap();
    let output_file = OutputFile::new(scene.file("out.csv"), None, true).unwrap();
    tidegate_client::fetch::fetch(&address, &output_file, short_delay_options(), &scene.stop).await.unwrap();
    assert!(std::fs::read_to_string(scene.file("out.csv")).unwrap().starts_with("id,name,share"));
}

#[tokio::test]
async fn file_created_during_download_is_not_overwritten() {
    let scene = DownloadFixture::new(1).await;
    let address = tidegate_client::fetch::ResultAddress::parse(&scene.url()).unwrap();
    let output_file = OutputFile::new(scene.file("out.csv"), None, false).unwrap();
    std::fs::write(scene.file("out.csv"), "mine").unwrap();
    let error =
        tidegate_client::fetch::fetch(&address, &output_file, short_delay_options(), &scene.stop).await.unwrap_err();
    assert!(matches!(error.cause(), FetchError::DestinationExists { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(scene.file("out.csv")).unwrap(), "mine");
}

#[tokio::test]
async fn unwritable_folder_is_an_error() {
    let scene = DownloadFixture::new(1).await;
    std::fs::write(scene.file(".out.csv.partial"), "in the way").unwrap();
    let error = scene.fetch("out.csv", short_delay_options()).await.unwrap_err();
    let message = scene.with_placeholders(&error.to_string());
    assert!(message.starts_with("FOLDER/.out.csv.partial could not be written to: "), "{message}");
    assert!(scene.server.requested_blocks().is_empty());
    assert_eq!(scene.list_files(), [".out.csv.partial"]);
}
