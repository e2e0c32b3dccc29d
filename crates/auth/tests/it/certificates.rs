//! Certificates, proxy headers, and their precedence.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tidegate_auth::{
    AuthenticatorError, AuthenticatorOptions, CertificateName, CertificateRule, CredentialAuthenticator, KeyFile,
    ProxyOptions, ReloadableAuthenticator, parse_trusted_network,
};

use AuthenticationError::{Invalid, Missing};
use tidegate_core::{AuthMethod, AuthenticationError, Authenticator, ClientCertificate, Credentials, Principal};
use tidegate_testkit::token_authenticator::{MovedClock, NOW, authenticate_now, role};

type AuthResult = Result<Arc<Principal>, AuthenticationError>;

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
    CertificateRule { name: name.to_owned(), certificate_name: holds, roles, tenant: None }
}

fn subject(text: &str) -> CertificateName {
    CertificateName::Subject(text.to_owned())
}

fn alternative(text: &str) -> CertificateName {
    CertificateName::AlternativeName(text.to_owned())
}

fn proxy() -> ProxyOptions {
    ProxyOptions {
        networks: ["10.0.0.5", "10.1.0.0/16", "fd00::/8"]
            .iter()
            .map(|network| parse_trusted_network(network).unwrap())
            .collect(),
        user: "X-Forwarded-User".to_owned(),
        tenant: Some("x-forwarded-tenant".to_owned()),
        roles: Some("x-forwarded-groups".to_owned()),
        default_roles: Vec::new(),
    }
}

fn options() -> AuthenticatorOptions {
    let robot = CertificateRule {
        tenant: Some("north".to_owned()),
        ..rule("robot", alternative("uri:spiffe://example/robot"), &["reader"])
    };
    AuthenticatorOptions {
        certificates: vec![rule("etl", subject("CN=etl, O=Example"), &["loader"]), robot],
        proxy: Some(proxy()),
        roles: vec![role("reader", serde_json::json!({})), role("loader", serde_json::json!({}))],
        clock: MovedClock::default().clock(),
        ..AuthenticatorOptions::default()
    }
}

fn authenticator(options: AuthenticatorOptions) -> CredentialAuthenticator {
    CredentialAuthenticator::new(options).unwrap()
}

fn with_certificate(credential_authenticator: &CredentialAuthenticator, certificate: &ClientCertificate) -> AuthResult {
    authenticate_now(credential_authenticator, Credentials { certificate: Some(certificate), ..Credentials::default() })
}

/// The result of a request with these headers from `peer`.
fn through(credential_authenticator: &CredentialAuthenticator, peer: &str, headers: &[(&str, &str)]) -> AuthResult {
    let asserted: Vec<(String, String)> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let peer: IpAddr = peer.parse().unwrap();
    authenticate_now(
        credential_authenticator,
        Credentials { peer: Some(peer), identity_headers: &asserted, ..Credentials::default() },
    )
}

#[test]
fn matches_subject_or_alternative_name() {
    let credential_authenticator = authenticator(options());
    let etl =
        with_certificate(&credential_authenticator, &certificate("CN=etl,O=Example", &["dns:etl.example"])).unwrap();
    assert_eq!((etl.subject.as_str(), etl.auth_method, etl.tenant.as_deref()), ("etl", AuthMethod::Certificate, None));
    assert!(etl.grants.entries.includes("loader_a") && !etl.grants.entries.includes("reader_a"));
    let names = ["dns:x", "uri:spiffe://example/robot"];
    let robot = with_certificate(&credential_authenticator, &certificate("CN=whatever", &names)).unwrap();
    assert_eq!((robot.subject.as_str(), robot.tenant.as_deref()), ("robot", Some("north")));
    let both = with_certificate(&credential_authenticator, &certificate("CN=etl,O=Example", &names)).unwrap();
    assert_eq!(both.subject, "etl", "the first one counts");
}

