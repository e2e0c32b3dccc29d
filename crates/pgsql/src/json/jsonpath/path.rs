//! The syntax tree of a SQL/JSON path, and its text as PostgreSQL prints it.

use super::super::value::{JsonValue, write_string, write_value};
use crate::pg_regex::PgRegex;

/// A parsed path.
#[derive(Debug)]
pub(super) struct JsonPath {
    /// Arrays are unwrapped, and what is missing is left out; in strict mode both are errors.
    pub(super) is_lax: bool,
    pub(super) path: Path,
}

/// An expression: its start and the accessors after it.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) start: PathStart,
    pub(super) steps: Vec<Accessor>,
}

/// The start of a path.
#[derive(Debug)]
pub(super) enum PathStart {
    Literal(JsonValue),
    /// `$name`.
    Variable(String),
    /// `$`.
    Root,
    /// `@`.
    Current,
    /// `last`, the last place of the array that is subscripted.
    Last,
    Arithmetic(Box<Arithmetic>),
    Sign {
        is_minus: bool,
        operand: Box<Path>,
    },
    Predicate(Box<Predicate>),
}

/// `left + right` and its siblings.
#[derive(Debug)]
pub(super) struct Arithmetic {
    pub(super) operator: ArithmeticOperator,
    pub(super) left: Path,
    pub(super) right: Path,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArithmeticOperator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl ArithmeticOperator {
    pub(super) fn symbol(self) -> char {
        match self {
            Self::Add => '+',
            Self::Subtract => '-',
            Self::Multiply => '*',
            Self::Divide => '/',
            Self::Modulo => '%',
        }
    }
}

/// An accessor.
#[derive(Debug)]
pub(super) enum Accessor {
    /// `.key`
    Key(String),
    /// `.*`
    AnyKey,
    /// `[*]`
    AnyElement,
    /// `[0, 2 to last]`
    Subscripts(Vec<(Path, Option<Path>)>),
    /// `.**{first to last}`; `u32::MAX` is the last level.
    AnyLevel { first: u32, last: u32 },
    /// `? (…)`
    Filter(Predicate),
    /// `.type()`
    Method(Method),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Type,
    Size,
    Abs,
    Floor,
    Ceiling,
    Double,
    KeyValue,
}

impl Method {
    const ALL: [Self; 7] =
        [Self::Type, Self::Size, Self::Abs, Self::Floor, Self::Ceiling, Self::Double, Self::KeyValue];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Size => "size",
            Self::Abs => "abs",
            Self::Floor => "floor",
            Self::Ceiling => "ceiling",
            Self::Double => "double",
            Self::KeyValue => "keyvalue",
        }
    }

    /// Returns the method with this name, ignoring case.
    pub(super) fn find_method(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| name.eq_ignore_ascii_case(method.name()))
    }
}

