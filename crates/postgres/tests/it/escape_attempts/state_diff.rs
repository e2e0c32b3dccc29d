//! What is left of an attempt: the difference between two states, by aspect.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::{Client, Error, ToStatement};

/// Lines of text by aspect, such as a checksum for each table under "rows".
pub(crate) type StateByAspect = BTreeMap<String, BTreeSet<String>>;

/// The lines that came or went, by aspect. An aspect that did not change is absent.
pub(crate) type StateDiff = BTreeMap<String, Vec<String>>;

/// The rows of `statement`, which selects aspect and line.
pub(crate) async fn query_state<T: ToStatement + ?Sized>(
    client: &Client,
    statement: &T,
) -> Result<StateByAspect, Error> {
    let mut state = StateByAspect::new();
    for row in client.query(statement, &[]).await? {
        state.entry(row.get(0)).or_default().insert(row.get(1));
    }
    Ok(state)
}

pub(crate) fn diff_states(before: &StateByAspect, after: &StateByAspect) -> StateDiff {
    let nothing = BTreeSet::new();
    let mut traces = StateDiff::new();
    for aspect in before.keys().chain(after.keys()) {
        let (old, new) = (before.get(aspect).unwrap_or(&nothing), after.get(aspect).unwrap_or(&nothing));
        let gone = old.difference(new).map(|line| format!("- {line}"));
        let come = new.difference(old).map(|line| format!("+ {line}"));
        let lines: Vec<String> = gone.chain(come).collect();
        if !lines.is_empty() {
            traces.insert(aspect.clone(), lines);
        }
    }
    traces
}
