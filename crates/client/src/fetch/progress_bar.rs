//! A progress bar on the terminal.

use indicatif::{BinaryBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::download_event::{DownloadEvent, DownloadProgress};

/// Maximum number of redraws per second.
const DRAWN_PER_SECOND_MAX: u8 = 10;
const COMPLETE_TEMPLATE: &str = "{bar:24} {binary_bytes} {msg}, {binary_bytes_per_sec}, {eta} left";
/// Template while the result is still being written, so that its size is unknown.
const RUNNING_TEMPLATE: &str = "{bar:24} {binary_bytes} {msg}, {binary_bytes_per_sec}, still growing";

/// A progress bar on standard error. Hidden if that is not a terminal, and removed on drop.
pub struct DownloadProgressBar {
    bar: ProgressBar,
    complete_style: ProgressStyle,
    running_style: ProgressStyle,
}

impl DownloadProgressBar {
    /// Creates a bar; `is_quiet` hides it.
    pub fn new(is_quiet: bool) -> Self {
        let target = match is_quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr_with_hz(DRAWN_PER_SECOND_MAX),
        };
        let style = |template| {
            ProgressStyle::with_template(template)
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("=> ")
        };
        let bar = ProgressBar::with_draw_target(None, target);
        Self { bar, complete_style: style(COMPLETE_TEMPLATE), running_style: style(RUNNING_TEMPLATE) }
    }

    /// Whether the bar is hidden.
    pub fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// Displays a download event.
    pub fn on_event(&self, notice: &DownloadEvent) {
        match notice {
            DownloadEvent::Progressed(download_progress) => self.update_progress(download_progress),
            DownloadEvent::Retrying { .. } | DownloadEvent::BlockDamaged { .. } => self.bar.println(notice.to_string()),
        }
    }

    fn update_progress(&self, download_progress: &DownloadProgress) {
        let (bytes, rows) = (BinaryBytes(download_progress.bytes_known), HumanCount(download_progress.rows));
        self.bar.set_style(if download_progress.is_running {
            self.running_style.clone()
        } else {
            self.complete_style.clone()
        });
        self.bar.set_message(format!("of {bytes}, {rows} rows"));
        self.bar.update(|state| {
            state.set_len(download_progress.bytes_known);
            state.set_pos(download_progress.bytes);
        });
    }
}

impl Drop for DownloadProgressBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
