//! A table of broken configurations, each with the whole message that a person sees.

use super::super::ConfiguredFolder;

/// What is wrong, and a configuration in which nothing else is.
const SHAPES: &[(&str, &str)] = &[
    (
        "types of the first level",
        "server: []\ndatabases: shop\nbuilt_in: sql\ntools: 1\ntoolsets: [a]\nresources: x\nprompts: {}\nroles: r\n\
         auth: keys.json\nlimits: 60s\nhttp: [api.example.com]\n",
    ),
    (
        "types under server",
        "server: {listen: 7070, allow_hosts: a, allow_origins: 1, max_body: [4MiB], title: [T], instructions: {},\n  \
         transports: {mcp: maybe, metrics: 1}}\n",
    ),
    (
        "types under databases",
        "databases:\n  - shop\n  - {name: [a], files: {a: b}, tables: []}\n  - {name: b, files: shop, tables: {t: \
         {header: 1, columns: [id]}}}\n",
    ),
    (
        "types under tools",
        "tools:\n  - {name: 1, description: [], title: {}, annotations: {read_only: 'yes'}, database: [], sql: {}, \
         input: [x],\n     access: a, from: {transports: stdio, networks: 10}, limits: {timeout: [1s]}, cache: 60s}\n",
    ),
    (
        "types under input",
        "tools:\n  - name: t\n    description: T\n    sql: SELECT :a\n    input:\n      a: string\n      b: {type: 1, \
         items: text, allow: a, description: 1, required: 'no', enum: a}\n      c: {minimum: low, maximum: [], \
         min_length: -x, max_length: 1.5, pattern: 1}\n",
    ),
    (
        "types under http",
        "tools:\n  - {name: t, description: T, http: 'https://api.example.com'}\n  - {name: u, description: U, http: \
         {url: 1, method: [], query: a, headers: [a], rows: 0, timeout: {}, max_bytes: []}}\n",
    ),
    (
        "types under resources and prompts",
        "resources: [{uri: 1, name: [], access: x, from: http, cache: {ttl: 5, public: 'no'}}]\nprompts: [{name: p, \
         description: P, arguments: {a: b}, messages: [{role: system, text: 1}, hello]}]\n",
    ),
    (
        "types under roles and auth",
        "roles: [clerk, {name: a, access: all, toolsets: t, databases: d, claims: [x]}]\nauth: {keys: [a], tokens: \
         {issuer: 1, audience: {}, algorithms: RS256, secret: [s], leeway: {}}, anonymous: a, local: b}\n",
    ),
    (
        "unknown keys at every level",
        "sever: {}\nserver: {port: 1, transports: {metric: true}}\ndatabases: [{name: s, files: shop, file: x, tables: {t: \
         {delimeter: ';'}}}]\ntools: [{name: t, descripton: T, annotations: {readonly: true}, http: {uri: x}, input: \
         {x: {typ: string}}, from: {transport: [stdio]}, limits: {rows: 1}, cache: {ttl: 1s, private: true}}]\n\
         resources: [{url: 'a://b', name: r}]\nprompts: [{name: p, description: P, message: [], arguments: [{name: a, \
         require: true}], messages: [{txt: a}]}]\nroles: [{name: r, tool_sets: []}]\nauth: {key: k, tokens: {iss: i}}\n\
         limits: {time: 1s}\nhttp: {hosts: []}\n",
    ),
    (
        "what must be said",
        "databases: [{}]\ntools: [{}]\nresources: [{}]\nprompts: [{arguments: [{}]}]\nroles: [{}]\nauth: {tokens: \
         {}}\n",
    ),
];

