//! `docs/reference/errors.md`, from the kinds of errors, the codes of JSON-RPC and the problem types of REST.

use std::collections::BTreeMap;

use tidegate::core::ErrorKind;
use tidegate::mcp::RpcError;
use tidegate::transport::http::problem_types;

use super::{check_page, code, doc_comment, source, table};

const INTRODUCTION: &str = "\
# Errors

Each failed call has one kind. MCP, REST, the log and the metrics show the same kind in their own form.

- **MCP**: a failed call of a tool usually has a result with `isError: true`, whose text a model can read. Other failed calls have a JSON-RPC error
  with the kind in `data.kind`.
- **REST**: a [problem](transports/rest.md#problems) with the name of the kind.
- **Log and metrics**: the name of the kind is the outcome of the call, or `done`. The log has the detail of a fault of the server as `ERROR`, of
  `unavailable` as `WARN`, and of other errors only at the level `debug`.

";

const CODES: &str = "\
## JSON-RPC codes

Over Streamable HTTP, an error in a modern revision (2026-07-28) has the status 404 for an unknown method, 429 for `rate_limited`, and 400 for
a missing capability. Where OAuth metadata is published, a call without the required token has 401. A token without the required scopes
has 403 in every revision. Other errors of calls have the status 200. A handler in a database can choose the code of its own errors.

";

const PROBLEMS: &str = "\
## Problem types of REST

`type` is `tag:tidegate.dev,2026:problem/` followed by the name. A name without a meaning is a [kind](#kinds).

";

/// The doc comments of the variants of an enum, by the name of the variant.
fn variant_docs(path: &str, name: &str) -> BTreeMap<String, String> {
    let found = source(path).items.into_iter().find_map(|item| match item {
        syn::Item::Enum(found) if found.ident == name => Some(found),
        _ => None,
    });
    let variants = found.unwrap().variants.into_iter();
    variants.map(|variant| (variant.ident.to_string(), doc_comment(&variant.attrs))).collect()
}

/// The codes of JSON-RPC and their doc comments.
fn rpc_codes() -> Vec<(i64, String)> {
    let mut codes = Vec::new();
    for item in source("crates/mcp/src/jsonrpc.rs").items {
        let syn::Item::Impl(block) = item else { continue };
        for item in block.items {
            let syn::ImplItem::Const(constant) = item else { continue };
            let syn::Expr::Unary(syn::ExprUnary { expr, .. }) = &constant.expr else { continue };
            let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(number), .. }) = &**expr else { continue };
            codes.push((-number.base10_parse::<i64>().unwrap(), doc_comment(&constant.attrs)));
        }
    }
    codes.sort_unstable();
    codes
}

/// The name of a variant as it appears in problem types.
fn snake_case(variant: &str) -> String {
    let mut name = String::new();
    for character in variant.chars() {
        if character.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(character.to_lowercase());
    }
    name
}

#[test]
fn errors_page_is_current() {
    let docs = variant_docs("crates/core/src/error.rs", "ErrorKind");
    assert_eq!(docs.len(), ErrorKind::ALL.len(), "ErrorKind::ALL is incomplete");
    let problems = problem_types();
    let meaning = |kind: ErrorKind| docs[&format!("{kind:?}")].clone();
    let mut kinds = Vec::new();
    for &kind in ErrorKind::ALL {
        let status = problems.iter().find(|(name, ..)| *name == kind.name()).map(|(_, status, _)| status.to_string());
        let rpc_code = RpcError::code_of(kind).to_string();
        kinds.push(vec![code(kind.name()), rpc_code, status.unwrap_or_else(|| "–".to_owned()), meaning(kind)]);
    }
    let codes: Vec<_> = rpc_codes().into_iter().map(|(number, meaning)| vec![number.to_string(), meaning]).collect();
    let types = variant_docs("crates/transport/src/http/answer/problem.rs", "ProblemType").into_iter();
    let mut meanings: BTreeMap<String, String> =
        types.map(|(variant, meaning)| (snake_case(&variant), meaning)).collect();
    meanings.extend(ErrorKind::ALL.iter().map(|kind| (kind.name().to_owned(), String::new())));
    let problems = problems.iter().map(|(name, status, title)| {
        vec![code(name), status.to_string(), (*title).to_owned(), meanings[*name].clone()]
    });
    let problems: Vec<_> = problems.collect();
    let page = format!(
        "{INTRODUCTION}## Kinds\n\n{}{CODES}{}{PROBLEMS}{}",
        table(&["kind", "JSON-RPC code", "status in REST", "meaning"], &kinds),
        table(&["code", "meaning"], &codes),
        table(&["name", "status", "title", "meaning"], &problems),
    );
    check_page("errors.md", &page);
}
