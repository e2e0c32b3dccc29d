//! The arguments of `execute_function` as a query of one table.
//!
//! All problems of the arguments are reported at once, with the nearest names, so that an agent needs one correction
//! only.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use tidegate_core::{Error, ErrorKind, unknown_name};
use tidegate_query::{ComparisonOperator, Operand, QueryCondition, QuerySpec, Selection};
use tidegate_sql::Parameter;
use tidegate_system::{SystemColumn, SystemColumnType, SystemTableDescription, SystemValue};

/// Columns and conditions at most.
const ITEMS_MAX: usize = 100;
/// Alternatives of a pattern at most.
const ALTERNATIVES_MAX: usize = 50;
/// Reported problems at most; further ones are counted.
const PROBLEMS_MAX: usize = 50;
/// Bytes of a name of the caller in a problem at most.
const QUOTED_BYTES_MAX: usize = 80;
/// The operators besides the patterns.
const COMPARISONS: [ComparisonOperator; 6] = [
    ComparisonOperator::Equal,
    ComparisonOperator::NotEqual,
    ComparisonOperator::Less,
    ComparisonOperator::LessOrEqual,
    ComparisonOperator::Greater,
    ComparisonOperator::GreaterOrEqual,
];
const OPERATORS: &str = "=, !=, <, <=, >, >=, match, not match";

/// A request that fits its function.
pub(crate) struct FunctionRequest {
    /// The query, without a limit.
    pub(crate) spec: QuerySpec,
    /// The parameters of the function.
    pub(crate) parameters: BTreeMap<String, SystemValue>,
    /// The columns of the conditions.
    pub(crate) compared: BTreeSet<String>,
}

impl FunctionRequest {
    /// Parses the arguments, whose outer types the schema of the tool has checked. Without `grants_sensitive`, sensitive
    /// columns can only be selected, as masks.
    ///
    /// # Errors
    /// `InvalidArguments` with all problems.
    pub(crate) fn parse(
        function: &SystemTableDescription,
        arguments: &Map<String, Value>,
        grants_sensitive: bool,
    ) -> Result<Self, Error> {
        let mut parser = RequestParser { function, grants_sensitive, compared: BTreeSet::new(), problems: Vec::new() };
        let select = parser.columns(arguments.get("columns"));
        let sorted = parser.sort(arguments.get("sort"));
        let conditions = parser.conditions(arguments.get("conditions"));
        let parameters = parser.parameters(arguments.get("parameters"));
        match sorted.filter(|_| parser.problems.is_empty()) {
            Some(spec) => {
                let filter = QueryCondition::all(conditions);
                let spec = QuerySpec { select, filter, limit: QuerySpec::UNLIMITED, ..spec };
                Ok(Self { spec, parameters, compared: parser.compared })
            }
            None => Err(parser.error()),
        }
    }
}

/// Collects problems.
struct RequestParser<'a> {
    function: &'a SystemTableDescription,
    grants_sensitive: bool,
    compared: BTreeSet<String>,
    problems: Vec<String>,
}

impl<'a> RequestParser<'a> {
    fn add(&mut self, path: &str, problem: impl AsRef<str>) {
        self.problems.push(format!("{path}: {}", problem.as_ref()));
    }

    fn error(mut self) -> Error {
        let count = self.problems.len();
        if count > PROBLEMS_MAX {
            self.problems.truncate(PROBLEMS_MAX);
            self.problems.push(format!("and {} more problems", count - PROBLEMS_MAX));
        }
        let counted = if count == 1 { "1 problem".to_owned() } else { format!("{count} problems") };
        let message = format!("the request for {:?} has {counted}:\n{}", self.function.name, self.problems.join("\n"));
        Error::new(ErrorKind::InvalidArguments, message)
    }

