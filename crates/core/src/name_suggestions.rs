//! The nearest valid names to one that does not exist, so that a model can mend its call.

/// Names shown at most.
const NEAREST_MAX: usize = 5;
/// Longer names are no typo, and likeness costs the product of the lengths.
const WANTED_BYTES_MAX: usize = 256;
/// Below this likeness (0 to 1) a name is no help.
const SIMILARITY_MIN: f64 = 0.6;

/// Of `candidates` the ones most like `kind`, nearest first.
pub fn nearest_names<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    if wanted.len() > WANTED_BYTES_MAX {
        return Vec::new();
    }
    let wanted = wanted.to_lowercase();
    let mut scored: Vec<(f64, &str)> = candidates
        .into_iter()
        .map(|candidate| (similarity(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness >= SIMILARITY_MIN)
        .collect();
    scored.sort_by(|(a, first), (b, second)| b.total_cmp(a).then_with(|| first.cmp(second)));
    scored.into_iter().take(NEAREST_MAX).map(|(_, candidate)| candidate.to_owned()).collect()
}

fn similarity(wanted: &str, candidate: &str) -> f64 {
    if wanted.len() > 2 && (candidate.contains(wanted) || wanted.contains(candidate)) {
        // The less there is beside it, the nearer.
        let (shorter, longer) = (wanted.len().min(candidate.len()), wanted.len().max(candidate.len()));
        return 0.9 + 0.09 * shorter as f64 / longer as f64;
    }
    strsim::jaro_winkler(wanted, candidate)
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
