//! Callers without credentials, the process's own user, and replaced authenticators.

use std::sync::Arc;

use serde_json::json;
use tidegate_auth::{
    AuthenticatorError, AuthenticatorOptions, CredentialAuthenticator, DevelopmentIdentity, KeyFile,
    ReloadableAuthenticator,
};
use tidegate_core::{AuthMethod, AuthenticationError, Authenticator, Credentials, Grants};

use tidegate_testkit::token_authenticator::{authenticate_bearer_now, role};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn roles() -> Vec<tidegate_auth::Role> {
    vec![role("reader", json!({})), role("writer", json!({}))]
}

#[test]
fn default_options_reject_callers_and_admit_the_owner() {
    let credential_authenticator = CredentialAuthenticator::new(AuthenticatorOptions::default()).unwrap();
    assert_eq!(authenticate_bearer_now(&credential_authenticator, None), Err(AuthenticationError::Missing));
    for bearer in ["", "tg_", "a.b.c"] {
        assert_eq!(
            authenticate_bearer_now(&credential_authenticator, Some(bearer)),
            Err(AuthenticationError::Invalid),
            "{bearer:?}"
        );
    }
    assert_eq!(*credential_authenticator.local_principal().grants, Grants::everything());
    assert!(credential_authenticator.enforces_authentication());
}

#[test]
fn anonymous_callers_have_the_roles_that_were_named_and_no_others() {
    let options =
        AuthenticatorOptions { roles: roles(), anonymous: names(&["reader"]), ..AuthenticatorOptions::default() };
    let credential_authenticator = CredentialAuthenticator::new(options).unwrap();
    let anonymous = authenticate_bearer_now(&credential_authenticator, None).unwrap();
    assert_eq!((anonymous.auth_method, anonymous.subject.as_str()), (AuthMethod::Anonymous, "anonymous"));
    assert!(anonymous.grants.entries.includes("reader_a") && !anonymous.grants.entries.includes("writer_a"));
    assert!(Arc::ptr_eq(&anonymous, &authenticate_bearer_now(&credential_authenticator, None).unwrap()));
    assert_eq!(
        authenticate_bearer_now(&credential_authenticator, Some("wrong")),
        Err(AuthenticationError::Invalid),
        "what is shown wrongly is not ignored"
    );
    assert!(credential_authenticator.enforces_authentication());
}

#[tokio::test]
async fn development_identity_is_that_of_callers_on_this_machine_without_credentials() {
    let identity = |roles: &[&str]| DevelopmentIdentity {
        user: "nora".to_owned(),
        tenant: Some("north".to_owned()),
        roles: names(roles),
    };
    let authenticator = |roles_of_identity: &[&str]| {
        let development = Some(identity(roles_of_identity));
        let options = AuthenticatorOptions { roles: roles(), development, ..AuthenticatorOptions::default() };
        CredentialAuthenticator::new(options).unwrap()
    };
    let from = async |authenticator: &CredentialAuthenticator, peer: Option<&str>, bearer: Option<&str>| {
        let peer = peer.map(|peer| peer.parse().unwrap());
        authenticator.authenticate(Credentials { bearer, peer, is_direct: true, ..Credentials::default() }).await
    };
    let plain = authenticator(&[]);
    for peer in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
        let nora = from(&plain, Some(peer), None).await.unwrap();
        assert_eq!((nora.subject.as_str(), nora.tenant.as_deref()), ("nora", Some("north")), "{peer}");
        assert_eq!(nora.auth_method, AuthMethod::Development);
        assert_eq!(*nora.grants, Grants::for_anonymous());
    }
    assert_eq!(from(&plain, Some("192.0.2.7"), None).await, Err(AuthenticationError::Missing));
    assert_eq!(from(&plain, None, None).await, Err(AuthenticationError::Missing));
    assert_eq!(from(&plain, Some("127.0.0.1"), Some("wrong")).await, Err(AuthenticationError::Invalid));
    let forwarded = Credentials { peer: Some("127.0.0.1".parse().unwrap()), ..Credentials::default() };
    assert_eq!(plain.authenticate(forwarded).await, Err(AuthenticationError::Missing));
    let reader = from(&authenticator(&["reader"]), Some("127.0.0.1"), None).await.unwrap();
    assert!(reader.grants.entries.includes("reader_a") && !reader.grants.entries.includes("writer_a"));
    assert!(plain.enforces_authentication());
    let unknown = AuthenticatorOptions { development: Some(identity(&["nobody"])), ..AuthenticatorOptions::default() };
    assert!(matches!(CredentialAuthenticator::new(unknown), Err(AuthenticatorError::Invalid(_))));
}

#[test]
fn the_process_has_the_roles_that_were_named() {
    let options = |local: &[&str]| AuthenticatorOptions {
        roles: roles(),
        local: Some(names(local)),
        ..AuthenticatorOptions::default()
    };
    let local = CredentialAuthenticator::new(options(&["reader", "writer", "reader"])).unwrap().local_principal();
    assert_eq!(local.auth_method, AuthMethod::Process);
    assert_eq!(local.roles.iter().collect::<Vec<_>>(), ["reader", "writer"]);
    assert!(local.grants.entries.includes("writer_a") && !local.grants.entries.includes("other"));
    assert_eq!(*CredentialAuthenticator::new(options(&[])).unwrap().local_principal().grants, Grants::default());
}

