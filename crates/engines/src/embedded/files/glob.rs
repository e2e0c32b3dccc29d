//! Globs: a folder from which only the files that match a pattern become tables.
//!
//! `*` and `?` match anything but `/`, `[ab]` matches one of its characters, `**` matches any folders. A matching
//! folder is included with all its contents. The part before the first wildcard is an ordinary folder: it must exist,
//! and it is the sandbox.

use std::path::{Component, Path, PathBuf};

use glob::{MatchOptions, Pattern};
use tidegate_core::{Error, ErrorKind};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob {
    folder: PathBuf,
    whole: Pattern,
    /// The pattern of each path level; `None` for `**`.
    levels: Vec<Option<Pattern>>,
}

/// The folder of the glob `path`. `None` if `path` is not a glob.
pub fn glob_folder(path: &Path) -> Option<PathBuf> {
    is_glob(path).then(|| split(path).0)
}

/// An existing file whose name looks like a glob is that file.
fn is_glob(path: &Path) -> bool {
    has_wildcard(&path.to_string_lossy()) && path.symlink_metadata().is_err()
}

fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Splits the path into the folder before the first wildcard and the remaining components.
fn split(path: &Path) -> (PathBuf, Vec<Component<'_>>) {
    let components: Vec<Component<'_>> = path.components().collect();
    let is_wild = |component: &Component<'_>| has_wildcard(&component.as_os_str().to_string_lossy());
    let (before, rest) = components.split_at(components.iter().position(is_wild).unwrap_or(components.len()));
    let mut folder = before.iter().collect::<PathBuf>();
    if folder.as_os_str().is_empty() {
        folder.push(".");
    }
    (folder, rest.to_vec())
}

impl Glob {
    /// Parses `path`. `None` if it is not a glob.
    pub(crate) fn parse(path: &Path) -> Result<Option<Self>, Error> {
        if !is_glob(path) {
            return Ok(None);
        }
        let invalid = |reason: &str| {
            Error::new(ErrorKind::InvalidArguments, format!("{}: invalid glob: {reason}", path.display()))
        };
        let (folder, rest) = split(path);
        if rest.contains(&Component::ParentDir) {
            return Err(invalid(".. is not allowed after a wildcard"));
        }
        let names: Vec<String> = rest.iter().map(|name| name.as_os_str().to_string_lossy().into_owned()).collect();
        let read = |text: &str| Pattern::new(text).map_err(|error| invalid(error.msg));
        let level = |name: &String| if name == "**" { Ok(None) } else { read(name).map(Some) };
        let levels = names.iter().map(level).collect::<Result<_, _>>()?;
        Ok(Some(Self { folder, whole: read(&names.join("/"))?, levels }))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn pattern(&self) -> &str {
        self.whole.as_str()
    }

    /// Whether the file at `location` (names below the folder, joined by `/`) or one of its parent folders matches.
    pub(crate) fn includes(&self, location: &str) -> bool {
        let mut ends = location.match_indices('/').map(|(end, _)| end).chain([location.len()]);
        ends.any(|end| self.whole.matches_with(&location[..end], OPTIONS))
    }

    /// Whether the glob has the extension of the file called `name`, as `*.txt` has it, but `app*` does not.
    pub(crate) fn names_extension(&self, name: &str) -> bool {
        let Some(Some(last)) = self.levels.last() else { return false };
        let extension = last.as_str().rsplit_once('.').map_or("", |(_, extension)| extension);
        !extension.is_empty() && !has_wildcard(extension) && last.matches_with(name, OPTIONS)
    }

    pub(crate) fn may_contain_matches(&self, location: &str) -> bool {
        // After `**`, and below a matching folder, everything may match.
        let mut levels = location.split('/').zip(&self.levels).map_while(|(name, level)| Some((name, level.as_ref()?)));
        levels.all(|(name, pattern)| pattern.matches_with(name, OPTIONS))
    }
}

const OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(text: &str) -> Glob {
        Glob::parse(Path::new(text)).unwrap().unwrap()
    }

    #[test]
    fn the_folder_ends_before_the_first_wildcard() {
        let split = |text: &str| (glob(text).folder().display().to_string(), glob(text).pattern().to_owned());
        assert_eq!(split("./data/2024-*.csv"), ("./data".to_owned(), "2024-*.csv".to_owned()));
        assert_eq!(split("/data/**/x/*.csv"), ("/data".to_owned(), "**/x/*.csv".to_owned()));
        assert_eq!(split("*.csv"), (".".to_owned(), "*.csv".to_owned()));
        assert_eq!(Glob::parse(Path::new("./data/2024.csv")).unwrap(), None);
    }

    #[test]
    fn wildcard_matches_one_path_level() {
        let fits = |text: &str, location: &str| glob(text).includes(location);
        assert!(fits("d/*.csv", "a.csv") && !fits("d/*.csv", "s/a.csv") && !fits("d/*.csv", "a.json"));
        assert!(fits("d/**/*.csv", "a.csv") && fits("d/**/*.csv", "s/t/a.csv"));
        assert!(fits("d/[ab]?.csv", "a1.csv") && !fits("d/[ab]?.csv", "c1.csv") && !fits("d/[ab]?.csv", "a.csv"));
        assert!(fits("d/2024-*", "2024-01/deep/a.csv"), "a folder that fits is seen whole");
        assert!(fits("d/**", "s/t/a.csv"));
    }

    #[test]
    fn a_glob_with_an_extension_names_it() {
        let names = |text: &str, name: &str| glob(text).names_extension(name);
        assert!(names("d/*.txt", "a.txt") && names("d/**/app.t*.txt", "app.t.txt"));
        assert!(!names("d/*.txt", "a.env") && !names("d/a*", "a.txt") && !names("d/*.t?t", "a.txt"));
        assert!(!names("d/*.*", "a.txt") && !names("d/*.d/**", "a.d") && !names("d/*.", "a."));
    }

    #[test]
    fn excludes_folders_without_matches() {
        let holds = |text: &str, location: &str| glob(text).may_contain_matches(location);
        assert!(!holds("d/*.csv", "s") && holds("d/*/x.csv", "s") && !holds("d/s*/x.csv", "t"));
        assert!(holds("d/s/**/x.csv".replace("s/", "s*/").as_str(), "s1/deep/deeper"));
        assert!(holds("d/2024-*", "2024-01/deep"));
    }

    #[test]
    fn rejects_invalid_globs() {
        for (text, words) in [("d/a**", "recursive wildcards"), ("d/*/../x.csv", ".."), ("d/[a", "range")] {
            let error = Glob::parse(Path::new(text)).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains(text), "{error}");
        }
    }
}
