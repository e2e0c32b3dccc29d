//! Names use the field's terms: some words occur in no declared name, and a public type's name belongs to one crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use syn::visit::{self, Visit};

use super::sources::{self, Source};

/// Words that may not be part of a declared name, with what to write instead.
const BANNED_WORDS: &[(&[&str], &str)] = &[
    (&["door", "doors"], "transport, endpoint"),
    (&["lane", "lanes"], "worker pool"),
    (&["standing", "lapsed"], "revalidation, progress"),
    (&["told", "said", "heard"], "render, notify, received, printed, by meaning"),
    (&["shown"], "credentials, visible, rendered, by meaning"),
    (&["wanted"], "expected, requested"),
    (&["asked"], "requested"),
    (&["sight", "likeness"], "visibility, comparison"),
    (&["outlet", "handover"], "response sink, batch channel"),
    (&["doorkeeper", "gate"], "authenticator"),
    (&["seldom", "patience", "impatient"], "throttle, timeout"),
    (&["house", "keeper"], "background tasks, store"),
    (&["surroundings", "neighbourhood", "survey"], "environment, address class, inspection"),
    (&["ear", "deaf", "hangup"], "listen state, sighup"),
    (&["bend", "hindrance", "became"], "coercion mode, rejection, outcome"),
    (&["prospect", "presentation"], "answer expectation, output options"),
    (&["whose", "whoever"], "owner, key"),
    (&["intruder", "intruders", "garden", "rehearsal", "riddle", "riddles"], "what the test does"),
];

/// Names of public types that may occur in more than one crate, because the module path makes the difference obvious.
const SHARED_TYPE_NAMES: &[&str] = &[];

/// The files with names of members of `_meta`: of answers, of requests, of listed tools.
const META_NAME_FILES: &[&str] =
    &["crates/mcp/src/encode.rs", "crates/mcp/src/jsonrpc.rs", "crates/tools/src/declared/tool.rs"];

#[test]
fn declared_names_use_the_terms_of_the_field() {
    let mut wrong = BTreeSet::new();
    for source in sources::rust_files() {
        let mut names = DeclaredNames::default();
        names.visit_file(&source.file);
        for name in names.0 {
            let words = words(&name);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            // Pairs too: `HangUp` is `hangup` in two words.
            let pairs = words.windows(2).map(<[&str]>::concat);
            let parts: Vec<String> = words.iter().map(|word| (*word).to_owned()).chain(pairs).collect();
            let banned =
                BANNED_WORDS.iter().find(|(banned, _)| parts.iter().any(|part| banned.contains(&part.as_str())));
            if let Some((_, instead)) = banned {
                wrong.insert(format!("{}: {name} (write: {instead})", source.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} names use a private word:\n{}", wrong.len(), Vec::from_iter(wrong).join("\n"));
}

#[test]
fn a_public_type_name_belongs_to_one_crate() {
    let mut crates_of: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for Source { name, file } in sources::rust_files() {
        let mut parts = Path::new(&name).iter().filter_map(|part| part.to_str());
        let (Some("crates"), Some(crate_name), Some("src")) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        for type_name in file.items.iter().filter_map(public_type) {
            crates_of.entry(type_name).or_default().insert(crate_name.to_owned());
        }
    }
    assert!(crates_of.len() > 300, "only {} public types were found", crates_of.len());
    let is_shared = |name: &str| SHARED_TYPE_NAMES.contains(&name);
    let wrong: Vec<_> = crates_of.iter().filter(|(name, crates)| crates.len() > 1 && !is_shared(name)).collect();
    assert!(wrong.is_empty(), "rename one of each, or review SHARED_TYPE_NAMES: {wrong:?}");
    let idle: Vec<_> =
        SHARED_TYPE_NAMES.iter().filter(|name| crates_of.get(**name).is_none_or(|crates| crates.len() < 2)).collect();
    assert!(idle.is_empty(), "take these from SHARED_TYPE_NAMES: {idle:?}");
}

#[test]
fn names_of_metadata_are_written_once() {
    let has_names =
        |name: &str, text: &str| name.contains("/src/") && !name.contains("testkit") && text.contains("dev.tidegate/");
    let files = sources::rust_texts().into_iter().filter(|(name, text)| has_names(name, text));
    let files: BTreeSet<String> = files.map(|(name, _)| name).collect();
    let wrong: Vec<_> = files.iter().filter(|name| !META_NAME_FILES.contains(&name.as_str())).collect();
    assert!(wrong.is_empty(), "use members of AnswerMeta instead of names in {wrong:?}");
    assert_eq!(files.len(), META_NAME_FILES.len(), "take files without names from META_NAME_FILES");
}

fn public_type(item: &syn::Item) -> Option<String> {
    let (visibility, ident) = match item {
        syn::Item::Struct(item) => (&item.vis, &item.ident),
        syn::Item::Enum(item) => (&item.vis, &item.ident),
        syn::Item::Trait(item) => (&item.vis, &item.ident),
        syn::Item::Type(item) => (&item.vis, &item.ident),
        _ => return None,
    };
    matches!(visibility, syn::Visibility::Public(_)).then(|| ident.to_string())
}

/// The words of a name in snake or camel case, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut previous_is_lower = false;
    for character in name.chars() {
        if character == '_' || (character.is_uppercase() && previous_is_lower) {
            words.push(String::new());
        }
        if character != '_' {
            words.last_mut().expect("there is a first word").extend(character.to_lowercase());
        }
        previous_is_lower = character.is_lowercase();
    }
    words
}

#[test]
fn words_of_names() {
    assert_eq!(words("SessionDoor_of"), ["session", "door", "of"]);
}

/// Names that a file declares itself; those of other crates are not its choice.
#[derive(Default)]
struct DeclaredNames(Vec<String>);

impl DeclaredNames {
    fn add(&mut self, ident: &syn::Ident) {
        self.0.push(ident.to_string());
    }
}

impl<'ast> Visit<'ast> for DeclaredNames {
    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.add(&signature.ident);
        visit::visit_signature(self, signature);
    }

    fn visit_item(&mut self, item: &'ast syn::Item) {
        match item {
            syn::Item::Struct(item) => self.add(&item.ident),
            syn::Item::Enum(item) => self.add(&item.ident),
            syn::Item::Trait(item) => self.add(&item.ident),
            syn::Item::Type(item) => self.add(&item.ident),
            syn::Item::Mod(item) => self.add(&item.ident),
            syn::Item::Const(item) => self.add(&item.ident),
            syn::Item::Static(item) => self.add(&item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.add(&variant.ident);
        visit::visit_variant(self, variant);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        field.ident.iter().for_each(|ident| self.add(ident));
        visit::visit_field(self, field);
    }

    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.add(&pattern.ident);
        visit::visit_pat_ident(self, pattern);
    }
}
