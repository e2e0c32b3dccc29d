//! A server as its clients reach it: its URL, the bearer token of the caller, an HTTP client with the authorities that it
//! trusts, and refusals that concern the caller or the address, with the server's own error message as a part of ours.
//!
//! A token is sent, but never displayed. Errors of TLS that another attempt does not mend are recognised.

use std::error::Error;
use std::fmt::{self, Display};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::{Client, ClientBuilder, Response, Url};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use serde_json::Value;
use tidegate_core::is_bearer_token;
use tidegate_http_client::client_builder;

/// Why a text is not a valid address. The error does not repeat the text, which may contain a password or the token of
/// a link.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the messages document the variants")]
pub enum AddressError {
    #[error("not a valid URL ({reason}); an example is {example}")]
    NotAUrl { reason: String, example: &'static str },
    #[error(
        "the URL contains a user name or a password, which is visible in process lists and logs; \
         use --bearer, or TIDEGATE_BEARER in the environment"
    )]
    ContainsCredentials,
    #[error("tidegate:// is the URI of a result in MCP; use http://HOST/results/ID of the same server")]
    McpResourceUri,
    #[error("the scheme {scheme:?} is not supported; use {supported}")]
    UnsupportedScheme { scheme: String, supported: String },
    #[error("the URL has no host; an example is {example}")]
    NoHost { example: &'static str },
    #[error("the URL is not the URL of a result: its path must end in /results/ID or /results/ID/data")]
    NoResult,
}

/// Parses a URL without credentials that has one of `schemes`. `example` is for the error message.
pub(crate) fn parse_url(text: &str, schemes: &[&str], example: &'static str) -> Result<Url, AddressError> {
    let url = Url::parse(text.trim()).map_err(|error| AddressError::NotAUrl { reason: error.to_string(), example })?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(AddressError::ContainsCredentials);
    }
    match url.scheme() {
        scheme if schemes.contains(&scheme) => {}
        "tidegate" => return Err(AddressError::McpResourceUri),
        scheme => {
            return Err(AddressError::UnsupportedScheme { scheme: scheme.to_owned(), supported: schemes.join(", ") });
        }
    }
    if host(&url).is_empty() {
        return Err(AddressError::NoHost { example });
    }
    Ok(url)
}

/// The host without the brackets of an IPv6 address.
pub(crate) fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default().trim_matches(['[', ']'])
}

/// Whether requests leave this machine unencrypted.
pub(crate) fn is_sent_unencrypted(url: &Url) -> bool {
    let host = host(url);
    let is_loopback =
        host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    matches!(url.scheme(), "http" | "ws") && !is_loopback
}

/// A bearer token. Neither [`Debug`](std::fmt::Debug) nor any message contains it.
#[derive(Clone)]
pub struct BearerToken(HeaderValue);

/// The text is not a valid bearer token. The error does not repeat it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a bearer token is one word of letters, digits and -._~+/, without \"Bearer\" before it")]
pub struct BearerTokenError;

impl BearerToken {
    /// Parses the token in `text`, ignoring surrounding white space.
    ///
    /// # Errors
    /// When it is empty, or contains a character that is not allowed.
    pub fn parse(text: &str) -> Result<Self, BearerTokenError> {
        let token = text.trim();
        if !is_bearer_token(token) {
            return Err(BearerTokenError);
        }
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| BearerTokenError)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    pub(crate) fn header(&self) -> &HeaderValue {
        &self.0
    }

    pub(crate) fn token(&self) -> &str {
        self.0.to_str().ok().and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default()
    }
}

tidegate_core::impl_debug!(BearerToken, "Bearer(…)");

/// The authorities that a client trusts instead of those of the system. A server may be its own authority.
#[derive(Debug, Clone)]
pub struct TrustedAuthorities(Arc<ClientConfig>);

/// Why a file contains no authorities.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the certificates of {}: {reason}", .file.display())]
pub struct AuthoritiesError {
    file: PathBuf,
    reason: String,
}

impl TrustedAuthorities {
    /// Reads their certificates, in PEM format.
    ///
    /// # Errors
    /// When the file cannot be read, or contains no certificates.
    pub fn read(file: &Path) -> Result<Self, AuthoritiesError> {
        let unusable = |reason: &dyn Display| AuthoritiesError { file: file.to_owned(), reason: reason.to_string() };
        let bytes = std::fs::read(file).map_err(|error| unusable(&error))?;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&bytes) {
            // The message of the parser may quote the file.
            let certificate = certificate.map_err(|_| unusable(&"it is not in PEM format"))?;
            roots.add(certificate).map_err(|error| unusable(&error))?;
        }
        if roots.is_empty() {
            return Err(unusable(&"it contains no certificate in PEM format"));
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }

