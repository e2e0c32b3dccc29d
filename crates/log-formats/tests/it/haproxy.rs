//! Lines of HAProxy.

use super::fixture::{entries, entry};

#[test]
fn the_formats_of_haproxy_with_what_syslog_writes() {
    let entries = entries("haproxy", include_str!("data/haproxy-2.6.log"));
    let head = r#"host="lb1" process_id="14389""#;
    assert_eq!(
        entries,
        [
            format!(r#"time=2024-03-01T12:14:13Z {head} message="Proxy http-in started.""#),
            format!(
                r#"time=2024-03-01T12:14:14.655Z {head} client_ip="10.0.1.2" client_port=33317 frontend_name="http-in" backend_name="static" server_name="srv1" request_ms=10 queue_ms=0 connect_ms=30 response_ms=69 total_ms=109 status=200 bytes_read=2750 termination_state="----" actconn=1 feconn=1 beconn=1 srv_conn=1 retries=0 srv_queue=0 backend_queue=0 captured_headers="{{shop.example}} {{}}" message="GET /index.html HTTP/1.1" method="GET" path="/index.html" protocol="HTTP/1.1""#
            ),
            format!(
                r#"time=2024-03-01T12:14:15.001Z {head} client_ip="2001:db8::7" client_port=33318 frontend_name="https-in~" backend_name="app" server_name="<NOSRV>" request_ms=-1 queue_ms=-1 connect_ms=-1 response_ms=-1 total_ms=5002 status=408 bytes_read=212 termination_state="cR--" actconn=2 feconn=1 beconn=0 srv_conn=0 retries=3 srv_queue=0 backend_queue=0 message="<BADREQ>""#
            ),
            format!(
                r#"time=2024-03-01T12:14:11.443Z {head} client_ip="10.0.1.3" client_port=33313 frontend_name="fnt" backend_name="bck" server_name="srv1" queue_ms=0 connect_ms=0 total_ms=5007 bytes_read=212 termination_state="--" actconn=0 feconn=0 beconn=0 srv_conn=0 retries=3 srv_queue=0 backend_queue=0"#
            ),
            format!(
                r#"time=2024-03-01T12:14:17.480Z {head} client_ip="10.0.1.4" client_port=34550 frontend_name="https-in" message="SSL handshake failure""#
            ),
            format!(
                r#"time=2024-03-01T12:14:18.100Z {head} client_ip="10.0.1.5" client_port=40000 frontend_name="https-in~" backend_name="app" server_name="web2" request_ms=0 queue_ms=0 connect_ms=1 response_ms=2 total_ms=3 status=200 bytes_read=512 captured_request_cookie="JSESSIONID=a1" captured_response_cookie="SERVERID=web2" termination_state="--VN" actconn=5 feconn=5 beconn=0 srv_conn=0 retries=0 srv_queue=0 backend_queue=0 message="POST /cart HTTP/2.0" method="POST" path="/cart" protocol="HTTP/2.0" extra_1="0/0000000000000000/0/0/0" extra_2="shop.example/TLSv1.3/TLS_AES_256_GCM_SHA384""#
            ),
            format!(
                r#"time=2024-03-01T12:14:19Z {head} message="Server app/web1 is DOWN, reason: Layer4 connection problem, info: \"Connection refused\", check duration: 0ms.""#
            ),
            format!(
                r#"time=2024-03-01T12:14:20Z {head} client_ip="10.0.1.6" client_port=33319 frontend_name="http-in" backend_name="static" server_name="srv2" request_ms=0 queue_ms=0 connect_ms=0 response_ms=1 total_ms=1 status=404 bytes_read=187 termination_state="----" actconn=1 feconn=1 beconn=0 srv_conn=0 retries=0 srv_queue=0 backend_queue=0 captured_headers="{{}} {{}}" message="GET /missing HTTP/1.1" method="GET" path="/missing" protocol="HTTP/1.1""#
            ),
        ]
    );
}

#[test]
fn lines_without_syslog_and_lines_that_are_cut() {
    let raw = r#"10.0.1.2:33317 [01/Mar/2024:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 "GET /a-long-pa"#;
    assert_eq!(
        entry("haproxy", raw),
        r#"time=2024-03-01T12:14:14.655Z client_ip="10.0.1.2" client_port=33317 frontend_name="http-in" backend_name="static" server_name="srv1" request_ms=10 queue_ms=0 connect_ms=30 response_ms=69 total_ms=109 status=200 bytes_read=2750 termination_state="----" actconn=1 feconn=1 beconn=1 srv_conn=1 retries=0 srv_queue=0 backend_queue=0 message="GET /a-long-pa" method="GET" path="/a-long-pa""#
    );
    assert_eq!(
        entry("haproxy", "[NOTICE]   (1) : New worker forked"),
        r#"parse_error="expected a time, or the address of a client and a time in brackets at byte 1""#
    );
}

#[test]
fn a_format_of_its_own_is_a_message() {
    let line = "Mar  1 12:14:14 lb1 haproxy[7]: 10.0.1.2:33317 [01/Mar/2024:12:14:14.655] http-in static/srv1 took 7";
    assert_eq!(
        entry("haproxy", line),
        r#"time=2024-03-01T12:14:14Z host="lb1" process_id="7" message="10.0.1.2:33317 [01/Mar/2024:12:14:14.655] http-in static/srv1 took 7""#
    );
}
