//! Responses to clients that have the result, or a part of it.

use super::super::wire::Answer;
use super::fixture::{EMPTY, ROWS, data, request, start};
use crate::http::rest::fixture::problem;

/// `status content-length content-range`, and whether the body matches them.
fn response_summary(answer: &Answer) -> String {
    let range = answer.header("content-range");
    let is_right = match (answer.head.status, range) {
        (200, None) => answer.body == *ROWS,
        (206, Some(range)) => {
            let (first, last) = range["bytes ".len()..].split('/').next().unwrap().split_once('-').unwrap();
            let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
            assert!(range.ends_with(&format!("/{}", ROWS.len())), "{range}");
            answer.body == ROWS[first..=last]
        }
        (304, None) => answer.body.is_empty(),
        (412, None) | (416, Some(_)) => answer.header("content-type") == Some("application/problem+json"),
        _ => false,
    };
    assert!(is_right, "{:?}", answer.head);
    format!("{} {}", answer.head.status, range.unwrap_or("-"))
}

#[tokio::test]
async fn conditions_and_ranges_follow_rfc_9110() {
    let server = start().await;
    let mut connection = server.connect().await;
    let range = ("Range", "bytes=100-199");
    let mut table = String::new();
    for headers in [
        &[("Range", "bytes=0-0")][..],
        &[("Range", "bytes=100-")],
        &[("Range", "bytes=-100")],
        &[("Range", "bytes=59990-60010")],
        &[("Range", "bytes=600000-99999999")],
        &[("Range", "bytes=0-")],
        &[("Range", "bytes=99999999-")],
        &[("Range", "bytes=-0")],
        &[("Range", "bytes=0-1,5-6")],
        &[("Range", "bytes=5-1")],
        &[("Range", "rows=0-1")],
        &[range, range],
        &[range, ("If-Range", "\"tag-arrow\"")],
        &[range, ("If-Range", "W/\"tag-arrow\"")],
        &[range, ("If-Range", "\"other\"")],
        &[range, ("If-Range", "\"other\", \"tag-arrow\"")],
        &[range, ("If-Range", "*")],
        &[range, ("If-Range", "Sun, 22 Nov 2026 12:00:00 GMT")],
        &[("Range", "bytes=99999999-"), ("If-Range", "\"other\"")],
        &[("If-None-Match", "\"tag-arrow\"")],
        &[("If-None-Match", "W/\"tag-arrow\"")],
        &[("If-None-Match", "\"other\", \"tag-arrow\"")],
        &[("If-None-Match", "\"other\""), ("If-None-Match", "\"tag-arrow\"")],
        &[("If-None-Match", "*")],
        &[("If-None-Match", "\"other\"")],
        &[("If-None-Match", "tag-arrow")],
        &[("If-None-Match", "\"a b\"")],
        &[("If-None-Match", "\"tag-arrow\""), range],
        &[("If-Match", "\"tag-arrow\"")],
        &[("If-Match", "*")],
        &[("If-Match", "\"other\"")],
        &[("If-Match", "W/\"tag-arrow\"")],
        &[("If-Match", "\"a b\"")],
        &[("If-Match", "tag-arrow")],
        &[("If-Match", "\"other\""), ("If-None-Match", "\"tag-arrow\"")],
        &[("If-Match", "\"tag-arrow\""), range],
        &[("If-Modified-Since", "Sun, 22 Nov 2026 12:00:00 GMT")],
        &[range, ("Accept-Encoding", "gzip")],
    ] {
        for path in ["/results/ID/data", "/results/ID/blocks/3"] {
            let answer = connection.ask(&request("GET", path, headers)).await;
            let says: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            if path.ends_with("data") {
                table.push_str(&format!("{:75} {}\n", says.join("; "), response_summary(&answer)));
            } else {
                assert!(
                    table.ends_with(&format!("{}\n", response_summary(&answer))),
                    "{says:?} is another for a block"
                );
            }
        }
    }
    insta::assert_snapshot!(table, @r#"
    Range: bytes=0-0                                                            206 bytes 0-0/617780
    Range: bytes=100-                                                           206 bytes 100-617779/617780
    Range: bytes=-100                                                           206 bytes 617680-617779/617780
    Range: bytes=59990-60010                                                    206 bytes 59990-60010/617780
    Range: bytes=600000-99999999                                                206 bytes 600000-617779/617780
    Range: bytes=0-                                                             206 bytes 0-617779/617780
    Range: bytes=99999999-                                                      416 bytes */617780
    Range: bytes=-0                                                             416 bytes */617780
    Range: bytes=0-1,5-6                                                        200 -
    Range: bytes=5-1                                                            200 -
    Range: rows=0-1                                                             200 -
    Range: bytes=100-199; Range: bytes=100-199                                  200 -
    Range: bytes=100-199; If-Range: "tag-arrow"                                 206 bytes 100-199/617780
    Range: bytes=100-199; If-Range: W/"tag-arrow"                               200 -
    Range: bytes=100-199; If-Range: "other"                                     200 -
    Range: bytes=100-199; If-Range: "other", "tag-arrow"                        200 -
    Range: bytes=100-199; If-Range: *                                           200 -
    Range: bytes=100-199; If-Range: Sun, 22 Nov 2026 12:00:00 GMT               200 -
    Range: bytes=99999999-; If-Range: "other"                                   200 -
    If-None-Match: "tag-arrow"                                                  304 -
    If-None-Match: W/"tag-arrow"                                                304 -
    If-None-Match: "other", "tag-arrow"                                         304 -
    If-None-Match: "other"; If-None-Match: "tag-arrow"                          304 -
    If-None-Match: *                                                            304 -
    If-None-Match: "other"                                                      200 -
    If-None-Match: tag-arrow                                                    200 -
    If-None-Match: "a b"                                                        200 -
    If-None-Match: "tag-arrow"; Range: bytes=100-199                            304 -
    If-Match: "tag-arrow"                                                       200 -
    If-Match: *                                                                 200 -
    If-Match: "other"                                                           412 -
    If-Match: W/"tag-arrow"                                                     412 -
    If-Match: "a b"                                                             412 -
    If-Match: tag-arrow                                                         412 -
    If-Match: "other"; If-None-Match: "tag-arrow"                               412 -
    If-Match: "tag-arrow"; Range: bytes=100-199                                 206 bytes 100-199/617780
    If-Modified-Since: Sun, 22 Nov 2026 12:00:00 GMT                            200 -
    Range: bytes=100-199; Accept-Encoding: gzip                                 206 bytes 100-199/617780
    "#);
    server.until_open_calls(0).await;
}

#[tokio::test]
async fn no_ranges_without_length_or_tag() {
    let server = start().await;
    let mut connection = server.connect().await;
    let range = ("Range", "bytes=100-199");
    let csv = connection.ask(&request("GET", "/results/ID/data?format=csv", &[range])).await;
    assert_eq!((response_summary(&csv).as_str(), csv.header("accept-ranges")), ("200 -", None));
    let csv = connection.ask(&request("GET", "/results/ID/data?format=csv", &[("If-None-Match", "\"tag-csv\"")])).await;
    assert_eq!(response_summary(&csv), "304 -");
    for (name, value, status) in [
        ("If-None-Match", "\"tag-arrow\"", 200),
        ("If-None-Match", "*", 304),
        ("If-Match", "\"tag-arrow\"", 412),
        ("If-Match", "*", 200),
        ("Range", "bytes=0-1", 200),
    ] {
        let answer = connection.ask(&request("GET", "/results/ID", &[(name, value)])).await;
        assert_eq!(answer.head.status, status, "{name}: {value}");
    }
    for (range, status) in [("bytes=-5", 200), ("bytes=0-", 416), ("bytes=0-0", 416)] {
        let answer = connection.ask(&request("GET", &data(EMPTY), &[("Range", range)])).await;
        assert_eq!(answer.head.status, status, "{range}");
        assert_eq!(answer.header("content-range"), (status == 416).then_some("bytes */0"));
    }
}

#[tokio::test]
async fn a_head_has_no_range() {
    let server = start().await;
    let mut connection = server.connect().await;
    for range in ["bytes=0-9", "bytes=99999999-"] {
        connection.send(&request("HEAD", "/results/ID/data", &[("Range", range)])).await;
        let head = connection.head().await;
        assert_eq!((head.status, head.header("content-length")), (200, Some(ROWS.len().to_string().as_str())));
    }
}

#[tokio::test]
async fn resumes_a_broken_download() {
    let server = start().await;
    let mut broken = server.connect().await;
    broken.send(&request("GET", "/results/ID/data", &[])).await;
    let tag = broken.head().await.header("etag").unwrap().to_owned();
    drop(broken);
    let mut read = Vec::new();
    while read.len() < ROWS.len() {
        let range = format!("bytes={}-{}", read.len(), read.len() + 123_456);
        let headers = [("Range", range.as_str()), ("If-Range", tag.as_str())];
        let answer = server.download(&request("GET", "/results/ID/data", &headers)).await;
        assert_eq!(answer.head.status, 206);
        read.extend(answer.body);
    }
    assert!(read == *ROWS, "the parts are not the whole");
}

#[tokio::test]
async fn a_condition_that_fails_is_a_problem() {
    let server = start().await;
    let mut connection = server.connect().await;
    let mut table = String::new();
    for header in [("If-Match", "\"other\""), ("Range", "bytes=99999999-")] {
        let answer = connection.ask(&request("GET", "/results/ID/data", &[header])).await;
        table.push_str(&format!("{}\n", problem(&answer)));
    }
    insta::assert_snapshot!(table, @r#"
    412 precondition_failed: the result has none of the entity tags in If-Match; omit If-Match to get the current version
    416 range_not_satisfiable: the range is outside the result, which has 617780 bytes
    "#);
}
