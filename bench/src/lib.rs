//! What the benchmark programs share.

#[cfg(feature = "data")]
mod ready;

use std::io::Write;

#[cfg(feature = "data")]
pub use ready::{COLUMNS, Ready, batch, schema};

/// Writes `line` to standard output at once; the scripts wait for it.
///
/// # Errors
/// When standard output is closed.
pub fn print_line(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
