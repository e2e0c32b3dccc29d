//! Row policies: what may stand in one, whom they bind, and what they come to for somebody.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_core::{AuthMethod, ErrorKind, Grants, Principal};
use tidegate_query::{
    Database, Databases, HashKey, Mask, PolicyColumn, PolicyPart, PolicyTable, RowCondition, RowFilter, RowPolicies,
    RowPolicy, StableHasher, TableView, ValueKind,
};

use crate::fake::FakeDatabase;

const COLUMNS: [(&str, ValueKind); 7] = [
    ("id", ValueKind::Integer),
    ("tenant_id", ValueKind::Text),
    ("Price", ValueKind::Number),
    ("at", ValueKind::Date),
    ("is_open", ValueKind::Boolean),
    ("tags", ValueKind::Other),
    ("anything", ValueKind::Any),
];

fn columns() -> Vec<PolicyColumn<'static>> {
    COLUMNS.into_iter().map(PolicyColumn::from).collect()
}

fn principal(claims: &Value) -> Principal {
    let mut principal = Principal::new("ann", AuthMethod::Token, Arc::new(Grants::for_anonymous()));
    principal.claims = claims.as_object().cloned().unwrap_or_default();
    principal
}

fn policy(table: &str, rows: Option<&str>, columns: &[(&str, Mask)]) -> RowPolicy {
    RowPolicy {
        table: table.to_owned(),
        rows: rows.map(|text| RowCondition::parse(text).unwrap()),
        columns: columns.iter().map(|(name, mask)| ((*name).to_owned(), *mask)).collect(),
        except_roles: BTreeSet::from(["auditor".to_owned()]),
    }
}

fn policies(policies: impl IntoIterator<Item = RowPolicy>) -> RowPolicies {
    RowPolicies::new(policies.into_iter().collect(), HashKey::from_secret(b"a secret"))
}

fn view(condition: &str, claims: &Value) -> Result<TableView, String> {
    let of_one = policies([policy("orders", Some(condition), &[])]);
    let view = of_one.view(&["orders"], &columns(), &principal(claims));
    view.map(|view| view.unwrap()).map_err(|error| error.detail().unwrap().to_owned())
}

#[track_caller]
fn check(condition: &str, claims: Value, expected: &str) {
    assert_eq!(format!("{:?}", view(condition, &claims).unwrap().rows), expected, "{condition} {claims}");
}

#[test]
fn claims_become_literals_of_the_columns_kind() {
    let tenant = "Compare { column: 1, comparator: Equal, value: Text(\"north\") }";
    check("tenant_id = :claims.tenant", json!({"tenant": "north"}), tenant);
    check(":claims.tenant = Tenant_ID", json!({"tenant": "north"}), tenant);
    check("tenant_id = :claims.a.\"b c\"", json!({"a": {"b c": "north"}}), tenant);
    check("tenant_id = :subject", json!({}), "Compare { column: 1, comparator: Equal, value: Text(\"ann\") }");
    check("tenant_id = :claims.n", json!({"n": 7}), "Compare { column: 1, comparator: Equal, value: Text(\"7\") }");
    check("id = :claims.n", json!({"n": "7"}), "Compare { column: 0, comparator: Equal, value: Integer(7) }");
    check(":claims.n < id", json!({"n": 7}), "Compare { column: 0, comparator: Greater, value: Integer(7) }");
    check(
        "id IN (1, :claims.ids) AND is_open",
        json!({"ids": [2, "3"]}),
        "All([In { column: 0, values: [Integer(1), Integer(2), Integer(3)], is_negated: false }, IsTrue(4)])",
    );
    check("'sales' IN (:claims.groups)", json!({"groups": ["hr", "sales"]}), "Constant(true)");
    check("'sales' IN (:claims.groups)", json!({"groups": ["hr"]}), "Constant(false)");
    check(
        "anything = :claims.n OR at >= '2024-02-29'",
        json!({"n": 1}),
        "Any([Compare { column: 6, comparator: Equal, value: Integer(1) }, \
         Compare { column: 3, comparator: GreaterOrEqual, value: Date(2024-02-29) }])",
    );
}