const TEXTS: &[(&str, &str)] = &[
    ("tabs", "databases:\n\t- {name: shop, files: shop}\n"),
    ("an open bracket", "databases: [{name: shop, files: shop}\nlimits: {}\n"),
    ("an open quotation", "server: {title: 'shop}\n"),
    ("a lost indentation", "databases:\n  - name: shop\n   files: shop\n"),
    ("a word alone", "shop\n"),
    ("a list", "- shop\n"),
    ("a key with nothing below it", "tools:\n# - {name: t}\nlimits: ~\n"),
    ("a key twice", "tools:\n  - {name: a, name: b}\n"),
    ("a key that is none", "{[a]: b}\n"),
    ("a tag", "limits: !!map {}\n"),
    ("an anchor that is not there", "limits: *all\n"),
    ("an anchor of itself", "limits: &a {timeout: *a}\n"),
    ("two documents", "limits: {}\n---\nlimits: {}\n"),
    ("a tag on a word", "limits: {timeout: !!str 1s}\n"),
    ("a merge key", "limits: &l {timeout: 1s}\ntools: [{name: t, description: T, sql: SELECT 1, limits: {<<: *l}}]\n"),
    ("a size that is a fraction", "limits: {memory: 1e3}\n"),
    ("a size of no unit", "limits: {inline_bytes: 5XB}\n"),
    ("rows below none", "limits: {inline_rows: -1}\n"),
    ("a time without a unit", "limits: {timeout: 5}\n"),
    ("more memory than there can be", "limits: {memory: 99999999999GB}\n"),
];

const NAMES: &[(&str, &str)] = &[
    (
        "names twice",
        "databases: [{name: s, files: shop}, {name: s, files: shop}]\ntools: [{name: t, description: T, sql: SELECT \
         1}, {name: t, description: T, sql: SELECT 1}]\nroles: [{name: r}, {name: r}]\n",
    ),
    (
        "names that are none",
        "databases: [{name: s, files: shop}]\ntools: [{name: 'a b', description: T, sql: SELECT 1}, {name: '', \
         description: T, sql: SELECT 1}]\ntoolsets: {'a b': []}\nroles: [{name: ''}]\n",
    ),
    (
        "a database that is not there",
        "databases: [{name: s, files: shop}]\ntools: [{name: t, description: T, database: \
                                      x, sql: SELECT 1}]\n",
    ),
    (
        "two databases and no choice",
        "databases: [{name: a, files: shop}, {name: b, files: shop}]\ntools: [{name: t, \
                                     description: T, sql: SELECT 1}]\n",
    ),
    ("neither statement nor request", "databases: [{name: s, files: shop}]\ntools: [{name: t, description: T}]\n"),
    (
        "transports and networks that are none",
        "databases: [{name: s, files: shop}]\ntools: [{name: t, description: T, sql: SELECT 1, from: {transports: \
         [tcp, http], networks: [10.0.0.0/33, office]}}]\n",
    ),
    (
        "a table of CSV files",
        "databases: [{name: s, files: shop, tables: {orders: {delimiter: ';;', quote: ä, columns: {id: whole}}}}]\n",
    ),
    ("globs", "databases: [{name: s, files: [shop/*.csv, nowhere/*.csv]}, {name: t, files: 'shop/**.csv'}]\n"),
    (
        "prompts and arguments",
        "prompts: [{name: p, description: P, messages: [{text: 'Hi {{who}}'}, {text: '{{a'}, {resource: \
         'r://{{}}'}]}]\n",
    ),
    ("tokens without a key, and with two", "auth: {tokens: {issuer: i, audience: a, algorithms: [RS256]}}\n"),
    (
        "tokens with two keys",
        "auth: {tokens: {issuer: i, audience: a, algorithms: [RS256], jwks: a.json, public_key: a.pem}}\n",
    ),
    (
        "algorithms that are none",
        "auth: {tokens: {issuer: i, audience: a, algorithms: [RS256, none, HS257], public_key: shop/orders.csv}}\n",
    ),
    (
        "a public key for shared secrets",
        "auth: {tokens: {issuer: i, audience: a, algorithms: [HS256], public_key: shop/orders.csv}}\n",
    ),
    (
        "hosts that are none",
        "http: {allow_hosts: ['https://a.example/', 'a b', '*']}\ntools: [{name: t, description: \
                             T, http: {url: 'https://a.example/'}}]\n",
    ),
    (
        "requests that cannot be",
        "http: {allow_hosts: [a.example]}\ntools: [{name: t, description: T, http: {url: 'ftp://a.example/{{x}}', \
         method: FETCH, rows: items, headers: {'a b': c}}}]\n",
    ),
    (
        "questions to a person",
        "databases: [{name: s, files: shop}]\ntools:\n  - {name: t, description: T, sql: 'SELECT :x AS x', input: {x: \
         {type: integer, default: 1, ask: 'Which?'}}, confirm: 'Really {{y}}?'}\n  - {name: u, description: U, sql: \
         SELECT 1, confirm: '{{'}\n",
    ),
    (
        "variables",
        "server: {title: '${NOWHERE_SET}', listen: '${file:no/secret}', instructions: '${1X}', allow_hosts: ['${']}\n",
    ),
];

