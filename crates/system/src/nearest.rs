//! Suggestions for names that do not exist.

/// Suggestions at most.
const NEAREST_MAX: usize = 3;
/// The minimum similarity (0 to 1) of a suggestion.
const SIMILARITY_MIN: f64 = 0.75;
/// Bytes of a name at most; longer names are not typing errors, and comparing costs the product of the lengths.
const NAME_BYTES_MAX: usize = 128;

/// The names that are most similar to `name`, nearest first.
fn nearest_names<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if name.len() > NAME_BYTES_MAX {
        return Vec::new();
    }
    let lowered = name.to_lowercase();
    let mut scored: Vec<(f64, &str)> = names
        .into_iter()
        .map(|candidate| (similarity(&lowered, &candidate.to_lowercase()), candidate))
        .filter(|(similarity, _)| *similarity >= SIMILARITY_MIN)
        .collect();
    scored.sort_by(|(a, first), (b, second)| b.total_cmp(a).then_with(|| first.cmp(second)));
    scored.into_iter().take(NEAREST_MAX).map(|(_, candidate)| candidate).collect()
}

/// `; did you mean "a" or "b"?`, or an empty text.
pub(crate) fn nearest_advice<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let nearest = nearest_names(name, names);
    if nearest.is_empty() { String::new() } else { format!("; did you mean {}?", alternatives(&nearest)) }
}

/// `"a", "b" or "c"`.
pub(crate) fn alternatives(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// A name that contains the other one is similar, the more of it the other one is.
fn similarity(name: &str, candidate: &str) -> f64 {
    let (shorter, longer) = if name.len() < candidate.len() { (name, candidate) } else { (candidate, name) };
    if shorter.len() > 2 && longer.contains(shorter) {
        return 0.8 + 0.2 * shorter.len() as f64 / longer.len() as f64;
    }
    strsim::normalized_damerau_levenshtein(name, candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_and_parts_of_names_are_near() {
        let names = ["cpu_percent", "cpu_time_seconds", "memory_bytes", "memory_percent", "pid", "parent_pid"];
        assert_eq!(nearest_names("cpu", names), ["cpu_percent", "cpu_time_seconds"]);
        assert_eq!(nearest_names("Memory_Byte", names), ["memory_bytes"]);
        assert_eq!(nearest_names("memroy_percent", names), ["memory_percent"]);
        assert_eq!(nearest_names("PID", names), ["pid", "parent_pid"]);
        assert!(nearest_names("hostname", names).is_empty());
        assert!(nearest_names(&"cpu_percent".repeat(100), names).is_empty());
        assert_eq!(nearest_advice("cpu", names), r#"; did you mean "cpu_percent" or "cpu_time_seconds"?"#);
        assert_eq!(nearest_advice("hostname", names), "");
    }
}