#[test]
fn missing_claims_hide_all_rows() {
    let conditions = [
        "tenant_id = :claims.x",
        "NOT tenant_id = :claims.x",
        "tenant_id <> :claims.x OR id > 0",
        "tenant_id NOT IN (:claims.x)",
        "NOT (tenant_id = :claims.x OR NOT is_open)",
    ];
    let claims = [json!({}), json!({"x": null}), json!({"x": {}}), json!({"x": true}), json!({"x": ["a", null]})];
    for (condition, claims) in conditions.iter().flat_map(|one| claims.iter().map(move |claims| (one, claims))) {
        assert_eq!(view(condition, claims).unwrap().rows, RowFilter::Constant(false), "{condition} {claims}");
    }
    for value in [json!("07"), json!(" 7"), json!("7 OR 1=1"), json!(7.5), json!(u64::MAX), json!([7])] {
        assert_eq!(view("id = :claims.x", &json!({"x": value})).unwrap().rows, RowFilter::Constant(false), "{value}");
    }
    let long = "x".repeat(5_000);
    assert_eq!(view("tenant_id = :claims.x", &json!({"x": long})).unwrap().rows, RowFilter::Constant(false));
    assert_eq!(view("tenant_id = :tenant", &json!({"tenant": "t"})).unwrap().rows, RowFilter::Constant(false));
}

#[test]
fn nothing_but_comparisons_may_stand_in_a_condition() {
    let refused = [
        "lower(tenant_id) = 'x'",
        "id = (SELECT 1)",
        "id + 1 = 2",
        "id / 0 = 1",
        "tenant_id LIKE :claims.prefix",
        "tenant_id = NULL",
        "orders.id = 1",
        "id = :claims",
        "id = :password",
        "id = $1",
        ":claims.a = :claims.b",
        "EXISTS (SELECT 1)",
        "CAST(id AS text) = '1'",
        "tenant_id LIKE 'a' ESCAPE 'x'",
        "id IN (SELECT 1)",
        "id IN (Price)",
        "id = 1; DROP TABLE x",
        "id",
        "",
    ];
    let complaints: Vec<String> = refused
        .iter()
        .map(|text| match RowCondition::parse(text) {
            Err(error) => format!("{text}\n    {error}"),
            Ok(_) => format!("{text}\n    {}", view(text, &json!({})).unwrap_err()),
        })
        .collect();
    insta::assert_snapshot!(complaints.join("\n"));
    RowCondition::parse(&"id = 1 OR ".repeat(2_000)).unwrap_err();
    RowCondition::parse(&format!("{}id = 1", "id = 1 OR ".repeat(50))).unwrap();
}

#[test]
fn combines_policies_of_one_table() {
    let several = policies([
        policy("*", Some("tenant_id = :claims.tenant"), &[("email", Mask::Deny), ("id", Mask::Hash)]),
        policy("ORDERS", Some("id > 5"), &[("Price", Mask::KeepLast(4)), ("ID", Mask::Null)]),
        policy("others", Some("id > 6"), &[("at", Mask::Deny)]),
    ]);
    let view = several.view(&["orders"], &columns(), &principal(&json!({"tenant": "t"}))).unwrap().unwrap();
    assert!(matches!(&view.rows, RowFilter::All(both) if both.len() == 2));
    assert_eq!(view.masks[..3], [Some(Mask::Null), None, Some(Mask::KeepLast(4))]);
    assert!(view.masks[3..].iter().all(Option::is_none));
    let mut auditor = principal(&json!({}));
    auditor.roles = BTreeSet::from(["auditor".to_owned()]);
    assert_eq!(several.view(&["orders"], &columns(), &auditor).unwrap(), None);
    assert_ne!(several.fingerprint(&auditor), several.fingerprint(&principal(&json!({}))));
    assert_ne!(
        several.fingerprint(&principal(&json!({"tenant": "a"}))),
        several.fingerprint(&principal(&json!({"tenant": "b"})))
    );
    assert_eq!(several.fingerprint(&principal(&json!({"a": 1}))), several.fingerprint(&principal(&json!({"b": 1}))));
}

