//! Answers that are given again: the same statement, by somebody with the same rights, over data that has not changed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_core::{Error, Job, Metadata, ReplySender};

use super::continuation::{Place, no_store};
use super::{Executor, Question, Rest};
use crate::answer::{Progress, Prospect};
use crate::format::Form;
use crate::freshness::Freshness;
use crate::store::{CacheKey, StoredResult};

/// An answer that came faster is asked for again rather than kept.
pub(super) const KEPT_AFTER: Duration = Duration::from_millis(20);

/// What is known of a question before it is asked.
#[derive(Default)]
pub(super) struct Known {
    /// What to remember its answer by; none if it must not be given again.
    pub(super) key: Option<CacheKey>,
    /// An earlier answer that is still right.
    pub(super) result: Option<Arc<StoredResult>>,
}

impl Executor {
    /// What is known of `question`.
    pub(super) async fn known(&self, question: &Question, job: &Job) -> Known {
        let (Some(store), Rest::Kept { cached: true, .. }) = (&self.store, question.rest) else {
            return Known::default();
        };
        if question.statement.transaction().writes {
            return Known::default();
        }
        let (version, age) = match question.database.freshness(&question.statement, job.principal()).await {
            Freshness::Never => return Known::default(),
            Freshness::While(version) => (version, None),
            Freshness::For(age) => (0, Some(age)),
        };
        let policies = question.database.row_policy_stamp(job.principal());
        let mark = job.screen().map_or("", |screen| screen.mark());
        let shape = format!("{:?} {:?} {policies} {mark}", question.max_rows, question.extract);
        let key = CacheKey::of(&question.statement, question.database.name(), version, &shape, job);
        let result = store.remembered(&key, age, job.caller());
        // One from before a table changed may not conform to the output schema of today.
        let result = result.filter(|result| question.check_promised(result.schema()).is_ok());
        Known { key: Some(key), result }
    }

    /// Answers `question` with the rows of `result`.
    pub(super) async fn answer_again(
        &self,
        result: &Arc<StoredResult>,
        question: &Question,
        job: &Arc<Job>,
        reply: &ReplySender,
    ) -> Result<Metadata, Error> {
        let store = self.store.as_ref().ok_or_else(no_store)?;
        let form = Form::of(question.format, job.format());
        let is_list = question.extract.is_some();
        let progress = Progress::new(job, reply);
        let prospect = Prospect { progress: &progress, rows_max: None, form, is_list, started: Instant::now() };
        let is_linked = matches!(question.rest, Rest::Kept { linked: true, .. });
        let place = Place { store, result, row: 0, is_linked, is_structured: question.structured.is_some() };
        job.keep_in(result.head().id.uri());
        let mut metadata = place.answer(&prospect).await?;
        metadata.insert("dev.tidegate/cached".to_owned(), true.into());
        Ok(metadata)
    }
}