#[test]
fn rejects_invalid_roles() {
    let message = |options: AuthenticatorOptions| CredentialAuthenticator::new(options).err().unwrap().to_string();
    let twice = vec![role("reader", json!({})), role("reader", json!({}))];
    assert_eq!(
        message(AuthenticatorOptions { roles: twice, ..AuthenticatorOptions::default() }),
        "two roles are named \"reader\""
    );
    let nameless = vec![role("", json!({}))];
    assert_eq!(
        message(AuthenticatorOptions { roles: nameless, ..AuthenticatorOptions::default() }),
        "a role has no name"
    );
    assert_eq!(
        message(AuthenticatorOptions {
            roles: roles(),
            anonymous: names(&["raeder"]),
            ..AuthenticatorOptions::default()
        }),
        "anonymous callers have the undefined role \"raeder\"; did you mean \"reader\"?"
    );
    assert_eq!(
        message(AuthenticatorOptions {
            roles: roles(),
            local: Some(names(&["zzz"])),
            ..AuthenticatorOptions::default()
        }),
        "local callers have the undefined role \"zzz\""
    );
}

#[test]
fn rejects_unreadable_key_file() {
    let folder = tempfile::tempdir().unwrap();
    let options = AuthenticatorOptions { keys: Some(KeyFile::new(folder.path())), ..AuthenticatorOptions::default() };
    assert!(matches!(CredentialAuthenticator::new(options).err().unwrap(), AuthenticatorError::KeyFile(_)));
}

#[test]
fn recognizes_principals_it_issued() {
    let folder = tempfile::tempdir().unwrap();
    let keys = KeyFile::new(folder.path().join("keys.json"));
    let key = keys.add("ada", &names(&["reader"]), None).unwrap().key;
    let authenticator = || {
        CredentialAuthenticator::new(AuthenticatorOptions {
            keys: Some(keys.clone()),
            roles: roles(),
            ..AuthenticatorOptions::default()
        })
        .unwrap()
    };
    let reloadable_authenticator = ReloadableAuthenticator::new(authenticator());
    let before = [
        authenticate_bearer_now(&reloadable_authenticator, Some(key.expose())).unwrap(),
        reloadable_authenticator.local_principal(),
    ];
    assert!(before.iter().all(|principal| reloadable_authenticator.is_still_valid(principal)));
    let renewals = reloadable_authenticator.credential_reloads();
    assert!(!renewals.has_changed().unwrap());
    reloadable_authenticator.swap(authenticator());
    assert!(renewals.has_changed().unwrap(), "doors hear of it");
    assert!(
        !before.iter().any(|principal| reloadable_authenticator.is_still_valid(principal)),
        "their proof may be gone by now"
    );
    let now = [
        authenticate_bearer_now(&reloadable_authenticator, Some(key.expose())).unwrap(),
        reloadable_authenticator.local_principal(),
    ];
    assert!(now.iter().all(|principal| reloadable_authenticator.is_still_valid(principal)));
    assert_eq!(
        (now[0].authenticator_version == before[0].authenticator_version, now[0].grants == before[0].grants),
        (false, true)
    );
    assert_eq!(now, before, "the principals compare equal");
}

#[test]
fn swap_replaces_everything() {
    let folder = tempfile::tempdir().unwrap();
    let keys = KeyFile::new(folder.path().join("keys.json"));
    let authenticator = |local: Option<Vec<String>>| {
        CredentialAuthenticator::new(AuthenticatorOptions {
            keys: Some(keys.clone()),
            roles: roles(),
            local,
            ..AuthenticatorOptions::default()
        })
        .unwrap()
    };
    let reloadable_authenticator = ReloadableAuthenticator::new(authenticator(None));
    let key = keys.add("ada", &names(&["reader"]), None).unwrap().key;
    assert_eq!(
        authenticate_bearer_now(&reloadable_authenticator, Some(key.expose())),
        Err(AuthenticationError::Invalid),
        "it was added later"
    );
    reloadable_authenticator.swap(authenticator(Some(names(&["reader"]))));
    assert_eq!(authenticate_bearer_now(&reloadable_authenticator, Some(key.expose())).unwrap().subject, "ada");
    assert_eq!(reloadable_authenticator.local_principal().roles.len(), 1);
    assert!(reloadable_authenticator.enforces_authentication());
    keys.revoke("ada").unwrap();
    assert!(
        authenticate_bearer_now(&reloadable_authenticator, Some(key.expose())).is_ok(),
        "the current authenticator has not read the file again"
    );
    reloadable_authenticator.swap(authenticator(None));
    assert_eq!(
        authenticate_bearer_now(&reloadable_authenticator, Some(key.expose())),
        Err(AuthenticationError::Invalid)
    );
}
