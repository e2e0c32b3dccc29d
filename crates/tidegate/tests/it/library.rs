//! The library face: a host program with tools of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;
use tidegate::Node;
use tidegate::core::{AllowedNames, AuthMethod, CallOrigin, CallTarget, Caller, Grants, Principal, TransportKind};
use tidegate::engines::{EmbeddedDatabase, Engine, EngineOptions};
use tidegate::query::{Databases, HashKey, RowCondition, RowPolicies, RowPolicy};
use tidegate::runtime::{Answer, Call, ReplyPart, Tool, handler_fn};

fn owner() -> Caller {
    Caller::new(Principal::process_user(), CallOrigin { transport: TransportKind::CommandLine, peer: None })
}

fn hello() -> Tool {
    Tool::new("hello", "Says hello", handler_fn(|_call| async { Ok(Answer::text("hello")) }))
}

fn names(node: &Node) -> Vec<String> {
    node.registry().snapshot().tools(&owner()).map(|tool| tool.name.clone()).collect()
}

#[tokio::test]
async fn a_host_adds_its_own_tools_to_the_built_in_ones() {
    let node = Node::builder().entries(|entries| entries.tool(hello())).build();
    let names = names(&node);
    assert!(names.contains(&"hello".to_owned()) && names.contains(&"query".to_owned()), "{names:?}");
    let call = Call::new(CallTarget::Tool("hello".to_owned()), owner());
    let mut reply = node.registry().call(call).unwrap();
    while let Some(part) = reply.next().await {
        if let ReplyPart::End(end) = part {
            end.unwrap();
        }
    }
}

#[tokio::test]
async fn a_host_may_leave_the_built_in_tools_out_or_replace_them() {
    let bare = Node::builder().without_built_in_tools().entries(|entries| entries.tool(hello())).build();
    assert_eq!(names(&bare), ["hello"]);
    let mut own = hello();
    own.name = "query".to_owned();
    let node = Node::builder().entries(|entries| entries.tool(own)).build();
    let snapshot = node.registry().snapshot();
    let query = snapshot.tool("query", &owner()).unwrap();
    assert_eq!(query.description.as_deref(), Some("Says hello"));
}

#[tokio::test]
async fn state_computes_row_policy_fingerprints() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("orders.csv"), "id,region\n1,7\n").unwrap();
    let engine = Engine::start(EngineOptions::default()).unwrap();
    let policy = RowPolicy {
        table: "orders".to_owned(),
        rows: Some(RowCondition::parse("region = :claims.region").unwrap()),
        columns: BTreeMap::new(),
        except_roles: BTreeSet::new(),
    };
    let database = EmbeddedDatabase::open("shop", vec![folder.path().to_owned()], &engine).unwrap();
    let database =
        Arc::new(database.with_row_policies(RowPolicies::new(vec![policy], HashKey::from_secret(b"a secret"))));
    let of_region = |region: u64| {
        let mut ann = Principal::new("ann", AuthMethod::Token, Arc::new(Grants::everything()));
        ann.claims.insert("region".to_owned(), json!(region));
        ann
    };
    let node = Node::builder().database(database.clone()).build();
    let fingerprint = |region| node.registry().snapshot().row_policies().fingerprint_for(&of_region(region));
    let at_first = fingerprint(7);
    assert_ne!(at_first, 0);
    assert_ne!(at_first, fingerprint(8));
    node.enter_state(
        node.new_state(Databases::new([database as Arc<dyn tidegate::query::Database>]), &AllowedNames::Everything),
    );
    assert_eq!(fingerprint(7), at_first);
    node.enter_state(node.new_state(Databases::default(), &AllowedNames::Everything));
    assert_eq!(fingerprint(7), 0);
}
