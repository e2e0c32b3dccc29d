//! The life of a key, from adding to revoking.

use tempfile::TempDir;
use tidegate_auth::{AuthenticatorOptions, CredentialAuthenticator, KeyFile, KeyState};
use tidegate_core::{AuthMethod, AuthenticationError};

use tidegate_testkit::token_authenticator::{MovedClock, NOW, authenticate_bearer_now, role, time};

struct KeyFixture {
    _folder: TempDir,
    clock: MovedClock,
    keys: KeyFile,
}

impl KeyFixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = MovedClock::default();
        let keys = KeyFile::new(folder.path().join("keys.json")).with_clock(clock.clock());
        Self { _folder: folder, clock, keys }
    }

    fn add(&self, name: &str, expires: Option<i64>) -> String {
        let roles = ["reader".to_owned()];
        self.keys.add(name, &roles, expires.map(|seconds| time(NOW + seconds))).unwrap().key.expose().to_owned()
    }

    fn authenticator(&self) -> CredentialAuthenticator {
        CredentialAuthenticator::new(AuthenticatorOptions {
            keys: Some(self.keys.clone()),
            roles: vec![role("reader", serde_json::json!({}))],
            clock: self.clock.clock(),
            ..AuthenticatorOptions::default()
        })
        .unwrap()
    }

    fn states(&self) -> Vec<KeyState> {
        self.keys.list().unwrap().iter().map(|key| key.state).collect()
    }
}

#[test]
fn a_key_proves_its_holder() {
    let scene = KeyFixture::new();
    let (ada, bob) = (scene.add("ada", None), scene.add("bob", Some(60)));
    let credential_authenticator = scene.authenticator();
    let principal = authenticate_bearer_now(&credential_authenticator, Some(&ada)).unwrap();
    assert_eq!((principal.subject.as_str(), principal.auth_method), ("ada", AuthMethod::Key));
    assert_eq!(principal.roles.iter().collect::<Vec<_>>(), ["reader"]);
    assert!(principal.claims.is_empty() && principal.tenant.is_none());
    assert!(principal.grants.entries.includes("reader_a") && !principal.grants.entries.includes("other"));
    assert_eq!(principal.expires_at, None);
    let bob = authenticate_bearer_now(&credential_authenticator, Some(&bob)).unwrap();
    assert_eq!((bob.subject.as_str(), bob.expires_at), ("bob", Some(time(NOW + 60).into())));
}

