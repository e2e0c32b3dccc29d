//! Callers who show nothing, the process's own user, and one gate after another.

use std::sync::Arc;

use serde_json::json;
use tidegate_auth::{Doorkeeper, Gate, GateError, GateOptions, KeyFile};
use tidegate_core::{Authenticator, Grants, Proof, Unauthenticated};

use crate::scene::{role, show};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn roles() -> Vec<tidegate_auth::Role> {
    vec![role("reader", json!({})), role("writer", json!({}))]
}

#[test]
fn a_gate_without_anything_asks_who_calls_and_serves_its_owner() {
    let gate = Gate::new(GateOptions::default()).unwrap();
    assert_eq!(show(&gate, None), Err(Unauthenticated::Missing));
    for bearer in ["", "tg_", "a.b.c"] {
        assert_eq!(show(&gate, Some(bearer)), Err(Unauthenticated::Invalid), "{bearer:?}");
    }
    assert_eq!(*gate.local().grants, Grants::everything());
    assert!(gate.is_configured());
}

#[test]
fn anonymous_callers_have_the_roles_that_were_named_and_no_others() {
    let options = GateOptions { roles: roles(), anonymous: names(&["reader"]), ..GateOptions::default() };
    let gate = Gate::new(options).unwrap();
    let anonymous = show(&gate, None).unwrap();
    assert_eq!((anonymous.proof, anonymous.subject.as_str()), (Proof::Anonymous, "anonymous"));
    assert!(anonymous.grants.entries.includes("reader_a") && !anonymous.grants.entries.includes("writer_a"));
    assert!(Arc::ptr_eq(&anonymous, &show(&gate, None).unwrap()));
    assert_eq!(show(&gate, Some("wrong")), Err(Unauthenticated::Invalid), "what is shown wrongly is not ignored");
    assert!(gate.is_configured());
}

#[test]
fn the_process_has_the_roles_that_were_named() {
    let options = |local: &[&str]| GateOptions { roles: roles(), local: Some(names(local)), ..GateOptions::default() };
    let local = Gate::new(options(&["reader", "writer", "reader"])).unwrap().local();
    assert_eq!(local.proof, Proof::Process);
    assert_eq!(local.roles.iter().collect::<Vec<_>>(), ["reader", "writer"]);
    assert!(local.grants.entries.includes("writer_a") && !local.grants.entries.includes("other"));
    assert_eq!(*Gate::new(options(&[])).unwrap().local().grants, Grants::default());
}

#[test]
fn roles_that_are_wrong_make_no_gate() {
    let message = |options: GateOptions| Gate::new(options).err().unwrap().to_string();
    let twice = vec![role("reader", json!({})), role("reader", json!({}))];
    assert_eq!(message(GateOptions { roles: twice, ..GateOptions::default() }), "two roles are named \"reader\"");
    let nameless = vec![role("", json!({}))];
    assert_eq!(message(GateOptions { roles: nameless, ..GateOptions::default() }), "a role has no name");
    assert_eq!(
        message(GateOptions { roles: roles(), anonymous: names(&["raeder"]), ..GateOptions::default() }),
        "anonymous callers shall have the role \"raeder\", which is not defined; did you mean \"reader\"?"
    );
    assert_eq!(
        message(GateOptions { roles: roles(), local: Some(names(&["zzz"])), ..GateOptions::default() }),
        "local callers shall have the role \"zzz\", which is not defined"
    );
}

#[test]
fn a_key_file_that_cannot_be_read_makes_no_gate() {
    let folder = tempfile::tempdir().unwrap();
    let options = GateOptions { keys: Some(KeyFile::new(folder.path())), ..GateOptions::default() };
    assert!(matches!(Gate::new(options).err().unwrap(), GateError::KeyFile(_)));
}

#[test]
fn a_gate_stands_by_those_whom_it_let_in_and_they_are_the_same_when_let_in_again() {
    let folder = tempfile::tempdir().unwrap();
    let keys = KeyFile::new(folder.path().join("keys.json"));
    let key = keys.add("ada", &names(&["reader"]), None).unwrap().key;
    let gate =
        || Gate::new(GateOptions { keys: Some(keys.clone()), roles: roles(), ..GateOptions::default() }).unwrap();
    let doorkeeper = Doorkeeper::new(gate());
    let before = [show(&doorkeeper, Some(key.expose())).unwrap(), doorkeeper.local()];
    assert!(before.iter().all(|principal| doorkeeper.stands_by(principal)));
    let renewals = doorkeeper.renewals();
    assert!(!renewals.has_changed().unwrap());
    doorkeeper.swap(gate());
    assert!(renewals.has_changed().unwrap(), "doors hear of it");
    assert!(!before.iter().any(|principal| doorkeeper.stands_by(principal)), "their proof may be gone by now");
    let now = [show(&doorkeeper, Some(key.expose())).unwrap(), doorkeeper.local()];
    assert!(now.iter().all(|principal| doorkeeper.stands_by(principal)));
    assert_eq!((now[0].gate == before[0].gate, now[0].grants == before[0].grants), (false, true));
    assert_eq!(now, before, "nobody is told of a change that is none");
}

#[test]
fn one_gate_follows_another_whole() {
    let folder = tempfile::tempdir().unwrap();
    let keys = KeyFile::new(folder.path().join("keys.json"));
    let gate = |local: Option<Vec<String>>| {
        Gate::new(GateOptions { keys: Some(keys.clone()), roles: roles(), local, ..GateOptions::default() }).unwrap()
    };
    let doorkeeper = Doorkeeper::new(gate(None));
    let key = keys.add("ada", &names(&["reader"]), None).unwrap().key;
    assert_eq!(show(&doorkeeper, Some(key.expose())), Err(Unauthenticated::Invalid), "it was added later");
    doorkeeper.swap(gate(Some(names(&["reader"]))));
    assert_eq!(show(&doorkeeper, Some(key.expose())).unwrap().subject, "ada");
    assert_eq!(doorkeeper.local().roles.len(), 1);
    assert!(doorkeeper.is_configured());
    keys.revoke("ada").unwrap();
    assert!(show(&doorkeeper, Some(key.expose())).is_ok(), "the gate in force has not read the file again");
    doorkeeper.swap(gate(None));
    assert_eq!(show(&doorkeeper, Some(key.expose())), Err(Unauthenticated::Invalid));
}
