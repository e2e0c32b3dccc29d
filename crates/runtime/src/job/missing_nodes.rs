//! The nodes whose rows the answer of a job lacks.

use std::sync::Arc;

use tidegate_core::{Error, ErrorKind, MissingNodes, shorten};

use super::Job;
use crate::event::QueryStep;

/// The number of characters of a reason. Answers have the reasons in their headers.
const REASON_CHARS_MAX: usize = 500;

/// What is known of the completeness of an answer.
#[derive(Debug, Default)]
pub(crate) struct AnswerCompleteness {
    missing: Option<Arc<MissingNodes>>,
    /// Whether the content of the answer names them.
    is_stated: bool,
    has_begun_body: bool,
}

impl Job {
    /// Records that the answer lacks the rows of `missing`. Its metadata names them then, and its content too: the end of
    /// the answer adds a note, unless the handler [states](Job::set_missing_nodes_stated) them itself.
    ///
    /// # Errors
    /// `Unavailable` if the body of the answer has begun: the header before it does not name them.
    pub fn record_missing_nodes(&self, missing: &MissingNodes) -> Result<(), Error> {
        let mut missing = self.protection.redact_missing_nodes(missing);
        for node in &mut missing.nodes {
            node.reason = shorten(std::mem::take(&mut node.reason), REASON_CHARS_MAX);
        }
        for job in self.ancestors() {
            let mut record = job.record.lock();
            let state = &mut record.completeness;
            let all = state.missing.as_ref().map_or_else(|| missing.clone(), |known| known.union(&missing));
            if state.missing.as_deref() == Some(&all) {
                continue;
            }
            if state.has_begun_body {
                let message = format!("nodes failed after the answer had begun: {}", missing.names());
                return Err(Error::new(ErrorKind::Unavailable, message).with_hint("Repeat the call."));
            }
            state.missing = Some(Arc::new(all));
            state.is_stated = false;
        }
        self.report_step(QueryStep::NodesMissing { nodes: &missing });
        Ok(())
    }

    /// The nodes whose rows the answer lacks, if any. They are known before its first row.
    pub fn missing_nodes(&self) -> Option<Arc<MissingNodes>> {
        self.record.lock().completeness.missing.clone()
    }

    /// Declares that the content of the answer names the missing nodes.
    pub fn set_missing_nodes_stated(&self) {
        self.ancestors().for_each(|job| job.record.lock().completeness.is_stated = true);
    }

    /// The missing nodes that the content of the answer must still name. A body has a header for them.
    pub(crate) fn take_unstated_nodes(&self) -> Option<Arc<MissingNodes>> {
        let unstated = {
            let record = self.record.lock();
            let state = &record.completeness;
            state.missing.clone().filter(|_| !state.is_stated && !state.has_begun_body)
        };
        if unstated.is_some() {
            self.set_missing_nodes_stated();
        }
        unstated
    }

    pub(crate) fn set_body_begun(&self) {
        self.record.lock().completeness.has_begun_body = true;
    }
}
