//! The functions that statements may call: for the page that lists them, and for the test that runs each of them.

use datafusion::execution::SessionState;

/// What sort of function it is, which says where a statement may call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FunctionKind {
    /// Of the values of one row.
    Scalar,
    /// Of the values of a group.
    Aggregate,
    /// Of a window of rows, with OVER.
    Window,
    /// A table in FROM.
    Table,
}

/// A function that statements over files may call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EngineFunction {
    /// The name by which it is called.
    pub name: String,
    /// What sort of function it is.
    pub kind: FunctionKind,
}

/// The functions of `session`, sorted by name.
pub(crate) fn list_functions(session: &SessionState) -> Vec<EngineFunction> {
    let scalar = session.scalar_functions().keys().map(|name| (name, FunctionKind::Scalar));
    let aggregate = session.aggregate_functions().keys().map(|name| (name, FunctionKind::Aggregate));
    let window = session.window_functions().keys().map(|name| (name, FunctionKind::Window));
    let table = session.table_functions().keys().map(|name| (name, FunctionKind::Table));
    let named = |(name, kind): (&String, FunctionKind)| EngineFunction { name: name.clone(), kind };
    let all = scalar.chain(aggregate).chain(window).chain(table);
    // Names that end in an asterisk are internal: a statement cannot write them.
    let mut functions: Vec<_> = all.filter(|(name, _)| !name.ends_with('*')).map(named).collect();
    functions.sort();
    functions
}