    fn apply(&self, builder: ClientBuilder) -> ClientBuilder {
        builder.tls_backend_preconfigured(ClientConfig::clone(&self.0))
    }

    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        self.0.clone()
    }
}

/// Why a request to the server fails, if another attempt would fail too. A server that has answered before speaks HTTP.
pub(crate) fn permanent_request_error(error: &reqwest::Error, has_answered: bool) -> Option<String> {
    let missing_tls = || missing_tls_error(error).filter(|_| !has_answered);
    permanent_tls_error(error).filter(|_| error.is_connect()).or_else(missing_tls)
}

/// Why TLS with the server fails, if another attempt would fail too.
pub(crate) fn permanent_tls_error(error: &(dyn Error + 'static)) -> Option<String> {
    find_tls_error(error).map(explain)
}

/// The error of a request without TLS to a server that uses TLS: it answers with an alert instead of HTTP.
pub(crate) fn missing_tls_error(error: &(dyn Error + 'static)) -> Option<String> {
    // The libraries have no error of their own for it.
    let is_no_http = std::iter::successors(Some(error), |error: &&(dyn Error + 'static)| (*error).source())
        .any(|error| error.to_string().contains("invalid HTTP version"));
    is_no_http.then(|| {
        "the server does not answer in HTTP at this address; if it uses TLS, its URL begins with https:// or wss://"
            .to_owned()
    })
}

fn find_tls_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return Some(error);
    }
    // An I/O error does not have the error in it as its source.
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => find_tls_error(inner),
        None => find_tls_error(error.source()?),
    }
}

fn explain(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(flaw) => explain_flaw(flaw),
        rustls::Error::InvalidMessage(_) => {
            "the server does not use TLS at this address; its URL begins with http:// or ws://".to_owned()
        }
        other => format!("the server refuses TLS: {other}"),
    }
}

fn explain_flaw(flaw: &CertificateError) -> String {
    match flaw {
        // A bad signature, or one for another kind of key: an authority with the same name, often localhost, is known here.
        CertificateError::UnknownIssuer
        | CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "the certificate of the server is signed by no known authority; --ca FILE names the certificate of its \
             authority, or its own if it is self-signed"
                .to_owned()
        }
        // The library has no variant of its own for it.
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "the certificate of the server is one of an authority; create it with basicConstraints=critical,CA:FALSE"
                .to_owned()
        }
        CertificateError::ExpiredContext { time, not_after } => format!(
            "the certificate of the server expired {} ago; renew it there, or correct the clock of this machine",
            describe_time(time.as_secs().saturating_sub(not_after.as_secs()))
        ),
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "the certificate of the server is valid only in {}; correct the clock of this machine or of the server",
            describe_time(not_before.as_secs().saturating_sub(time.as_secs()))
        ),
        CertificateError::NotValidForNameContext { expected, presented } if presented.is_empty() => {
            let (kind, name) =
                (if expected.to_str().parse::<IpAddr>().is_ok() { "IP" } else { "DNS" }, expected.to_str());
            format!("the certificate of the server names no host; create it with subjectAltName={kind}:{name}")
        }
        CertificateError::NotValidForNameContext { expected, presented } => format!(
            "the certificate of the server is for {}, not for {}; use one of its names in the URL, or a certificate \
             that has this name too",
            presented.iter().map(|name| plain_name(name)).collect::<Vec<_>>().join(", "),
            expected.to_str()
        ),
        CertificateError::UnsupportedSignatureAlgorithmContext { .. } => {
            "the certificate of the server has a signature that is no longer safe; create it with SHA-256".to_owned()
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the certificate of the server is not one for servers; create it with extendedKeyUsage=serverAuth"
                .to_owned()
        }
        other => format!(
            "the certificate of the server is not valid ({}); create it anew with subjectAltName, and name it by --ca FILE \
             if no known authority signs it",
            flaw_name(other)
        ),
    }
}

/// The name that the library gives a flaw, without its values.
fn flaw_name(flaw: &CertificateError) -> String {
    let text = match flaw {
        CertificateError::Other(inner) => inner.to_string(),
        flaw => format!("{flaw:?}"),
    };
    text.split([' ', '(']).next().unwrap_or_default().to_owned()
}

