//! What `--help` says.

use super::{CommandOutput, Shop, run, tidegate};

/// Checks the options that a command has of its own; returns the others, which all commands share.
fn check(verb: Option<&str>) -> String {
    let arguments: Vec<&str> = verb.into_iter().chain(["--help"]).collect();
    let ran = run(&arguments);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let (own, shared) = ran.stdout.split_once("\nOptions of all commands:\n").unwrap_or((&ran.stdout, ""));
    insta::assert_snapshot!(format!("help_of_{}", verb.unwrap_or("tidegate")), own);
    shared.to_owned()
}

#[test]
fn help_snapshots() {
    let shared = check(None);
    insta::assert_snapshot!("help_of_all_commands", shared);
    for verb in [
        Some("demo"),
        Some("init"),
        Some("serve"),
        Some("stdio"),
        Some("query"),
        Some("export"),
        Some("fetch"),
        Some("call"),
        Some("tools"),
        Some("config"),
        Some("key"),
        Some("access"),
        Some("audit"),
        Some("pg"),
        Some("mysql"),
        Some("transport"),
        Some("client"),
        Some("doctor"),
        Some("health"),
        Some("completions"),
    ] {
        assert_eq!(check(verb), shared, "{verb:?}");
    }
}

#[test]
fn version_is_the_package_version() {
    let ran = run(&["--version"]);
    assert_eq!(ran.stdout, format!("tidegate {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn invalid_arguments_are_usage_errors() {
    for arguments in
        [&["launch"][..], &["--timeout", "60", "tools"], &["query"], &["call"], &["call", "sql", "no-equals-sign"]]
    {
        let ran = run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains("error:"), "{ran:?}");
    }
    insta::assert_snapshot!(run(&["--timeout", "60", "tools"]).stderr, @"
    error: invalid value '60' for '--timeout <DURATION>': write it with its unit: 500ms, 60s, 5m, 1h or 90d

    For more information, try '--help'.
    ");
}

#[test]
fn flags_override_environment() {
    let shop = Shop::new();
    let rows = |arguments: &[&str]| {
        let mut command = tidegate();
        command.env("TIDEGATE_INLINE_ROWS", "1").args(arguments);
        let ran =
            CommandOutput::from(command.args(["query", "SELECT id FROM orders"]).arg(shop.path()).output().unwrap());
        ran.stdout.lines().count() - 1
    };
    assert_eq!(rows(&[]), 1);
    assert_eq!(rows(&["--inline-rows", "2"]), 2);
    for (name, value) in [("TIDEGATE_MEMORY", "much"), ("TIDEGATE_LOG", "tidegate=loud")] {
        let ran = CommandOutput::from(tidegate().env(name, value).arg("tools").output().unwrap());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{name}");
    }
}
