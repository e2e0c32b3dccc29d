//! Removes the steps inside security barriers from a plan.

use std::collections::BTreeSet;

/// Replaces each security barrier in the `steps` (number, number of the parent, text) by one step with the name of its
/// table. `token` is the secret suffix of the names of barriers.
pub(crate) fn redact_plan(steps: Vec<(i64, i64, String)>, token: &str) -> Vec<(i64, i64, String)> {
    let mut hidden = BTreeSet::new();
    let mut visible = Vec::with_capacity(steps.len());
    for (number, parent, text) in steps {
        // Parents precede their children.
        let is_barrier = (text.starts_with("CO-ROUTINE ") || text.starts_with("MATERIALIZE ")) && text.contains(token);
        if hidden.contains(&parent) {
            hidden.insert(number);
            continue;
        }
        if is_barrier {
            hidden.insert(number);
        }
        visible.push((number, parent, strip_token(&text, token)));
    }
    visible
}

/// `text` with the names of barriers without their suffix.
fn strip_token(text: &str, token: &str) -> String {
    let words = text.split(' ').map(|word| match word.find(token) {
        Some(at) => word[..at].trim_end_matches('#').trim_start_matches("temp.").to_owned() + &word[at + token.len()..],
        None => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}
