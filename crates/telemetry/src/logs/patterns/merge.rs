//! Patterns that differ in one token, such as a name without digits, become one pattern.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use foldhash::fast::RandomState;

/// The placeholder of a token in which patterns differ.
pub(super) const ANY_TOKEN: &str = "<any>";
/// The number of patterns that must differ in the same token. Fewer are more likely a few cases of their own, such as
/// `opened` and `closed`.
const MERGED_PATTERNS_MIN: usize = 5;
/// Patterns with fewer tokens have too little in common without one of them.
const TOKENS_MIN: usize = 3;
/// The number of tokens at the start of a pattern in which it may differ.
const TOKENS_MAX: usize = 64;

/// A token of a pattern that may differ: the number of tokens, its index, and a hash of all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TokenGap {
    tokens: usize,
    index: usize,
    others: u64,
}

/// The gaps of a pattern.
pub(super) fn token_gaps(template: &str) -> Vec<TokenGap> {
    let tokens: Vec<&str> = template.split(' ').collect();
    if tokens.len() < TOKENS_MIN {
        return Vec::new();
    }
    let state = FixedState::with_seed(0);
    let hashes: Vec<u64> = tokens.iter().enumerate().map(|(index, token)| state.hash_one((index, token))).collect();
    let all = hashes.iter().fold(0u64, |sum, hash| sum.wrapping_add(*hash));
    let gap = |(index, hash): (usize, &u64)| TokenGap { tokens: tokens.len(), index, others: all.wrapping_sub(*hash) };
    hashes.iter().enumerate().take(TOKENS_MAX).map(gap).collect()
}

impl TokenGap {
    /// The pattern with a placeholder instead of the token.
    pub(super) fn replace_in(&self, template: &str) -> String {
        let tokens = template.split(' ').enumerate();
        let tokens: Vec<&str> =
            tokens.map(|(index, token)| if index == self.index { ANY_TOKEN } else { token }).collect();
        tokens.join(" ")
    }
}

/// Groups of patterns that become one, each with the pattern that it becomes. A pattern is in one group at most.
pub(super) fn merge_groups(templates: &[&str]) -> Vec<(String, TokenGap, Vec<usize>)> {
    let mut members: HashMap<TokenGap, Vec<usize>, RandomState> = HashMap::default();
    for (index, template) in templates.iter().enumerate() {
        for gap in token_gaps(template) {
            members.entry(gap).or_default().push(index);
        }
    }
    let mut groups: Vec<(TokenGap, Vec<usize>)> =
        members.into_iter().filter(|(_, members)| members.len() >= MERGED_PATTERNS_MIN).collect();
    // The largest first; the rest of the order only makes the result the same each time.
    groups.sort_unstable_by_key(|(gap, members)| (usize::MAX - members.len(), gap.index, members.first().copied()));
    let mut is_merged = vec![false; templates.len()];
    let mut merged = Vec::new();
    for (gap, members) in groups {
        let is_open = |member: &usize| is_merged.get(*member) == Some(&false);
        let mut open = members.into_iter().filter(is_open);
        let Some(first) = open.next() else { continue };
        let text = templates.get(first).map(|template| gap.replace_in(template)).unwrap_or_default();
        // Equal hashes do not prove equal tokens.
        let is_equal = |member: &usize| templates.get(*member).is_some_and(|other| gap.replace_in(other) == text);
        let group: Vec<usize> = std::iter::once(first).chain(open.filter(is_equal)).collect();
        if group.len() < MERGED_PATTERNS_MIN {
            continue;
        }
        for member in &group {
            if let Some(place) = is_merged.get_mut(*member) {
                *place = true;
            }
        }
        merged.push((text, gap, group));
    }
    merged
}

/// Whether `template`, in which [`ANY_TOKEN`] stands for any token, covers `other`.
pub(super) fn covers(template: &str, other: &str) -> bool {
    let (mut tokens, mut others) = (template.split(' '), other.split(' '));
    loop {
        match (tokens.next(), others.next()) {
            (None, None) => return true,
            (Some(token), Some(other)) if token == other || token == ANY_TOKEN => {}
            _ => return false,
        }
    }
}
