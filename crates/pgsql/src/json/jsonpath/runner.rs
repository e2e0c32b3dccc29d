//! Evaluates a SQL/JSON path on a document: its accessors; its predicates, whose result unknown is `None`; and its methods,
//! `.size()` and its siblings. The `id` of `keyvalue()` is the position of an object in PostgreSQL's binary form of its
//! document.

use std::borrow::Cow;
use std::cmp::Ordering;

use datafusion::common::{DataFusionError, exec_datafusion_err};

use super::super::value::{self, JsonValue};
use super::budget::{Item, PathBudget, PathError, PathResult, ResultItems, suppressible_error};
use super::decimal;
use super::path::{Accessor, Comparison, JsonPath, Method, Path, PathStart, Predicate};

/// One evaluation of a path.
pub(super) struct PathRunner<'v, 'b> {
    pub(super) is_lax: bool,
    pub(super) root: &'v JsonValue,
    pub(super) variables: Option<&'v JsonValue>,
    /// The value of `@`.
    current: Item<'v>,
    /// The length of the array that is subscripted.
    length: usize,
    /// Whether a missing member or element is ignored.
    ignores_structure: bool,
    /// Whether errors end the evaluation, rather than only that of a predicate.
    raises_errors: bool,
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
    fn unwrapped_items(&mut self, path: &'v Path, item: &Item<'v>) -> PathResult<Vec<Item<'v>>> {
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
    fn apply_steps(
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
    fn missing_error(&self, message: impl FnOnce() -> String) -> PathResult<bool> {
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

impl<'v> PathRunner<'v, '_> {
    /// Whether `predicate` is true of `item`.
    fn evaluate_predicate(&mut self, predicate: &'v Predicate, item: &Item<'v>) -> PathResult<Option<bool>> {
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

impl<'v> PathRunner<'v, '_> {
    /// Applies `method` to `item`, then the remaining steps to the result.
    fn method(
        &mut self,
        method: Method,
        steps: &'v [Accessor],
        item: Item<'v>,
        results: &mut ResultItems<'v>,
    ) -> PathResult<bool> {
        let name = method.name();
        let number = |value: String| -> Item<'v> { Cow::Owned(JsonValue::Number(value)) };
        let value = match (method, item.as_ref()) {
            (Method::Type, value) => Cow::Owned(JsonValue::Text(type_name(value).to_owned())),
            (Method::Size, JsonValue::Array(items)) => number(items.len().to_string()),
            (Method::Size, _) if self.is_lax => number("1".to_owned()),
            (Method::Size, _) => {
                return self
                    .missing_error(|| format!("jsonpath item method .{name}() can only be applied to an array"));
            }
            (Method::Abs, JsonValue::Number(value)) => number(value.trim_start_matches('-').to_owned()),
            (Method::Floor, JsonValue::Number(value)) => number(decimal::floor(value)?),
            (Method::Ceiling, JsonValue::Number(value)) => number(decimal::ceiling(value)?),
            (Method::Abs | Method::Floor | Method::Ceiling, _) => {
                return suppressible_error(format!(
                    "jsonpath item method .{name}() can only be applied to a numeric value"
                ));
            }
            (Method::Double, JsonValue::Number(value)) => {
                decimal::check_double(value)?;
                item
            }
            (Method::Double, JsonValue::Text(text)) => number(decimal::double(text)?),
            (Method::Double, _) => {
                return suppressible_error(format!(
                    "jsonpath item method .{name}() can only be applied to a string or numeric value"
                ));
            }
            (Method::KeyValue, JsonValue::Object(_)) => return self.key_values(steps, &item, results),
            (Method::KeyValue, _) => {
                return suppressible_error(format!("jsonpath item method .{name}() can only be applied to an object"));
            }
        };
        self.apply_steps(steps, value, results)
    }

    fn key_values(
        &mut self,
        steps: &'v [Accessor],
        item: &Item<'v>,
        results: &mut ResultItems<'v>,
    ) -> PathResult<bool> {
        let JsonValue::Object(pairs) = item.as_ref() else { return Ok(false) };
        let id = object_id(item, self.root, self.variables, self.budget)?;
        let mut is_found = false;
        for (key, value) in pairs {
            self.budget.charge(value)?;
            let members = vec![
                ("id".to_owned(), JsonValue::Number(id.to_string())),
                ("key".to_owned(), JsonValue::Text(key.clone())),
                ("value".to_owned(), value.clone()),
            ];
            is_found = self.apply_steps(steps, Cow::Owned(JsonValue::object(members)), results)?;
            if results.is_satisfied(is_found) {
                return Ok(true);
            }
        }
        Ok(is_found)
    }
}

fn type_name(value: &JsonValue) -> &'static str {
    match value {
        JsonValue::Null => "null",
        JsonValue::Bool(_) => "boolean",
        JsonValue::Number(_) => "number",
        JsonValue::Text(_) => "string",
        JsonValue::Array(_) => "array",
        JsonValue::Object(_) => "object",
    }
}

/// The bytes of a header, and of each entry of an array or object.
const ENTRY_BYTES: u64 = 4;

/// The prefix of the identifiers of variables.
const VARIABLES: u64 = 10_000_000_000;

/// Returns the identifier of the object `item`, which belongs to the document `root` or to `variables`.
fn object_id(
    item: &Item<'_>,
    root: &JsonValue,
    variables: Option<&JsonValue>,
    budget: &mut PathBudget,
) -> PathResult<u64> {
    let Item::Borrowed(json_value) = item else { return Err(keyvalue_error().into()) };
    if let Some(position) = find_position(json_value, root, budget)? {
        return Ok(position);
    }
    let of_variables = variables.map(|variables| find_position(json_value, variables, budget)).transpose()?.flatten();
    of_variables.map(|position| VARIABLES + position).ok_or_else(|| keyvalue_error().into())
}

fn keyvalue_error() -> datafusion::common::DataFusionError {
    exec_datafusion_err!(
        "keyvalue() of the result of keyvalue() is not supported; write jsonb_each(value) in FROM instead of one"
    )
}

/// Returns the position of `json_value`, a part of `document`, in the binary form.
fn find_position(json_value: &JsonValue, document: &JsonValue, budget: &mut PathBudget) -> PathResult<Option<u64>> {
    let mut search = ObjectSearch { expected: json_value, position: None, end: 0, steps: 0 };
    search.advance_past(document);
    budget.spend(search.steps)?;
    Ok(search.position)
}

/// Passes through the binary form of a document.
struct ObjectSearch<'a> {
    expected: &'a JsonValue,
    position: Option<u64>,
    end: u64,
    steps: usize,
}

impl ObjectSearch<'_> {
    fn align(&mut self) {
        self.end = self.end.next_multiple_of(ENTRY_BYTES);
    }

