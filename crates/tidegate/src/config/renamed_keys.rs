//! Keys of the configuration that have a new name. The old name is still read, with a warning.

struct RenamedKey {
    /// The keys around it, from the first level on; `[]` is an item of a list.
    parent: &'static [&'static str],
    old: &'static str,
    new: &'static str,
}

const fn renamed(parent: &'static [&'static str], old: &'static str, new: &'static str) -> RenamedKey {
    RenamedKey { parent, old, new }
}

/// Every renamed key; `docs/how-to/upgrade.md` lists the same.
const RENAMED_KEYS: &[RenamedKey] = &[
    renamed(&["server"], "doors", "transports"),
    renamed(&["limits"], "answer_within", "input_timeout"),
    renamed(&["databases", "[]"], "connection_wait", "connection_timeout"),
    renamed(&["databases", "[]", "handlers"], "audit", "exchange_log"),
    renamed(&["results"], "of_one", "per_principal"),
    renamed(&["results"], "time_to_live", "ttl"),
    renamed(&["audit"], "when_full", "on_write_failure"),
    renamed(&["audit"], "keep", "keep_files"),
    renamed(&["audit"], "arguments", "argument_values"),
    renamed(&["auth", "proxy"], "user", "user_header"),
    renamed(&["auth", "proxy"], "tenant", "tenant_header"),
    renamed(&["auth", "proxy"], "roles", "roles_header"),
];

/// The new name of `key` in the value whose keys, from the first level on, are `parent`.
pub(super) fn new_name(parent: &[&str], key: &str) -> Option<&'static str> {
    RENAMED_KEYS.iter().find(|renamed| renamed.old == key && renamed.parent == parent).map(|renamed| renamed.new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_key_at_its_path_is_renamed() {
        assert_eq!(new_name(&["databases", "[]", "handlers"], "audit"), Some("exchange_log"));
        assert_eq!(new_name(&["databases", "[]", "handlers", "audit"], "audit"), None);
        assert_eq!(new_name(&[], "audit"), None);
    }

    #[test]
    fn upgrade_page_lists_every_renamed_key() {
        let page = include_str!("../../../../docs/how-to/upgrade.md");
        for RenamedKey { parent, old, new } in RENAMED_KEYS {
            let parent = parent.join(".").replace(".[]", "[]");
            let row = format!("| `{parent}.{old}` | `{parent}.{new}` |");
            assert!(page.contains(&row), "docs/how-to/upgrade.md lacks the row {row}");
        }
    }
}
