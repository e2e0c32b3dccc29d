//! Certificates and the word of proxies, and what comes before what.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tidegate_auth::{
    CertificateName, CertificateRule, Doorkeeper, Gate, GateError, GateOptions, KeyFile, Network, ProxyOptions,
    ProxyOptionsError,
};
use tidegate_core::{Authenticator, ClientCertificate, Credentials, Principal, Proof, Unauthenticated};

use crate::scene::{MovedClock, NOW, role, show_all};
use Unauthenticated::{Invalid, Missing};

type Found = Result<Arc<Principal>, Unauthenticated>;

fn certificate(subject: &str, alternative_names: &[&str]) -> ClientCertificate {
    ClientCertificate {
        subject: subject.to_owned(),
        alternative_names: alternative_names.iter().map(|name| (*name).to_owned()).collect(),
        sha256: "00".repeat(32),
        expires: SystemTime::UNIX_EPOCH + Duration::from_secs(NOW as u64 + 60),
    }
}

fn rule(name: &str, holds: CertificateName, roles: &[&str]) -> CertificateRule {
    let roles = roles.iter().map(|role| (*role).to_owned()).collect();
    CertificateRule { name: name.to_owned(), holds, roles, tenant: None }
}

fn subject(text: &str) -> CertificateName {
    CertificateName::Subject(text.to_owned())
}

fn alternative(text: &str) -> CertificateName {
    CertificateName::AlternativeName(text.to_owned())
}

fn proxy() -> ProxyOptions {
    ProxyOptions {
        networks: ["10.0.0.5", "10.1.0.0/16", "fd00::/8"].iter().map(|network| network.parse().unwrap()).collect(),
        user: "X-Forwarded-User".to_owned(),
        tenant: Some("x-forwarded-tenant".to_owned()),
        roles: Some("x-forwarded-groups".to_owned()),
    }
}

fn options() -> GateOptions {
    let robot = CertificateRule {
        tenant: Some("north".to_owned()),
        ..rule("robot", alternative("uri:spiffe://example/robot"), &["reader"])
    };
    GateOptions {
        certificates: vec![rule("etl", subject("CN=etl, O=Example"), &["loader"]), robot],
        proxy: Some(proxy()),
        roles: vec![role("reader", serde_json::json!({})), role("loader", serde_json::json!({}))],
        clock: MovedClock::new().clock(),
        ..GateOptions::default()
    }
}

fn gate(options: GateOptions) -> Gate {
    Gate::new(options).unwrap()
}

fn with_certificate(gate: &Gate, certificate: &ClientCertificate) -> Found {
    show_all(gate, Credentials { certificate: Some(certificate), ..Credentials::default() })
}

/// What a request with these headers gets that comes from `peer`.
fn through(gate: &Gate, peer: &str, headers: &[(&str, &str)]) -> Found {
    let asserted: Vec<(String, String)> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let peer: IpAddr = peer.parse().unwrap();
    show_all(gate, Credentials { peer: Some(peer), asserted: &asserted, ..Credentials::default() })
}

#[test]
fn subject_or_alternative_name_say_who_it_is() {
    let gate = gate(options());
    let etl = with_certificate(&gate, &certificate("CN=etl,O=Example", &["dns:etl.example"])).unwrap();
    assert_eq!((etl.subject.as_str(), etl.proof, etl.tenant.as_deref()), ("etl", Proof::Certificate, None));
    assert!(etl.grants.entries.includes("loader_a") && !etl.grants.entries.includes("reader_a"));
    let names = ["dns:x", "uri:spiffe://example/robot"];
    let robot = with_certificate(&gate, &certificate("CN=whatever", &names)).unwrap();
    assert_eq!((robot.subject.as_str(), robot.tenant.as_deref()), ("robot", Some("north")));
    let both = with_certificate(&gate, &certificate("CN=etl,O=Example", &names)).unwrap();
    assert_eq!(both.subject, "etl", "the first one counts");
}

#[test]
fn a_certificate_of_nobody_is_refused() {
    let gate = gate(GateOptions { anonymous: vec!["reader".to_owned()], ..options() });
    for wrong in [
        certificate("CN=etl", &[]),
        certificate("CN=etl,O=Other", &[]),
        certificate("CN=ETL,O=Example", &[]),
        certificate("O=Example,CN=etl", &[]),
        certificate("CN=etl,O=Example,C=DE", &[]),
        certificate(r"CN=etl\,O=Example", &[]),
        certificate("", &["dns:spiffe://example/robot", "uri:spiffe://example/robots", "spiffe://example/robot"]),
        certificate("", &[]),
    ] {
        assert_eq!(with_certificate(&gate, &wrong), Err(Invalid), "{wrong:?}");
    }
    // Where none is known, none is asked for, and what is shown is no reason to refuse anybody.
    let indifferent =
        self::gate(GateOptions { certificates: Vec::new(), anonymous: vec!["reader".to_owned()], ..options() });
    assert_eq!(with_certificate(&indifferent, &certificate("CN=etl", &[])).unwrap().proof, Proof::Anonymous);
}

