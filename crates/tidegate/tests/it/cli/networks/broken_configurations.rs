//! Configurations of networks that are refused, each with the whole message that a person sees.

use super::super::ConfiguredFolder;

const NODE: &str = "{name: oslo, url: 'grpc://127.0.0.1:7071'}";

/// What is wrong, and the keys of the database.
const BROKEN: &[(&str, &str)] = &[
    ("no TLS beyond this machine", "network: {nodes: [{name: oslo, url: 'grpc://oslo:7071'}]}"),
    ("no URL", "network: {nodes: [{name: oslo, url: 'oslo'}, {name: rome, url: 'ftp://rome:1'}]}"),
    ("no nodes", "network: {nodes: []}"),
    ("a name twice", "network: {nodes: [NODE, {name: oslo, url: 'grpc://127.0.0.1:7072'}]}"),
    ("a name that is none", "network: {nodes: [{name: 'os lo', url: 'grpc://127.0.0.1:7072'}]}"),
    ("a server twice", "network: {nodes: [NODE, {name: rome, url: 'http://127.0.0.1:7071/'}]}"),
    (
        "a replica that is the node itself",
        "network: {nodes: [{name: oslo, url: 'grpc://127.0.0.1:7071', replicas: ['grpc://127.0.0.1:7072', \
         'grpc+tcp://127.0.0.1:7071']}]}",
    ),
    ("unknown keys", "network: {nodes: [{name: oslo, url: 'grpc://127.0.0.1:1', replica: a}], partially: allow}"),
    ("another mode", "network: {nodes: [NODE], partial: maybe}"),
    ("both credentials", "network: {nodes: [NODE], token: t, trust: {issuer: i, key: k, algorithm: HS256}}"),
    ("an audience without trust", "network: {nodes: [{name: oslo, url: 'grpc://127.0.0.1:1', audience: a}]}"),
    (
        "a token beside trust",
        "network: {nodes: [{name: oslo, url: 'grpc://127.0.0.1:1', token: t}], trust: {issuer: i, key: \
         0123456789abcdef0123456789abcdef, algorithm: HS256}}",
    ),
    ("a key that is none", "network: {nodes: [NODE], trust: {issuer: i, key: k}}"),
    ("an algorithm that is none", "network: {nodes: [NODE], trust: {issuer: i, key: k, algorithm: none}}"),
    ("an issuer without a name", "network: {nodes: [NODE], trust: {issuer: '', key: k}}"),
    (
        "rows that cannot be",
        "network: {nodes: [{name: a, url: 'grpc://127.0.0.1:1', holds: {}}, {name: b, url: 'grpc://127.0.0.1:2', \
         holds: {site: []}}, {name: c, url: 'grpc://127.0.0.1:3', holds: {time: {}, n: {from: 2, before: 1}, site: \
         [a, a]}}]}",
    ),
    (
        "rows of another form",
        "network: {nodes: [{name: a, url: 'grpc://127.0.0.1:1', holds: {time: {after: 1}, site: [[a]], n: ~}}, \
         {name: b, url: 'grpc://127.0.0.1:2', holds: [site]}]}",
    ),
    ("a time that no call waits", "network: {nodes: [NODE], timeout: 2h}"),
    ("files that are not there", "network: {nodes: [NODE], tls: {authorities: gone.pem, certificate: cert.pem}}"),
    ("keys of another kind", "network: {nodes: [NODE]}, token: t, catalog: c, policies: [{table: t, rows: 'TRUE'}]"),
    ("two kinds", "network: {nodes: [NODE]}, flight_sql: 'grpc://127.0.0.1:1'"),
    ("a third kind", "flight_sql: 'grpc://127.0.0.1:1', files: shop"),
    ("a server without TLS", "flight_sql: ['grpc+tls://lake.example:443', 'http://lake.example:80']"),
    ("no server", "flight_sql: []"),
    ("an unknown dialect", "flight_sql: 'grpc://127.0.0.1:1', dialect: mysql"),
    ("keys without a server", "files: shop, token: t, catalog: c, dialect: sqlite, timeout: 1s, tls: {authorities: a}"),
];

#[test]
fn broken_networks_are_refused_with_their_position() {
    let configured = ConfiguredFolder::new("");
    let section = |(subject, keys): &(&str, &str)| {
        let text = format!("databases: [{{name: sites, {}}}]\n", keys.replace("NODE", NODE));
        configured.write(&text);
        let output = configured.usage_error(&["config", "check"]);
        let output = output.strip_prefix("error: the configuration cannot be used\n").unwrap_or(&output).to_owned();
        format!("## {subject}\n{text}\n{output}")
    };
    insta::assert_snapshot!("broken_networks", BROKEN.iter().map(section).collect::<Vec<_>>().join("\n"));
}
