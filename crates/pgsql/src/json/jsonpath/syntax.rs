//! The syntax tree of an SQL/JSON path.

use super::super::value::JsonValue;
use crate::text::PgRegex;

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
