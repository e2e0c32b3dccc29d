//! Query specs as JSON. They are parsed by hand, so that all violations are reported at once, with their paths; and
//! their JSON Schema is written by hand to stay short.

use serde_json::{Map, Value, json};
use tidegate_core::{Error, Format, Violation, json_text, shorten, unknown_name};
use tidegate_sql::Parameter;

use crate::request::{AnswerMode, Delivery};
use crate::spec::{
    AggregateFunction, Arity, ComparisonOperator, GroupKey, JoinKind, JoinOn, LIMIT_DEFAULT, NamedExpression, Operand,
    QueryCondition, QueryJoin, QuerySpec, Selection, SortKey,
};

const ITEMS_MAX: usize = 200;
const VIOLATIONS_MAX: usize = 20;

const KEYS: [&str; 18] = [
    "database", "table", "select", "distinct", "where", "joins", "group_by", "having", "order_by", "limit", "offset",
    "format", "extract", "mode", "delivery", "save_as", "cursor", "no_cache",
];

impl QuerySpec {
    /// Parses the arguments.
    ///
    /// # Errors
    /// `InvalidArguments` with every violation.
    pub fn from_json(arguments: &Map<String, Value>) -> Result<Self, Error> {
        let mut reader = SpecReader::default();
        let arguments = &without_blanks(arguments);
        reader.reject_unknown_keys("", arguments, &KEYS);
        let limit = arguments.get("limit");
        let mut spec = Self {
            database: reader.read_optional_text(arguments, "", "database"),
            table: reader.read_required_text(arguments, "", "table"),
            select: reader.read_list(arguments, "select", SpecReader::read_selection),
            distinct: reader.read_bool(arguments, "", "distinct"),
            filter: reader.read_optional_condition("where", arguments.get("where")),
            joins: reader.read_list(arguments, "joins", SpecReader::read_join),
            group_by: reader.read_list(arguments, "group_by", SpecReader::read_group_key),
            having: reader.read_optional_condition("having", arguments.get("having")),
            order_by: reader.read_list(arguments, "order_by", SpecReader::read_sort_key),
            limit: limit.map_or(LIMIT_DEFAULT, |value| reader.read_limit(value)),
            offset: reader.read_offset(arguments),
            has_explicit_limit: limit.is_some(),
            ..Self::default()
        };
        // The call has the arguments that are only checked here.
        reader.read_choice(arguments, "", "format", &Format::FOR_MODELS, Format::name);
        spec.extract = reader.read_optional_text(arguments, "", "extract");
        spec.mode = reader.read_choice(arguments, "", "mode", &AnswerMode::ALL, AnswerMode::name).unwrap_or_default();
        reader.read_choice(arguments, "", "delivery", &Delivery::ALL, Delivery::name);
        reader.read_optional_text(arguments, "", "save_as");
        reader.read_optional_text(arguments, "", "cursor");
        reader.read_bool(arguments, "", "no_cache");
        reader.finish(spec)
    }
}

impl QueryCondition {
    /// Parses a condition in all forms of `where`; `None` if it is empty. Violations are at `path`.
    ///
    /// # Errors
    /// As [`QuerySpec::from_json`].
    pub fn from_json(path: &str, condition: &Value) -> Result<Option<Self>, Error> {
        let mut reader = SpecReader::default();
        let condition = reader.read_optional_condition(path, Some(&without_inner_blanks(condition)));
        reader.finish(condition)
    }
}

/// Collects violations. Invalid parts are left out of the spec, which is then not used.
#[derive(Default)]
struct SpecReader {
    violations: Vec<Violation>,
    /// The number of conditions so far, at all levels.
    conditions: usize,
}

impl SpecReader {
    fn finish<T>(mut self, read: T) -> Result<T, Error> {
        if self.violations.is_empty() {
            return Ok(read);
        }
        self.violations.truncate(VIOLATIONS_MAX);
        Err(Error::invalid_arguments("invalid query arguments:", self.violations))
    }

