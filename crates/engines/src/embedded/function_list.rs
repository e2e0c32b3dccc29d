//! The functions that statements may call, for the reference page and for the test that runs each of them.

use datafusion::execution::SessionState;

/// The kind of a function, which determines where a statement may call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FunctionKind {
    /// Computed from the values of one row.
    Scalar,
    /// Computed from the values of a group.
    Aggregate,
    /// Computed over a window of rows, with OVER.
    Window,
    /// Returns a table, in FROM.
    Table,
}

/// A function that statements over files may call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EngineFunction {
    /// The name of the function.
    pub name: String,
    /// The kind of the function.
    pub kind: FunctionKind,
}

/// Lists the functions of `session`, sorted by name.
pub(crate) fn list_functions(session: &SessionState) -> Vec<EngineFunction> {
    let scalar = session.scalar_functions().keys().map(|name| (name, FunctionKind::Scalar));
    let aggregate = session.aggregate_functions().keys().map(|name| (name, FunctionKind::Aggregate));
    let window = session.window_functions().keys().map(|name| (name, FunctionKind::Window));
    let table = session.table_functions().keys().map(|name| (name, FunctionKind::Table));
    let named = |(name, kind): (&String, FunctionKind)| EngineFunction { name: name.clone(), kind };
    let all = scalar.chain(aggregate).chain(window).chain(table);
    // Names that end in an asterisk are internal: no statement can contain them.
    let mut functions: Vec<_> = all.filter(|(name, _)| !name.ends_with('*')).map(named).collect();
    functions.sort();
    functions
}