#[test]
fn rejects_unknown_certificate() {
    let credential_authenticator =
        authenticator(AuthenticatorOptions { anonymous: vec!["reader".to_owned()], ..options() });
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
        assert_eq!(with_certificate(&credential_authenticator, &wrong), Err(Invalid), "{wrong:?}");
    }
    // Without certificate rules, certificates are neither required nor a reason for rejection.
    let indifferent = self::authenticator(AuthenticatorOptions {
        certificates: Vec::new(),
        anonymous: vec!["reader".to_owned()],
        ..options()
    });
    assert_eq!(with_certificate(&indifferent, &certificate("CN=etl", &[])).unwrap().auth_method, AuthMethod::Anonymous);
}

#[test]
fn rejects_certificate_that_expired_during_the_connection() {
    let clock = MovedClock::default();
    let credential_authenticator =
        authenticator(AuthenticatorOptions { anonymous: vec!["reader".to_owned()], clock: clock.clock(), ..options() });
    let etl = certificate("CN=etl,O=Example", &[]);
    clock.pass(59);
    assert!(with_certificate(&credential_authenticator, &etl).is_ok());
    clock.pass(1);
    assert_eq!(with_certificate(&credential_authenticator, &etl), Err(Invalid));
}

#[test]
fn rejects_empty_or_duplicate_rules() {
    let error = |certificates: Vec<CertificateRule>| {
        CredentialAuthenticator::new(AuthenticatorOptions { certificates, ..options() }).err().unwrap().to_string()
    };
    let empty = "a certificate rule needs a name, and a subject or an alternative name";
    assert_eq!(error(vec![rule("etl", subject(" "), &[])]), empty);
    assert_eq!(error(vec![rule("etl", alternative(""), &[])]), empty);
    assert_eq!(error(vec![rule("", subject("CN=etl"), &[])]), empty);
    assert_eq!(
        error(vec![rule("a", subject("CN=etl,O=x"), &[]), rule("b", subject("cn=etl, o=x"), &[])]),
        "two certificate rules have the subject \"CN=etl,O=x\"; remove one of them"
    );
    assert_eq!(
        error(vec![rule("etl", subject("CN=etl"), &["raeder"])]),
        "etl callers have the undefined role \"raeder\"; did you mean \"reader\"?"
    );
}

#[test]
fn trusted_proxy_asserts_the_caller() {
    let credential_authenticator = authenticator(options());
    let headers = [
        ("x-forwarded-user", "ann"),
        ("x-forwarded-tenant", "north"),
        ("x-forwarded-groups", "reader, other,,loader "),
    ];
    for peer in ["10.0.0.5", "10.1.255.255", "::ffff:10.0.0.5", "fd12::1"] {
        let ann = through(&credential_authenticator, peer, &headers).unwrap();
        assert_eq!(
            (ann.subject.as_str(), ann.auth_method, ann.tenant.as_deref()),
            ("ann", AuthMethod::Proxy, Some("north"))
        );
        assert_eq!(ann.roles.iter().collect::<Vec<_>>(), ["loader", "reader"], "{peer}");
    }
    let bare = through(&credential_authenticator, "10.0.0.5", &[("X-Forwarded-User", "ann")]).unwrap();
    assert!(bare.roles.is_empty() && bare.tenant.is_none());
}

#[test]
fn ignores_headers_from_untrusted_networks() {
    let credential_authenticator =
        authenticator(AuthenticatorOptions { anonymous: vec!["reader".to_owned()], ..options() });
    let headers = [("x-forwarded-user", "ann"), ("x-forwarded-groups", "loader")];
    let twice = [("x-forwarded-user", "ann"), ("x-forwarded-user", "bob")];
    for peer in ["10.0.0.4", "10.2.0.0", "127.0.0.1", "::ffff:10.0.0.4", "fe80::1", "::a00:5", "192.0.2.1"] {
        assert_eq!(
            through(&credential_authenticator, peer, &headers).unwrap().auth_method,
            AuthMethod::Anonymous,
            "{peer}"
        );
        assert_eq!(
            through(&credential_authenticator, peer, &twice).unwrap().auth_method,
            AuthMethod::Anonymous,
            "{peer}"
        );
    }
    let asserted = [("x-forwarded-user".to_owned(), "ann".to_owned())];
    let nowhere = authenticate_now(
        &credential_authenticator,
        Credentials { identity_headers: &asserted, ..Credentials::default() },
    );
    assert_eq!(nowhere.unwrap().auth_method, AuthMethod::Anonymous, "its address is unknown");
}

