//! Declared resources and prompts on a real node: what a URI's variables may reach, and what they may not.

use std::path::Path;

use tempfile::TempDir;
use tidegate::Node;
use tidegate::core::{
    Access, AllowedNames, CallLimits, CallOrigin, CallTarget, Caller, Content, ContentRole, Principal, ResourceBody,
    TransportKind,
};
use tidegate::query::Databases;
use tidegate::runtime::{Call, PromptArgument, ReplyPart, SnapshotBuilder};
use tidegate::tools::declared::{
    DeclaredPrompt, DeclaredResource, PreparedResource, PromptPart, ResourceContent, TextTemplate,
};

/// A folder `pages` with a page, a picture and traps, and a secret beside it.
fn pages() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("pages");
    std::fs::create_dir_all(pages.join("sub")).unwrap();
    std::fs::write(folder.path().join("secret.md"), "secret").unwrap();
    std::fs::write(pages.join("one.md"), "page one: ü").unwrap();
    std::fs::write(pages.join("picture.md"), [0x89, b'P', b'N', b'G', 0xff]).unwrap();
    std::fs::write(pages.join(".hidden.md"), "hidden").unwrap();
    std::fs::write(pages.join("sub/two.md"), "page two").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.path().join("secret.md"), pages.join("link.md")).unwrap();
    folder
}

fn resource(folder: &Path) -> DeclaredResource {
    DeclaredResource {
        uri: "pages://{page}".to_owned(),
        name: "page".to_owned(),
        title: None,
        description: None,
        mime_type: None,
        source: ResourceContent::File {
            folder: folder.join("pages"),
            path: TextTemplate::parse("{{page}}.md").unwrap(),
            inputs: Vec::new(),
        },
        access: Access::default(),
        limits: CallLimits::default(),
        cache: None,
    }
}

fn prompt() -> DeclaredPrompt {
    DeclaredPrompt {
        name: "about".to_owned(),
        title: None,
        description: "Asks about a page.".to_owned(),
        arguments: vec![PromptArgument { name: "page".to_owned(), required: true, ..PromptArgument::default() }],
        messages: vec![
            (ContentRole::User, PromptPart::Text(TextTemplate::parse("What is {{page}}?").unwrap())),
            (ContentRole::User, PromptPart::Resource(TextTemplate::parse("pages://{{page}}").unwrap())),
        ],
        access: Access::default(),
    }
}

/// A prompt that takes a whole URI.
fn prompt_of_uri() -> DeclaredPrompt {
    let whole = PromptPart::Resource(TextTemplate::parse("{{page}}").unwrap());
    DeclaredPrompt { name: "read".to_owned(), messages: vec![(ContentRole::User, whole)], ..prompt() }
}

async fn node(folder: &Path) -> Node {
    let node = Node::builder().without_built_in_tools().build();
    let state = node.new_state(Databases::default(), &AllowedNames::NOTHING);
    let Ok((PreparedResource::Template(template), None)) = resource(folder).prepare(state.services()).await else {
        panic!("a template is declared");
    };
    let prompts = [prompt(), prompt_of_uri()].map(|prompt| prompt.prepare(state.services()).unwrap());
    node.enter_state(state.entries(|entries: SnapshotBuilder| {
        prompts.into_iter().fold(entries.template(*template), SnapshotBuilder::prompt)
    }));
    node
}

/// What is answered, message by message.
async fn call_target(node: &Node, target: CallTarget, argument: Option<(&str, &str)>) -> String {
    let origin = CallOrigin { transport: TransportKind::CommandLine, peer: None };
    let mut call = Call::new(target, Caller::new(Principal::process_user(), origin));
    call.arguments.extend(argument.map(|(name, value)| (name.to_owned(), value.into())));
    let mut reply = match node.registry().call(call) {
        Ok(reply) => reply,
        Err(error) => return error.to_string(),
    };
    let mut output = String::new();
    while let Some(part) = reply.next().await {
        match part {
            ReplyPart::Text(text) => output.push_str(&text),
            ReplyPart::Item(content) | ReplyPart::PromptMessage(_, content) => {
                output.push_str(&describe_content(content));
                output.push('\n');
            }
            ReplyPart::End(Err(error)) => output.push_str(&error.to_string()),
            _ => {}
        }
    }
    output
}

fn describe_content(content: Content) -> String {
    match content {
        Content::Text { text, .. } => text,
        Content::Resource(contents) => match contents.body {
            ResourceBody::Text(text) => format!("[{}: {text}]", contents.uri),
            ResourceBody::Blob(bytes) => format!("[{}: {} bytes]", contents.uri, bytes.len()),
        },
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn file_resource_cannot_leave_its_folder() {
    let folder = pages();
    let node = node(folder.path()).await;
    let read = async |uri: &str| call_target(&node, CallTarget::Resource(uri.to_owned()), None).await;
    assert_eq!(read("pages://one").await, "page one: ü");
    assert_eq!(read("pages://picture").await, "[pages://picture: 5 bytes]\n");
    for uri in [
        "pages://..%2Fsecret",
        "pages://.hidden",
        "pages://sub%2Ftwo",
        "pages://sub/two",
        "pages://link",
        "pages://nothing",
        "pages://%00",
        "pages://",
    ] {
        assert_eq!(read(uri).await, format!("there is no resource {uri:?}"));
    }
}

#[tokio::test]
async fn prompt_embeds_its_resource() {
    let folder = pages();
    let node = node(folder.path()).await;
    let about =
        async |page: &str| call_target(&node, CallTarget::Prompt("about".to_owned()), Some(("page", page))).await;
    assert_eq!(about("one").await, "What is one?\n[pages://one: page one: ü]\n");
    assert_eq!(about("../secret").await, "there is no resource \"pages://..%2Fsecret\"");
    let read = call_target(&node, CallTarget::Prompt("read".to_owned()), Some(("page", "pages://one"))).await;
    assert_eq!(read, "[pages://one: page one: ü]\n", "an argument may be all of the URI");
    let odd = "50% of a b?#ü";
    std::fs::write(folder.path().join("pages").join(format!("{odd}.md")), "an odd page").unwrap();
    let uri = "pages://50%25%20of%20a%20b%3F%23%C3%BC";
    assert_eq!(about(odd).await, format!("What is {odd}?\n[{uri}: an odd page]\n"), "each character comes through");
}