    fn add_violation(&mut self, path: &str, message: impl Into<String>) {
        self.violations.push(Violation { path: path.to_owned(), message: message.into() });
    }

    fn reject_unknown_keys(&mut self, path: &str, object: &Map<String, Value>, known: &[&str]) {
        for key in object.keys().filter(|key| !known.contains(&key.as_str())) {
            self.add_violation(&child_path(path, key), unknown_name(key, known));
        }
    }

    fn read_required_text(&mut self, object: &Map<String, Value>, path: &str, key: &str) -> String {
        match object.get(key) {
            None => {
                self.add_violation(&child_path(path, key), "is required");
                String::new()
            }
            Some(_) => self.read_optional_text(object, path, key).unwrap_or_default(),
        }
    }

    fn read_optional_text(&mut self, object: &Map<String, Value>, path: &str, key: &str) -> Option<String> {
        match object.get(key)? {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            other => self.expected(&child_path(path, key), "a name", other),
        }
    }

    fn read_bool(&mut self, object: &Map<String, Value>, path: &str, key: &str) -> bool {
        match object.get(key) {
            None => false,
            Some(Value::Bool(truth)) => *truth,
            Some(other) => self.expected(&child_path(path, key), "true or false", other).unwrap_or_default(),
        }
    }

    /// Adds the violation that `value` is not what is expected.
    fn expected<T>(&mut self, path: &str, expected: &str, value: &Value) -> Option<T> {
        self.add_violation(path, format!("expected {expected}, got {}", shorten_value(value)));
        None
    }

    fn read_choice<T: Copy>(
        &mut self,
        object: &Map<String, Value>,
        path: &str,
        key: &str,
        all: &[T],
        name: fn(T) -> &'static str,
    ) -> Option<T> {
        let value = object.get(key)?;
        let expected = value.as_str().map(str::to_lowercase);
        all.iter().copied().find(|choice| Some(name(*choice)) == expected.as_deref()).or_else(|| {
            let choices: Vec<&str> = all.iter().map(|choice| name(*choice)).collect();
            self.expected(&child_path(path, key), &format!("one of {}", choices.join(", ")), value)
        })
    }

    fn read_limit(&mut self, value: &Value) -> u64 {
        let limit = value.as_u64().filter(|limit| (1..=u64::from(u32::MAX)).contains(limit));
        limit.or_else(|| self.expected("limit", "a whole number from 1", value)).unwrap_or(LIMIT_DEFAULT)
    }

    fn read_offset(&mut self, arguments: &Map<String, Value>) -> u64 {
        let Some(value) = arguments.get("offset") else { return 0 };
        let offset = value.as_u64().filter(|offset| i64::try_from(*offset).is_ok());
        offset.or_else(|| self.expected("offset", "a whole number from 0", value)).unwrap_or_default()
    }

    fn read_list<T>(
        &mut self,
        object: &Map<String, Value>,
        key: &str,
        item: fn(&mut Self, &str, &Value) -> Option<T>,
    ) -> Vec<T> {
        let items = match object.get(key) {
            None => return Vec::new(),
            Some(Value::Array(items)) => items.as_slice(),
            // A single item is accepted, because models often leave out the brackets.
            Some(single) => std::slice::from_ref(single),
        };
        if items.len() > ITEMS_MAX {
            self.add_violation(key, format!("expected at most {ITEMS_MAX} items, got {}", items.len()));
            return Vec::new();
        }
        let mut read = |(index, value): (usize, &Value)| {
            let object = parsed_text(value).filter(Value::is_object);
            item(self, &format!("{key}[{index}]"), object.as_ref().unwrap_or(value))
        };
        items.iter().enumerate().filter_map(&mut read).collect()
    }

    fn read_group_key(&mut self, path: &str, value: &Value) -> Option<GroupKey> {
        match value {
            Value::String(name) if !name.is_empty() => Some(GroupKey::Column(name.clone())),
            Value::Object(object) => self.read_expression(path, object).map(GroupKey::Expression),
            other => self.expected(path, "the name of a column or {expression, as}", other),
        }
    }