/// A condition, which is true, false or unknown.
#[derive(Debug)]
pub(super) enum Predicate {
    And(Box<Predicate>, Box<Predicate>),
    Or(Box<Predicate>, Box<Predicate>),
    Not(Box<Predicate>),
    IsUnknown(Box<Predicate>),
    Compare { comparison: Comparison, left: Path, right: Path },
    Exists(Path),
    StartsWith { whole: Path, initial: Path },
    LikeRegex { text: Path, regex: Box<PgRegex>, pattern: String, flags: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Writes a path.
pub(super) fn write(path: &JsonPath) -> String {
    let mut out = String::from(if path.is_lax { "" } else { "strict " });
    write_path(&path.path, true, &mut out);
    out
}

/// How strong operators bind; more is stronger.
const OR: u8 = 0;

const AND: u8 = 1;

const COMPARISON: u8 = 2;

const SUM: u8 = 3;

const PRODUCT: u8 = 4;

const SIGN: u8 = 5;

const OTHER: u8 = 6;

fn path_priority(path: &Path) -> u8 {
    match &path.start {
        PathStart::Arithmetic(arithmetic) => arithmetic_priority(arithmetic.operator),
        PathStart::Sign { .. } if signed_number(path).is_none() => SIGN,
        PathStart::Predicate(predicate) => predicate_priority(predicate),
        _ => OTHER,
    }
}

fn arithmetic_priority(operator: ArithmeticOperator) -> u8 {
    match operator {
        ArithmeticOperator::Add | ArithmeticOperator::Subtract => SUM,
        ArithmeticOperator::Multiply | ArithmeticOperator::Divide | ArithmeticOperator::Modulo => PRODUCT,
    }
}

fn predicate_priority(predicate: &Predicate) -> u8 {
    match predicate {
        Predicate::Or(..) => OR,
        Predicate::And(..) => AND,
        Predicate::Compare { .. } | Predicate::StartsWith { .. } => COMPARISON,
        Predicate::Not(_) | Predicate::IsUnknown(_) | Predicate::Exists(_) | Predicate::LikeRegex { .. } => OTHER,
    }
}

/// Returns the number that a start with signs is; signs before other starts are operators.
fn signed_number(path: &Path) -> Option<String> {
    match &path.start {
        PathStart::Literal(JsonValue::Number(number)) => Some(number.clone()),
        PathStart::Sign { is_minus, operand } if operand.steps.is_empty() => {
            let number = signed_number(operand)?;
            let is_zero = !number.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
            if !is_minus || is_zero {
                return Some(number);
            }
            Some(number.strip_prefix('-').map_or_else(|| format!("-{number}"), str::to_owned))
        }
        _ => None,
    }
}

/// Writes `path`, with parentheses around an operator if `is_operand`.
fn write_path(path: &Path, is_operand: bool, out: &mut String) {
    match (&path.start, signed_number(path)) {
        (_, Some(number)) if path.steps.is_empty() => out.push_str(&number),
        (_, Some(number)) => enclose(true, out, |out| out.push_str(&number)),
        (PathStart::Literal(value), None) => write_value(value, out),
        (PathStart::Variable(name), None) => {
            out.push('$');
            write_string(name, out);
        }
        (PathStart::Root, None) => out.push('$'),
        (PathStart::Current, None) => out.push('@'),
        (PathStart::Last, None) => out.push_str("last"),
        (PathStart::Arithmetic(arithmetic), None) => enclose(is_operand, out, |out| {
            let (priority, symbol) = (arithmetic_priority(arithmetic.operator), arithmetic.operator.symbol());
            write_operand(&arithmetic.left, priority, out);
            out.extend([' ', symbol, ' ']);
            write_operand(&arithmetic.right, priority, out);
        }),
        (PathStart::Sign { is_minus, operand }, None) => enclose(is_operand, out, |out| {
            out.push(if *is_minus { '-' } else { '+' });
            write_operand(operand, SIGN, out);
        }),
        (PathStart::Predicate(predicate), None) => write_predicate(predicate, is_operand, out),
    }
    for step in &path.steps {
        write_step(step, out);
    }
}

fn enclose(is_enclosed: bool, out: &mut String, write: impl FnOnce(&mut String)) {
    out.push_str(if is_enclosed { "(" } else { "" });
    write(out);
    out.push_str(if is_enclosed { ")" } else { "" });
}

fn write_operand(path: &Path, priority: u8, out: &mut String) {
    write_path(path, path_priority(path) <= priority, out);
}

fn write_predicate(predicate: &Predicate, is_operand: bool, out: &mut String) {
    let priority = predicate_priority(predicate);
    match predicate {
        Predicate::Or(left, right) => enclose(is_operand, out, |out| write_both(left, right, (priority, " || "), out)),
        Predicate::And(left, right) => enclose(is_operand, out, |out| write_both(left, right, (priority, " && "), out)),
        Predicate::Not(inner) => {
            out.push('!');
            enclose(true, out, |out| write_predicate(inner, false, out));
        }
        Predicate::IsUnknown(inner) => {
            enclose(true, out, |out| write_predicate(inner, false, out));
            out.push_str(" is unknown");
        }
        Predicate::Compare { comparison, left, right } => enclose(is_operand, out, |out| {
            write_operand(left, priority, out);
            out.push_str(comparison_text(*comparison));
            write_operand(right, priority, out);
        }),
        Predicate::Exists(path) => {
            out.push_str("exists ");
            enclose(true, out, |out| write_path(path, false, out));
        }
        Predicate::StartsWith { whole, initial } => enclose(is_operand, out, |out| {
            write_operand(whole, priority, out);
            out.push_str(" starts with ");
            write_operand(initial, priority, out);
        }),
        Predicate::LikeRegex { text, pattern, flags, .. } => enclose(is_operand, out, |out| {
            write_operand(text, priority, out);
            out.push_str(" like_regex ");
            write_string(pattern, out);
            let flags: String = "ismxq".chars().filter(|flag| flags.contains(*flag)).collect();
            if !flags.is_empty() {
                out.push_str(" flag ");
                write_string(&flags, out);
            }
        }),
    }
}

fn write_both(left: &Predicate, right: &Predicate, (priority, operator): (u8, &str), out: &mut String) {
    write_predicate(left, predicate_priority(left) <= priority, out);
    out.push_str(operator);
    write_predicate(right, predicate_priority(right) <= priority, out);
}

fn comparison_text(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => " == ",
        Comparison::NotEqual => " != ",
        Comparison::Less => " < ",
        Comparison::LessOrEqual => " <= ",
        Comparison::Greater => " > ",
        Comparison::GreaterOrEqual => " >= ",
    }
}

fn write_step(step: &Accessor, out: &mut String) {
    match step {
        Accessor::Key(key) => {
            out.push('.');
            write_string(key, out);
        }
        Accessor::AnyKey => out.push_str(".*"),
        Accessor::AnyElement => out.push_str("[*]"),
        Accessor::Subscripts(positions) => {
            out.push('[');
            for (index, (from, to)) in positions.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write_path(from, false, out);
                if let Some(to) = to {
                    out.push_str(" to ");
                    write_path(to, false, out);
                }
            }
            out.push(']');
        }
        Accessor::AnyLevel { first, last } => {
            let level = |level: u32| if level == u32::MAX { "last".to_owned() } else { level.to_string() };
            out.push_str(".**");
            if first == last {
                out.push_str(&format!("{{{}}}", level(*first)));
            } else if (*first, *last) != (0, u32::MAX) {
                out.push_str(&format!("{{{} to {}}}", level(*first), level(*last)));
            }
        }
        Accessor::Filter(predicate) => {
            out.push('?');
            enclose(true, out, |out| write_predicate(predicate, false, out));
        }
        Accessor::Method(method) => out.push_str(&format!(".{}()", method.name())),
    }
}
