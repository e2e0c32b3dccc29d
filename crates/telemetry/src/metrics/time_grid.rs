//! The buckets of time that an answer has one point for.

use super::model::TimeWindow;

const SECOND_NS: u64 = 1_000_000_000;
const DAY_SECONDS: u64 = 86_400;
/// Widths of buckets in seconds between one second and one day; they divide the next larger unit.
const WIDTHS_SECONDS: [u64; 19] =
    [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1_200, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200];

/// Buckets of equal width over a window. They begin at multiples of their width since 1970-01-01 UTC, so that the same
/// bucket has the same value in every request that contains it. The first and the last bucket are cut at the ends of
/// the window: nothing outside of the window is counted.
///
/// A window that does not begin at such a multiple has one bucket more, because the first and the last one are parts. A
/// grid with one point is the window itself, which is not rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeGrid {
    window: TimeWindow,
    origin_ns: i64,
    step_ns: u64,
    len: usize,
}

impl TimeGrid {
    /// The grid with the smallest round width of which `points` are at least as long as the window. `points` is at least
    /// 1, and an empty window has one bucket.
    pub fn new(window: TimeWindow, points: usize) -> Self {
        let length_ns = window.length_ns().max(1);
        if points <= 1 {
            return Self { window, origin_ns: window.after_ns, step_ns: length_ns, len: 1 };
        }
        let shortest_ns = length_ns.div_ceil(points as u64);
        let mut fitting = round_widths_ns().skip_while(|width_ns| *width_ns < shortest_ns);
        let aligned = fitting.find_map(|step_ns| Self::aligned(window, step_ns));
        aligned.unwrap_or(Self { window, origin_ns: window.after_ns, step_ns: length_ns, len: 1 })
    }

    /// `None` if the first bucket would begin before the first nanosecond that can be represented.
    fn aligned(window: TimeWindow, step_ns: u64) -> Option<Self> {
        let step = i128::from(step_ns);
        let origin_ns = i64::try_from(i128::from(window.after_ns).div_euclid(step) * step).ok()?;
        let last_ns = window.before_ns.saturating_sub(1).max(window.after_ns);
        let len = usize::try_from(last_ns.abs_diff(origin_ns) / step_ns).ok()? + 1;
        Some(Self { window, origin_ns, step_ns, len })
    }

    /// The window that the buckets cover.
    pub fn window(&self) -> TimeWindow {
        self.window
    }

    /// The width of a bucket in nanoseconds.
    pub fn step_ns(&self) -> u64 {
        self.step_ns
    }

    /// The start of the first bucket before it is cut at the start of the window.
    pub(super) fn origin_ns(&self) -> i64 {
        self.origin_ns
    }

    /// The number of buckets, at least 1.
    #[allow(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The number of the bucket that contains the time, if the window does.
    pub fn bucket_of(&self, time_ns: i64) -> Option<usize> {
        if !self.window.contains(time_ns) {
            return None;
        }
        usize::try_from(time_ns.abs_diff(self.origin_ns) / self.step_ns).ok()
    }

    /// The part of the window that bucket `index` covers.
    pub fn bucket(&self, index: usize) -> TimeWindow {
        let start = i128::from(self.origin_ns) + index as i128 * i128::from(self.step_ns);
        let end = start + i128::from(self.step_ns);
        let within = |time: i128| {
            let bounded = time.clamp(i128::from(self.window.after_ns), i128::from(self.window.before_ns));
            i64::try_from(bounded).unwrap_or(self.window.after_ns)
        };
        TimeWindow { after_ns: within(start), before_ns: within(end) }
    }

    /// The start of each bucket in nanoseconds.
    pub fn starts_ns(&self) -> impl Iterator<Item = i64> {
        (0..self.len).map(|index| self.bucket(index).after_ns)
    }

    /// The width as text, such as `10s`, `1m` or `250ms`.
    pub fn step_text(&self) -> String {
        format_duration(self.step_ns)
    }
}

