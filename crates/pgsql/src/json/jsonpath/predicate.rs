//! Predicates of a SQL/JSON path. The result unknown is `None`.

use std::cmp::Ordering;

use super::super::value::{self, JsonValue};
use super::budget::{Item, PathError, PathResult, ResultItems};
use super::runner::PathRunner;
use super::syntax::{Comparison, Path, Predicate};

impl<'v> PathRunner<'v, '_> {
    /// Whether `predicate` is true of `item`.
    pub(super) fn evaluate_predicate(&mut self, predicate: &'v Predicate, item: &Item<'v>) -> PathResult<Option<bool>> {
        self.count()?;
        match predicate {
            Predicate::And(left, right) => match self.evaluate_predicate(left, item)? {
                Some(false) => Ok(Some(false)),
                left => Ok(match self.evaluate_predicate(right, item)? {
                    Some(true) => left,
                    right => right,
                }),
            },
            Predicate::Or(left, right) => match self.evaluate_predicate(left, item)? {
                Some(true) => Ok(Some(true)),
                left => Ok(match self.evaluate_predicate(right, item)? {
                    Some(false) => left,
                    right => right,
                }),
            },
            Predicate::Not(inner) => Ok(self.evaluate_predicate(inner, item)?.map(|truth| !truth)),
            Predicate::IsUnknown(inner) => Ok(Some(self.evaluate_predicate(inner, item)?.is_none())),
            Predicate::Exists(path) => self.exists(path, item),
            Predicate::Compare { comparison, left, right } => {
                let Some(left) = self.suppress_errors(|runner| runner.unwrapped_items(left, item))? else {
                    return Ok(None);
                };
                let Some(right) = self.suppress_errors(|runner| runner.unwrapped_items(right, item))? else {
                    return Ok(None);
                };
                self.any_pair(&left, &right, |left, right| Ok(compare(*comparison, left, right)))
            }
            Predicate::StartsWith { whole, initial } => {
                let Some(whole) = self.suppress_errors(|runner| runner.unwrapped_items(whole, item))? else {
                    return Ok(None);
                };
                let Some(initial) = self.suppress_errors(|runner| runner.items(initial, item))? else {
                    return Ok(None);
                };
                self.any_pair(&whole, &initial, |whole, initial| match (whole, initial) {
                    (JsonValue::Text(whole), JsonValue::Text(initial)) => Ok(Some(whole.starts_with(initial.as_str()))),
                    _ => Ok(None),
                })
            }
            Predicate::LikeRegex { text, regex, .. } => {
                let Some(texts) = self.suppress_errors(|runner| runner.unwrapped_items(text, item))? else {
                    return Ok(None);
                };
                let none = [Item::Owned(JsonValue::Null)];
                self.any_pair(&texts, &none, |text, _| match text {
                    JsonValue::Text(text) => Ok(Some(regex.is_match(text)?)),
                    _ => Ok(None),
                })
            }
        }
    }

    /// Returns the result of `run`; `None` if it fails with an error that predicates suppress.
    fn suppress_errors<T>(&mut self, run: impl FnOnce(&mut Self) -> PathResult<T>) -> PathResult<Option<T>> {
        let outer = std::mem::replace(&mut self.raises_errors, false);
        let result = run(self);
        self.raises_errors = outer;
        match result {
            Ok(value) => Ok(Some(value)),
            Err(PathError::Suppressible(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn exists(&mut self, path: &'v Path, item: &Item<'v>) -> PathResult<Option<bool>> {
        // In strict mode all is evaluated, since there may be an error.
        let mut results = if self.is_lax { ResultItems::first() } else { ResultItems::all() };
        let is_found = self.suppress_errors(|runner| runner.evaluate_path(path, item, &mut results))?;
        Ok(is_found.map(|is_found| match &results.0 {
            Some(items) => !items.is_empty(),
            None => is_found,
        }))
    }

    /// Whether `is_true` of any item of `left` with any of `right`.
    fn any_pair(
        &mut self,
        left: &[Item<'v>],
        right: &[Item<'v>],
        is_true: impl Fn(&JsonValue, &JsonValue) -> PathResult<Option<bool>>,
    ) -> PathResult<Option<bool>> {
        let (mut is_unknown, mut is_found) = (false, false);
        for left in left {
            for right in right {
                self.count()?;
                match is_true(left, right)? {
                    None if !self.is_lax => return Ok(None),
                    None => is_unknown = true,
                    Some(true) if self.is_lax => return Ok(Some(true)),
                    Some(true) => is_found = true,
                    Some(false) => {}
                }
            }
        }
        Ok(if is_found {
            Some(true)
        } else if is_unknown {
            None
        } else {
            Some(false)
        })
    }
}

fn compare(comparison: Comparison, left: &JsonValue, right: &JsonValue) -> Option<bool> {
    let ordering = match (left, right) {
        (JsonValue::Null, JsonValue::Null) => Ordering::Equal,
        // Null is not equal to anything else.
        (JsonValue::Null, _) | (_, JsonValue::Null) => return Some(comparison == Comparison::NotEqual),
        (JsonValue::Bool(left), JsonValue::Bool(right)) => left.cmp(right),
        (JsonValue::Number(left), JsonValue::Number(right)) => value::compare_numbers(left, right),
        (JsonValue::Text(left), JsonValue::Text(right)) => left.as_bytes().cmp(right.as_bytes()),
        _ => return None,
    };
    Some(match comparison {
        Comparison::Equal => ordering.is_eq(),
        Comparison::NotEqual => ordering.is_ne(),
        Comparison::Less => ordering.is_lt(),
        Comparison::LessOrEqual => ordering.is_le(),
        Comparison::Greater => ordering.is_gt(),
        Comparison::GreaterOrEqual => ordering.is_ge(),
    })
}
