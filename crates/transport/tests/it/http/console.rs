//! The page for people at the root, and the files that it loads.

use tidegate_transport::http::HttpOptions;

use super::Server;
use super::wire::{self, Answer, Connection};

const BROWSER: (&str, &str) = ("Accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");

async fn get(connection: &mut Connection, path: &str, headers: &[(&str, &str)]) -> Answer {
    connection.ask(&wire::request("GET", path, headers, b"")).await
}

/// The paths of the files that `page` loads.
fn loaded_files(page: &str) -> Vec<String> {
    let addresses = page.split('"').filter_map(|part| part.strip_prefix("./"));
    addresses.map(|address| format!("/{address}")).collect()
}

#[tokio::test]
async fn browsers_receive_the_page_and_may_keep_its_files() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    let page = get(&mut connection, "/", &[BROWSER]).await;
    let mut table = String::new();
    for header in ["content-type", "cache-control", "content-security-policy", "x-frame-options", "referrer-policy"] {
        table.push_str(&format!("{header}: {}\n", page.header(header).unwrap_or("none")));
    }
    insta::assert_snapshot!(table, @r#"
    content-type: text/html; charset=utf-8
    cache-control: no-cache
    content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'
    x-frame-options: DENY
    referrer-policy: no-referrer
    "#);
    let files = loaded_files(page.text());
    assert!(files.len() >= 3, "a script, a style sheet and an icon: {files:?}");
    for file in files {
        let answer = get(&mut connection, &file, &[]).await;
        assert_eq!(answer.head.status, 200, "{file}");
        assert_eq!(answer.header("cache-control"), Some("public, max-age=31536000, immutable"), "{file}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{file}");
        let tag = answer.header("etag").unwrap().to_owned();
        let known = get(&mut connection, &file, &[("If-None-Match", tag.as_str())]).await;
        assert_eq!((known.head.status, known.body.len()), (304, 0), "{file}");
        let coded = get(&mut connection, &file, &[("Accept-Encoding", "gzip")]).await;
        assert_eq!(coded.header("content-encoding"), Some("gzip"), "{file}");
        assert_ne!(coded.header("etag"), Some(tag.as_str()), "{file}");
    }
}

#[tokio::test]
async fn a_link_of_another_site_opens_the_page() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    let headers = [BROWSER, ("Sec-Fetch-Site", "cross-site"), ("Referer", "https://chat.example.com/")];
    assert_eq!(get(&mut connection, "/", &headers).await.head.status, 200);
    assert_eq!(get(&mut connection, "/rest/tools", &headers).await.head.status, 403);
}

#[tokio::test]
async fn other_files_and_other_clients_get_nothing() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    for (path, headers) in [
        ("/", &[][..]),
        ("/", &[("Accept", "*/*")][..]),
        ("/_console/", &[BROWSER][..]),
        ("/_console/index.html", &[BROWSER][..]),
        ("/_console/..%2Findex.html", &[BROWSER][..]),
        ("/index.html", &[BROWSER][..]),
    ] {
        assert_eq!(get(&mut connection, path, headers).await.head.status, 404, "{path} {headers:?}");
    }
}

#[tokio::test]
async fn a_server_without_the_console_or_rest_has_no_page() {
    let file = {
        let server = Server::start().await;
        let page = get(&mut server.connect().await, "/", &[BROWSER]).await;
        loaded_files(page.text()).remove(0)
    };
    for options in [
        HttpOptions { has_console: false, ..HttpOptions::default() },
        HttpOptions { has_rest: false, ..HttpOptions::default() },
    ] {
        let server = Server::with(options).await;
        let mut connection = server.connect().await;
        for path in ["/", file.as_str()] {
            let answer = get(&mut connection, path, &[BROWSER]).await;
            assert_eq!(answer.head.status, 404, "{path}");
            assert!(!answer.text().contains("console"), "{path}");
        }
    }
}