/// 1, 2 and 5 times the powers of ten below a second, then the usual widths, then 1, 2 and 5 times powers of ten days.
fn round_widths_ns() -> impl Iterator<Item = u64> {
    let decimals = |unit_ns: u64, digits: u32| {
        (0..digits)
            .flat_map(move |power| [1, 2, 5].map(|digit: u64| (digit * 10_u64.pow(power)).saturating_mul(unit_ns)))
    };
    let seconds = WIDTHS_SECONDS.into_iter().map(|seconds| seconds * SECOND_NS);
    decimals(1, 9).chain(seconds).chain(decimals(DAY_SECONDS * SECOND_NS, 6))
}

/// A duration in its largest unit that divides it: `90s`, `2h`, `1500ms`.
pub(super) fn format_duration(duration_ns: u64) -> String {
    let units = [
        (DAY_SECONDS * SECOND_NS, "d"),
        (3_600 * SECOND_NS, "h"),
        (60 * SECOND_NS, "m"),
        (SECOND_NS, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
    ];
    let unit = units.into_iter().find(|(unit_ns, _)| duration_ns >= *unit_ns && duration_ns.is_multiple_of(*unit_ns));
    let (unit_ns, name) = unit.unwrap_or((1, "ns"));
    format!("{}{name}", duration_ns / unit_ns)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: i64 = 1_000_000_000;

    fn grid(after_s: i64, before_s: i64, points: usize) -> TimeGrid {
        TimeGrid::new(TimeWindow::new(after_s * S, before_s * S), points)
    }

    #[test]
    fn widths_are_round_and_aligned() {
        let hour = grid(3_600, 7_200, 60);
        assert_eq!((hour.step_text(), hour.len()), ("1m".to_owned(), 60));
        // One second later, the first and the last are parts of a minute.
        let shifted = grid(3_601, 7_201, 60);
        assert_eq!((shifted.step_text(), shifted.len()), ("1m".to_owned(), 61));
        assert_eq!(shifted.bucket(0), TimeWindow::new(3_601 * S, 3_660 * S));
        assert_eq!(shifted.bucket(60), TimeWindow::new(7_200 * S, 7_201 * S));
        let halves = grid(3_601, 7_201, 2);
        assert_eq!((halves.step_text(), halves.len()), ("30m".to_owned(), 3));
        assert_eq!(grid(0, 86_400, 1_000).step_text(), "2m");
        assert_eq!(TimeGrid::new(TimeWindow::new(0, 10), 1_000).step_text(), "1ns");
        assert_eq!(grid(0, 400 * 86_400, 100).step_text(), "5d");
    }

    #[test]
    fn one_point_is_the_window_itself() {
        let one = grid(3_601, 7_201, 1);
        assert_eq!(
            (one.len(), one.bucket(0), one.step_text()),
            (1, TimeWindow::new(3_601 * S, 7_201 * S), "1h".to_owned())
        );
        assert_eq!(grid(5, 5, 10).len(), 1);
    }

    proptest! {
        /// Buckets are disjoint, in order, cover the window, are aligned, and at most one more than requested.
        #[test]
        fn buckets_partition_the_window(after in i64::MIN..i64::MAX - 1, length in 1..i64::MAX, points in 1_usize..1_001, at in any::<u64>()) {
            let window = TimeWindow::new(after, after.saturating_add(length));
            let grid = TimeGrid::new(window, points);
            prop_assert!(grid.len() >= 1 && grid.len() <= points + usize::from(points > 1));
            let mut end = window.after_ns;
            for index in 0..grid.len() {
                let bucket = grid.bucket(index);
                prop_assert_eq!(bucket.after_ns, end);
                prop_assert!(bucket.before_ns > bucket.after_ns);
                if index > 0 {
                    prop_assert_eq!(i128::from(bucket.after_ns).rem_euclid(i128::from(grid.step_ns())), 0);
                }
                end = bucket.before_ns;
            }
            prop_assert_eq!(end, window.before_ns);
            let time = i128::from(window.after_ns) + i128::from(at % window.length_ns());
            let time = i64::try_from(time).unwrap();
            let index = grid.bucket_of(time).unwrap();
            prop_assert!(grid.bucket(index).contains(time));
            prop_assert_eq!(grid.bucket_of(window.before_ns), None);
        }
    }
}