#[test]
fn rejects_ambiguous_proxy_headers() {
    let credential_authenticator =
        authenticator(AuthenticatorOptions { anonymous: vec!["reader".to_owned()], ..options() });
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
        assert_eq!(through(&credential_authenticator, "10.0.0.5", headers), Err(Invalid), "{headers:?}");
    }
    assert_eq!(
        through(&credential_authenticator, "10.0.0.5", &[]).unwrap().auth_method,
        AuthMethod::Anonymous,
        "it names nobody"
    );
    let strict = self::authenticator(options());
    assert_eq!(through(&strict, "10.0.0.5", &[]), Err(Missing));
}

#[test]
fn default_roles_replace_an_absent_roles_header() {
    let default_roles = vec!["reader".to_owned()];
    let with_proxy = |proxy| authenticator(AuthenticatorOptions { proxy: Some(proxy), ..options() });
    let with_header = with_proxy(ProxyOptions { default_roles: default_roles.clone(), ..proxy() });
    let without_header = with_proxy(ProxyOptions { default_roles, roles: None, ..proxy() });
    let roles = |authenticator: &CredentialAuthenticator, headers: &[(&str, &str)]| {
        let principal = through(authenticator, "10.0.0.5", headers).unwrap();
        principal.roles.iter().cloned().collect::<Vec<_>>().join(",")
    };
    let user = ("x-forwarded-user", "ann");
    assert_eq!(roles(&with_header, &[user]), "reader");
    assert_eq!(roles(&with_header, &[user, ("x-forwarded-groups", "loader")]), "loader", "the header replaces them");
    for stated in ["", "other"] {
        assert_eq!(roles(&with_header, &[user, ("x-forwarded-groups", stated)]), "", "{stated:?} is not absent");
    }
    assert_eq!(roles(&without_header, &[user, ("x-forwarded-groups", "loader")]), "reader");
    assert_eq!(through(&with_header, "10.0.0.5", &[]), Err(Missing), "only named callers have roles");
    assert_eq!(through(&with_header, "10.2.0.5", &[user]), Err(Missing), "not the proxy");
}

#[test]
fn bearer_precedes_certificate_precedes_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let keys = KeyFile::new(folder.path().join("keys.json"));
    let key = keys.add_for_tenant(Some("south"), "ada", &[], None).unwrap().key;
    let credential_authenticator = authenticator(AuthenticatorOptions { keys: Some(keys), ..options() });
    let (etl, other) = (certificate("CN=etl,O=Example", &[]), certificate("CN=proxy", &[]));
    let asserted = [("x-forwarded-user".to_owned(), "ann".to_owned())];
    let peer = Some("10.0.0.5".parse().unwrap());
    let found = |bearer: Option<&str>, certificate: Option<&ClientCertificate>| {
        let credentials = Credentials { bearer, peer, certificate, identity_headers: &asserted, is_direct: true };
        authenticate_now(&credential_authenticator, credentials).map(|principal| principal.subject.clone())
    };
    assert_eq!(found(Some(key.expose()), Some(&etl)), Ok("ada".to_owned()));
    assert_eq!(found(Some("wrong"), Some(&etl)), Err(Invalid), "a bad key is not saved by the rest");
    assert_eq!(found(Some(""), None), Err(Invalid));
    assert_eq!(found(None, Some(&etl)), Ok("etl".to_owned()));
    assert_eq!(found(None, Some(&other)), Ok("ann".to_owned()), "the certificate is the proxy's own");
    assert_eq!(found(None, None), Ok("ann".to_owned()));
    assert_eq!(authenticate_now(&credential_authenticator, Credentials::default()), Err(Missing));
}

