//! Evaluates an SQL/JSON path on a document.

use std::borrow::Cow;

use datafusion::common::{DataFusionError, exec_datafusion_err};

use super::super::value::JsonValue;
use super::budget::{Item, PathBudget, PathError, PathResult, ResultItems, suppressible_error};
use super::decimal;
use super::syntax::{Accessor, JsonPath, Method, Path, PathStart};

/// One evaluation of a path.
pub(super) struct PathRunner<'v, 'b> {
    pub(super) is_lax: bool,
    pub(super) root: &'v JsonValue,
    pub(super) variables: Option<&'v JsonValue>,
    /// The value of `@`.
    pub(super) current: Item<'v>,
    /// The length of the array that is subscripted.
    length: usize,
    /// Whether a missing member or element is ignored.
    ignores_structure: bool,
    /// Whether errors end the evaluation, rather than only that of a predicate.
    pub(super) raises_errors: bool,
    pub(super) budget: &'b mut PathBudget,
}

impl<'v, 'b> PathRunner<'v, 'b> {
    pub(super) fn new(
        path: &'v JsonPath,
        root: &'v JsonValue,
        variables: Option<&'v JsonValue>,
        raises: bool,
        budget: &'b mut PathBudget,
    ) -> Result<Self, DataFusionError> {
        if variables.is_some_and(|variables| !matches!(variables, JsonValue::Object(_))) {
            return Err(exec_datafusion_err!("\"vars\" argument is not an object"));
        }
        let (is_lax, current) = (path.is_lax, Cow::Borrowed(root));
        Ok(Self {
            is_lax,
            root,
            variables,
            current,
            length: 0,
            ignores_structure: is_lax,
            raises_errors: raises,
            budget,
        })
    }

    pub(super) fn count(&mut self) -> PathResult<()> {
        self.budget.spend(1)
    }

    /// Adds the items that `path` selects from `item` to `results`. Returns whether there are any.
    pub(super) fn evaluate_path(
        &mut self,
        path: &'v Path,
        item: &Item<'v>,
        results: &mut ResultItems<'v>,
    ) -> PathResult<bool> {
        self.count()?;
        let steps = path.steps.as_slice();
        match &path.start {
            PathStart::Literal(value) => self.apply_steps(steps, Cow::Borrowed(value), results),
            PathStart::Variable(name) => {
                let value = self.variables.and_then(|variables| variables.member(name));
                let value = value.ok_or_else(|| exec_datafusion_err!("could not find jsonpath variable \"{name}\""))?;
                self.apply_steps(steps, Cow::Borrowed(value), results)
            }
            PathStart::Root => self.apply_steps(steps, Cow::Borrowed(self.root), results),
            PathStart::Current => {
                let current = self.budget.copy(&self.current)?;
                self.apply_steps(steps, current, results)
            }
            PathStart::Last => {
                let last = self.length as i64 - 1;
                self.apply_steps(steps, Cow::Owned(JsonValue::Number(last.to_string())), results)
            }
            PathStart::Arithmetic(arithmetic) => {
                let left = self.unwrapped_items(&arithmetic.left, item)?;
                let right = self.unwrapped_items(&arithmetic.right, item)?;
                let operator = arithmetic.operator;
                let single = |side: &str, items: &[Item<'v>]| match items {
                    [one] => match one.as_ref() {
                        JsonValue::Number(number) => Ok(number.clone()),
                        _ => operand_error(side, operator.symbol()),
                    },
                    _ => operand_error(side, operator.symbol()),
                };
                let (left, right) = (single("left", &left)?, single("right", &right)?);
                let result = decimal::compute(operator, &left, &right)?;
                self.apply_steps(steps, Cow::Owned(JsonValue::Number(result)), results)
            }
            PathStart::Sign { is_minus, operand } => self.sign(*is_minus, operand, steps, item, results),
            PathStart::Predicate(predicate) => {
                let truth = self.evaluate_predicate(predicate, item)?;
                let value = truth.map_or(JsonValue::Null, JsonValue::Bool);
                self.apply_steps(steps, Cow::Owned(value), results)
            }
        }
    }

    fn sign(
        &mut self,
        is_minus: bool,
        operand: &'v Path,
        steps: &'v [Accessor],
        item: &Item<'v>,
        results: &mut ResultItems<'v>,
    ) -> PathResult<bool> {
        let mut is_found = false;
        for value in self.unwrapped_items(operand, item)? {
            let JsonValue::Number(number) = value.as_ref() else {
                if results.0.is_none() && steps.is_empty() {
                    continue;
                }
                let symbol = if is_minus { '-' } else { '+' };
                return suppressible_error(format!(
                    "operand of unary jsonpath operator {symbol} is not a numeric value"
                ));
            };
            let signed = if is_minus { Cow::Owned(JsonValue::Number(decimal::negated(number))) } else { value };
            is_found |= self.apply_steps(steps, signed, results)?;
            if results.is_satisfied(is_found) {
                return Ok(true);
            }
        }
        Ok(is_found)
    }

