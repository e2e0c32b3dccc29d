//! A measurement that runs on request: `cargo nextest run --release -p tidegate-log-formats --run-ignored only --no-capture`.

#![allow(clippy::print_stderr, reason = "the figures are for a person")]

use std::sync::Arc;
use std::time::Instant;

use tidegate_log_formats::{EndOfInput, EntrySchema, EntryValue, LinePattern, LogFileReader, LogFormat, ParsedEntry};

use super::fixture::{context, format, schema_of};

const LINES: usize = 1_000_000;
const PIECE_BYTES: usize = 256 << 10;

/// Reads each value, as a caller does that builds columns.
fn checksum(entry: &ParsedEntry<'_>) -> usize {
    let columns = entry.schema().columns().len();
    let lengths = (0..columns).map(|column| match entry.value(column) {
        EntryValue::Null => 0,
        EntryValue::Text(text) => text.len(),
        _ => 8,
    });
    lengths.sum()
}

fn measure(format: LogFormat, line: impl Fn(usize) -> String) {
    let name = format.name();
    let text: String = (0..LINES).map(line).collect();
    let sample = text.get(..PIECE_BYTES).unwrap_or(&text);
    let schema: Arc<EntrySchema> = Arc::new(schema_of(format, sample.as_bytes()));
    let start = Instant::now();
    let mut reader = LogFileReader::new(schema, context());
    let mut sum = 0;
    for piece in text.as_bytes().chunks(PIECE_BYTES) {
        reader.push(piece, |entry| sum += checksum(entry));
    }
    let end = reader.finish(EndOfInput::Complete, |entry| sum += checksum(entry));
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!((end.counts.entries, end.counts.misfits), (LINES as u64, 0), "{name}");
    let rate = LINES as f64 / seconds;
    let megabytes = text.len() as f64 / seconds / 1e6;
    eprintln!("{name}: {rate:.0} lines/s, {megabytes:.0} MB/s ({sum})");
}

#[test]
#[ignore = "a measurement, of the release build only"]
fn lines_per_second() {
    let minute = |n: usize| n / 60 % 60;
    measure(format("combined"), |n| {
        format!(
            "203.0.113.{} - - [01/Mar/2024:13:{:02}:{:02} +0100] \"GET /products/{n}?page={} HTTP/1.1\" 200 {} \
             \"https://www.example.com/search?q={n}\" \"Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 \
             Firefox/115.0\"\n",
            n % 256,
            minute(n),
            n % 60,
            n % 10,
            n * 7 % 100_000
        )
    });
    measure(format("nginx_error"), |n| {
        format!(
            "2024/03/01 12:{:02}:{:02} [error] {n}#{n}: *{n} open() failed (2: No such file), client: 203.0.113.{}, \
             server: shop, request: \"GET /{n} HTTP/1.1\", host: \"shop\"\n",
            minute(n),
            n % 60,
            n % 256
        )
    });
    measure(format("apache_error"), |n| {
        format!(
            "[Fri Mar 01 12:{:02}:{:02}.902022 2024] [core:error] [pid {n}:tid {n}] [client 203.0.113.{}:80] AH00126: \
             Invalid URI {n}\n",
            minute(n),
            n % 60,
            n % 256
        )
    });
    measure(format("haproxy"), |n| {
        format!(
            "Mar  1 12:{:02}:{:02} lb haproxy[7]: 10.0.1.2:33317 [01/Mar/2024:12:14:14.655] in static/srv1 10/0/30/69/{n} \
             200 {n} - - ---- 1/1/1/1/0 0/0 \"GET /{n} HTTP/1.1\"\n",
            minute(n),
            n % 60
        )
    });
    measure(format("cri"), |n| {
        format!("2024-03-01T12:{:02}:{:02}.669794202Z stdout F request {n} done\n", minute(n), n % 60)
    });
    measure(format("klog"), |n| {
        format!("I0301 12:{:02}:{:02}.678901    1234 server.go:123] request {n} done\n", minute(n), n % 60)
    });
    measure(format("syslog"), |n| {
        format!("Mar  1 12:{:02}:{:02} web1 app[{n}]: request {n} took {} ms\n", minute(n), n % 60, n % 1000)
    });
    measure(format("logfmt"), |n| {
        format!("ts=2024-03-01T12:{:02}:{:02}Z level=info msg=\"request done\" id={n} ms=1.5\n", minute(n), n % 60)
    });
    measure(format("json"), |n| {
        format!(
            "{{\"time\":\"2024-03-01T12:{:02}:{:02}Z\",\"level\":\"info\",\"msg\":\"request done\",\"req\":{{\"id\":{n}}}}}\n",
            minute(n),
            n % 60
        )
    });
    measure(format("csvlog"), |n| {
        format!(
            "2024-03-01 12:{:02}:{:02}.123 UTC,\"app\",\"shop\",{n},\"192.0.2.1:5000\",6b07b273.31ae,4,\"SELECT\",2024-03-01 \
             12:00:00 UTC,3/3,0,LOG,00000,\"duration: 0.257 ms  statement: select \"\"a\"\" from t where id = \
             {n}\",,,,,,,,,\"psql\",\"client backend\",,{n}\n",
            minute(n),
            n % 60
        )
    });
    measure(format("postgresql"), |n| {
        format!(
            "2024-03-01 12:{:02}:{:02}.123 UTC [{n}] app@shop LOG:  duration: 0.257 ms  statement: select {n}\n",
            minute(n),
            n % 60
        )
    });
    let pattern = r"^(?<time>\S+ \S+) \[(?<level>\w+)\] (?<pid__int>\d+)#\d+: (?<message>.*)";
    let pattern = LinePattern::new(pattern, &[]).expect("a pattern");
    measure(LogFormat::Pattern(Arc::new(pattern)), |n| {
        format!("2024/03/01 12:{:02}:{:02} [error] {n}#{n}: *{n} open() failed (2: No such file)\n", minute(n), n % 60)
    });
}
