//! Names use the field's terms: some words occur in no declared name, others in few types; and the name of a public type
//! belongs to one crate.

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

/// Names that stood for two things or said nothing, with what to write instead.
const REPLACED_NAMES: &[(&str, &str)] = &[
    ("AdmissionError", "the error of the step that refuses the call"),
    ("AnswerFrame", "ResponseFrame"),
    ("AnswerStream", "ResponseStream"),
    ("BodySource", "UndecodedBody"),
    ("ContentBlocks", "ContentItems"),
    ("DataSource", "ProposedDatabase"),
    ("DatabaseSource", "DatabaseArgument"),
    ("Destination", "OutputFile, WritableTable"),
    ("FileDatabase", "EmbeddedDatabase"),
    ("FunctionSource", "TableFunctions"),
    ("IngestTarget", "WriteTarget"),
    ("LimitDefaults", "the limits themselves"),
    ("LogError", "WriteAheadLogError"),
    ("LogOptions", "ServerLogOptions, WriteAheadLogOptions"),
    ("LogWriter", "AuditLogWriter, ServerLogWriter, WriteAheadLogWriter"),
    ("NodeAssembler", "ConfigApplier"),
    ("NodeEntries", "EntriesWithHandlers"),
    ("NodeSpec", "StartOptions"),
    ("NodeState", "ServedState"),
    ("Obstacle", "CountingError"),
    ("OpenNode", "Application"),
    ("PagingArguments", "DeliveryArguments"),
    ("ResourceSource", "ResourceContent"),
    ("StatementSource", "StatementProvider"),
    ("TableSource", "TableRecorder"),
    ("ToolContext", "ToolServices"),
    ("node_assembler", "config_applier"),
    ("open_node", "application"),
    ("row_policy_fingerprinter", "RowPolicyFingerprints"),
    ("tool_context", "tool_services"),
];

/// Words with one meaning, and the only types in `src` folders whose names have them. The list of a word without a meaning
/// may only shrink.
const RESERVED_WORDS: &[(&[&str], &str, &[&str])] = &[
    (
        &["source", "sources"],
        "a log source or a metric source; of another server's configuration, or as DataFusion has it",
        &[
            "IsolatedParquetSource",
            "LogSource",
            "LogSourceConfig",
            "LogSourceReport",
            "LogSources",
            "MetricSource",
            "MetricSourceConfig",
            "MetricSourceKind",
            "MetricSourceReport",
            "MetricSources",
            "ReaderSource",
            "ResolvedSource",
            "Source",
            "SourceColumn",
            "SourceCounts",
            "SourceField",
            "SourceFilters",
            "SourceId",
            "SourceRow",
            "SourceSearch",
            "SourceSet",
            "Sources",
            "TelemetrySources",
            "TraceSource",
            "VisibleSources",
        ],
    ),
    (
        &["scope", "scopes"],
        "where names of SQL are visible; or as OAuth, OTLP and MCP clients have it",
        &[
            "CteScope",
            "ImpliedScopes",
            "ImpliedScopesError",
            "InstallScope",
            "NameScope",
            "ScopeColumns",
            "ScopeNames",
            "ScopeTable",
            "StatementScope",
            "TableScope",
            "TypeScope",
            "WindowScopes",
        ],
    ),
    (
        &["block", "blocks"],
        "a stored block of a result; of files, as their formats have it",
        &[
            "Block",
            "BlockAhead",
            "BlockFetcher",
            "BlockMetadata",
            "BlockReader",
            "ManifestBlock",
            "PartialBlock",
            "ResultBlock",
            "VerifiedBlock",
        ],
    ),
    (
        &["context"],
        "nothing: name what it holds",
        &[
            "ContextParams",
            "ContextRequest",
            "ErrorContext",
            "IngestContext",
            "LogContext",
            "MaintenanceContext",
            "MemberQueryContext",
            "MetricContext",
            "ReadContext",
            "ReceiverContext",
            "RequestContext",
            "TimeContext",
            "TraceContext",
            "WriteContext",
        ],
    ),
];

/// Types in `src` folders that only one file declares.
const DECLARED_ONCE: &[&str] = &["Engine", "NodeTables", "RowWriter"];

/// Names of public types that may occur in more than one crate, because the module path makes the difference obvious.
const SHARED_TYPE_NAMES: &[&str] = &[];

/// The files with names of members of `_meta`: of requests; of answers and listed tools.
const META_NAME_FILES: &[&str] = &["crates/mcp/src/jsonrpc.rs", "crates/mcp/src/wire.rs"];

/// One test, because parsing all sources takes most of its time.
#[test]
fn names_use_the_terms_of_the_field_and_types_belong_to_one_crate() {
    let sources = sources::rust_files();
    check_declared_names(&sources);
    check_public_types(&sources);
}

fn check_declared_names(sources: &[Source]) {
    let mut wrong = BTreeSet::new();
    for source in sources {
        let mut names = DeclaredNames::default();
        names.visit_file(&source.file);
        for name in names.0 {
            if let Some((_, instead)) = REPLACED_NAMES.iter().find(|(replaced, _)| *replaced == name) {
                wrong.insert(format!("{}: {name} (write: {instead})", source.name));
            }
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

fn check_public_types(sources: &[Source]) {
    let mut crates_of: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut files_of: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Source { name, file } in sources {
        let mut parts = Path::new(name).iter().filter_map(|part| part.to_str());
        let (Some("crates"), Some(crate_name), Some("src")) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        for (visibility, type_name) in file.items.iter().filter_map(declared_type) {
            if matches!(visibility, syn::Visibility::Public(_)) {
                crates_of.entry(type_name.to_string()).or_default().insert(crate_name.to_owned());
            }
            files_of.entry(type_name.to_string()).or_default().push(name.clone());
        }
    }
    check_words_of_types(&files_of);
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

/// Checks [`RESERVED_WORDS`] and [`DECLARED_ONCE`] on the types in `src` folders, with the files that declare each.
fn check_words_of_types(files_of: &BTreeMap<String, Vec<String>>) {
    for (reserved, meaning, types) in RESERVED_WORDS {
        let has_word = |name: &str| words(name).iter().any(|word| reserved.contains(&word.as_str()));
        let wrong: Vec<_> =
            files_of.iter().filter(|(name, _)| has_word(name) && !types.contains(&name.as_str())).collect();
        assert!(wrong.is_empty(), "{} is {meaning}; rename: {wrong:?}", reserved[0]);
        let idle: Vec<_> = types.iter().filter(|name| !files_of.contains_key(**name)).collect();
        assert!(idle.is_empty(), "take these from RESERVED_WORDS: {idle:?}");
    }
    for name in DECLARED_ONCE {
        let files = files_of.get(*name).map_or(&[][..], Vec::as_slice);
        assert_eq!(files.len(), 1, "{name} has one meaning, and these files declare it: {files:?}");
    }
}

fn declared_type(item: &syn::Item) -> Option<(&syn::Visibility, &syn::Ident)> {
    match item {
        syn::Item::Struct(item) => Some((&item.vis, &item.ident)),
        syn::Item::Enum(item) => Some((&item.vis, &item.ident)),
        syn::Item::Trait(item) => Some((&item.vis, &item.ident)),
        syn::Item::Type(item) => Some((&item.vis, &item.ident)),
        _ => None,
    }
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
