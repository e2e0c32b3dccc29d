//! Files and functions stay small enough to be read whole.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::workspace;

/// Lines of a source file before its tests.
const FILE_LINES_MAX: usize = 700;
/// Lines of a function from its signature to its closing brace.
const FUNCTION_LINES_MAX: usize = 80;
/// Files or functions (`path` or `path::function`) that may be larger. May only shrink.
const EXCEPTIONS: &[&str] = &[];

#[test]
fn files_and_functions_stay_within_their_bounds() {
    let mut sources = Vec::new();
    for crate_folder in folders(&workspace().join("crates")) {
        collect_sources(&crate_folder.join("src"), &mut sources);
    }
    assert!(sources.len() > 50, "only {} source files were found", sources.len());
    let parsed: Vec<(PathBuf, ParsedSource)> =
        sources.into_iter().map(|path| (path.clone(), ParsedSource::read(&path))).collect();
    let tests: BTreeSet<&PathBuf> = parsed.iter().flat_map(|(_, source)| &source.test_files).collect();
    let mut found: Vec<String> = parsed
        .iter()
        .filter(|(path, _)| !tests.contains(path))
        .flat_map(|(_, source)| source.too_large.clone())
        .collect();
    found.sort();
    let name_of = |line: &str| line.split(" has ").next().unwrap_or_default().to_owned();
    let names: BTreeSet<String> = found.iter().map(|line| name_of(line)).collect();
    let new: Vec<_> = found.iter().filter(|line| !EXCEPTIONS.contains(&name_of(line).as_str())).collect();
    assert!(new.is_empty(), "split what has grown too large:\n{new:#?}");
    let idle: Vec<_> = EXCEPTIONS.iter().filter(|name| !names.contains(**name)).collect();
    assert!(idle.is_empty(), "these are small enough now; take them from EXCEPTIONS: {idle:?}");
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder is readable");
    entries.map(|entry| entry.expect("the entry is readable").path()).filter(|path| path.is_dir()).collect()
}

fn collect_sources(folder: &Path, sources: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the entry is readable").path();
        if path.is_dir() {
            collect_sources(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(path);
        }
    }
}

/// What is too large in one file, and which other files are its tests.
struct ParsedSource {
    too_large: Vec<String>,
    test_files: Vec<PathBuf>,
}

impl ParsedSource {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("the source is readable");
        let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.strip_prefix(workspace()).expect("a path within the workspace").display().to_string();
        let first_test = file.items.iter().find(|item| is_test(item)).map(|item| line_span(item.span()).0);
        let lines = first_test.map_or_else(|| text.lines().count(), |line| line - 1);
        let mut functions = Functions { file: name.clone(), too_large: Vec::new() };
        for item in file.items.iter().filter(|item| !is_test(item)) {
            functions.visit_item(item);
        }
        let mut too_large = functions.too_large;
        if lines > FILE_LINES_MAX {
            too_large.push(format!("{name} has {lines} lines, more than {FILE_LINES_MAX}"));
        }
        Self { too_large, test_files: file.items.iter().flat_map(|item| test_files(path, item)).collect() }
    }
}

/// The files that `#[cfg(test)] mod name;` may stand for.
fn test_files(path: &Path, item: &syn::Item) -> Vec<PathBuf> {
    let syn::Item::Mod(module) = item else { return Vec::new() };
    if !is_test(item) || module.content.is_some() {
        return Vec::new();
    }
    let stem = path.file_stem().unwrap_or_default();
    let is_root = ["lib", "main", "mod"].iter().any(|root| stem == *root);
    let folder = path.parent().expect("a file lies in a folder");
    let folder = if is_root { folder.to_owned() } else { folder.join(stem) };
    let name = module.ident.to_string();
    vec![folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")]
}

fn is_test(item: &syn::Item) -> bool {
    let (syn::Item::Mod(syn::ItemMod { attrs, .. }) | syn::Item::Fn(syn::ItemFn { attrs, .. })) = item else {
        return false;
    };
    attrs.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

fn line_span(span: Span) -> (usize, usize) {
    (span.start().line, span.end().line)
}

struct Functions {
    file: String,
    too_large: Vec<String>,
}

impl Functions {
    fn measure(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let lines = line_span(block.span()).1 + 1 - line_span(signature.span()).0;
        if lines > FUNCTION_LINES_MAX {
            let (file, name) = (&self.file, &signature.ident);
            self.too_large.push(format!("{file}::{name} has {lines} lines, more than {FUNCTION_LINES_MAX}"));
        }
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.measure(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}
