//! How far a download is, as a bar on a terminal.

use indicatif::{BinaryBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::notice::{Notice, Standing};

/// Times a second that the bar is drawn at most.
const DRAWN_PER_SECOND_MAX: u8 = 10;
const TEMPLATE: &str = "{bar:24} {binary_bytes} {msg}, {binary_bytes_per_sec}, {eta} left";
/// Of a result that is still being written nobody knows the end.
const RUNNING: &str = "{bar:24} {binary_bytes} {msg}, {binary_bytes_per_sec}, still growing";

/// A bar on standard error, and nothing where that is no terminal. Gone when it is dropped.
pub struct Bar {
    bar: ProgressBar,
    ended: ProgressStyle,
    running: ProgressStyle,
}

impl Bar {
    /// A bar that has not begun; `is_quiet` keeps it hidden.
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
        Self { bar, ended: style(TEMPLATE), running: style(RUNNING) }
    }

    /// Whether nobody sees it.
    pub fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// Shows what `notice` tells.
    pub fn hear(&self, notice: &Notice) {
        match notice {
            Notice::Moved(standing) => self.moved(standing),
            Notice::Waiting { .. } | Notice::Damaged { .. } => self.bar.println(notice.to_string()),
        }
    }

    fn moved(&self, standing: &Standing) {
        let (bytes, rows) = (BinaryBytes(standing.bytes_known), HumanCount(standing.rows));
        self.bar.set_style(if standing.is_running { self.running.clone() } else { self.ended.clone() });
        self.bar.set_message(format!("of {bytes}, {rows} rows"));
        self.bar.update(|state| {
            state.set_len(standing.bytes_known);
            state.set_pos(standing.bytes);
        });
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
