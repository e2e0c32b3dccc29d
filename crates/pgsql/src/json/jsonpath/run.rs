//! Follows a SQL/JSON path through a document.

use std::borrow::Cow;

use datafusion::common::{DataFusionError, exec_datafusion_err};

use super::super::value::Value;
use super::budget::{Budget, Found};
use super::decimal;
use super::syntax::{JsonPath, Method, Path, Start, Step};

/// A value on the way: one of the document, or one that was computed.
pub(super) type Item<'v> = Cow<'v, Value>;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// What `silent` and predicates suppress.
    Suppressible(String),
    Error(DataFusionError),
}

impl From<DataFusionError> for Failure {
    fn from(error: DataFusionError) -> Self {
        Self::Error(error)
    }
}

pub(super) type Run<T> = Result<T, Failure>;

pub(super) fn suppressible<T>(message: impl Into<String>) -> Run<T> {
    Err(Failure::Suppressible(message.into()))
}

/// One evaluation of a path.
pub(super) struct Runner<'v, 'b> {
    pub(super) is_lax: bool,
    pub(super) root: &'v Value,
    pub(super) variables: Option<&'v Value>,
    /// What `@` is.
    pub(super) current: Item<'v>,
    /// The length of the array that is subscripted.
    length: usize,
    /// Whether what is missing is left out.
    ignores_structure: bool,
    /// Whether errors end the evaluation, rather than that of a predicate.
    pub(super) raises: bool,
    pub(super) budget: &'b mut Budget,
}

impl<'v, 'b> Runner<'v, 'b> {
    /// # Errors
    /// For variables that are no object.
    pub(super) fn new(
        path: &'v JsonPath,
        root: &'v Value,
        variables: Option<&'v Value>,
        raises: bool,
        budget: &'b mut Budget,
    ) -> Result<Self, DataFusionError> {
        if variables.is_some_and(|variables| !matches!(variables, Value::Object(_))) {
            return Err(exec_datafusion_err!("\"vars\" argument is not an object"));
        }
        let (is_lax, current) = (path.is_lax, Cow::Borrowed(root));
        Ok(Self { is_lax, root, variables, current, length: 0, ignores_structure: is_lax, raises, budget })
    }

    pub(super) fn count(&mut self) -> Run<()> {
        self.budget.spend(1)
    }

    /// Whether `path` leads anywhere from `item`; what it leads to goes to `found`.
    pub(super) fn follow(&mut self, path: &'v Path, item: &Item<'v>, found: &mut Found<'v>) -> Run<bool> {
        self.count()?;
        let steps = path.steps.as_slice();
        match &path.start {
            Start::Literal(value) => self.next(steps, Cow::Borrowed(value), found),
            Start::Variable(name) => {
                let value = self.variables.and_then(|variables| variables.member(name));
                let value = value.ok_or_else(|| exec_datafusion_err!("could not find jsonpath variable \"{name}\""))?;
                self.next(steps, Cow::Borrowed(value), found)
            }
            Start::Root => self.next(steps, Cow::Borrowed(self.root), found),
            Start::Current => {
                let current = self.budget.copy(&self.current)?;
                self.next(steps, current, found)
            }
            Start::Last => {
                let last = self.length as i64 - 1;
                self.next(steps, Cow::Owned(Value::Number(last.to_string())), found)
            }
            Start::Arithmetic(arithmetic) => {
                let left = self.unwrapped(&arithmetic.left, item)?;
                let right = self.unwrapped(&arithmetic.right, item)?;
                let operator = arithmetic.operator;
                let single = |side: &str, items: &[Item<'v>]| match items {
                    [one] => match one.as_ref() {
                        Value::Number(number) => Ok(number.clone()),
                        _ => operand_error(side, operator.symbol()),
                    },
                    _ => operand_error(side, operator.symbol()),
                };
                let (left, right) = (single("left", &left)?, single("right", &right)?);
                let result = decimal::compute(operator, &left, &right)?;
                self.next(steps, Cow::Owned(Value::Number(result)), found)
            }
            Start::Sign { is_minus, operand } => self.sign(*is_minus, operand, steps, item, found),
            Start::Predicate(predicate) => {
                let truth = self.truth(predicate, item)?;
                let value = truth.map_or(Value::Null, Value::Bool);
                self.next(steps, Cow::Owned(value), found)
            }
        }
    }