#[test]
fn allow_all_ignores_credentials() {
    let open = CredentialAuthenticator::new(AuthenticatorOptions { is_open: true, ..options() }).unwrap();
    let asserted = [("x-forwarded-user".to_owned(), "ann".to_owned())];
    let etl = certificate("CN=etl,O=Example", &[]);
    let credentials = Credentials {
        bearer: Some("wrong"),
        peer: Some("10.0.0.5".parse().unwrap()),
        certificate: Some(&etl),
        identity_headers: &asserted,
        is_direct: true,
    };
    assert_eq!(authenticate_now(&open, credentials).unwrap().auth_method, AuthMethod::Anonymous);
}

#[test]
fn asserting_headers_are_lower_case() {
    let reloadable_authenticator = ReloadableAuthenticator::new(authenticator(options()));
    assert_eq!(
        *reloadable_authenticator.identity_headers().unwrap(),
        ["x-forwarded-user", "x-forwarded-tenant", "x-forwarded-groups"]
    );
    reloadable_authenticator.swap(CredentialAuthenticator::new(AuthenticatorOptions::default()).unwrap());
    assert!(reloadable_authenticator.identity_headers().is_none());
}

#[test]
fn rejects_invalid_proxy_options() {
    let error = |proxy: ProxyOptions| match CredentialAuthenticator::new(AuthenticatorOptions {
        proxy: Some(proxy),
        ..options()
    }) {
        Err(AuthenticatorError::Invalid(error)) => error,
        _ => panic!("expected an options error"),
    };
    assert_eq!(
        error(ProxyOptions { networks: Vec::new(), ..proxy() }),
        "a proxy needs networks: the addresses from which it connects"
    );
    for name in ["", "x forwarded", "x-user:", "Authorization", "cookie", "é"] {
        let wrong = error(ProxyOptions { user: name.to_owned(), ..proxy() });
        assert_eq!(wrong, format!("{name:?} is not allowed as the name of an identity header"));
    }
    let twice = error(ProxyOptions { roles: Some("X-Forwarded-USER".to_owned()), ..proxy() });
    assert_eq!(twice, "the header \"x-forwarded-user\" is configured for two values; use one header for each");
    let undefined = error(ProxyOptions { default_roles: vec!["readers".to_owned()], ..proxy() });
    assert_eq!(undefined, "proxied callers have the undefined role \"readers\"; did you mean \"reader\"?");
}

#[test]
fn rejects_ambiguous_networks() {
    for text in ["10.0.0.5", "10.1.0.0/16", "::1", "fd00::/8", "128.0.0.0/1", "::ffff:10.0.0.5"] {
        assert!(parse_trusted_network(text).is_ok(), "{text}");
    }
    for (text, error) in [
        ("", "\"\" is not an address or network such as 10.0.0.5, 10.1.0.0/16 or fd00::/8"),
        ("10.1", "\"10.1\" is not an address or network such as 10.0.0.5, 10.1.0.0/16 or fd00::/8"),
        ("10.0.0.0/33", "\"10.0.0.0/33\" is not an address or network such as 10.0.0.5, 10.1.0.0/16 or fd00::/8"),
        ("10.0.0.0/-1", "\"10.0.0.0/-1\" is not an address or network such as 10.0.0.5, 10.1.0.0/16 or fd00::/8"),
        ("host", "\"host\" is not an address or network such as 10.0.0.5, 10.1.0.0/16 or fd00::/8"),
        ("10.1.2.3/16", "\"10.1.2.3/16\" has bits set after the first 16; did you mean 10.1.0.0/16?"),
        ("fd00::1/8", "\"fd00::1/8\" has bits set after the first 8; did you mean fd00::/8?"),
        ("0.0.0.0/0", "\"0.0.0.0/0\" contains every address; list the addresses of your proxies"),
        ("::/0", "\"::/0\" contains every address; list the addresses of your proxies"),
    ] {
        assert_eq!(parse_trusted_network(text).unwrap_err(), error);
    }
}
