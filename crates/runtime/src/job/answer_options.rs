//! What the answer of a job must be, and how old it is.

use std::num::NonZeroU64;
use std::time::Duration;

use tidegate_core::{Budget, Format};

use super::Job;

impl Job {
    /// The part of the answer that may be sent inline.
    pub fn inline_budget(&self) -> Budget {
        self.inline_budget
    }

    /// The number of rows in each text block of the answer; `None` for all rows in one text.
    pub fn batch_rows(&self) -> Option<NonZeroU64> {
        self.batch_rows
    }

    /// The format of the answer, if it is a body of its own.
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    /// States that the answer is an earlier one, made `age` ago. Only the first call has an effect.
    pub fn set_answer_age(&self, age: Duration) {
        self.answer_age.get_or_init(|| age);
    }

    /// The age of the answer; `None` unless it is an earlier one. Known before the answer begins.
    pub fn answer_age(&self) -> Option<Duration> {
        self.answer_age.get().copied()
    }
}
