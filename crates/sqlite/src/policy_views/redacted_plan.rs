//! A plan without what is planned under a barrier.

use std::collections::BTreeSet;

/// The `steps` (number, number of the parent, text) as those may read them who do not know the name that ends in
/// `token`: a barrier is one step, with the name of its table.
pub(crate) fn redact_plan(steps: Vec<(i64, i64, String)>, token: &str) -> Vec<(i64, i64, String)> {
    let mut hidden = BTreeSet::new();
    let mut visible = Vec::with_capacity(steps.len());
    for (number, parent, text) in steps {
        // Parents come before their children.
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

/// `text_literal` with the bare names of barriers.
fn strip_token(text: &str, token: &str) -> String {
    let words = text.split(' ').map(|word| match word.find(token) {
        Some(at) => word[..at].trim_end_matches('#').trim_start_matches("temp.").to_owned() + &word[at + token.len()..],
        None => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}