#[test]
fn a_certificate_that_has_expired_since_the_connection_was_opened_is_refused() {
    let clock = MovedClock::new();
    let gate = gate(GateOptions { anonymous: vec!["reader".to_owned()], clock: clock.clock(), ..options() });
    let etl = certificate("CN=etl,O=Example", &[]);
    clock.pass(59);
    assert!(with_certificate(&gate, &etl).is_ok());
    clock.pass(1);
    assert_eq!(with_certificate(&gate, &etl), Err(Invalid));
}

#[test]
fn certificates_that_fit_nothing_or_the_same_make_no_gate() {
    let error = |certificates: Vec<CertificateRule>| {
        Gate::new(GateOptions { certificates, ..options() }).err().unwrap().to_string()
    };
    let empty = GateError::EmptyCertificate.to_string();
    assert_eq!(error(vec![rule("etl", subject(" "), &[])]), empty);
    assert_eq!(error(vec![rule("etl", alternative(""), &[])]), empty);
    assert_eq!(error(vec![rule("", subject("CN=etl"), &[])]), empty);
    assert_eq!(
        error(vec![rule("a", subject("CN=etl,O=x"), &[]), rule("b", subject("cn=etl, o=x"), &[])]),
        "two certificates have the subject \"CN=etl,O=x\"; only the first would count"
    );
    assert_eq!(
        error(vec![rule("etl", subject("CN=etl"), &["raeder"])]),
        "etl callers shall have the role \"raeder\", which is not defined; did you mean \"reader\"?"
    );
}

#[test]
fn a_believed_proxy_says_who_calls() {
    let gate = gate(options());
    let headers = [
        ("x-forwarded-user", "ann"),
        ("x-forwarded-tenant", "north"),
        ("x-forwarded-groups", "reader, other,,loader "),
    ];
    for peer in ["10.0.0.5", "10.1.255.255", "::ffff:10.0.0.5", "fd12::1"] {
        let ann = through(&gate, peer, &headers).unwrap();
        assert_eq!((ann.subject.as_str(), ann.proof, ann.tenant.as_deref()), ("ann", Proof::Proxy, Some("north")));
        assert_eq!(ann.roles.iter().collect::<Vec<_>>(), ["loader", "reader"], "{peer}");
    }
    let bare = through(&gate, "10.0.0.5", &[("X-Forwarded-User", "ann")]).unwrap();
    assert!(bare.roles.is_empty() && bare.tenant.is_none());
}

#[test]
fn from_anywhere_else_the_same_headers_count_for_nothing() {
    let gate = gate(GateOptions { anonymous: vec!["reader".to_owned()], ..options() });
    let headers = [("x-forwarded-user", "ann"), ("x-forwarded-groups", "loader")];
    let twice = [("x-forwarded-user", "ann"), ("x-forwarded-user", "bob")];
    for peer in ["10.0.0.4", "10.2.0.0", "127.0.0.1", "::ffff:10.0.0.4", "fe80::1", "::a00:5", "192.0.2.1"] {
        assert_eq!(through(&gate, peer, &headers).unwrap().proof, Proof::Anonymous, "{peer}");
        assert_eq!(through(&gate, peer, &twice).unwrap().proof, Proof::Anonymous, "{peer}");
    }
    let asserted = [("x-forwarded-user".to_owned(), "ann".to_owned())];
    let nowhere = show_all(&gate, Credentials { asserted: &asserted, ..Credentials::default() });
    assert_eq!(nowhere.unwrap().proof, Proof::Anonymous, "nobody knows where it comes from");
}

#[test]
fn a_proxy_that_is_not_clear_is_refused() {
    let gate = gate(GateOptions { anonymous: vec!["reader".to_owned()], ..options() });
    let long = "a".repeat(257);
    let many = "a,".repeat(300);
    let cases: [&[(&str, &str)]; 10] = [
        &[("x-forwarded-user", "ann"), ("x-forwarded-user", "bob")],
        &[("x-forwarded-user", "ann"), ("X-Forwarded-User", "ann")],
        &[("x-forwarded-user", "")],
        &[("x-forwarded-user", "  ")],
        &[("x-forwarded-user", "a\u{7}b")],
        &[("x-forwarded-user", &long)],
        &[("x-forwarded-user", "ann"), ("x-forwarded-tenant", "")],
        &[("x-forwarded-user", "ann"), ("x-forwarded-groups", "a"), ("x-forwarded-groups", "b")],
        &[("x-forwarded-user", "ann"), ("x-forwarded-groups", &many)],
        &[("x-forwarded-groups", "loader")],
    ];
    for headers in cases {
        assert_eq!(through(&gate, "10.0.0.5", headers), Err(Invalid), "{headers:?}");
    }
    assert_eq!(through(&gate, "10.0.0.5", &[]).unwrap().proof, Proof::Anonymous, "it names nobody");
    let strict = self::gate(options());
    assert_eq!(through(&strict, "10.0.0.5", &[]), Err(Missing));
}

