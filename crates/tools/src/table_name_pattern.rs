//! Name patterns of the discovery tools.

/// A case-insensitive pattern: a glob if it contains `*` or `?`, otherwise a part of the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableNamePattern(PatternForm);

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternForm {
    Substring(String),
    Glob(Vec<char>),
}

impl TableNamePattern {
    /// Parses a pattern. Every text is valid.
    pub(crate) fn new(text: &str) -> Self {
        let text = text.to_lowercase();
        Self(if text.contains(['*', '?']) {
            PatternForm::Glob(text.chars().collect())
        } else {
            PatternForm::Substring(text)
        })
    }

    /// Whether `name` matches.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        match &self.0 {
            PatternForm::Substring(part) => name.contains(part.as_str()),
            PatternForm::Glob(glob) => glob_matches(glob, &name.chars().collect::<Vec<_>>()),
        }
    }
}

/// Backtracks to the last `*` only, so that the time is at most pattern length times name length.
fn glob_matches(glob: &[char], name: &[char]) -> bool {
    let (mut at_glob, mut at_name) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while at_name < name.len() {
        match glob.get(at_glob) {
            Some('*') => {
                last_star = Some((at_glob, at_name));
                at_glob += 1;
            }
            Some(&expected) if expected == '?' || expected == name[at_name] => {
                at_glob += 1;
                at_name += 1;
            }
            _ => {
                let Some((star, taken)) = last_star else { return false };
                last_star = Some((star, taken + 1));
                at_glob = star + 1;
                at_name = taken + 1;
            }
        }
    }
    glob[at_glob..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, fitting: &[&str], strangers: &[&str]) {
        let pattern = TableNamePattern::new(pattern);
        for name in fitting {
            assert!(pattern.matches(name), "{name}");
        }
        for name in strangers {
            assert!(!pattern.matches(name), "{name}");
        }
    }

    #[test]
    fn plain_text_matches_substrings() {
        check("Port", &["airports", "PORT", "reports"], &["planes"]);
        check("", &["airports", ""], &[]);
    }

    #[test]
    fn globs_fit_whole_names() {
        check("ord*", &["orders", "Order items", "ord"], &["reorder"]);
        check("*_2?24*", &["sales_2024", "x_2124_y"], &["sales_224"]);
        check("*a*b*", &["xaxbx", "ab"], &["ba"]);
        check("gr?ße", &["GRÖßE"], &["grße"]);
        check("*", &["", "x"], &[]);
    }

    #[test]
    fn many_stars_do_not_backtrack_exponentially() {
        let glob = "*a".repeat(200);
        assert!(!TableNamePattern::new(&glob).matches(&"a".repeat(199)));
    }
}