    /// The items of a list; none if there are too many.
    fn items<'v>(&mut self, path: &str, value: Option<&'v Value>) -> &'v [Value] {
        let items = value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if items.len() > ITEMS_MAX {
            self.add(path, format!("has {} items; at most {ITEMS_MAX} are allowed", items.len()));
            return &[];
        }
        items
    }

    fn columns(&mut self, value: Option<&Value>) -> Vec<Selection> {
        let function = self.function;
        let mut names: Vec<&str> = Vec::new();
        let items = self.items("columns", value);
        for (index, item) in items.iter().enumerate() {
            if let Some(column) = self.column(&format!("columns[{index}]"), item)
                && !names.contains(&column.name.as_ref())
            {
                names.push(&column.name);
            }
        }
        if items.is_empty() {
            let is_readable = |column: &&SystemColumn| self.grants_sensitive || !column.is_sensitive;
            names = function.columns.iter().filter(is_readable).map(|column| column.name.as_ref()).collect();
        }
        names.into_iter().map(Selection::column).collect()
    }

    /// The column that `value` names.
    fn column(&mut self, path: &str, value: &Value) -> Option<&'a SystemColumn> {
        let function = self.function;
        let Some(name) = value.as_str() else {
            self.add(path, "must be the name of a column");
            return None;
        };
        let found = function.column(name);
        if found.is_none() {
            let names: Vec<&str> = function.column_names().collect();
            self.add(path, format!("column {:?} {}", shortened(name), unknown_name(name, &names)));
        }
        found.map(|(_, column)| column)
    }

    /// The column that `value` names, if its values may be compared.
    fn compared_column(&mut self, path: &str, value: &Value) -> Option<&'a SystemColumn> {
        let column = self.column(path, value)?;
        if column.is_sensitive && !self.grants_sensitive {
            self.add(path, format!("column {:?} is masked for you, so that it can only be selected", column.name));
            return None;
        }
        Some(column)
    }

    /// A query with the order alone. Each part has the form that it has in `query`.
    fn sort(&mut self, value: Option<&Value>) -> Option<QuerySpec> {
        let table = ("table".to_owned(), Value::from(self.function.name.as_ref()));
        let order = ("order_by".to_owned(), value.cloned().unwrap_or_default());
        let mut spec = match QuerySpec::from_json(&Map::from_iter([table, order])) {
            Ok(spec) => spec,
            Err(error) => {
                for violation in error.violations() {
                    self.add(&violation.path.replacen("order_by", "sort", 1), &violation.message);
                }
                return None;
            }
        };
        for (index, key) in spec.order_by.iter_mut().enumerate() {
            self.compared_column(&format!("sort[{index}]"), &Value::from(key.column.as_str()));
            key.descending = Some(key.descending.unwrap_or(false));
        }
        Some(spec)
    }

    fn conditions(&mut self, value: Option<&Value>) -> Vec<QueryCondition> {
        let items = self.items("conditions", value);
        let mut conditions = Vec::new();
        for (index, item) in items.iter().enumerate() {
            conditions.extend(self.condition(&format!("conditions[{index}]"), item));
        }
        conditions
    }

    /// Checks the column, the operator and the value each, also if another one is wrong.
    fn condition(&mut self, path: &str, item: &Value) -> Option<QueryCondition> {
        let Some([column, operator, value]) = item.as_array().map(Vec::as_slice) else {
            self.add(path, "must be a list of three: [column, operator, value]");
            return None;
        };
        let column = self.compared_column(&format!("{path}[0]"), column);
        let parsed = operator.as_str().and_then(FunctionOperator::parse);
        if parsed.is_none() {
            let problem = match operator.as_str() {
                Some(name) => format!("unknown operator {:?}; valid are {OPERATORS}", shortened(name)),
                None => format!("must be an operator: {OPERATORS}"),
            };
            self.add(&format!("{path}[1]"), problem);
        }
        let (column, operator) = (column?, parsed?);
        self.compared.insert(column.name.clone().into_owned());
        let condition = operator.condition(column, value);
        condition.map_err(|problem| self.add(&format!("{path}[2]"), problem)).ok()
    }

    fn parameters(&mut self, value: Option<&Value>) -> BTreeMap<String, SystemValue> {
        let function = self.function;
        let given = value.and_then(Value::as_object).into_iter().flatten().filter(|(_, value)| !value.is_null());
        let names: Vec<&str> = function.parameters.iter().map(|parameter| parameter.name.as_ref()).collect();
        let mut parameters = BTreeMap::new();
        for (name, value) in given {
            let path = format!("parameters.{}", shortened(name));
            let Some(parameter) = function.parameter(name) else {
                self.add(&path, unknown_name(name, &names));
                continue;
            };
            let value: SystemValue = match parameter.parameter_type {
                SystemColumnType::Text => value.as_str().into(),
                SystemColumnType::Boolean => value.as_bool().into(),
                SystemColumnType::Integer => value.as_i64().into(),
                SystemColumnType::Unsigned => value.as_u64().into(),
                SystemColumnType::Float | SystemColumnType::Duration => value.as_f64().into(),
                SystemColumnType::Timestamp => SystemValue::Null,
            };
            match parameter.problem(&value) {
                Some(problem) => self.add(&path, problem),
                None => {
                    parameters.insert(name.clone(), value);
                }
            }
        }
        parameters
    }
}

