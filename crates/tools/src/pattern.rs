//! Name patterns of the discovery tools.

/// A pattern that names are compared with, whatever their case: a glob where it has `*` or `?`,
/// else a part of the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern(Form);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    Part(String),
    Glob(Vec<char>),
}

impl Pattern {
    /// Reads a pattern; every text is one.
    pub(crate) fn new(text: &str) -> Self {
        let text = text.to_lowercase();
        Self(if text.contains(['*', '?']) { Form::Glob(text.chars().collect()) } else { Form::Part(text) })
    }

    /// Whether `name` fits.
    pub(crate) fn fits(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        match &self.0 {
            Form::Part(part) => name.contains(part.as_str()),
            Form::Glob(glob) => glob_fits(glob, &name.chars().collect::<Vec<_>>()),
        }
    }
}

/// Goes back to the last `*` only, so that no pattern takes longer than pattern times name.
fn glob_fits(glob: &[char], name: &[char]) -> bool {
    let (mut at_glob, mut at_name) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while at_name < name.len() {
        match glob.get(at_glob) {
            Some('*') => {
                last_star = Some((at_glob, at_name));
                at_glob += 1;
            }
            Some(&wanted) if wanted == '?' || wanted == name[at_name] => {
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
        let pattern = Pattern::new(pattern);
        for name in fitting {
            assert!(pattern.fits(name), "{name}");
        }
        for name in strangers {
            assert!(!pattern.fits(name), "{name}");
        }
    }

    #[test]
    fn text_without_stars_is_a_part_of_the_name() {
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
    fn a_pattern_of_many_stars_ends() {
        let glob = "*a".repeat(200);
        assert!(!Pattern::new(&glob).fits(&"a".repeat(199)));
    }
}
