//! Round widths of the bars of a histogram over time.

/// The maximum number of bars of a histogram.
pub const BARS_MAX: usize = 1_000;

const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;
/// The first Monday after the beginning of 1970, where weeks begin.
const MONDAY: i64 = 4 * DAY;

/// The widths of a second and more.
const LONG_WIDTHS: [i64; 23] = [
    SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    WEEK,
    2 * WEEK,
    5 * WEEK,
    10 * WEEK,
    20 * WEEK,
    50 * WEEK,
    100 * WEEK,
    200 * WEEK,
];

/// Widths of which each divides the next one, and one of which divides each round width that is longer.
pub(super) const CELL_WIDTHS: [i64; 17] = [
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    SECOND,
    5 * SECOND,
    MINUTE,
    5 * MINUTE,
    HOUR,
    DAY,
    WEEK,
    10 * WEEK,
];

/// Units of which each divides the next one, and each of which divides all round widths that are longer than one of its
/// multiples.
const COUNTING_UNITS: [i64; 13] =
    [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, SECOND, MINUTE, HOUR, DAY];

/// The width of the bars of a histogram over time. Bars begin at multiples of it since 1970 in UTC, and weeks on Monday.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BarWidth(i64);

impl BarWidth {
    /// One nanosecond.
    pub const SHORTEST: Self = Self(1);

    /// The width of cells that is at `index` in [`CELL_WIDTHS`].
    pub(super) fn from_cell(index: usize) -> Option<Self> {
        CELL_WIDTHS.get(index).copied().map(Self)
    }

    /// The largest round width that gives at least `bars` bars from the time `first` to the time `last`, both included,
    /// but never more than [`BARS_MAX`]. Times are nanoseconds UTC.
    pub fn choose(first: i64, last: i64, bars: usize) -> Self {
        let bars = bars.clamp(1, BARS_MAX) as u64;
        let mut chosen = Self::SHORTEST;
        for width in round_widths().map(Self) {
            let count = width.bar_count(first, last);
            let is_needed = chosen.bar_count(first, last) > BARS_MAX as u64;
            if count < bars && !is_needed {
                break;
            }
            chosen = width;
        }
        chosen
    }

    /// The width in nanoseconds.
    pub fn nanos(self) -> i64 {
        self.0
    }

    /// A unit of time that is never in two bars of this width, or of a longer one. Databases count rows in it.
    pub fn counting_unit(self) -> i64 {
        COUNTING_UNITS.into_iter().rev().find(|unit| self.0 % unit == 0).unwrap_or(1)
    }

    /// The number of the bar that contains the time in nanoseconds UTC.
    pub fn index(self, time: i64) -> i64 {
        // Not below the origin of weeks minus 2^63.
        let shifted = i128::from(time) - i128::from(self.origin());
        i64::try_from(shifted.div_euclid(i128::from(self.0))).unwrap_or(i64::MIN)
    }

    /// The start of the bar `index`. The first one may begin before the first time that 64 bits can express.
    pub fn start(self, index: i64) -> i64 {
        index.saturating_mul(self.0).saturating_add(self.origin())
    }

    fn bar_count(self, first: i64, last: i64) -> u64 {
        self.index(last).abs_diff(self.index(first)) + 1
    }

    fn origin(self) -> i64 {
        if self.0 % WEEK == 0 { MONDAY } else { 0 }
    }
}

/// All widths, shortest first.
fn round_widths() -> impl Iterator<Item = i64> {
    let powers = (0..9).map(|exponent| 10i64.pow(exponent));
    powers.flat_map(|power| [power, 2 * power, 5 * power]).chain(LONG_WIDTHS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn widths_are_the_largest_that_give_enough_bars() {
        let width = |span, bars| BarWidth::choose(0, span - 1, bars).nanos();
        assert_eq!(width(HOUR, 60), MINUTE);
        assert_eq!(width(HOUR, 61), 30 * SECOND);
        assert_eq!(width(DAY, 150), 5 * MINUTE);
        assert_eq!(width(30 * DAY, 30), DAY);
        assert_eq!(width(SECOND, 100), 10_000_000);
        assert_eq!(width(1, 100), 1);
        // One hour has 720 bars of 5 s and 3,600 of 1 s.
        assert_eq!(width(HOUR, 1_000), 5 * SECOND);
    }

    #[test]
    fn weeks_begin_on_monday() {
        let week = BarWidth(WEEK);
        // 2026-03-02 is a Monday.
        let monday = 1_772_409_600 * SECOND;
        assert_eq!(week.start(week.index(monday)), monday);
        assert_eq!(week.index(monday - 1), week.index(monday) - 1);
    }

    #[test]
    fn cells_divide_each_other_and_the_widths() {
        assert!(CELL_WIDTHS.windows(2).all(|pair| pair[1] % pair[0] == 0));
        assert!(round_widths().zip(round_widths().skip(1)).all(|(width, next)| width < next));
        for width in round_widths() {
            for cell in CELL_WIDTHS.iter().filter(|cell| 12 * **cell < width) {
                assert_eq!(width % cell, 0, "{width} {cell}");
            }
        }
    }

    #[test]
    fn counting_units_divide_longer_widths_too() {
        for (index, width) in round_widths().enumerate() {
            let unit = BarWidth(width).counting_unit();
            assert!(round_widths().skip(index).all(|longer| longer % unit == 0), "{width} {unit}");
            assert!(width / unit <= 1_400, "{width} {unit}");
            // A week begins at the begin of a day.
            assert_eq!(BarWidth(width).origin() % unit, 0);
        }
    }

    proptest! {
        #[test]
        fn there_are_never_too_many_bars(first in any::<i64>(), span in any::<i64>(), bars in 0usize..2_000) {
            let last = first.saturating_add(span.saturating_abs());
            let width = BarWidth::choose(first, last, bars);
            prop_assert!(width.bar_count(first, last) <= BARS_MAX as u64);
            prop_assert!(width.start(width.index(first)) <= first || width.index(first) == i64::MIN);
        }
    }
}