#[test]
fn a_mask_covers_the_columns_from_which_its_values_can_be_read() {
    let line = PolicyColumn { name: "line", kind: ValueKind::Text, reveals: &[0, 1] };
    let known = [("client", ValueKind::Text).into(), ("status", ValueKind::Integer).into(), line];
    let masks = |several: Vec<RowPolicy>| {
        let view = policies(several).view(&["access"], &known, &principal(&json!({})));
        view.unwrap().unwrap().masks
    };
    let of_one = |columns: &[(&str, Mask)]| masks(vec![policy("access", None, columns)]);
    assert_eq!(of_one(&[("client", Mask::Hash)]), [Some(Mask::Hash), None, Some(Mask::Null)]);
    assert_eq!(of_one(&[("client", Mask::Hash), ("status", Mask::Deny)])[2], Some(Mask::Deny));
    assert_eq!(of_one(&[("client", Mask::Deny), ("LINE", Mask::KeepLast(1))])[2], Some(Mask::KeepLast(1)));
    assert_eq!(of_one(&[("line", Mask::Hash)]), [None, None, Some(Mask::Hash)]);
    // A mask in another policy is no exception from this one.
    let of_client = policy("access", None, &[("client", Mask::Hash)]);
    let of_line = policy("access", None, &[("line", Mask::KeepLast(1))]);
    assert_eq!(masks(vec![of_client, of_line])[2], Some(Mask::Null));
}

