//! Patterns of names, as used by toolsets, roles and the discovery tools, and suggestions for a name that does not exist,
//! so that a model can correct its call. Parts of messages are alternatives, and texts that may be long.

/// A name or a glob: `*` matches any characters, `?` matches one.
///
/// ```
/// use tidegate_core::NamePattern;
///
/// assert!(NamePattern::new("orders_*").matches("orders_of_customer"));
/// assert!(!NamePattern::new("orders").matches("orders_of_customer"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamePattern(String);

impl NamePattern {
    /// Makes a pattern from any text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it can match more than one name.
    pub fn is_glob(&self) -> bool {
        self.0.contains(['*', '?'])
    }

    /// Whether the whole `name` matches, case-sensitively. The run time is at most proportional to the product of the
    /// lengths.
    pub fn matches(&self, name: &str) -> bool {
        if !self.is_glob() {
            return self.0 == name;
        }
        let (mut glob, mut rest) = (self.0.as_str(), name);
        // The pattern after the last star, and the part of the name that the star has not consumed.
        let mut last_star: Option<(&str, &str)> = None;
        while let Some((character, following)) = split_first(rest) {
            match split_first(glob) {
                Some(('*', after_star)) => {
                    last_star = Some((after_star, rest));
                    glob = after_star;
                }
                Some((expected, after)) if expected == '?' || expected == character => {
                    (glob, rest) = (after, following)
                }
                _ => {
                    let Some((after_star, unconsumed)) = last_star else { return false };
                    let unconsumed = split_first(unconsumed).map_or("", |(_, following)| following);
                    last_star = Some((after_star, unconsumed));
                    (glob, rest) = (after_star, unconsumed);
                }
            }
        }
        glob.chars().all(|character| character == '*')
    }
}

fn split_first(text: &str) -> Option<(char, &str)> {
    let mut characters = text.chars();
    Some((characters.next()?, characters.as_str()))
}

const NEAREST_MAX: usize = 5;
/// The maximum length of the name; longer names are not typing errors, and comparing costs the product of the lengths.
const NAME_BYTES_MAX: usize = 256;
/// The minimum similarity (0 to 1) of a suggestion.
const SIMILARITY_MIN: f64 = 0.6;

/// The candidates that are most similar to `expected`, nearest first.
pub fn nearest_names<'a>(expected: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    if expected.len() > NAME_BYTES_MAX {
        return Vec::new();
    }
    let expected = expected.to_lowercase();
    let mut scored: Vec<(f64, &str)> = candidates
        .into_iter()
        .map(|candidate| (similarity(&expected, &candidate.to_lowercase()), candidate))
        .filter(|(comparison, _)| *comparison >= SIMILARITY_MIN)
        .collect();
    scored.sort_by(|(a, first), (b, second)| b.total_cmp(a).then_with(|| first.cmp(second)));
    scored.into_iter().take(NEAREST_MAX).map(|(_, candidate)| candidate.to_owned()).collect()
}

/// `; did you mean "x"?` for the candidate that is most similar to `name`, or an empty text.
pub fn suggestion<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest_names(name, candidates).first().map_or_else(String::new, |nearest| format!("; did you mean \"{nearest}\"?"))
}

/// The candidate that `name` misspells: another letter or two, two letters swapped, or another case. A name that is only
/// similar, such as `mean` for `year`, is not meant.
pub fn misspelled_name<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let lowered = name.to_lowercase();
    let distances =
        candidates.into_iter().map(|candidate| (strsim::osa_distance(&lowered, &candidate.to_lowercase()), candidate));
    let meant = distances.filter(|(distance, _)| *distance <= typing_errors_max(name));
    meant.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// The number of typing errors that a name of this length may have.
fn typing_errors_max(name: &str) -> usize {
    match name.chars().count() {
        ..=3 => 0,
        4..=8 => 1,
        _ => 2,
    }
}

fn similarity(expected: &str, candidate: &str) -> f64 {
    if expected.len() > 2 && (candidate.contains(expected) || expected.contains(candidate)) {
        // The shorter the rest, the more similar.
        let (shorter, longer) = (expected.len().min(candidate.len()), expected.len().max(candidate.len()));
        return 0.9 + 0.09 * shorter as f64 / longer as f64;
    }
    strsim::jaro_winkler(expected, candidate)
}

/// `a, b or c`.
pub fn join_alternatives(mut names: Vec<String>) -> String {
    let last = names.pop().unwrap_or_default();
    if names.is_empty() { last } else { format!("{} or {last}", names.join(", ")) }
}

/// The first `characters_max` characters of `text`, with an ellipsis if there are more.
pub fn shorten(text: impl Into<String>, characters_max: usize) -> String {
    let mut text = text.into();
    if let Some((end, _)) = text.char_indices().nth(characters_max) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_names() {
        let matches = |pattern: &str, name: &str| NamePattern::new(pattern).matches(name);
        assert!(matches("*", "") && matches("*", "anything"));
        assert!(matches("orders_*", "orders_") && !matches("orders_*", "orders"));
        assert!(matches("*_of_*", "orders_of_customer"));
        assert!(matches("a*b*c", "a-b-b-c") && !matches("a*b*c", "a-b-b-d"));
        assert!(matches("größe?", "größe1") && !matches("größe?", "größe"));
        assert!(matches("orders", "orders") && !matches("Orders", "orders") && !matches("", "x"));
    }

    #[test]
    fn hostile_pattern_takes_quadratic_time_at_most() {
        let (pattern, name) = ("*a".repeat(1_000), "a".repeat(2_000) + "b");
        assert!(!NamePattern::new(pattern).matches(&name));
    }

    #[test]
    fn only_a_misspelled_name_is_meant() {
        let functions = ["mean", "date_part", "count", "substring", "max"];
        let meant = |name: &str| misspelled_name(name, functions);
        assert_eq!((meant("year"), meant("mx"), meant("xyzzy"), meant("")), (None, None, None, None));
        assert_eq!(
            (meant("cuont"), meant("COUNT"), meant("substirng")),
            (Some("count"), Some("count"), Some("substring"))
        );
        assert_eq!((meant("part"), meant(&"count".repeat(1_000))), (None, None));
    }

    #[test]
    fn suggests_typos_first_and_omits_unrelated_names() {
        let tables = ["flights", "airlines", "airports", "planes", "weather"];
        assert_eq!(nearest_names("flight", tables)[0], "flights");
        assert_eq!(nearest_names("Airprots", tables)[0], "airports");
        assert_eq!(nearest_names("time", ["task_timeout", "timeout"])[0], "timeout");
        assert!(nearest_names("xyzzy", tables).is_empty());
        assert_eq!(suggestion("flight", tables), "; did you mean \"flights\"?");
        assert_eq!(suggestion(&"flight".repeat(10_000), tables), "");
    }

    #[test]
    fn long_texts_end_with_an_ellipsis() {
        assert_eq!(["größe", "größer", ""].map(|text| shorten(text, 5)), ["größe", "größe…", ""]);
    }
}