    fn read_expression(&mut self, path: &str, object: &Map<String, Value>) -> Option<NamedExpression> {
        self.reject_unknown_keys(path, object, &["expression", "as"]);
        let alias = self.read_alias(object, path);
        let text = self.read_required_text(object, path, "expression");
        (!text.is_empty()).then_some(NamedExpression { text, alias })
    }

    fn read_selection(&mut self, path: &str, value: &Value) -> Option<Selection> {
        let object = match value {
            Value::String(name) if name == "*" => return Some(Selection::All),
            Value::String(name) if !name.is_empty() => return Some(Selection::column(name)),
            Value::Object(object) => object,
            other => return self.expected(path, "a column, {expression, as} or {function, column, as}", other),
        };
        if object.contains_key("expression") {
            return self.read_expression(path, object).map(Selection::Expression);
        }
        self.reject_unknown_keys(path, object, &["function", "column", "as", "distinct"]);
        let alias = self.read_alias(object, path);
        let column = self.read_optional_text(object, path, "column").filter(|column| column != "*");
        let distinct = self.read_bool(object, path, "distinct");
        if !object.contains_key("function") {
            let Some(column) = column else {
                self.add_violation(path, "needs a column, an expression or a function");
                return None;
            };
            if distinct {
                self.add_violation(
                    &child_path(path, "distinct"),
                    "belongs to a function, or beside select for unique rows",
                );
            }
            return Some(Selection::Column { column, alias });
        }
        let function = self.read_choice(object, path, "function", &AggregateFunction::ALL, AggregateFunction::name)?;
        if column.is_none() && (function != AggregateFunction::Count || distinct) {
            self.add_violation(&child_path(path, "column"), format!("is required for {}", function.name()));
        }
        Some(Selection::Aggregate { function, column, distinct, alias })
    }

    fn read_alias(&mut self, object: &Map<String, Value>, path: &str) -> Option<String> {
        const CHARACTERS_MAX: usize = 100;
        let alias = self.read_optional_text(object, path, "as")?;
        let is_plain = |c: char| !c.is_control() && c != '"' && c != '\\';
        if alias.chars().count() <= CHARACTERS_MAX && alias.chars().all(is_plain) {
            return Some(alias);
        }
        let message = format!("expected a name of at most {CHARACTERS_MAX} characters without quotes and backslashes");
        self.add_violation(&child_path(path, "as"), message);
        None
    }

    fn read_join(&mut self, path: &str, value: &Value) -> Option<QueryJoin> {
        let Value::Object(object) = value else { return self.expected(path, "{table, type, on}", value) };
        self.reject_unknown_keys(path, object, &["table", "type", "on", "as"]);
        let table = self.read_required_text(object, path, "table");
        let alias = self.read_alias(object, path);
        let kind = self.read_choice(object, path, "type", &JoinKind::ALL, JoinKind::name).unwrap_or(JoinKind::Inner);
        let on = self.read_join_on(&child_path(path, "on"), object.get("on"))?;
        Some(QueryJoin { table, alias, kind, on })
    }

    fn read_join_on(&mut self, path: &str, value: Option<&Value>) -> Option<JoinOn> {
        let parsed = value.and_then(parsed_text);
        let pairs = match parsed.as_ref().or(value) {
            Some(Value::String(expression)) if !expression.trim().is_empty() => {
                return Some(JoinOn::Expression(expression.clone()));
            }
            Some(Value::Array(pairs)) if (1..=ITEMS_MAX).contains(&pairs.len()) => pairs.as_slice(),
            Some(pair @ Value::Object(_)) => std::slice::from_ref(pair),
            other => {
                let actual = other.map_or("nothing".to_owned(), shorten_value);
                self.add_violation(path, format!("expected [{{left, right}}] or a SQL expression, got {actual}"));
                return None;
            }
        };
        let columns = pairs
            .iter()
            .enumerate()
            .filter_map(|(index, pair)| self.read_column_pair(&format!("{path}[{index}]"), pair));
        Some(JoinOn::Columns(columns.collect()))
    }