#[test]
fn a_key_has_its_form() {
    let scene = KeyFixture::new();
    let new = scene.keys.add("ada", &[], None).unwrap();
    let key = new.key.expose();
    assert_eq!(key.len(), 3 + 8 + 1 + 43);
    assert!(key.starts_with(&format!("{}_", new.status.prefix())));
    assert!(key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'), "{key}");
    let status = &scene.keys.list().unwrap()[0];
    assert_eq!(*status, new.status);
    assert_eq!((status.created, status.expires, status.state), (time(NOW), None, KeyState::Active));
}

#[test]
fn rejects_foreign_keys() {
    let scene = KeyFixture::new();
    let (ada, bob) = (scene.add("ada", None), scene.add("bob", None));
    let credential_authenticator = scene.authenticator();
    let secret_of = |key: &str| key[12..].to_owned();
    let wrong = [
        ("unknown id", format!("tg_aaaaaaaa_{}", secret_of(&ada))),
        ("another's secret", format!("{}{}", &ada[..12], secret_of(&bob))),
        ("no secret", ada[..12].to_owned()),
        ("no secret and no line", ada[..11].to_owned()),
        ("one character less", ada[..ada.len() - 1].to_owned()),
        ("one character more", format!("{ada}A")),
        ("a blank before", format!(" {ada}")),
        ("a blank after", format!("{ada} ")),
        ("a line end after", format!("{ada}\n")),
        ("capitals", ada.to_uppercase()),
        ("without its beginning", ada[3..].to_owned()),
        ("its id alone", ada[3..11].to_owned()),
        ("beginning alone", "tg_".to_owned()),
        ("other letters", format!("tg_éééé_{}", "é".repeat(21) + "a")),
    ];
    for (case, key) in wrong {
        assert_eq!(
            authenticate_bearer_now(&credential_authenticator, Some(&key)),
            Err(AuthenticationError::Invalid),
            "{case}"
        );
    }
}

#[test]
fn key_expires_without_reload() {
    let scene = KeyFixture::new();
    let key = scene.add("ada", Some(60));
    let credential_authenticator = scene.authenticator();
    scene.clock.pass(59);
    assert!(authenticate_bearer_now(&credential_authenticator, Some(&key)).is_ok());
    scene.clock.pass(1);
    assert_eq!(authenticate_bearer_now(&credential_authenticator, Some(&key)), Err(AuthenticationError::Invalid));
    assert_eq!(scene.states(), [KeyState::Expired]);
    // Its name is free again, and the new key is the one that is revoked by it.
    let new = scene.add("ada", None);
    assert!(authenticate_bearer_now(&scene.authenticator(), Some(&new)).is_ok());
    scene.keys.revoke("ada").unwrap();
    assert_eq!(scene.states(), [KeyState::Expired, KeyState::Revoked]);
}

#[test]
fn a_revoked_key_stays_revoked() {
    let scene = KeyFixture::new();
    let (by_name, by_id) = (scene.add("ada", None), scene.add("bob", None));
    assert_eq!(scene.keys.revoke("ada").unwrap().revoked, Some(time(NOW)));
    scene.keys.revoke(&by_id[3..11]).unwrap();
    let credential_authenticator = scene.authenticator();
    for key in [by_name, by_id] {
        assert_eq!(authenticate_bearer_now(&credential_authenticator, Some(&key)), Err(AuthenticationError::Invalid));
    }
    assert_eq!(scene.states(), [KeyState::Revoked, KeyState::Revoked]);
    assert_eq!(scene.keys.revoke("ada").unwrap_err().to_string(), "the key \"ada\" is revoked already");
    scene.add("ada", None);
    assert_eq!(scene.states(), [KeyState::Revoked, KeyState::Revoked, KeyState::Active]);
}

#[test]
fn rejects_invalid_new_keys() {
    let scene = KeyFixture::new();
    scene.add("ada", None);
    let error = |name: &str, expires: Option<i64>| {
        scene.keys.add(name, &[], expires.map(|seconds| time(NOW + seconds))).err().unwrap().to_string()
    };
    assert_eq!(error("ada", None), "an active key is named \"ada\"; revoke it or choose another name");
    assert_eq!(error("bob", Some(0)), "a key that expires at 2033-05-18T03:33:20Z would have expired already");
    for name in ["", " ", " bob", "bob ", "b\nob", &"b".repeat(65)] {
        assert!(error(name, None).contains("cannot be a key's name"), "{name:?}");
    }
    assert!(scene.keys.add(&"é".repeat(64), &[], None).is_ok());
    assert_eq!(scene.keys.list().unwrap().len(), 2);
}

#[test]
fn revoke_requires_an_unambiguous_name() {
    let scene = KeyFixture::new();
    let error = |name: &str| scene.keys.revoke(name).err().unwrap().to_string();
    assert_eq!(error("ada"), "no key has the name or id \"ada\"");
    scene.add("ada", Some(10));
    scene.clock.pass(10);
    scene.add("ada", Some(20));
    scene.clock.pass(10);
    assert_eq!(error("ada"), "several keys have the name \"ada\"; name one by its id");
    let id = scene.keys.list().unwrap()[0].id.clone();
    scene.keys.revoke(&id).unwrap();
    scene.keys.revoke("ada").unwrap();
    assert_eq!(error("ada"), "the key \"ada\" is revoked already");
}

#[test]
fn key_carries_its_tenant() {
    let scene = KeyFixture::new();
    let north = scene.keys.add_for_tenant(Some("north"), "ada", &[], None).unwrap();
    assert_eq!(north.status.tenant.as_deref(), Some("north"));
    let nobodys = scene.add("bob", None);
    let credential_authenticator = scene.authenticator();
    assert_eq!(
        authenticate_bearer_now(&credential_authenticator, Some(north.key.expose())).unwrap().tenant.as_deref(),
        Some("north")
    );
    assert_eq!(authenticate_bearer_now(&credential_authenticator, Some(&nobodys)).unwrap().tenant, None);
    for tenant in ["", " ", " north", "a\nb"] {
        let error = scene.keys.add_for_tenant(Some(tenant), "eve", &[], None).err().unwrap();
        assert!(error.to_string().contains("cannot be a tenant's name"), "{tenant:?}: {error}");
    }
}