/// `name` as in a URL. The library writes `DnsName("a.example.com")`.
fn plain_name(name: &str) -> &str {
    let inner = name.split_once('(').map_or(name, |(_, inner)| inner);
    inner.trim_matches([')', '"'])
}

fn describe_time(seconds: u64) -> String {
    let (number, unit) = match seconds {
        0..120 => (seconds, "seconds"),
        120..7_200 => (seconds / 60, "minutes"),
        7_200..172_800 => (seconds / 3_600, "hours"),
        _ => (seconds / 86_400, "days"),
    };
    format!("{number} {unit}")
}

/// Interval of TCP keep-alive probes; a connection is lost after [`KEEP_ALIVE_TRIES`] unanswered ones.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);
const KEEP_ALIVE_TRIES: u32 = 3;
const REFUSAL_BYTES_MAX: usize = 64 * 1024;

/// Detects lost connections, and closes idle ones before a server does. Without `authorities`, it trusts those of the system.
pub(crate) fn http_client(
    connect_timeout: Duration,
    idle_timeout: Duration,
    authorities: Option<&TrustedAuthorities>,
) -> Result<Client, reqwest::Error> {
    let builder = client_builder();
    let builder = match authorities {
        Some(authorities) => authorities.apply(builder),
        None => builder,
    };
    builder
        .connect_timeout(connect_timeout)
        .tcp_keepalive(KEEP_ALIVE_EVERY)
        .tcp_keepalive_interval(KEEP_ALIVE_EVERY)
        .tcp_keepalive_retries(KEEP_ALIVE_TRIES)
        .pool_idle_timeout(idle_timeout)
        .build()
}

/// The body of a refusal, or the part of it that arrives within `timeout`: a part is enough for the message.
pub(crate) async fn read_refusal(mut response: Response, timeout: Duration) -> Vec<u8> {
    let mut body = Vec::new();
    let reading = async {
        while body.len() < REFUSAL_BYTES_MAX
            && let Ok(Some(chunk)) = response.chunk().await
        {
            body.extend_from_slice(&chunk);
        }
    };
    let _ = tokio::time::timeout(timeout, reading).await;
    body
}

/// Why a server refuses every request of this caller, or at this address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the variants")]
pub enum ServerRefusal {
    #[error(
        "the server requires authentication (401); pass --bearer TOKEN, \
         or set TIDEGATE_BEARER in the environment{message}"
    )]
    TokenRequired { message: ServerMessage },
    #[error("the server rejected the bearer token (401); check --bearer or TIDEGATE_BEARER{message}")]
    TokenRejected { message: ServerMessage },
    #[error("the server denied access (403); pass a token that has access with --bearer TOKEN{message}")]
    AccessDenied { message: ServerMessage },
    #[error("the server redirects ({status}), and redirects are not followed; use the target of the redirect")]
    Redirected { status: u16 },
}

impl ServerRefusal {
    /// The refusal for a status of HTTP. For any other status, the message of the server is returned as the error.
    pub(crate) fn from_status(status: u16, has_token: bool, message: ServerMessage) -> Result<Self, ServerMessage> {
        match status {
            401 if has_token => Ok(Self::TokenRejected { message }),
            401 => Ok(Self::TokenRequired { message }),
            403 => Ok(Self::AccessDenied { message }),
            300..=399 => Ok(Self::Redirected { status }),
            _ => Err(message),
        }
    }
}

const MESSAGE_CHARACTERS_MAX: usize = 500;
/// The maximum number of valid values in a message; the nearest come first.
const CHOICES_MAX: usize = 10;
/// The prefix of `type` in a problem document of Tidegate.
const PROBLEM_TYPE_PREFIX: &str = "tag:tidegate.dev,2026:problem/";
/// The name of the problem of a path that the server does not have.
const NO_SUCH_PATH: &str = "no_such_path";

/// The server's own message, bounded; it is appended to our message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerMessage {
    text: String,
    /// Whether Tidegate itself refused the request, and has its path.
    is_refused_call: bool,
}

impl ServerMessage {
    /// `text` without control characters and without `secret`.
    pub(crate) fn new(text: &str, secret: Option<&str>) -> Self {
        let text = match secret {
            Some(secret) if !secret.is_empty() => text.replace(secret, "…"),
            _ => text.to_owned(),
        };
        Self { text: sanitize(&text), is_refused_call: false }
    }