    /// Evaluates `path`. In lax mode, arrays in the result are replaced by their elements.
    pub(super) fn unwrapped_items(&mut self, path: &'v Path, item: &Item<'v>) -> PathResult<Vec<Item<'v>>> {
        let items = self.items(path, item)?;
        if !self.is_lax || !items.iter().any(|item| matches!(item.as_ref(), JsonValue::Array(_))) {
            return Ok(items);
        }
        let mut unwrapped = Vec::new();
        for item in items {
            if matches!(item.as_ref(), JsonValue::Array(_)) {
                unwrapped.extend(self.budget.children(&item)?);
            } else {
                unwrapped.push(item);
            }
        }
        Ok(unwrapped)
    }

    /// Evaluates `path`.
    pub(super) fn items(&mut self, path: &'v Path, item: &Item<'v>) -> PathResult<Vec<Item<'v>>> {
        let mut results = ResultItems::all();
        self.evaluate_path(path, item, &mut results)?;
        Ok(results.into_items())
    }

    /// Applies the remaining steps to `item`. Adds it to `results` if there are none.
    pub(super) fn apply_steps(
        &mut self,
        steps: &'v [Accessor],
        item: Item<'v>,
        results: &mut ResultItems<'v>,
    ) -> PathResult<bool> {
        let is_lax = self.is_lax;
        self.apply_step(steps, item, results, is_lax)
    }

    /// Applies the first of `steps` to `item`, then the others. If `unwraps`, an array is replaced by its elements.
    fn apply_step(
        &mut self,
        steps: &'v [Accessor],
        item: Item<'v>,
        results: &mut ResultItems<'v>,
        unwraps: bool,
    ) -> PathResult<bool> {
        self.count()?;
        let Some((step, rest)) = steps.split_first() else {
            results.push(item)?;
            return Ok(true);
        };
        let is_array = matches!(item.as_ref(), JsonValue::Array(_));
        let unwraps = unwraps && is_array;
        match step {
            Accessor::Key(_) | Accessor::AnyKey | Accessor::Filter(_) if unwraps => {
                self.apply_to_children(steps, &item, results, false)
            }
            Accessor::Method(method) if unwraps && !matches!(method, Method::Type | Method::Size) => {
                self.apply_to_children(steps, &item, results, false)
            }
            Accessor::Key(key) => match (item.as_ref(), self.budget.member(&item, key)?) {
                (_, Some(value)) => self.apply_steps(rest, value, results),
                (JsonValue::Object(_), None) => {
                    self.missing_error(|| format!("JSON object does not contain key \"{key}\""))
                }
                _ => self.missing_error(|| "jsonpath member accessor can only be applied to an object".to_owned()),
            },
            Accessor::AnyKey => match item.as_ref() {
                JsonValue::Object(_) => self.apply_to_children(rest, &item, results, self.is_lax),
                _ => self
                    .missing_error(|| "jsonpath wildcard member accessor can only be applied to an object".to_owned()),
            },
            Accessor::AnyElement if is_array => self.apply_to_children(rest, &item, results, self.is_lax),
            Accessor::AnyElement if self.is_lax => self.apply_steps(rest, item, results),
            Accessor::AnyElement => {
                self.missing_error(|| "jsonpath wildcard array accessor can only be applied to an array".to_owned())
            }
            Accessor::Subscripts(positions) if is_array || self.is_lax => {
                self.subscripts(positions, rest, &item, results)
            }
            Accessor::Subscripts(_) => {
                self.missing_error(|| "jsonpath array accessor can only be applied to an array".to_owned())
            }
            Accessor::AnyLevel { first, last } => self.any_level(*first, *last, rest, &item, results),
            Accessor::Filter(predicate) => {
                let current = self.budget.copy(&item)?;
                let outer = std::mem::replace(&mut self.current, current);
                let truth = self.evaluate_predicate(predicate, &item);
                self.current = outer;
                if truth? == Some(true) { self.apply_steps(rest, item, results) } else { Ok(false) }
            }
            Accessor::Method(method) => self.method(*method, rest, item, results),
        }
    }

    /// Returns the error for a missing member; none in lax mode.
    pub(super) fn missing_error(&self, message: impl FnOnce() -> String) -> PathResult<bool> {
        if self.ignores_structure { Ok(false) } else { suppressible_error(message()) }
    }

    /// Applies the remaining steps to each element or member of `container`.
    fn apply_to_children(
        &mut self,
        steps: &'v [Accessor],
        container: &Item<'v>,
        results: &mut ResultItems<'v>,
        unwraps: bool,
    ) -> PathResult<bool> {
        let mut is_found = false;
        for child in self.budget.children(container)? {
            is_found = self.apply_step(steps, child, results, unwraps)?;
            if results.is_satisfied(is_found) {
                return Ok(true);
            }
        }
        Ok(is_found)
    }

    fn any_level(
        &mut self,
        first: u32,
        last: u32,
        steps: &'v [Accessor],
        item: &Item<'v>,
        results: &mut ResultItems<'v>,
    ) -> PathResult<bool> {
        let is_container = !item.is_scalar();
        let outer = std::mem::replace(&mut self.ignores_structure, true);
        let mut result = Ok(false);
        if first == 0 {
            result = self.budget.copy(item).and_then(|copy| self.apply_steps(steps, copy, results));
            // If errors are suppressed, an error of the container itself is ignored.
            let is_ignored = is_container && !self.raises_errors && matches!(result, Err(PathError::Suppressible(_)));
            if is_ignored {
                result = Ok(false);
            }
        }
        if is_container
            && let Ok(is_found) = result
            && !results.is_satisfied(is_found)
        {
            result = self.levels(1, (first, last), steps, item, results);
        }
        self.ignores_structure = outer;
        result
    }

    /// Applies the remaining steps to the descendants of `container`, whose children are at `level`.
    fn levels(
        &mut self,
        level: u32,
        bounds: (u32, u32),
        steps: &'v [Accessor],
        container: &Item<'v>,
        results: &mut ResultItems<'v>,
    ) -> PathResult<bool> {
        let (first, last) = bounds;
        if level > last {
            return Ok(false);
        }
        let mut is_found = false;
        for child in self.budget.children(container)? {
            let is_container = !child.is_scalar();
            let is_leaf_only = first == u32::MAX && last == u32::MAX && !is_container;
            if level >= first || is_leaf_only {
                let copy = self.budget.copy(&child)?;
                is_found = self.apply_steps(steps, copy, results)?;
                if results.is_satisfied(is_found) {
                    return Ok(true);
                }
            }
            if level < last && is_container {
                is_found = self.levels(level + 1, bounds, steps, &child, results)?;
                if results.is_satisfied(is_found) {
                    return Ok(true);
                }
            }
        }
        Ok(is_found)
    }

    fn subscripts(
        &mut self,
        positions: &'v [(Path, Option<Path>)],
        steps: &'v [Accessor],
        item: &Item<'v>,
        results: &mut ResultItems<'v>,
    ) -> PathResult<bool> {
        let items =
            if matches!(item.as_ref(), JsonValue::Array(_)) { self.budget.children(item)? } else { vec![item.clone()] };
        let outer = std::mem::replace(&mut self.length, items.len());
        let result = self.subscripted(positions, steps, item, &items, results);
        self.length = outer;
        result
    }

    fn subscripted(
        &mut self,
        positions: &'v [(Path, Option<Path>)],
        steps: &'v [Accessor],
        item: &Item<'v>,
        items: &[Item<'v>],
        results: &mut ResultItems<'v>,
    ) -> PathResult<bool> {
        let length = items.len() as i64;
        let mut is_found = false;
        for (from, to) in positions {
            let from = self.subscript(from, item)?;
            let to = match to {
                Some(to) => self.subscript(to, item)?,
                None => from,
            };
            if !self.ignores_structure && (from < 0 || from > to || to >= length) {
                return suppressible_error("jsonpath array subscript is out of bounds");
            }
            is_found = false;
            for position in from.max(0)..=to.min(length - 1) {
                let copy = self.budget.copy(&items[position as usize])?;
                is_found = self.apply_steps(steps, copy, results)?;
                if results.is_satisfied(is_found) {
                    return Ok(true);
                }
            }
        }
        Ok(is_found)
    }

    fn subscript(&mut self, path: &'v Path, item: &Item<'v>) -> PathResult<i64> {
        let items = self.items(path, item)?;
        let [one] = items.as_slice() else {
            return suppressible_error("jsonpath array subscript is not a single numeric value");
        };
        let JsonValue::Number(number) = one.as_ref() else {
            return suppressible_error("jsonpath array subscript is not a single numeric value");
        };
        let whole = number.split_once('.').map_or(number.as_str(), |(whole, _)| whole);
        match whole.parse::<i32>() {
            Ok(index) => Ok(i64::from(index)),
            Err(_) => suppressible_error("jsonpath array subscript is out of integer range"),
        }
    }
}

fn operand_error<T>(side: &str, symbol: char) -> PathResult<T> {
    suppressible_error(format!("{side} operand of jsonpath operator {symbol} is not a single numeric value"))
}
