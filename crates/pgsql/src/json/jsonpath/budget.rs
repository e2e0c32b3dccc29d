//! The limits, values and errors of the evaluation of a path.

use std::borrow::Cow;

use datafusion::common::DataFusionError;

use super::super::value::JsonValue;

/// Steps that all evaluations of a batch may take, independent of their documents.
const STEPS_MIN: usize = 5_000_000;
/// Steps for each byte of their documents.
const STEPS_PER_BYTE: usize = 20;
/// Values that the evaluation of one path may select.
const ITEMS_MAX: usize = 2_000_000;
/// Bytes of a text that are copied in a step.
const BYTES_COPIED: usize = 16;

/// A value of the document, or a computed one.
pub(super) type Item<'v> = Cow<'v, JsonValue>;

/// Why the evaluation of a path failed.
#[derive(Debug)]
pub(super) enum PathError {
    /// An error that `silent` and predicates suppress.
    Suppressible(String),
    Error(DataFusionError),
}

impl From<DataFusionError> for PathError {
    fn from(error: DataFusionError) -> Self {
        Self::Error(error)
    }
}

pub(super) type PathResult<T> = Result<T, PathError>;

pub(super) fn suppressible_error<T>(message: impl Into<String>) -> PathResult<T> {
    Err(PathError::Suppressible(message.into()))
}

/// The steps of all evaluations of a batch.
#[derive(Debug)]
pub(super) struct PathBudget {
    steps: usize,
    steps_max: usize,
}

impl PathBudget {
    /// Returns the budget for documents of `bytes` bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self { steps: 0, steps_max: STEPS_MIN.saturating_add(bytes.saturating_mul(STEPS_PER_BYTE)) }
    }

    pub(super) fn spend(&mut self, steps: usize) -> PathResult<()> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps <= self.steps_max {
            return Ok(());
        }
        let message = format!("jsonpath takes {} steps, more than the {} it may", self.steps, self.steps_max);
        Err(PathError::Error(DataFusionError::ResourcesExhausted(message)))
    }

    /// Subtracts the steps of a copy of `value`.
    pub(super) fn charge(&mut self, value: &JsonValue) -> PathResult<()> {
        self.spend(copy_steps(value))
    }

    /// Returns the elements of an array or the values of an object. Those of a computed value are copies.
    pub(super) fn children<'v>(&mut self, item: &Item<'v>) -> PathResult<Vec<Item<'v>>> {
        if let Cow::Owned(value) = item {
            self.charge(value)?;
        }
        Ok(match item {
            Cow::Borrowed(JsonValue::Array(items)) => items.iter().map(Cow::Borrowed).collect(),
            Cow::Borrowed(JsonValue::Object(pairs)) => pairs.iter().map(|(_, value)| Cow::Borrowed(value)).collect(),
            Cow::Owned(JsonValue::Array(items)) => items.iter().cloned().map(Cow::Owned).collect(),
            Cow::Owned(JsonValue::Object(pairs)) => pairs.iter().map(|(_, value)| Cow::Owned(value.clone())).collect(),
            _ => Vec::new(),
        })
    }

    /// Returns the member `key` of an object.
    pub(super) fn member<'v>(&mut self, item: &Item<'v>, key: &str) -> PathResult<Option<Item<'v>>> {
        match item {
            Cow::Borrowed(value) => Ok(value.member(key).map(Cow::Borrowed)),
            Cow::Owned(value) => match value.member(key) {
                Some(member) => {
                    self.charge(member)?;
                    Ok(Some(Cow::Owned(member.clone())))
                }
                None => Ok(None),
            },
        }
    }

    /// Returns a copy of `item`.
    pub(super) fn copy<'v>(&mut self, item: &Item<'v>) -> PathResult<Item<'v>> {
        if let Cow::Owned(value) = item {
            self.charge(value)?;
        }
        Ok(item.clone())
    }
}

/// Returns the number of steps of copying `value`.
fn copy_steps(value: &JsonValue) -> usize {
    match value {
        JsonValue::Null | JsonValue::Bool(_) => 1,
        JsonValue::Number(text) | JsonValue::Text(text) => 1 + text.len() / BYTES_COPIED,
        JsonValue::Array(items) => 1 + items.iter().map(copy_steps).sum::<usize>(),
        JsonValue::Object(pairs) => {
            1 + pairs.iter().map(|(key, value)| key.len() / BYTES_COPIED + copy_steps(value)).sum::<usize>()
        }
    }
}

/// The items that a path selects; `None` if only their existence matters, so that the first item ends the search.
#[derive(Debug)]
pub(super) struct ResultItems<'v>(pub(super) Option<Vec<Item<'v>>>);

impl<'v> ResultItems<'v> {
    pub(super) fn all() -> Self {
        Self(Some(Vec::new()))
    }

    pub(super) fn first() -> Self {
        Self(None)
    }

    pub(super) fn into_items(self) -> Vec<Item<'v>> {
        self.0.unwrap_or_default()
    }

    pub(super) fn push(&mut self, item: Item<'v>) -> PathResult<()> {
        let Some(items) = &mut self.0 else { return Ok(()) };
        if items.len() == ITEMS_MAX {
            let message = format!("jsonpath would make more than {ITEMS_MAX} values of one document");
            return Err(PathError::Error(DataFusionError::ResourcesExhausted(message)));
        }
        items.push(item);
        Ok(())
    }

    /// Whether no other item is of interest once there is one.
    pub(super) fn is_satisfied(&self, is_found: bool) -> bool {
        is_found && self.0.is_none()
    }
}
