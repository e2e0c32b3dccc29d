//! The library face: a host program with tools of its own.

use tidegate::Node;
use tidegate::core::{
    Call, Caller, Content, Metadata, Origin, Outcome, Principal, ReplyEvent, Target, Tool, TransportKind, handler_fn,
};

fn owner() -> Caller {
    Caller::new(Principal::owner(), Origin { transport: TransportKind::CommandLine, peer: None })
}

fn hello() -> Tool {
    let handler = handler_fn(|_job, reply| async move {
        reply.block(Content::text("hello")).await?;
        Ok(Metadata::new())
    });
    Tool::new("hello", "Says hello", handler)
}

fn names(node: &Node) -> Vec<String> {
    node.registry().snapshot().tools(&owner()).map(|tool| tool.name.clone()).collect()
}

#[tokio::test]
async fn a_host_adds_its_own_tools_to_the_built_in_ones() {
    let node = Node::builder().entries(|entries| entries.tool(hello())).build();
    let names = names(&node);
    assert!(names.contains(&"hello".to_owned()) && names.contains(&"query".to_owned()), "{names:?}");
    let call = Call::new(Target::Tool("hello".to_owned()), owner());
    let mut reply = node.registry().call(call).unwrap();
    while let Some(event) = reply.next().await {
        if let ReplyEvent::End(outcome) = event {
            assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
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
