//! Logs of containers in Kubernetes, and of Kubernetes itself.

use super::fixture::{entries, entry};

#[test]
fn the_log_of_a_container() {
    let entries = entries("cri", include_str!("data/kubernetes-cri.log"));
    assert_eq!(
        entries,
        [
            r#"time=2024-03-01T12:00:00.669794202Z stream="stdout" message="shop started on port 8080""#,
            r#"time=2024-03-01T12:00:01.113242941Z stream="stdout" message="{\"order\":1,\"items\":\"aaaaaaaabbbbbbbb\"}""#,
            r#"time=2024-03-01T12:00:02.000000001Z stream="stderr" message="java.lang.IllegalStateException: no stock\n\tat com.example.Shop.order(Shop.java:12)""#,
            r#"time=2024-03-01T12:00:02.000000003Z stream="stdout" message="GET /health 200""#,
            r#"time=2024-03-01T12:00:02.000000004Z stream="stderr" message="Caused by: java.io.IOException: disk full\nTraceback (most recent call last):\n  File \"/app/a.py\", line 3, in <module>\nValueError: x""#,
            r#"time=2024-03-01T12:00:04Z stream="stdout" message="""#,
        ]
    );
}

#[test]
fn parts_of_a_line_that_is_not_complete() {
    let text = "2024-03-01T12:00:00Z stdout P a\n2024-03-01T12:00:00Z stderr P b\n2024-03-01T12:00:00Z stderr F:x c\n";
    assert_eq!(
        entries("cri", text),
        [
            r#"time=2024-03-01T12:00:00Z stream="stdout" message="a""#,
            r#"time=2024-03-01T12:00:00Z stream="stderr" message="bc""#,
        ]
    );
    for line in ["2024-03-01T12:00:00Z stdout X a", "2024-03-01T12:00:00Z stdlog F a", "2024-03-01 stdout F a"] {
        assert_eq!(
            entry("cri", line),
            r#"parse_error="expected a time, stdout or stderr, and F or P at byte 1""#,
            "{line}"
        );
    }
}

#[test]
fn klog_with_further_lines() {
    let entries = entries("klog", include_str!("data/kubernetes-klog.log"));
    assert_eq!(
        entries,
        [
            r#"time=2024-03-01T12:00:00.678901Z level="I" thread_id=1 file="server.go" line=123 message="\"Starting kubelet\" node=\"worker-1\"" normalized_severity="info""#,
            r#"time=2024-03-01T12:00:01.000001Z level="W" thread_id=4711 file="reflector.go" line=539 message="k8s.io/client-go/informers/factory.go:150: failed to list *v1.Node: forbidden" normalized_severity="warning""#,
            r#"time=2024-03-01T12:00:02.000002Z level="E" thread_id=4711 file="runtime/panic.go" line=884 message="Observed a panic: runtime error: index out of range [3] with length 3\ngoroutine 42 [running]:\nmain.handle(0xc000123456)\n\t/src/main.go:17 +0x1d" normalized_severity="error""#,
            r#"time=2024-03-01T12:00:03.000003Z level="F" thread_id=4711 file="main.go" line=9 message="cannot start: address already in use" normalized_severity="critical""#,
        ]
    );
}

#[test]
fn glog_may_write_the_year() {
    assert_eq!(
        entry("klog", "W20230301 12:00:00.5 7 a.cc:1] x"),
        r#"time=2023-03-01T12:00:00.500Z level="W" thread_id=7 file="a.cc" line=1 message="x" normalized_severity="warning""#
    );
    let errors = entries("klog", "Log file created at: 2024/03/01\nI0301 12:00:00.5 7 a.cc] x\n");
    assert_eq!(
        errors,
        [
            r#"parse_error="expected a level such as I at byte 1""#,
            r#"parse_error="expected a place such as file.go:123] at byte 20""#,
        ]
    );
}