    fn read_column_pair(&mut self, path: &str, value: &Value) -> Option<(String, String)> {
        let parsed = parsed_text(value).filter(Value::is_object);
        match parsed.as_ref().unwrap_or(value) {
            // The same name on both sides.
            Value::String(column) if !column.is_empty() => Some((column.clone(), column.clone())),
            Value::Object(pair) => {
                self.reject_unknown_keys(path, pair, &["left", "right"]);
                Some((self.read_required_text(pair, path, "left"), self.read_required_text(pair, path, "right")))
            }
            other => self.expected(path, "{left, right}, two columns that are equal", other),
        }
    }

    fn read_sort_key(&mut self, path: &str, value: &Value) -> Option<SortKey> {
        match value {
            Value::String(column) if !column.is_empty() => Some(SortKey { column: column.clone(), descending: None }),
            Value::Object(object) => {
                self.reject_unknown_keys(path, object, &["column", "direction"]);
                let column = self.read_required_text(object, path, "column");
                let direction = self.read_choice(object, path, "direction", &["asc", "desc"], |direction| direction);
                Some(SortKey { column, descending: Some(direction == Some("desc")) })
            }
            other => self.expected(path, "\"column\" or \"-column\"", other),
        }
    }
}

/// `object` without members that are null, at all levels, because models write null for what they leave out, and without
/// an empty `format` or `cursor`. The value of a condition stays: null there is answered with the operators for it.
fn without_blanks(object: &Map<String, Value>) -> Map<String, Value> {
    let is_blank = |key: &str, value: &Value| match value {
        Value::Null => key != "value",
        Value::String(text) => text.is_empty() && ["format", "cursor"].contains(&key),
        _ => false,
    };
    let kept = object.iter().filter(|(key, value)| !is_blank(key, value));
    kept.map(|(key, value)| (key.clone(), without_inner_blanks(value))).collect()
}

/// The list or the object that `value` is the JSON text of. Models also write parts of arguments so.
fn parsed_text(value: &Value) -> Option<Value> {
    json_text(value.as_str()?).map(|json| without_inner_blanks(&json))
}

fn without_inner_blanks(value: &Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(without_blanks(object)),
        Value::Array(items) => items.iter().map(without_inner_blanks).collect(),
        other => other.clone(),
    }
}