/// Each configuration with what `config check` says of it.
fn checked(table: &[(&str, &str)]) -> String {
    let configured = ConfiguredFolder::new("");
    let section = |(subject, text): &(&str, &str)| {
        configured.write(text);
        let visible: Vec<String> =
            text.lines().enumerate().map(|(at, line)| format!("{:>3} | {line}", at + 1)).collect();
        let output = configured.usage_error(&["config", "check"]);
        let output = output.strip_prefix("error: the configuration cannot be used\n").unwrap_or(&output).to_owned();
        format!("## {subject}\n{}\n\n{output}", visible.join("\n"))
    };
    table.iter().map(section).collect::<Vec<_>>().join("\n")
}

#[test]
fn shapes() {
    insta::assert_snapshot!("broken_shapes", checked(SHAPES));
}

#[test]
fn texts() {
    insta::assert_snapshot!("broken_texts", checked(TEXTS));
}

#[test]
fn names() {
    insta::assert_snapshot!("broken_names", checked(NAMES));
}

#[test]
fn rejects_unreadable_and_oversized_files() {
    let configured = ConfiguredFolder::new("");
    let file = configured.folder().join("tidegate.yaml");
    let text = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        configured.usage_error(&["config", "check"]).lines().skip(1).collect::<Vec<_>>().join("\n")
    };
    let nested: String = (0..100).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    insta::assert_snapshot!(text(b"server: {title: \xff}\n"), @"tidegate.yaml: cannot be read: stream did not contain valid UTF-8");
    insta::assert_snapshot!(text(&b"# much\n".repeat(1_000_000)), @"tidegate.yaml: is larger than 4194304 bytes");
    insta::assert_snapshot!(text(nested.as_bytes()), @"tidegate.yaml:65:65: is nested too deeply");
    insta::assert_snapshot!(text(format!("tools: {}{}\n", "[".repeat(100), "]".repeat(100)).as_bytes()), @"tidegate.yaml:1:72: is nested too deeply");
    insta::assert_snapshot!(text(format!("built_in: [{}]\n", "a, ".repeat(300_000)).as_bytes()), @"tidegate.yaml:1:600009: makes the file larger than 200000 values");
    std::fs::remove_file(&file).unwrap();
    insta::assert_snapshot!(configured.usage_error(&["config", "check"]), @r"
    error: the configuration cannot be used
    tidegate.yaml: cannot be read: No such file or directory (os error 2)
    ");
    std::fs::create_dir(&file).unwrap();
    insta::assert_snapshot!(configured.usage_error(&["config", "check"]), @r"
    error: the configuration cannot be used
    tidegate.yaml: cannot be read: Is a directory (os error 21)
    ");
}

#[test]
fn accepts_empty_files_and_aliases() {
    for text in ["", "\n", "# nothing\n", "---\n", "{}\n", "\u{feff}limits: {}\n", "limits:\r\n  timeout: 5s\r\n"] {
        let ran = ConfiguredFolder::new(text).run(&["config", "check"]);
        assert_eq!(ran.code, Some(0), "{text:?}: {ran:?}");
    }
    let shared = "databases: [{name: s, files: shop}]\ntools:\n  - {name: a, description: A, sql: SELECT 1 AS x, limits: \
                  &l {timeout: 5s}}\n  - {name: b, description: B, sql: SELECT 1 AS x, limits: *l}\n";
    let ran = ConfiguredFolder::new(shared).run(&["config", "check"]);
    assert_eq!(ran.stdout, "tidegate.yaml: 1 databases and 2 tools, nothing wrong\n", "{ran:?}");
}

#[test]
fn unmatched_glob_is_a_warning() {
    let configured = ConfiguredFolder::new("databases: [{name: s, files: [shop/2030-*.csv, shop/orders.csv]}]\n");
    let ran = configured.run(&["config", "check"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "tidegate.yaml: 1 databases and 0 tools, no errors; 1 warning above\n")
    );
    assert!(ran.stderr.contains("database s: no file matches 2030-*.csv yet"), "{}", ran.stderr);
}
