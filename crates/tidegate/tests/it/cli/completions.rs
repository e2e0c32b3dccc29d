//! `tidegate completions`.

use super::run;

#[test]
fn scripts_name_the_verbs() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = run(&["completions", shell]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        assert!(ran.stdout.contains("stdio") && ran.stdout.contains("inline-bytes"), "{shell}");
        assert!(ran.stdout.contains("claude-code claude-desktop cursor vscode"), "{shell} completes clients");
    }
    assert_eq!(run(&["completions", "dos"]).code, Some(2));
}
