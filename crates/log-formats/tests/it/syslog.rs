//! Lines of syslog.

use super::fixture::{context_in, entries, entry, format, read, rendered, schema_of};

#[test]
fn lines_of_var_log_syslog() {
    let text = "Mar  1 12:00:00 web1 systemd[1]: Started Daily apt download activities.\n\
                Mar  1 12:00:01 web1 kernel: [    0.000000] Linux version 6.1.0-18-amd64\n\
                Mar 11 12:00:02 web1 CRON[1234]: (root) CMD (   cd / && run-parts --report /etc/cron.hourly)\n\
                2024-03-01T12:00:03.123456+01:00 web1 postfix/smtpd[77]: connect from unknown[192.0.2.1]\n\
                Mar  1 12:00:04 web1 last message repeated 2 times\n";
    assert_eq!(
        entries("syslog", text),
        [
            r#"time=2024-03-01T12:00:00Z host="web1" app="systemd" process_id="1" message="Started Daily apt download activities.""#,
            r#"time=2024-03-01T12:00:01Z host="web1" app="kernel" message="[    0.000000] Linux version 6.1.0-18-amd64""#,
            // The file was last written on 10 March.
            r#"time=2023-03-11T12:00:02Z host="web1" app="CRON" process_id="1234" message="(root) CMD (   cd / && run-parts --report /etc/cron.hourly)""#,
            r#"time=2024-03-01T11:00:03.123456Z host="web1" app="postfix/smtpd" process_id="77" message="connect from unknown[192.0.2.1]""#,
            r#"time=2024-03-01T12:00:04Z host="web1" message="last message repeated 2 times""#,
        ]
    );
}

#[test]
fn rfc_3164() {
    let table = [
        (
            "<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8",
            r#"time=2023-10-11T22:14:15Z host="mymachine" app="su" facility="auth" severity="crit" pri=34 message="'su root' failed for lonvick on /dev/pts/8" normalized_severity="critical""#,
        ),
        (
            "<13>Mar  1 12:00:00 app[12]: no host",
            r#"time=2024-03-01T12:00:00Z app="app" process_id="12" facility="user" severity="notice" pri=13 message="no host" normalized_severity="notice""#,
        ),
        (
            "<30>2024-03-01T12:00:00Z fe80::1 dhcpd: DHCPACK",
            r#"time=2024-03-01T12:00:00Z host="fe80::1" app="dhcpd" facility="daemon" severity="info" pri=30 message="DHCPACK" normalized_severity="info""#,
        ),
        (
            "<191>no time at all",
            r#"facility="local7" severity="debug" pri=191 message="no time at all" normalized_severity="debug""#,
        ),
        (
            "<189>*Mar  1 2023 12:00:00.5: %SYS-5-CONFIG_I: Configured from console",
            r#"time=2023-03-01T12:00:00.500Z app="%SYS-5-CONFIG_I" facility="local7" severity="notice" pri=189 message="Configured from console" normalized_severity="notice""#,
        ),
    ];
    for (line, expected) in table {
        assert_eq!(entry("syslog", line), expected);
    }
}

#[test]
fn rfc_5424() {
    let table = [
        (
            "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - \u{feff}'su root' failed",
            r#"time=2003-10-11T22:14:15.003Z host="mymachine.example.com" app="su" message_id="ID47" facility="auth" severity="crit" pri=34 message="'su root' failed" normalized_severity="critical""#,
        ),
        (
            r#"<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - [ex@32473 iut="3" src="a \"b\" \] \c"][flag@1] An event"#,
            r#"time=2003-08-24T12:14:15.000003Z host="192.0.2.1" app="myproc" process_id="8710" facility="local4" severity="notice" pri=165 message="An event" ex@32473.iut="3" ex@32473.src="a \"b\" ] \\c" flag@1=true normalized_severity="notice""#,
        ),
        ("<0>1 - - - - - -", r#"facility="kern" severity="emerg" pri=0 normalized_severity="emergency""#),
        ("<34>1 2003-10-11 x", r#"parse_error="expected a time of RFC 3339 or - at byte 7""#),
        (r#"<34>1 - h a p m [ex a="b" text"#, r#"parse_error="expected =\" after the name of a parameter at byte 31""#),
    ];
    for (line, expected) in table {
        assert_eq!(entry("syslog", line), expected);
    }
}

#[test]
fn traces_stay_with_their_entry() {
    let text = "Mar  1 12:00:00 web1 app[1]: failed\n\
                java.lang.IllegalStateException: x\n\
                \tat com.example.Main.run(Main.java:7)\n\
                Caused by: java.io.IOException: y\n\
                \n\
                Mar  1 12:00:01 web1 app[1]: next\n";
    let messages = read(schema_of(format("syslog"), b""), context_in("UTC"), text.as_bytes(), |entry| {
        entry.message().map(str::to_owned)
    });
    assert_eq!(
        messages,
        [
            Some(
                "failed\njava.lang.IllegalStateException: x\n\tat com.example.Main.run(Main.java:7)\nCaused by: \
                 java.io.IOException: y"
                    .to_owned()
            ),
            Some("next".to_owned()),
        ]
    );
}

#[test]
fn the_declared_zone_applies_to_times_without_one() {
    let text = "Mar  1 12:00:00 web1 app: x\n2024-07-01T12:00:00 web1 app: y\n2024-07-01T12:00:00Z web1 app: z\n";
    let rendered = read(schema_of(format("syslog"), b""), context_in("Europe/Berlin"), text.as_bytes(), rendered);
    let times: Vec<_> = rendered.iter().map(|entry| entry.split(' ').next().expect("a time")).collect();
    assert_eq!(times, ["time=2024-03-01T11:00:00Z", "time=2024-07-01T10:00:00Z", "time=2024-07-01T12:00:00Z"]);
}
