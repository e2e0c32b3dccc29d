//! Requests to a server of the test.

#![allow(clippy::expect_used, reason = "helpers of tests are tests")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use reqwest::{Client, Response};
use tidegate_http_client::{client_builder, innermost_cause, read_body};

fn client() -> Client {
    client_builder().build().expect("the system has root certificates")
}

/// What a server that sends `response` to its first request answers.
async fn answer(response: &'static str) -> Response {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}/", listener.local_addr().expect("it listens"));
    let server = thread::spawn(move || {
        let (mut connection, _) = listener.accept().expect("a client connects");
        let mut request = [0; 1024];
        let length = connection.read(&mut request).expect("a request arrives");
        connection.write_all(response.as_bytes()).expect("the answer is sent");
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let answer = client().get(&url).send().await.expect("the server answers");
    let request = server.join().expect("the server ends");
    assert!(request.contains(concat!("user-agent: tidegate/", env!("CARGO_PKG_VERSION"))), "{request}");
    answer
}

#[tokio::test]
async fn bodies_are_bounded() {
    const RESPONSE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde";
    for (bytes_max, expected) in [(6, ("abcde", false)), (5, ("abcde", false)), (4, ("abcd", true)), (0, ("", true))] {
        let (body, is_cut) = read_body(answer(RESPONSE).await, bytes_max).await.expect("the body is complete");
        assert_eq!((std::str::from_utf8(&body).expect("it is text"), is_cut), expected);
    }
    let error = read_body(answer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabcde").await, 10).await;
    let cause = innermost_cause(&error.expect_err("the body is not complete"));
    assert!(cause.contains("end of file"), "{cause}");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let answer = answer("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(answer.status(), 302);
}

#[tokio::test]
async fn a_cause_does_not_name_the_url() {
    let error = client().get("http://127.0.0.1:1/secret").send().await.expect_err("no server listens");
    let cause = innermost_cause(&error);
    assert!(cause.contains("refused") && !cause.contains("secret"), "{cause}");
}