#[test]
fn unfit_policy_blocks_table_without_details() {
    for (rows, masks) in [
        (Some("tenant = 'x'"), &[][..]),
        (Some("id = 'x'"), &[]),
        (Some("tags = 'x'"), &[]),
        (None, &[("emial", Mask::Deny)]),
        (None, &[("tags", Mask::Hash)]),
    ] {
        let unfit = policies([policy("orders", rows, masks)]);
        let error = unfit.view(&["orders"], &columns(), &principal(&json!({}))).unwrap_err();
        assert_eq!(error.message(), "the table \"orders\" cannot be read: its row policy does not fit it");
        // No repetition helps, unlike where a database is away, and the owner is notified.
        assert_eq!((error.kind(), error.is_configuration_fault()), (ErrorKind::Forbidden, true));
        let known = columns();
        let found = unfit.find_problems(&[PolicyTable { names: &["orders"], columns: Some(&known) }]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(!found[0].is_warning);
    }
    let elsewhere = policies([policy("order", None, &[]), policy("*", Some("nobody = 1"), &[("x", Mask::Deny)])]);
    let known = columns();
    let found = elsewhere.find_problems(&[PolicyTable { names: &["orders"], columns: Some(&known) }]);
    let message: Vec<_> = found.iter().map(|problem| (problem.policy, &problem.part, problem.is_warning)).collect();
    assert_eq!(message, [(0, &PolicyPart::Table, false), (1, &PolicyPart::Rows, true)]);
    assert!(found[0].message.contains("orders is one"), "{}", found[0].message);
}

#[test]
fn masks_reveal_only_what_they_keep() {
    let (key, other) = (HashKey::from_secret(b"one"), HashKey::from_secret(b"two"));
    let visible = |mask: Mask, text: &str| mask.mask_text(text, &key);
    assert_eq!(visible(Mask::KeepLast(4), "+41 79 555").as_deref(), Some("****** 555"));
    assert_eq!(visible(Mask::KeepFirst(2), "äöü").as_deref(), Some("äö*"));
    assert_eq!(visible(Mask::KeepFirst(4), "abcd").as_deref(), Some("****"));
    assert_eq!(visible(Mask::KeepLast(0), "ab").as_deref(), Some("**"));
    assert_eq!((visible(Mask::Null, "a"), visible(Mask::Deny, "a")), (None, None));
    let hash = visible(Mask::Hash, "a").unwrap();
    assert!(hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{hash}");
    assert_eq!(visible(Mask::Hash, "a"), Some(hash.clone()));
    assert_ne!(Mask::Hash.mask_text("a", &other), Some(hash));
    assert_eq!(format!("{key:?}"), "***");
    let all = [Mask::Deny, Mask::Null, Mask::Hash, Mask::KeepFirst(3), Mask::KeepFirst(1), Mask::KeepLast(2)];
    let order: BTreeMap<String, Vec<Mask>> =
        all.iter().map(|one| (format!("{one:?}"), all.iter().map(|two| one.stricter(*two)).collect())).collect();
    for (one, two) in all.iter().flat_map(|one| all.iter().map(move |two| (*one, *two))) {
        assert_eq!(one.stricter(two), two.stricter(one), "{order:?}");
    }
}

#[test]
fn a_node_has_one_fingerprint_for_all_its_databases() {
    let bound = |bound_by| {
        let database: Arc<dyn Database> = Arc::new(FakeDatabase { bound_by, ..FakeDatabase::counting(1, 1) });
        Databases::new([database])
    };
    let fingerprint = |databases: &Databases, claims: Value| databases.row_policy_fingerprint(&principal(&claims));
    let databases = bound(Some("region"));
    let of_seven = fingerprint(&databases, json!({"region": 7}));
    assert_eq!(fingerprint(&databases, json!({"region": 7, "exp": 1})), of_seven);
    assert_ne!(fingerprint(&databases, json!({"region": 8})), of_seven);
    // Callers to whom no policy applies share the fingerprint zero.
    assert_ne!(of_seven, 0);
    assert_eq!(fingerprint(&databases, json!({"exp": 1})), 0);
    assert_eq!(fingerprint(&bound(None), json!({"region": 7})), 0);
    assert_eq!(fingerprint(&Databases::default(), json!({"region": 7})), 0);
}

#[test]
fn fingerprint_includes_hash_key_for_hash_masks() {
    let hashing = policy("*", Some("tenant_id = :claims.tenant"), &[("id", Mask::Hash)]);
    let mut plain = policy("orders", Some("id > 5"), &[("Price", Mask::Null)]);
    plain.except_roles.clear();
    // A node without a key of its own has another one after a restart.
    let [before, after] =
        [b"one", b"two"].map(|key| RowPolicies::new(vec![hashing.clone(), plain.clone()], HashKey::from_secret(key)));
    let (clerk, mut auditor) = (principal(&json!({"tenant": "t"})), principal(&json!({})));
    auditor.roles = BTreeSet::from(["auditor".to_owned()]);
    assert_ne!(before.fingerprint(&clerk), after.fingerprint(&clerk));
    assert_eq!(before.fingerprint(&auditor), after.fingerprint(&auditor));
    assert_ne!(before.fingerprint(&auditor), 0);
    assert_eq!(policies([hashing]).fingerprint(&auditor), 0, "nothing binds it");
}

/// Results and tasks are kept under them, and outlive the process and the version of the compiler.
#[test]
fn persisted_fingerprints_are_stable() {
    let of = |parts: &[&str]| {
        let mut hasher = StableHasher::default();
        parts.iter().for_each(|part| hasher.add(part));
        hasher.finish()
    };
    assert_eq!(format!("{:016x}", of(&["ab", "c"])), "601d5476e2ccfe2c");
    assert!(of(&["ab", "c"]) != of(&["a", "bc"]) && of(&["a", "b"]) != of(&["b", "a"]));
    assert_eq!(format!("{:016x}", StableHasher::combine_named([("files", 0), ("shop", 7)])), "4b579e965a869aff");
    assert_eq!(StableHasher::combine_named([("shop", 7)]), StableHasher::combine_named([("files", 0), ("shop", 7)]));
    assert_ne!(StableHasher::combine_named([("shop", 7)]), StableHasher::combine_named([("files", 7)]));
    assert_eq!(StableHasher::combine_named([("files", 0)]), 0);
}