#[test]
fn a_bearer_comes_before_a_certificate_before_a_proxy_before_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let keys = KeyFile::new(folder.path().join("keys.json"));
    let key = keys.add_to(Some("south"), "ada", &[], None).unwrap().key;
    let gate = gate(GateOptions { keys: Some(keys), ..options() });
    let (etl, other) = (certificate("CN=etl,O=Example", &[]), certificate("CN=proxy", &[]));
    let asserted = [("x-forwarded-user".to_owned(), "ann".to_owned())];
    let peer = Some("10.0.0.5".parse().unwrap());
    let found = |bearer: Option<&str>, certificate: Option<&ClientCertificate>| {
        let shown = Credentials { bearer, peer, certificate, asserted: &asserted };
        show_all(&gate, shown).map(|principal| principal.subject.clone())
    };
    assert_eq!(found(Some(key.expose()), Some(&etl)), Ok("ada".to_owned()));
    assert_eq!(found(Some("wrong"), Some(&etl)), Err(Invalid), "a bad key is not saved by the rest");
    assert_eq!(found(Some(""), None), Err(Invalid));
    assert_eq!(found(None, Some(&etl)), Ok("etl".to_owned()));
    assert_eq!(found(None, Some(&other)), Ok("ann".to_owned()), "the certificate is the proxy's own");
    assert_eq!(found(None, None), Ok("ann".to_owned()));
    assert_eq!(show_all(&gate, Credentials::default()), Err(Missing));
}

#[test]
fn an_open_gate_believes_nobody() {
    let open = Gate::new(GateOptions { is_open: true, ..options() }).unwrap();
    let asserted = [("x-forwarded-user".to_owned(), "ann".to_owned())];
    let etl = certificate("CN=etl,O=Example", &[]);
    let shown = Credentials {
        bearer: Some("wrong"),
        peer: Some("10.0.0.5".parse().unwrap()),
        certificate: Some(&etl),
        asserted: &asserted,
    };
    assert_eq!(show_all(&open, shown).unwrap().proof, Proof::Anonymous);
}

#[test]
fn the_headers_that_are_read_are_told_in_lower_case() {
    let doorkeeper = Doorkeeper::new(gate(options()));
    assert_eq!(
        *doorkeeper.asserting_headers().unwrap(),
        ["x-forwarded-user", "x-forwarded-tenant", "x-forwarded-groups"]
    );
    doorkeeper.swap(Gate::new(GateOptions::default()).unwrap());
    assert!(doorkeeper.asserting_headers().is_none());
}

#[test]
fn proxies_that_everybody_could_be_make_no_gate() {
    let error = |proxy: ProxyOptions| match Gate::new(GateOptions { proxy: Some(proxy), ..options() }) {
        Err(GateError::Proxy(error)) => error,
        _ => panic!("there is a gate"),
    };
    assert_eq!(error(ProxyOptions { networks: Vec::new(), ..proxy() }), ProxyOptionsError::NoNetworks);
    for name in ["", "x forwarded", "x-user:", "Authorization", "cookie", "é"] {
        let wrong = error(ProxyOptions { user: name.to_owned(), ..proxy() });
        assert_eq!(wrong, ProxyOptionsError::BadHeader(name.to_owned()));
    }
    let twice = error(ProxyOptions { roles: Some("X-Forwarded-USER".to_owned()), ..proxy() });
    assert_eq!(twice, ProxyOptionsError::DuplicateHeader("x-forwarded-user".to_owned()));
}

#[test]
fn networks_are_read_in_one_way() {
    for text in ["10.0.0.5", "10.1.0.0/16", "::1", "fd00::/8", "128.0.0.0/1", "::ffff:10.0.0.5"] {
        assert!(text.parse::<Network>().is_ok(), "{text}");
    }
    for (text, error) in [
        ("", "\"\" is no address or network such as 10.0.0.5, 10.1.0.0/16 or fd00::/8"),
        ("10.1", "\"10.1\" is no address or network such as 10.0.0.5, 10.1.0.0/16 or fd00::/8"),
        ("10.0.0.0/33", "\"10.0.0.0/33\" is no address or network such as 10.0.0.5, 10.1.0.0/16 or fd00::/8"),
        ("10.0.0.0/-1", "\"10.0.0.0/-1\" is no address or network such as 10.0.0.5, 10.1.0.0/16 or fd00::/8"),
        ("host", "\"host\" is no address or network such as 10.0.0.5, 10.1.0.0/16 or fd00::/8"),
        ("10.1.2.3/16", "\"10.1.2.3/16\" sets bits after the first 16; the network would be 10.1.0.0/16"),
        ("fd00::1/8", "\"fd00::1/8\" sets bits after the first 8; the network would be fd00::/8"),
        ("0.0.0.0/0", "\"0.0.0.0/0\" is everybody; name the addresses of your proxies"),
        ("::/0", "\"::/0\" is everybody; name the addresses of your proxies"),
    ] {
        assert_eq!(text.parse::<Network>().unwrap_err().to_string(), error);
    }
}
