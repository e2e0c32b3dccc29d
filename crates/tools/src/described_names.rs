//! What the unknown names of a refused call may mean: columns and tables that people described with these words.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{ColumnEntry, Database, KnowledgeLayers};
use tidegate_runtime::Answer;
use tokio::time::{Instant, timeout_at};

use crate::tool_services::ToolServices;

/// Names that an error suggests.
const MEANT_MAX: usize = 5;
/// Names that are compared with what the caller may see.
const CANDIDATES_MAX: usize = 20;
/// How long an error waits for what the caller may see.
const CHECK_TIME: Duration = Duration::from_secs(1);

impl ToolServices {
    /// `error` of a call with the text `requested`, with what its unknown names may mean, as far as `principal` may see it.
    pub(crate) async fn suggest_described(
        &self,
        error: Error,
        database: &dyn Database,
        requested: &str,
        principal: &Principal,
    ) -> Error {
        if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidArguments) {
            return error;
        }
        let unknown = named_words(&error, requested);
        let candidates = find_candidates(&self.databases.knowledge(database).await, &unknown);
        let meant = visible_names(candidates, database, principal).await;
        if meant.is_empty() {
            return error;
        }
        let advice = format!("Names with that meaning: {}.", meant.join(", "));
        let hint = error.hint().map_or_else(|| advice.clone(), |hint| format!("{hint}\n{advice}"));
        error.with_hint(hint)
    }

    /// `answer` to a statement with the text `sql`; its error has what its unknown names may mean.
    pub(crate) fn with_described_names(
        self: &Arc<Self>,
        answer: Answer,
        database: Arc<dyn Database>,
        sql: String,
    ) -> Answer {
        let services = self.clone();
        Answer::written(move |reply| async move {
            match answer.send(&reply).await {
                Ok(meta) => Ok(meta),
                Err(error) => {
                    let principal = reply.job().principal();
                    Err(services.suggest_described(error, &*database, &sql, principal).await)
                }
            }
        })
    }
}

/// A column or table that is described with a word of the call.
struct Candidate {
    word: String,
    table: String,
    column: Option<String>,
}

/// The words of `requested` that the messages of `error` name.
fn named_words(error: &Error, requested: &str) -> BTreeSet<String> {
    let messages = error.violations().iter().map(|violation| violation.message.as_str()).chain([error.message()]);
    let named: BTreeSet<String> = messages.flat_map(names).collect();
    names(requested).filter(|name| named.contains(name)).collect()
}

/// The names in a text, in lower case.
fn names(text: &str) -> impl Iterator<Item = String> {
    let names = text.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_lowercase);
    names.filter(|name| !name.is_empty())
}

/// The words of a name or a text, in lower case and without the ending of a plural.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    words.map(|word| word.trim_end_matches('s').to_owned()).filter(|word| !word.is_empty()).collect()
}

/// What is described with one of `names`: columns with such a synonym first.
fn find_candidates(knowledge: &KnowledgeLayers, names: &BTreeSet<String>) -> Vec<Candidate> {
    let (mut by_synonym, mut by_description) = (Vec::new(), Vec::new());
    for name in names {
        let expected = words(name);
        let is_meant = |synonym: &String| words(synonym) == expected;
        let is_described = |description: &Option<String>| {
            let described = words(description.as_deref().unwrap_or_default());
            !expected.is_empty() && expected.iter().all(|word| described.contains(word))
        };
        for (table, known) in knowledge.layers().flat_map(|layer| &layer.tables) {
            let candidate = |column: Option<&String>| Candidate {
                word: name.clone(),
                table: table.clone(),
                column: column.cloned(),
            };
            for (column, known) in &known.columns {
                if known.synonyms.iter().any(is_meant) {
                    by_synonym.push(candidate(Some(column)));
                } else if is_described(&known.description) {
                    by_description.push(candidate(Some(column)));
                }
            }
            if is_described(&known.description) {
                by_description.push(candidate(None));
            }
        }
    }
    by_synonym.into_iter().chain(by_description).take(CANDIDATES_MAX).collect()
}

/// The names of `candidates` that `principal` may see. A name that the caller used rightly has no other meaning.
async fn visible_names(candidates: Vec<Candidate>, database: &dyn Database, principal: &Principal) -> Vec<String> {
    let deadline = Instant::now() + CHECK_TIME;
    let mut tables: HashMap<String, Vec<ColumnEntry>> = HashMap::new();
    let mut names: Vec<String> = Vec::new();
    for Candidate { word, table, column } in candidates {
        if !tables.contains_key(&table) {
            let read = timeout_at(deadline, database.columns(&table, principal)).await;
            tables.insert(table.clone(), read.ok().and_then(Result::ok).unwrap_or_default());
        }
        let columns = tables.get(&table).map(Vec::as_slice).unwrap_or_default();
        let is_name = |name: &str| name.eq_ignore_ascii_case(&word);
        if columns.is_empty() || is_name(&table) || columns.iter().any(|column| is_name(&column.name)) {
            continue;
        }
        let name = match &column {
            Some(name) if columns.iter().any(|column| column.name == *name && column.is_masked != Some(true)) => {
                format!("{table}.{name}")
            }
            Some(_) => continue,
            None => format!("the table {table}"),
        };
        if !names.contains(&name) && names.len() < MEANT_MAX {
            names.push(name);
        }
    }
    names
}