fn child_path(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// The value as JSON, shortened to one line.
fn shorten_value(value: &Value) -> String {
    const CHARACTERS_MAX: usize = 60;
    shorten(value.to_string(), CHARACTERS_MAX)
}

const CONDITIONS_MAX: usize = 100;
const DEPTH_MAX: usize = 20;
const VALUES_MAX: usize = 900;

impl SpecReader {
    fn read_optional_condition(&mut self, path: &str, value: Option<&Value>) -> Option<QueryCondition> {
        match value? {
            // An empty condition matches everything.
            Value::Object(empty) if empty.is_empty() => None,
            Value::Array(empty) if empty.is_empty() => None,
            value => self.read_condition(path, value, DEPTH_MAX),
        }
    }

    fn read_condition(&mut self, path: &str, value: &Value, depth_left: usize) -> Option<QueryCondition> {
        self.conditions += 1;
        if self.conditions > CONDITIONS_MAX || depth_left == 0 {
            // Report this only once.
            if self.conditions <= CONDITIONS_MAX + 1 {
                let bounds = format!(
                    "too many conditions: the limits are {CONDITIONS_MAX} conditions and {DEPTH_MAX} levels; use in for lists"
                );
                self.add_violation(path, bounds);
                self.conditions = CONDITIONS_MAX + 1;
            }
            return None;
        }
        match value {
            Value::String(expression) if !expression.trim().is_empty() => match parsed_text(value) {
                Some(condition) => self.read_condition(path, &condition, depth_left - 1),
                // No expression begins so; a list may, as in `['a', 'b'] = tags`.
                None if expression.trim_start().starts_with('{') => {
                    self.expected(path, "{column, op, value} or a SQL expression, not a part of JSON", value)
                }
                None => Some(QueryCondition::Expression(expression.clone())),
            },
            Value::Array(items) => self.read_conditions(path, items, depth_left).map(QueryCondition::And),
            Value::Object(object) => self.read_condition_object(path, object, depth_left),
            other => self.expected(path, "{column, op, value} or a SQL expression", other),
        }
    }

    fn read_condition_object(
        &mut self,
        path: &str,
        object: &Map<String, Value>,
        depth_left: usize,
    ) -> Option<QueryCondition> {
        for key in ["and", "or", "not"] {
            let Some(inner) = object.get(key) else { continue };
            self.reject_unknown_keys(path, object, &[key]);
            let path = child_path(path, key);
            let list = parsed_text(inner).filter(|parsed| parsed.is_array() && key != "not");
            return match (key, list.as_ref().unwrap_or(inner)) {
                ("not", inner) => {
                    Some(QueryCondition::Not(Box::new(self.read_condition(&path, inner, depth_left - 1)?)))
                }
                ("and", Value::Array(items)) => self.read_conditions(&path, items, depth_left).map(QueryCondition::And),
                (_, Value::Array(items)) => self.read_conditions(&path, items, depth_left).map(QueryCondition::Or),
                (_, other) => self.expected(&path, "a list of conditions", other),
            };
        }
        if !object.contains_key("column") {
            let forms = "{column, op, value}, {and: […]}, {or: […]} or {not: …}";
            return self.expected(path, forms, &Value::Object(object.clone()));
        }
        self.reject_unknown_keys(path, object, &["column", "op", "value"]);
        let column = self.read_required_text(object, path, "column");
        let operator = match object.get("op") {
            None => Some(ComparisonOperator::Equal),
            Some(op) => op.as_str().and_then(ComparisonOperator::parse).or_else(|| {
                let choices = ComparisonOperator::ALL.map(ComparisonOperator::name).join(", ");
                self.expected(&child_path(path, "op"), &format!("one of {choices}"), op)
            }),
        }?;
        let operand = self.read_operand(&child_path(path, "value"), operator, object.get("value"))?;
        Some(QueryCondition::compare(column, operator, operand))
    }

    fn read_conditions(&mut self, path: &str, items: &[Value], depth_left: usize) -> Option<Vec<QueryCondition>> {
        if items.is_empty() {
            self.add_violation(path, "is empty; expected at least one condition");
            return None;
        }
        let mut read =
            |(index, item): (usize, &Value)| self.read_condition(&format!("{path}[{index}]"), item, depth_left - 1);
        Some(items.iter().enumerate().filter_map(&mut read).collect())
    }

    fn read_operand(&mut self, path: &str, operator: ComparisonOperator, value: Option<&Value>) -> Option<Operand> {
        let name = operator.name();
        let expected_list = format!("a list of 1 to {VALUES_MAX} values");
        let takes_list = matches!(operator.arity(), Arity::List | Arity::Range);
        let list = value.filter(|_| takes_list).and_then(parsed_text).filter(Value::is_array);
        let value = list.as_ref().or(value);
        let (expected, value) = match (operator.arity(), value) {
            (Arity::None, _) => return Some(Operand::None),
            (Arity::One, Some(Value::Null)) => ("a value; for null use is_null or is_not_null", value),
            (Arity::One, Some(value @ (Value::Bool(_) | Value::Number(_) | Value::String(_)))) => {
                return self.read_parameter(path, value).map(Operand::One);
            }
            (Arity::One, _) => ("one value; for a list use in", value),
            (Arity::Text, Some(Value::String(text))) => return Some(Operand::One(Parameter::Text(text.clone()))),
            (Arity::Text, _) => ("a string", value),
            (Arity::List, Some(Value::Array(items))) if (1..=VALUES_MAX).contains(&items.len()) => {
                let read = items.iter().enumerate();
                return Some(Operand::List(
                    read.filter_map(|(index, item)| self.read_list_item(&format!("{path}[{index}]"), item)).collect(),
                ));
            }
            (Arity::List, _) => (expected_list.as_str(), value),
            (Arity::Range, Some(Value::Array(items))) if items.len() == 2 => {
                let low = self.read_list_item(&format!("{path}[0]"), &items[0]);
                let high = self.read_list_item(&format!("{path}[1]"), &items[1]);
                return Some(Operand::Range(low?, high?));
            }
            (Arity::Range, _) => ("a list of two values, from and to", value),
        };
        let actual = value.map_or("nothing".to_owned(), shorten_value);
        self.add_violation(path, format!("{name} expects {expected}; got {actual}"));
        None
    }

    fn read_list_item(&mut self, path: &str, value: &Value) -> Option<Parameter> {
        if value.is_null() {
            self.add_violation(path, "null cannot be compared; add a condition with is_null");
            return None;
        }
        self.read_parameter(path, value)
    }

    fn read_parameter(&mut self, path: &str, value: &Value) -> Option<Parameter> {
        Parameter::from_json_or_reason(value).map_err(|reason| self.add_violation(path, reason)).ok()
    }
}

impl QuerySpec {
    /// The JSON Schema of the arguments. It is short, because every model reads it; [`QuerySpec::from_json`] checks the
    /// details with better messages.
    pub fn schema() -> Value {
        let condition = format!(
            "{{column, op, value}}, {{and: […]}}, {{or: […]}}, {{not: …}} or one SQL expression. op: {}",
            ComparisonOperator::ALL.map(ComparisonOperator::name).join(" ")
        );
        let select = format!(
            "Columns, {{expression: \"date_trunc('month', t)\", as}} or {{function, column?, as?, distinct?}}. function: {}",
            AggregateFunction::ALL.map(AggregateFunction::name).join(" ")
        );
        let joins = format!(
            "{{table, type?, on: [{{left, right}}] or SQL expression, as?}}. type: {}",
            JoinKind::ALL.map(JoinKind::name).join(" ")
        );
        // No list of types, and nothing beside alternatives: some clients refuse either.
        let column = json!({"anyOf": [{"type": "string"}, {"type": "object"}]});
        json!({
            "type": "object",
            "properties": {
                "database": {"type": "string"},
                "table": {"type": "string"},
                "select": {"type": "array", "items": column, "description": select},
                "distinct": {"type": "boolean"},
                "where": Self::condition_schema(&condition),
                "joins": {"type": "array", "items": {"type": "object"}, "description": joins},
                "group_by": {"type": "array", "items": column, "description": "Columns or {expression, as}"},
                "having": Self::condition_schema("Like where, on names of select"),
                "order_by": {"type": "array", "items": column, "description": "\"column\", or \"-column\" for descending"},
                "limit": {"type": "integer", "minimum": 1, "default": LIMIT_DEFAULT},
                "offset": {"type": "integer"},
                "format": {"type": "string", "enum": Format::FOR_MODELS.map(Format::name)},
                "extract": {"type": "string", "description": "Only the unique values of this column, sorted"},
                "delivery": {"type": "string", "enum": Delivery::ALL.map(Delivery::name), "description": "blocks: stored, with a preview"},
                "save_as": {"type": "string"},
                "cursor": {"type": "string", "description": "For the next page"},
                "no_cache": {"type": "boolean"},
                "mode": {"type": "string", "enum": AnswerMode::ALL.map(AnswerMode::name), "default": AnswerMode::default().name()},
            },
            "required": ["table"],
            "additionalProperties": false,
        })
    }

    /// The JSON Schema of a condition, in all its forms.
    pub fn condition_schema(description: &str) -> Value {
        let condition = json!({"anyOf": [{"type": "object"}, {"type": "string"}]});
        let list = json!({"type": "array", "items": condition});
        json!({"anyOf": [{"type": "object", "description": description}, {"type": "string"}, list]})
    }
}