    fn sign(
        &mut self,
        is_minus: bool,
        operand: &'v Path,
        steps: &'v [Step],
        item: &Item<'v>,
        found: &mut Found<'v>,
    ) -> Run<bool> {
        let mut is_found = false;
        for value in self.unwrapped(operand, item)? {
            let Value::Number(number) = value.as_ref() else {
                if found.0.is_none() && steps.is_empty() {
                    continue;
                }
                let symbol = if is_minus { '-' } else { '+' };
                return suppressible(format!("operand of unary jsonpath operator {symbol} is not a numeric value"));
            };
            let signed = if is_minus { Cow::Owned(Value::Number(decimal::negated(number))) } else { value };
            is_found |= self.next(steps, signed, found)?;
            if found.is_satisfied(is_found) {
                return Ok(true);
            }
        }
        Ok(is_found)
    }

    /// What `path` leads to, in lax mode with the elements of arrays in their place.
    pub(super) fn unwrapped(&mut self, path: &'v Path, item: &Item<'v>) -> Run<Vec<Item<'v>>> {
        let items = self.items(path, item)?;
        if !self.is_lax || !items.iter().any(|item| matches!(item.as_ref(), Value::Array(_))) {
            return Ok(items);
        }
        let mut unwrapped = Vec::new();
        for item in items {
            if matches!(item.as_ref(), Value::Array(_)) {
                unwrapped.extend(self.budget.children(&item)?);
            } else {
                unwrapped.push(item);
            }
        }
        Ok(unwrapped)
    }

    /// What `path` leads to.
    pub(super) fn items(&mut self, path: &'v Path, item: &Item<'v>) -> Run<Vec<Item<'v>>> {
        let mut found = Found::all();
        self.follow(path, item, &mut found)?;
        Ok(found.into_items())
    }

    /// Goes on from `item`, or adds it to `found`.
    pub(super) fn next(&mut self, steps: &'v [Step], item: Item<'v>, found: &mut Found<'v>) -> Run<bool> {
        let is_lax = self.is_lax;
        self.step(steps, item, found, is_lax)
    }

    /// Takes the first of `steps` from `item`. An array is unwrapped for it if `unwraps`.
    fn step(&mut self, steps: &'v [Step], item: Item<'v>, found: &mut Found<'v>, unwraps: bool) -> Run<bool> {
        self.count()?;
        let Some((step, rest)) = steps.split_first() else {
            found.push(item)?;
            return Ok(true);
        };
        let is_array = matches!(item.as_ref(), Value::Array(_));
        let unwraps = unwraps && is_array;
        match step {
            Step::Key(_) | Step::AnyKey | Step::Filter(_) if unwraps => self.each(steps, &item, found, false),
            Step::Method(method) if unwraps && !matches!(method, Method::Type | Method::Size) => {
                self.each(steps, &item, found, false)
            }
            Step::Key(key) => match (item.as_ref(), self.budget.member(&item, key)?) {
                (_, Some(value)) => self.next(rest, value, found),
                (Value::Object(_), None) => self.missing(|| format!("JSON object does not contain key \"{key}\"")),
                _ => self.missing(|| "jsonpath member accessor can only be applied to an object".to_owned()),
            },
            Step::AnyKey => match item.as_ref() {
                Value::Object(_) => self.each(rest, &item, found, self.is_lax),
                _ => self.missing(|| "jsonpath wildcard member accessor can only be applied to an object".to_owned()),
            },
            Step::AnyElement if is_array => self.each(rest, &item, found, self.is_lax),
            Step::AnyElement if self.is_lax => self.next(rest, item, found),
            Step::AnyElement => {
                self.missing(|| "jsonpath wildcard array accessor can only be applied to an array".to_owned())
            }
            Step::Subscripts(places) if is_array || self.is_lax => self.subscripts(places, rest, &item, found),
            Step::Subscripts(_) => {
                self.missing(|| "jsonpath array accessor can only be applied to an array".to_owned())
            }
            Step::AnyLevel { first, last } => self.any_level(*first, *last, rest, &item, found),
            Step::Filter(predicate) => {
                let current = self.budget.copy(&item)?;
                let outer = std::mem::replace(&mut self.current, current);
                let truth = self.truth(predicate, &item);
                self.current = outer;
                if truth? == Some(true) { self.next(rest, item, found) } else { Ok(false) }
            }
            Step::Method(method) => self.method(*method, rest, item, found),
        }
    }

    /// The error of what is missing, unless that is left out.
    pub(super) fn missing(&self, message: impl FnOnce() -> String) -> Run<bool> {
        if self.ignores_structure { Ok(false) } else { suppressible(message()) }
    }

    /// Goes on from each element or member of `container`.
    fn each(&mut self, steps: &'v [Step], container: &Item<'v>, found: &mut Found<'v>, unwraps: bool) -> Run<bool> {
        let mut is_found = false;
        for child in self.budget.children(container)? {
            is_found = self.step(steps, child, found, unwraps)?;
            if found.is_satisfied(is_found) {
                return Ok(true);
            }
        }
        Ok(is_found)
    }

    fn any_level(
        &mut self,
        first: u32,
        last: u32,
        steps: &'v [Step],
        item: &Item<'v>,
        found: &mut Found<'v>,
    ) -> Run<bool> {
        let is_container = !item.is_scalar();
        let outer = std::mem::replace(&mut self.ignores_structure, true);
        let mut result = Ok(false);
        if first == 0 {
            result = self.budget.copy(item).and_then(|copy| self.next(steps, copy, found));
            // Where errors are suppressed, that of the container itself is forgotten.
            let is_forgotten = is_container && !self.raises && matches!(result, Err(Failure::Suppressible(_)));
            if is_forgotten {
                result = Ok(false);
            }
        }
        if is_container
            && let Ok(is_found) = result
            && !found.is_satisfied(is_found)
        {
            result = self.levels(1, (first, last), steps, item, found);
        }
        self.ignores_structure = outer;
        result
    }

    /// Goes on from what is within `container`, whose children are at `level`.
    fn levels(
        &mut self,
        level: u32,
        bounds: (u32, u32),
        steps: &'v [Step],
        container: &Item<'v>,
        found: &mut Found<'v>,
    ) -> Run<bool> {
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
                is_found = self.next(steps, copy, found)?;
                if found.is_satisfied(is_found) {
                    return Ok(true);
                }
            }
            if level < last && is_container {
                is_found = self.levels(level + 1, bounds, steps, &child, found)?;
                if found.is_satisfied(is_found) {
                    return Ok(true);
                }
            }
        }
        Ok(is_found)
    }

    fn subscripts(
        &mut self,
        places: &'v [(Path, Option<Path>)],
        steps: &'v [Step],
        item: &Item<'v>,
        found: &mut Found<'v>,
    ) -> Run<bool> {
        let items =
            if matches!(item.as_ref(), Value::Array(_)) { self.budget.children(item)? } else { vec![item.clone()] };
        let outer = std::mem::replace(&mut self.length, items.len());
        let result = self.subscripted(places, steps, item, &items, found);
        self.length = outer;
        result
    }

    fn subscripted(
        &mut self,
        places: &'v [(Path, Option<Path>)],
        steps: &'v [Step],
        item: &Item<'v>,
        items: &[Item<'v>],
        found: &mut Found<'v>,
    ) -> Run<bool> {
        let length = items.len() as i64;
        let mut is_found = false;
        for (from, to) in places {
            let from = self.subscript(from, item)?;
            let to = match to {
                Some(to) => self.subscript(to, item)?,
                None => from,
            };
            if !self.ignores_structure && (from < 0 || from > to || to >= length) {
                return suppressible("jsonpath array subscript is out of bounds");
            }
            is_found = false;
            for place in from.max(0)..=to.min(length - 1) {
                let copy = self.budget.copy(&items[place as usize])?;
                is_found = self.next(steps, copy, found)?;
                if found.is_satisfied(is_found) {
                    return Ok(true);
                }
            }
        }
        Ok(is_found)
    }

    fn subscript(&mut self, path: &'v Path, item: &Item<'v>) -> Run<i64> {
        let items = self.items(path, item)?;
        let [one] = items.as_slice() else {
            return suppressible("jsonpath array subscript is not a single numeric value");
        };
        let Value::Number(number) = one.as_ref() else {
            return suppressible("jsonpath array subscript is not a single numeric value");
        };
        let whole = number.split_once('.').map_or(number.as_str(), |(whole, _)| whole);
        match whole.parse::<i32>() {
            Ok(index) => Ok(i64::from(index)),
            Err(_) => suppressible("jsonpath array subscript is out of integer range"),
        }
    }
}

fn operand_error<T>(side: &str, symbol: char) -> Run<T> {
    suppressible(format!("{side} operand of jsonpath operator {symbol} is not a single numeric value"))
}
