//! Suggestions for misspelled names.

/// Longer names are no typing errors, and the cost of a comparison is the product of the lengths.
const NAME_BYTES_MAX: usize = 256;
/// The minimum similarity (0 to 1) of a suggestion.
const SIMILARITY_MIN: f64 = 0.7;

/// `; did you mean "x"?` for the candidate that is most similar to `name`, or nothing.
pub(crate) fn suggestion<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest_name(name, candidates).map_or_else(String::new, |nearest| format!("; did you mean \"{nearest}\"?"))
}

fn nearest_name<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let lowered = name.to_lowercase();
    let scored = candidates.into_iter().map(|candidate| (similarity(&lowered, &candidate.to_lowercase()), candidate));
    let similar = scored.filter(|(similarity, _)| *similarity >= SIMILARITY_MIN);
    similar.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, candidate)| candidate)
}

fn similarity(name: &str, candidate: &str) -> f64 {
    if name.len() > 2 && (candidate.contains(name) || name.contains(candidate)) {
        let (shorter, longer) = (name.len().min(candidate.len()), name.len().max(candidate.len()));
        return 0.9 + 0.09 * shorter as f64 / longer as f64;
    }
    strsim::jaro_winkler(name, candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_the_most_similar_name_only_if_it_is_similar() {
        let names = ["common", "combined", "syslog", "logfmt"];
        assert_eq!(suggestion("combind", names), "; did you mean \"combined\"?");
        assert_eq!(suggestion("SysLog ", names), "; did you mean \"syslog\"?");
        assert_eq!(suggestion("xyz", names), "");
        assert_eq!(suggestion(&"c".repeat(10_000), names), "");
    }
}
