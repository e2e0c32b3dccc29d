//! Suggestions for a name that does not exist, so that a model can correct its call.

/// The maximum number of suggestions.
const NEAREST_MAX: usize = 5;
/// The maximum length of the name; longer names are not typing errors, and comparing costs the product of the lengths.
const WANTED_BYTES_MAX: usize = 256;
/// The minimum similarity (0 to 1) of a suggestion.
const SIMILARITY_MIN: f64 = 0.6;

/// The candidates that are most similar to `expected`, nearest first.
pub fn nearest_names<'a>(expected: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    if expected.len() > WANTED_BYTES_MAX {
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

fn similarity(expected: &str, candidate: &str) -> f64 {
    if expected.len() > 2 && (candidate.contains(expected) || expected.contains(candidate)) {
        // The shorter the rest, the more similar.
        let (shorter, longer) = (expected.len().min(candidate.len()), expected.len().max(candidate.len()));
        return 0.9 + 0.09 * shorter as f64 / longer as f64;
    }
    strsim::jaro_winkler(expected, candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_typos_first_and_omits_unrelated_names() {
        let tables = ["flights", "airlines", "airports", "planes", "weather"];
        assert_eq!(nearest_names("flight", tables)[0], "flights");
        assert_eq!(nearest_names("Airprots", tables)[0], "airports");
        assert_eq!(nearest_names("time", ["task_timeout", "timeout"])[0], "timeout");
        assert!(nearest_names("xyzzy", tables).is_empty());
    }
}
