//! The progress of an upload at a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tidegate_core::escape_control_characters;

const DRAWN_PER_SECOND_MAX: u8 = 10;
const TEMPLATE: &str = "{bar:24} {binary_bytes} of {binary_total_bytes} {msg}, {binary_bytes_per_sec}, {eta} left";

/// A progress bar on standard error. Hidden if that is not a terminal, and removed on drop.
#[derive(Debug, Clone)]
pub struct UploadProgressBar(ProgressBar);

impl UploadProgressBar {
    /// A bar for `bytes` bytes of a file; `is_quiet` hides it.
    pub fn new(file: &str, bytes: u64, is_quiet: bool) -> Self {
        let target = match is_quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr_with_hz(DRAWN_PER_SECOND_MAX),
        };
        let style = ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(bytes), target).with_style(style.progress_chars("=> "));
        bar.set_message(escape_control_characters(file).into_owned());
        Self(bar)
    }

    /// Whether the bar is hidden.
    pub fn is_hidden(&self) -> bool {
        self.0.is_hidden()
    }

    /// Displays that the file was read up to `position`.
    pub fn set_position(&self, position: u64) {
        self.0.set_position(position);
    }

    /// Prints a line above the bar.
    pub fn println(&self, line: &str) {
        self.0.println(escape_control_characters(line));
    }

    /// Removes the bar.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}