fn shortened(name: &str) -> &str {
    &name[..name.floor_char_boundary(QUOTED_BYTES_MAX)]
}

/// The operator of a condition.
#[derive(Clone, Copy)]
enum FunctionOperator {
    Comparison(ComparisonOperator),
    /// A pattern with `*` for any characters and `|` between alternatives.
    Pattern {
        is_negated: bool,
    },
}

impl FunctionOperator {
    fn parse(name: &str) -> Option<Self> {
        match name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase().as_str() {
            "match" => Some(Self::Pattern { is_negated: false }),
            "not match" => Some(Self::Pattern { is_negated: true }),
            name => ComparisonOperator::parse(name).filter(|op| COMPARISONS.contains(op)).map(Self::Comparison),
        }
    }

    /// The condition, or what is wrong with `value`. Null meets no condition but that for null.
    fn condition(self, column: &SystemColumn, value: &Value) -> Result<QueryCondition, String> {
        let compared =
            |operator: ComparisonOperator, operand: Operand| QueryCondition::compare(&*column.name, operator, operand);
        match self {
            Self::Pattern { is_negated } => {
                let operator = if is_negated { ComparisonOperator::NotLike } else { ComparisonOperator::Like };
                let patterns = like_patterns(column, value)?.into_iter();
                let alternatives =
                    patterns.map(|like| compared(operator, Operand::One(Parameter::Text(like)))).collect();
                Ok(if is_negated { QueryCondition::And(alternatives) } else { QueryCondition::Or(alternatives) })
            }
            Self::Comparison(ComparisonOperator::Equal) if value.is_null() => {
                Ok(compared(ComparisonOperator::IsNull, Operand::None))
            }
            Self::Comparison(ComparisonOperator::NotEqual) if value.is_null() => {
                Ok(compared(ComparisonOperator::IsNotNull, Operand::None))
            }
            Self::Comparison(_) if value.is_null() => Err("null can only be compared with = and !=".to_owned()),
            Self::Comparison(operator) => {
                check_value(column, value)?;
                Ok(compared(operator, Operand::One(Parameter::from_json_or_reason(value)?)))
            }
        }
    }
}

fn check_value(column: &SystemColumn, value: &Value) -> Result<(), String> {
    let (is_valid, rule) = match column.column_type {
        SystemColumnType::Text => (value.is_string(), "text"),
        SystemColumnType::Boolean => (value.is_boolean(), "true or false"),
        SystemColumnType::Timestamp => (value.is_string(), r#"a time such as "2026-01-31T08:00:00Z""#),
        SystemColumnType::Integer
        | SystemColumnType::Unsigned
        | SystemColumnType::Float
        | SystemColumnType::Duration => (value.is_number(), "a number"),
    };
    let type_name = column.column_type.name();
    if is_valid { Ok(()) } else { Err(format!("must be {rule}, as column {:?} has the type {type_name}", column.name)) }
}

/// The alternatives of a pattern as patterns of LIKE. Blanks around alternatives do not count.
fn like_patterns(column: &SystemColumn, value: &Value) -> Result<Vec<String>, String> {
    if column.column_type != SystemColumnType::Text {
        return Err(format!("only text can match, and column {:?} is {}", column.name, column.column_type.name()));
    }
    let alternatives = value.as_str().unwrap_or_default().split('|').map(str::trim).filter(|part| !part.is_empty());
    let likes: Vec<String> = alternatives.take(ALTERNATIVES_MAX + 1).map(like_pattern).collect();
    match likes.len() {
        0 => Err(r#"must be a pattern such as "post*|*sql""#.to_owned()),
        1..=ALTERNATIVES_MAX => Ok(likes),
        _ => Err(format!("has more than {ALTERNATIVES_MAX} alternatives")),
    }
}

fn like_pattern(alternative: &str) -> String {
    let mut like = String::with_capacity(alternative.len());
    for character in alternative.chars() {
        match character {
            '*' => like.push('%'),
            '%' | '_' | '\\' => like.extend(['\\', character]),
            other => like.push(other),
        }
    }
    like
}