    /// The message of a JSON-RPC error, of a problem document, or of a plain text body.
    ///
    /// [RFC 9457](https://www.rfc-editor.org/rfc/rfc9457)
    pub(crate) fn from_body(body: &[u8], secret: Option<&str>) -> Self {
        let text = String::from_utf8_lossy(body);
        let Ok(problem) = serde_json::from_str::<Value>(&text) else {
            // HTML pages contain nothing useful here.
            return if text.trim_start().starts_with('<') { Self::default() } else { Self::new(&text, secret) };
        };
        if let Some(message) = problem["error"]["message"].as_str() {
            return Self::new(message, secret);
        }
        let name = problem["type"].as_str().and_then(|name| name.strip_prefix(PROBLEM_TYPE_PREFIX));
        let is_refused_call = name.is_some_and(|name| name != NO_SUCH_PATH);
        Self { is_refused_call, ..Self::new(&describe_problem(&problem), secret) }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the server refused the call itself: nothing runs, and the path is right.
    pub(crate) fn is_refused_call(&self) -> bool {
        self.is_refused_call
    }
}

/// The sentences of a problem document: what was wrong, the valid values, and the next step.
fn describe_problem(problem: &Value) -> String {
    let member = |name: &str| problem[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let items = |name: &str| problem[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let violations = items("violations")
        .iter()
        .filter_map(|violation| Some(format!("{}: {}", violation["path"].as_str()?, violation["message"].as_str()?)));
    let choices: Vec<&str> = items("choices").iter().filter_map(Value::as_str).take(CHOICES_MAX).collect();
    let choices = (!choices.is_empty()).then(|| format!("valid choices: {}", choices.join(", ")));
    let detail = member("detail").or_else(|| member("title"));
    detail.into_iter().chain(violations).chain(choices).chain(member("hint")).collect::<Vec<_>>().join("; ")
}

/// `text` of a server without control characters, bounded.
pub(crate) fn sanitize(text: &str) -> String {
    let printable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    printable.take(MESSAGE_CHARACTERS_MAX).collect::<String>().trim().to_owned()
}

impl fmt::Display for ServerMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.text.is_empty() { Ok(()) } else { write!(f, "; the server reports: {}", self.text) }
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;

    const EXAMPLE: &str = "http://127.0.0.1:7070/";

    fn parse(text: &str) -> Result<Url, AddressError> {
        parse_url(text, &["http", "https", "ws"], EXAMPLE)
    }

    #[test]
    fn errors_do_not_repeat_secrets() {
        for text in ["http://anna:secret@localhost/mcp", "http://:secret@localhost/mcp", "http://se%cret@[::1"] {
            let error = parse(text).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        assert_eq!(parse("http://a@localhost/mcp").unwrap_err(), AddressError::ContainsCredentials);
    }

    #[test]
    fn rejects_other_schemes() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(error("ftp://localhost/"), r#"the scheme "ftp" is not supported; use http, https, ws"#);
        assert_eq!(error("localhost:7070"), r#"the scheme "localhost" is not supported; use http, https, ws"#);
        assert_eq!(parse("tidegate://results/7").unwrap_err(), AddressError::McpResourceUri);
        for text in ["/mcp", "http://"] {
            assert!(matches!(parse(text).unwrap_err(), AddressError::NotAUrl { example: EXAMPLE, .. }), "{text}");
        }
    }

    #[test]
    fn detects_unencrypted_remote_servers() {
        let is_unencrypted = |text: &str| is_sent_unencrypted(&parse(text).unwrap());
        for remote in ["http://data.example.com/mcp", "ws://10.0.0.1/mcp/ws", "http://localhost.example.com/mcp"] {
            assert!(is_unencrypted(remote), "{remote}");
        }
        for local in ["http://localhost:7070/mcp", "http://127.0.0.9/mcp", "ws://[::1]:1/mcp", "https://example.com/"] {
            assert!(!is_unencrypted(local), "{local}");
        }
    }

    #[test]
    fn debug_output_redacts_the_token() {
        let bearer = BearerToken::parse(" tide_abc \n").unwrap();
        assert_eq!(bearer.header().as_bytes(), b"Bearer tide_abc");
        assert!(!format!("{bearer:?} {:?}", bearer.header()).contains("abc"));
        assert_eq!(bearer.token(), "tide_abc");
        for invalid in ["", " ", "two words", "Bearer abc", "abc\u{fc}", "a\"b", "a,b", "{abc}", "=abc"] {
            assert_eq!(BearerToken::parse(invalid).unwrap_err(), BearerTokenError);
        }
    }

    #[test]
    fn errors_of_certificates_are_found_within_others() {
        let tls = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let nested = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, tls));
        assert!(permanent_tls_error(&nested).is_some_and(|reason| reason.contains("--ca FILE")));
        let lost = io::Error::other(io::Error::from(io::ErrorKind::ConnectionReset));
        assert_eq!(permanent_tls_error(&lost), None);
    }

    #[test]
    fn flaws_of_certificates_have_advice() {
        let time = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let (expected, now) = (ServerName::try_from("data.example.com").unwrap(), time(10_000_000));
        let presented = vec!["DnsName(\"localhost\")".to_owned(), "IpAddress(127.0.0.1)".to_owned()];
        let flaws = [
            CertificateError::BadSignature,
            CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext {
                signature_algorithm_id: vec![1],
                public_key_algorithm_id: vec![2],
            },
            CertificateError::UnsupportedSignatureAlgorithmContext {
                signature_algorithm_id: vec![1],
                supported_algorithms: Vec::new(),
            },
            CertificateError::InvalidPurpose,
            CertificateError::BadEncoding,
            CertificateError::Other(rustls::OtherError(Arc::new(io::Error::other("UnsupportedCertVersion")))),
            CertificateError::ExpiredContext { time: now, not_after: time(10_000_000 - 259_200) },
            CertificateError::NotValidYetContext { time: now, not_before: time(10_000_090) },
            CertificateError::NotValidForNameContext { expected: expected.clone(), presented },
            CertificateError::NotValidForNameContext { expected, presented: Vec::new() },
        ];
        insta::assert_snapshot!(flaws.iter().map(explain_flaw).collect::<Vec<_>>().join("\n"), @"
        the certificate of the server is signed by no known authority; --ca FILE names the certificate of its authority, or its own if it is self-signed
        the certificate of the server is signed by no known authority; --ca FILE names the certificate of its authority, or its own if it is self-signed
        the certificate of the server has a signature that is no longer safe; create it with SHA-256
        the certificate of the server is not one for servers; create it with extendedKeyUsage=serverAuth
        the certificate of the server is not valid (BadEncoding); create it anew with subjectAltName, and name it by --ca FILE if no known authority signs it
        the certificate of the server is not valid (UnsupportedCertVersion); create it anew with subjectAltName, and name it by --ca FILE if no known authority signs it
        the certificate of the server expired 3 days ago; renew it there, or correct the clock of this machine
        the certificate of the server is valid only in 90 seconds; correct the clock of this machine or of the server
        the certificate of the server is for localhost, 127.0.0.1, not for data.example.com; use one of its names in the URL, or a certificate that has this name too
        the certificate of the server names no host; create it with subjectAltName=DNS:data.example.com
        ");
    }

    #[test]
    fn files_without_certificates_are_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for text in ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            std::fs::write(file.path(), text).unwrap();
            let error = TrustedAuthorities::read(file.path()).unwrap_err().to_string();
            assert!(error.starts_with("cannot use the certificates of /"), "{error}");
        }
        assert!(TrustedAuthorities::read(Path::new("no/such.pem")).is_err());
    }

    #[test]
    fn redacts_secrets_and_control_characters() {
        let text = |body: &str| ServerMessage::from_body(body.as_bytes(), Some("tide_abc")).to_string();
        let problem = r#"{"title":"There is no such thing","detail":"the result has expired","hint":"ask again"}"#;
        assert_eq!(text(problem), "; the server reports: the result has expired; ask again");
        assert_eq!(text(r#"{"id":null,"error":{"code":1,"message":"no"}}"#), "; the server reports: no");
        assert_eq!(text(r#"{"title":"Too many calls"}"#), "; the server reports: Too many calls");
        let choices = r#"{"detail":"there is no table \"fligths\"","violations":[{"path":"limit","message":"too large"}],
            "choices":["flights","planes"],"hint":"Call list_tables."}"#;
        let message = "; the server reports: there is no table \"fligths\"; limit: too large; valid choices: flights, \
                       planes; Call list_tables.";
        assert_eq!(text(choices), message);
        assert_eq!(text("no tide_abc\u{1b}[2Jhere\n"), "; the server reports: no … [2Jhere");
        assert_eq!(text("<html><body>502</body></html>"), "");
        assert_eq!(text(""), "");
        assert!(text(&"x".repeat(100_000)).len() < 600);
    }
}
