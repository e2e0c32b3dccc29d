//! Implied scopes, and the minimal set that a client must request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use tidegate_core::{
    Access, AuthMethod, CallOrigin, Caller, Grants, ImpliedScopes, Principal, TransportKind, is_scope,
};
use tidegate_runtime::SnapshotBuilder;

use crate::host::{Host, called_by, tool_call, tool_with_text};

fn scope_map(pairs: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    pairs.iter().map(|(broad, narrow)| ((*broad).to_owned(), owned(narrow))).collect()
}

fn implied_scopes(pairs: &[(&str, &[&str])]) -> ImpliedScopes {
    ImpliedScopes::new(&scope_map(pairs)).unwrap()
}

#[tokio::test]
async fn broader_scope_implies_narrower_ones() {
    let scopes = Arc::new(implied_scopes(&[("admin", &["write"]), ("write", &["read", "list"])]));
    let expected = ["read", "write", "audit"].map(str::to_owned).to_vec();
    let access = Access { scopes: expected, ..Access::default() };
    let host = Host::new(SnapshotBuilder::new().tool(tool_with_text("change", "").with_access(access)));
    let mut message = String::new();
    for carried in [
        json!({"scope": "read write audit"}),
        json!({"scope": "write audit"}),
        json!({"scope": "admin audit"}),
        json!({"scope": "admin", "scp": ["audit"]}),
        json!({"scp": "admin audit"}),
        json!({"scope": "read audit"}),
        json!({"scope": "admin"}),
        json!({"scope": "administrator audit"}),
        json!({"scope": ["admin audit"]}),
        json!({"scope": {"admin": "audit"}}),
    ] {
        let mut principal = Principal::new("ann", AuthMethod::Token, Arc::new(Grants::for_anonymous()));
        principal.claims = carried.as_object().unwrap().clone();
        principal.implied_scopes = scopes.clone();
        let origin = CallOrigin { transport: TransportKind::StreamableHttp, peer: None };
        let answer = host.call_to_text(called_by(&Caller::new(Arc::new(principal), origin), tool_call("change"))).await;
        message.push_str(&format!("{carried}: {}\n", if answer.ends_with("done {}") { "done" } else { &answer }));
    }
    insta::assert_snapshot!(message, @r#"
    {"scope":"read write audit"}: done
    {"scope":"write audit"}: done
    {"scope":"admin audit"}: done
    {"scope":"admin","scp":["audit"]}: done
    {"scp":"admin audit"}: done
    {"scope":"read audit"}: refused forbidden: "change" needs a token with the scopes: write audit
    {"scope":"admin"}: refused forbidden: "change" needs a token with the scopes: write audit
    {"scope":"administrator audit"}: refused forbidden: "change" needs a token with the scopes: write audit
    {"scope":["admin audit"]}: refused forbidden: "change" needs a token with the scopes: write audit
    {"scope":{"admin":"audit"}}: refused forbidden: "change" needs a token with the scopes: write audit
    "#);
}

#[test]
fn rejects_invalid_and_cyclic_scopes() {
    let many: Vec<String> = (0..256).map(|number| number.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(ImpliedScopes::new(&scope_map(&[("0", &many[1..])])).is_ok());
    let wrong: [&[(&str, &[&str])]; 6] = [
        &[("a b", &[])],
        &[("a", &["b", "\"c\""])],
        &[("a", &["a"])],
        &[("a", &["b"]), ("b", &["c", "d"]), ("d", &["a"])],
        &[("z", &["a"]), ("a", &["b"]), ("b", &["a"])],
        &[("all", &many)],
    ];
    let message = wrong.map(|pairs| ImpliedScopes::new(&scope_map(pairs)).unwrap_err().to_string()).join("\n");
    insta::assert_snapshot!(message, @r#"
    "a b" is no scope: one is a word without spaces, quotes and backslashes
    "\"c\"" is no scope: one is a word without spaces, quotes and backslashes
    the scope "a" implies itself: a, which implies a
    the scope "a" implies itself: a, which implies b, which implies d, which implies a
    the scope "a" implies itself: a, which implies b, which implies a
    257 scopes are named; at most 256 are allowed
    "#);
}

proptest! {
    /// Names are numbers, of which only greater ones imply smaller ones, so that there is no circle.
    #[test]
    fn minimal_set_is_sufficient_and_necessary(
        pairs in prop::collection::vec((0_usize..12, 0_usize..12), 0..30),
        expected in prop::collection::vec(0_usize..12, 0..8),
        had in prop::collection::btree_set(0_usize..12, 0..8),
    ) {
        let mut text: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (one, other) in pairs.iter().filter(|(one, other)| one != other) {
            text.entry(one.max(other).to_string()).or_default().push(one.min(other).to_string());
        }
        let scopes = ImpliedScopes::new(&text).unwrap();
        let expected: Vec<String> = expected.iter().map(usize::to_string).collect();
        let least = scopes.minimal(&expected);
        prop_assert!(least.iter().all(|scope| expected.contains(scope)));
        let implies = |all: &[String], scope: &String| all.iter().any(|had| scopes.implies(had, scope));
        prop_assert!(expected.iter().all(|scope| implies(&least, scope)));
        for scope in &least {
            let others: Vec<String> = least.iter().filter(|other| *other != scope).cloned().collect();
            prop_assert!(!implies(&others, scope) && others.len() + 1 == least.len());
        }
        // The minimal scopes imply all required scopes, and no smaller set does.
        let had: BTreeSet<String> = had.iter().map(usize::to_string).collect();
        let claim = json!(had.into_iter().collect::<Vec<_>>().join(" "));
        let has = |all: &[String]| all.iter().all(|scope| scopes.claim_includes(&claim, scope));
        prop_assert_eq!(has(&expected), has(&least));
    }
}

#[test]
fn scope_syntax() {
    for good in ["a", "data:read", "https://example.com/scope", "a!#[]~"] {
        assert!(is_scope(good), "{good}");
    }
    for wrong in ["", " ", "a b", "a\"b", "a\\b", "ä", "a\n"] {
        assert!(!is_scope(wrong), "{wrong:?}");
    }
}