    fn advance_past(&mut self, value: &JsonValue) {
        if self.position.is_some() {
            return;
        }
        self.steps += 1;
        match value {
            JsonValue::Null | JsonValue::Bool(_) => {}
            JsonValue::Text(text) => self.end += text.len() as u64,
            JsonValue::Number(number) => {
                self.align();
                self.end += number_bytes(number);
            }
            JsonValue::Array(items) => {
                self.begin(value, items.len());
                items.iter().for_each(|item| self.advance_past(item));
            }
            JsonValue::Object(pairs) => {
                self.begin(value, pairs.len() * 2);
                self.end += pairs.iter().map(|(key, _)| key.len() as u64).sum::<u64>();
                pairs.iter().for_each(|(_, value)| self.advance_past(value));
            }
        }
    }

    fn begin(&mut self, value: &JsonValue, entries: usize) {
        self.align();
        if std::ptr::eq(value, self.expected) {
            self.position = Some(self.end);
        }
        self.end += ENTRY_BYTES * (1 + entries as u64);
    }
}

/// Returns the bytes of a `numeric`: a length, a header, and two for each four digits.
fn number_bytes(number: &str) -> u64 {
    const GROUP: usize = 4;
    let digits = number.trim_start_matches('-');
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let padding = whole.len().next_multiple_of(GROUP) - whole.len();
    let aligned = format!("{}{whole}{fraction}", "0".repeat(padding));
    let groups: Vec<bool> =
        aligned.as_bytes().chunks(GROUP).map(|group| group.iter().any(|digit| *digit != b'0')).collect();
    let Some(first) = groups.iter().position(|is_set| *is_set) else { return ENTRY_BYTES + 2 };
    let last = groups.iter().rposition(|is_set| *is_set).unwrap_or(first);
    let weight = ((whole.len() + padding) / GROUP) as i64 - 1 - first as i64;
    let is_short = fraction.len() <= 63 && (-64..=63).contains(&weight);
    let header = if is_short { 2 } else { 4 };
    ENTRY_BYTES + header + 2 * (last - first + 1) as u64
}
