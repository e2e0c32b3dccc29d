//! Opens an address in the browser of the user.

use std::process::{Command, Stdio};
use std::thread;

/// The program that opens an address with the program that the user has chosen for it.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// Opens the console. The server runs in any case, so a failure is logged only.
pub(crate) fn open_in_browser(console: Option<&str>) {
    let Some(url) = console else {
        tracing::warn!("--open: no address serves the console; server.transports turns it on (console, rest)");
        return;
    };
    let mut command = Command::new(OPENER);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        // The program ends at once, or with the browser. Its end is awaited, so that no defunct process stays.
        Ok(mut child) => drop(thread::spawn(move || child.wait())),
        Err(error) => tracing::warn!("--open: {OPENER} cannot be started ({error}); open {url} in a browser"),
    }
}
