//! The error logs of nginx and Apache httpd.

use super::fixture::{entries, entry};

#[test]
fn the_error_log_of_nginx() {
    let entries = entries("nginx_error", include_str!("data/nginx-1.22-error.log"));
    assert_eq!(
        entries,
        [
            r#"time=2024-03-01T09:15:02Z level="notice" process_id=1201 thread_id=1201 message="using the \"epoll\" event method" normalized_severity="notice""#,
            r#"time=2024-03-01T09:15:02Z level="notice" process_id=1201 thread_id=1201 message="nginx/1.22.1" normalized_severity="notice""#,
            r#"time=2024-03-01T09:15:07Z level="error" process_id=1202 thread_id=1202 connection_id=17 message="open() \"/var/www/html/favicon.ico\" failed (2: No such file or directory)" client="192.0.2.7" server="shop.example" request="GET /favicon.ico HTTP/1.1" host="shop.example" referrer="https://shop.example/a, b" normalized_severity="error""#,
            r#"time=2024-03-01T09:15:09Z level="error" process_id=1202 thread_id=1202 connection_id=21 message="connect() failed (111: Connection refused) while connecting to upstream" client="2001:db8::7" server="_" request="POST /api/orders HTTP/2.0" subrequest="/auth" upstream="http://127.0.0.1:8080/auth" host="shop.example:8443" normalized_severity="error""#,
            r#"time=2024-03-01T09:15:11Z level="crit" process_id=1202 thread_id=1204 connection_id=25 message="SSL_do_handshake() failed (SSL: error:0A00006C:SSL routines::bad key share) while SSL handshaking" client="198.51.100.3" server="0.0.0.0:443" normalized_severity="critical""#,
            r#"time=2024-03-01T09:15:12Z level="error" process_id=1202 thread_id=1202 connection_id=30 message="FastCGI sent in stderr: \"PHP message: PHP Fatal error:  Uncaught Exception: no stock in /var/www/order.php:12\nStack trace:\n#0 {main}\n  thrown in /var/www/order.php on line 12\" while reading response header from upstream" client="192.0.2.9" server="shop.example" request="GET /order.php HTTP/1.1" upstream="fastcgi://unix:/run/php/php8.2-fpm.sock:" host="shop.example" normalized_severity="error""#,
            r#"time=2024-03-01T09:15:14Z level="error" process_id=1202 thread_id=1202 connection_id=34 message="upstream timed out (110: Connection timed out) while proxying connection" client="192.0.2.7" server="0.0.0.0:5432" upstream="10.0.0.5:5432" bytes from/to client="12/0" bytes from/to upstream="0/12" normalized_severity="error""#,
            r#"time=2024-03-01T09:15:20Z level="notice" process_id=1201 thread_id=1201 message="signal 15 (SIGTERM) received from 1, exiting" normalized_severity="notice""#,
        ]
    );
}

#[test]
fn the_name_of_a_file_is_no_client() {
    let line = r#"2024/03/01 09:15:07 [error] 1#1: *2 open() "/srv/a, client: b" failed, client: 192.0.2.7, server: , request: "GET /a HTTP/1.1""#;
    assert_eq!(
        entry("nginx_error", line),
        r#"time=2024-03-01T09:15:07Z level="error" process_id=1 thread_id=1 connection_id=2 message="open() \"/srv/a, client: b\" failed" client="192.0.2.7" request="GET /a HTTP/1.1" normalized_severity="error""#
    );
}

#[test]
fn lines_of_nginx_that_do_not_fit_have_a_reason() {
    let errors = entries("nginx_error", "nginx: [emerg] bind() failed\n2024/03/01 09:15:07 [error] main: x\n");
    assert_eq!(
        errors,
        [
            r#"parse_error="expected a time such as 2024/03/01 12:00:00 at byte 1""#,
            r#"parse_error="expected a process and a thread such as 12#12: at byte 29""#,
        ]
    );
}

#[test]
fn the_error_log_of_apache_2_2() {
    let entries = entries("apache_error", include_str!("data/apache-2.2-error.log"));
    assert_eq!(
        entries,
        [
            r#"time=2005-12-04T04:47:44Z level="notice" message="Apache/2.2.3 (CentOS) configured -- resuming normal operations" normalized_severity="notice""#,
            r#"time=2005-12-04T04:51:14Z level="error" client="192.0.2.7" message="File does not exist: /var/www/html/favicon.ico" referer="http://shop.example/" normalized_severity="error""#,
            r#"time=2005-12-04T04:52:04Z level="error" message="mod_jk child workerEnv in error state 6" normalized_severity="error""#,
            r#"time=2005-12-05T06:35:27Z level="warn" os_error="(13)Permission denied" client="192.0.2.7" message="access to /private denied" normalized_severity="warning""#,
        ]
    );
}

#[test]
fn the_error_log_of_apache_2_4() {
    let written = entries("apache_error", include_str!("data/apache-2.4-error.log"));
    assert_eq!(
        written[0],
        r#"time=2026-11-26T05:04:07.049563Z module="mpm_event" level="notice" process_id=12975 thread_id=12975 code="AH00489" message="AH00489: Apache/2.4.71 (Debian) configured -- resuming normal operations" normalized_severity="notice""#
    );
    let entries = entries("apache_error", include_str!("data/apache-2.4-error-requests.log"));
    assert_eq!(
        entries,
        [
            r#"time=2024-03-01T10:42:29.902022Z module="core" level="error" process_id=35708 thread_id=140436112345856 client="192.0.2.7:51732" code="AH00126" message="AH00126: Invalid URI in request GET /../etc HTTP/1.1" normalized_severity="error""#,
            r#"time=2024-03-01T10:42:30.000100Z module="proxy" level="error" process_id=35709 os_error="(111)Connection refused" code="AH00957" message="AH00957: HTTP: attempt to connect to 127.0.0.1:8080 (localhost) failed" normalized_severity="error""#,
            r#"time=2024-03-01T10:42:30.000200Z module="authz_core" level="debug" process_id=35709 source_file="mod_authz_core.c(843)" client="2001:db8::7:51733" code="AH01628" message="AH01628: authorization result: granted (no directives)" referer="https://shop.example/a" normalized_severity="debug""#,
            r#"time=2024-03-01T10:42:31.500Z module="ssl" level="trace3" process_id=35709 source_file="ssl_engine_kernel.c(2239)" client="198.51.100.3:443" message="OpenSSL: Loop: before SSL initialization" normalized_severity="trace""#,
            r#"time=2024-03-01T10:42:32Z level="error" process_id=35710 client="192.0.2.9:40000" message="ModSecurity: Access denied with code 403 [file \"/etc/modsecurity/rules.conf\"]" normalized_severity="error""#,
        ]
    );
}

#[test]
fn other_lines_in_the_error_log_of_apache_are_entries_of_their_own() {
    let text = "[Sun Dec 04 04:47:44 2005] [error] child died\nsh: 1: foo: not found\n[Sun Dec 04] [error] x\n";
    let entries = entries("apache_error", text);
    assert_eq!(
        entries[1..],
        [
            r#"parse_error="expected a time in brackets at byte 1""#,
            r#"parse_error="expected a time such as Fri Sep 09 10:42:29.902022 2011 at byte 2""#,
        ]
    );
}
