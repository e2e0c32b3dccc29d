//! How rules name functions and tables, and the reasons for refusing them.

/// Patterns of function names (`*` matches any suffix), and the reason for their refusal.
pub(super) type RefusalRules = &'static [(&'static [&'static str], &'static str)];

pub(super) const READS_FILES: &str = "it accesses files, and only the tables of the catalog can be read";
pub(super) const REACHES_SYSTEMS: &str = "it accesses other systems, and only the tables of the catalog can be read";
pub(super) const SQL_AS_TEXT: &str = "it runs SQL or reads tables given as text, which cannot be checked";
pub(super) const CHANGES_STATE: &str = "it has side effects, and only reading is allowed";
pub(super) const WASTES_TIME: &str = "it only consumes time";

pub(super) fn find_reason(refused: RefusalRules, name: &str) -> Option<&'static str> {
    let is_in = |patterns: &[&str]| patterns.iter().any(|pattern| matches_pattern(pattern, name));
    refused.iter().find(|(patterns, _)| is_in(patterns)).map(|(_, reason)| *reason)
}

pub(super) fn matches_pattern(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}
