//! `tidegate doctor`: what works, and what to mend.

use super::ConfiguredFolder;

#[test]
fn valid_setup_passes() {
    let configured = ConfiguredFolder::new("server: {listen: '127.0.0.1:0'}\ndatabases: [{name: shop, files: shop}]\n");
    let ran = configured.run(&["doctor"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let folder = configured.folder().canonicalize().unwrap();
    insta::assert_snapshot!(ran.stdout.replace(&folder.display().to_string(), "FOLDER"), @r"
    ok     configuration FOLDER/tidegate.yaml: 0 tools of your own
    ok     database shop: 2 tables
    ok     callers over HTTP need no key; therefore only this machine is listened to
    ok     10 tools, and a call was answered
    ok     127.0.0.1:0 is free to listen on, for mcp, sse, ws, rest, console, metrics
    ");
}

#[test]
fn problems_come_with_fixes() {
    let configured = ConfiguredFolder::new(
        "server: {listen: '127.0.0.1:0'}\ndatabases: [{name: shop, files: shop}]\nroles: [{name: a}]\nauth: {keys: keys.json, local: [a]}\n",
    );
    std::fs::write(configured.folder().join("shop/broken.parquet"), "no parquet").unwrap();
    let ran = configured.run(&["doctor"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let folder = configured.folder().canonicalize().unwrap();
    insta::assert_snapshot!(ran.stdout.replace(&folder.display().to_string(), "FOLDER"), @r"
    ok     configuration FOLDER/tidegate.yaml: 0 tools of your own
    ok     database shop: 3 tables
    WRONG  table shop.broken cannot be read: it is not a readable Parquet file: Invalid Parquet file. Corrupt footer
    WRONG  nobody has a key yet: tidegate key add NAME --role ROLE
    WRONG  the user of this process reaches no tool; look at auth.local and its roles
    ok     127.0.0.1:0 is free to listen on, for mcp, sse, ws, rest, console, metrics
    ");
}

#[test]
fn a_database_without_rows_comes_with_the_way_to_the_first() {
    let configured = ConfiguredFolder::new("databases: [{name: plant, ingest: plant}]\n");
    let empty = "mind   database plant has no tables: no rows have come in yet; the first ones make a table: tidegate import \
                 FILE --to DATABASE.TABLE --create, or POST /data/DATABASE/TABLE of the server";
    assert_eq!(report_lines(&configured, "plant", 0), empty, "the folder does not exist");
    std::fs::create_dir(configured.folder().join("plant")).unwrap();
    assert_eq!(report_lines(&configured, "plant", 0), empty);
    std::fs::write(configured.folder().join("rows.ndjson"), "{\"id\": 1}\n").unwrap();
    let stored = configured.run(&["import", "rows.ndjson", "--to", "plant.sensors", "--create", "--yes"]);
    assert_eq!(stored.code, Some(0), "{stored:?}");
    assert_eq!(report_lines(&configured, "plant", 0), "ok     database plant: 1 tables");
}

/// A folder with a certificate of these years, its key, and a configuration with `more`.
fn tls_configuration(from: i32, until: i32, more: &str) -> ConfiguredFolder {
    let configured = ConfiguredFolder::new(&format!(
        "server: {{listen: '127.0.0.1:0', tls: {{certificate: cert.pem, key: key.pem}}}}\ndatabases: [{{name: shop, files: shop}}]\n{more}"
    ));
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    (params.not_before, params.not_after) = (rcgen::date_time_ymd(from, 1, 1), rcgen::date_time_ymd(until, 1, 1));
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    std::fs::write(configured.folder().join("cert.pem"), certificate).unwrap();
    std::fs::write(configured.folder().join("key.pem"), key.serialize_pem()).unwrap();
    configured
}

/// The lines of `tidegate doctor` that speak of `what`.
fn report_lines(configured: &ConfiguredFolder, subject: &str, code: i32) -> String {
    let ran = configured.run(&["doctor"]);
    assert_eq!(ran.code, Some(code), "{ran:?}");
    let folder = configured.folder().canonicalize().unwrap();
    let lines = ran.stdout.lines().filter(|line| line.contains(subject));
    lines.collect::<Vec<_>>().join("\n").replace(&folder.display().to_string(), "FOLDER")
}

#[test]
fn reports_invalid_certificates() {
    let good = report_lines(&tls_configuration(2020, 4000, ""), "certificate ", 0);
    insta::assert_snapshot!(good, @"ok     certificate FOLDER/cert.pem is good until 4000-01-01T00:00:00Z");
    let over = report_lines(&tls_configuration(2020, 2021, ""), "certificate ", 1);
    insta::assert_snapshot!(over, @"WRONG  certificate FOLDER/cert.pem is good no longer, since 2021-01-01T00:00:00Z: clients refuse it");
    let early = report_lines(&tls_configuration(3000, 4000, ""), "certificate ", 1);
    insta::assert_snapshot!(early, @"WRONG  certificate FOLDER/cert.pem is not good before 3000-01-01T00:00:00Z: clients refuse it, or a clock is wrong");
    let configured = tls_configuration(2020, 4000, "");
    std::fs::write(configured.folder().join("key.pem"), rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let text = configured.usage_error(&["doctor"]);
    assert!(text.contains("cert.pem does not match the private key"), "{text}");
}

/// Reads a request to the end of its body. If a part of it were unread at the end, the client could lose the answer.
fn read_request(stream: &mut std::net::TcpStream) {
    use std::io::Read as _;
    let (mut request, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
            if body.len() >= length.unwrap_or(0) {
                return;
            }
        }
        match stream.read(&mut chunk) {
            Ok(read) if read > 0 => request.extend_from_slice(&chunk[..read]),
            _ => return,
        }
    }
}

/// Answers each request with `body`, as long as the test lasts.
fn issuer(body: &'static str) -> String {
    use std::io::Write as _;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            read_request(&mut stream);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
            let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    format!("http://{address}")
}

#[test]
fn reports_misbehaving_issuer() {
    let message = |how: &str, code: i32| {
        let tokens = format!("{{issuer: 'https://login.example', audience: a, algorithms: [EdDSA, RS256], {how}}}");
        let configured = ConfiguredFolder::new(&format!(
            "server: {{listen: '127.0.0.1:0'}}\ndatabases: [{{name: shop, files: shop}}]\nroles: [{{name: a, toolsets: ['*'], databases: ['*']}}]\nauth: {{local: [a], tokens: {tokens}}}\n"
        ));
        report_lines(&configured, "login.example", code)
    };
    let key = r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    insta::assert_snapshot!(message(&format!("jwks_url: '{}'", issuer(key)), 0), @r"
    ok     the issuer https://login.example shows 1 keys
    mind   none of the keys of https://login.example is for RS256 (auth.tokens.algorithms)
    ");
    insta::assert_snapshot!(message(&format!("jwks_url: '{}'", issuer("[]")), 1), @"WRONG  the issuer https://login.example is unreachable, and new tokens are rejected: this is not a JWKS: it must be a JSON object with a list named keys");
    let requested = |answer| format!("introspection: {{url: '{}', client_id: a, client_secret: b}}", issuer(answer));
    insta::assert_snapshot!(message(&requested(r#"{"active": false}"#), 0), @"ok     the issuer https://login.example answers about tokens");
    insta::assert_snapshot!(message(&requested(r#"{"active": true}"#), 1), @"WRONG  the issuer https://login.example is unreachable, and new tokens are rejected: it reports a text that is not a token as active: any bearer would be admitted");
    let nowhere = message("jwks_url: 'http://127.0.0.1:9/keys'", 1);
    assert!(nowhere.contains("new tokens are rejected: it cannot be reached: "), "{nowhere}");
}
