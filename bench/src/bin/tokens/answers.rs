//! The three answers: rows as an order system has them, a wide table of measurements, and rows that are mostly text.
//! They are the same at each run.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::error::ArrowError;

/// 1 January 2026 in UTC, in microseconds.
const START: i64 = 1_767_225_600_000_000;
const SECOND: i64 = 1_000_000;

/// The answers with their titles.
///
/// # Errors
/// Never: columns have the same length.
pub(super) fn all() -> Result<[(&'static str, RecordBatch); 3], ArrowError> {
    Ok([
        ("100 rows of 9 columns: orders", orders(100)?),
        ("25 rows of 60 columns: measurements", measurements(25, 60)?),
        ("25 rows of 4 columns, one a text of 600 characters: tickets", tickets(25)?),
    ])
}

fn orders(rows: usize) -> Result<RecordBatch, ArrowError> {
    const CUSTOMERS: [&str; 8] = [
        "Miller & Sons",
        "Café Aurora",
        "Nordic Supply AB",
        "Hill Street Hardware",
        "Tanaka Trading",
        "Okafor, Ltd.",
        "Green Valley Farms",
        "Lumen \"Light\" Studio",
    ];
    const STATUSES: [&str; 4] = ["paid", "shipped", "pending", "refunded"];
    const NOTES: [Option<&str>; 5] =
        [None, Some("leave at the back door"), None, Some("gift wrap, no invoice in the parcel"), None];
    let mut dice = Dice(1);
    let mut draw = |below: usize| (0..rows).map(|_| dice.below(below)).collect::<Vec<usize>>();
    let cents = draw(90_000).into_iter().map(|cents| 500 + cents as i128);
    let seconds = draw(90 * 86_400).into_iter().map(|seconds| START + seconds as i64 * SECOND);
    let skus = draw(9_000).into_iter().map(|number| format!("SKU-{:04}", 1_000 + number));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("order_id", Arc::new(Int64Array::from_iter_values(100_000..100_000 + rows as i64))),
        ("customer", texts(&draw(8), &CUSTOMERS.map(Some))),
        ("sku", Arc::new(StringArray::from_iter_values(skus))),
        ("quantity", Arc::new(Int64Array::from_iter_values(draw(12).into_iter().map(|number| 1 + number as i64)))),
        ("total", Arc::new(Decimal128Array::from_iter_values(cents).with_precision_and_scale(10, 2)?)),
        ("status", texts(&draw(4), &STATUSES.map(Some))),
        ("is_business", Arc::new(BooleanArray::from_iter(draw(2).into_iter().map(|number| Some(number == 1))))),
        ("ordered_at", Arc::new(TimestampMicrosecondArray::from_iter_values(seconds).with_timezone("UTC"))),
        ("note", texts(&draw(5), &NOTES)),
    ];
    RecordBatch::try_from_iter(columns)
}

fn measurements(rows: usize, columns: usize) -> Result<RecordBatch, ArrowError> {
    const KINDS: [&str; 5] = ["temperature", "pressure", "flow_rate", "vibration", "voltage"];
    let mut dice = Dice(2);
    let measured = |column: usize| -> (String, ArrayRef) {
        let name = format!("{}_{}", KINDS[column % KINDS.len()], 1 + column / KINDS.len());
        let values = (0..rows).map(|_| {
            let value = dice.below(100_000);
            // One in a dozen is missing.
            (!value.is_multiple_of(12)).then_some(value as f64 / 100.0)
        });
        (name, Arc::new(Float64Array::from_iter(values)))
    };
    let station = Int64Array::from_iter_values((0..rows).map(|row| 1 + row as i64));
    let first: (String, ArrayRef) = ("station".to_owned(), Arc::new(station));
    RecordBatch::try_from_iter(std::iter::once(first).chain((0..columns - 1).map(measured)))
}

fn tickets(rows: usize) -> Result<RecordBatch, ArrowError> {
    const SUBJECTS: [&str; 5] = [
        "Export stops after the first page",
        "Cannot sign in since Tuesday",
        "Wrong currency on the invoice",
        "Feature request: dark mode",
        "The report shows last year's numbers",
    ];
    const SENTENCES: [&str; 12] = [
        "Since the last update the page stays empty after I press the button.",
        "My colleague sees the message \"access denied\", although she has the same role as I do.",
        "We tried another browser, cleared the cache and waited a day; nothing changed.",
        "The invoice of March, number 2026-0317, shows dollars instead of euros.",
        "Could you please tell us when this will be mended?",
        "I attach two pictures, one of the screen and one of the log.",
        "It works with small files, but anything beyond 20 MB ends with an error after a minute or so.",
        "On my phone the same account shows the right numbers.",
        "Our accountant needs the figures by Friday, so it is rather urgent.",
        "The documentation says that the setting is under Preferences > Exports, but there is no such entry.",
        "Thank you for the quick reply last time, that was much appreciated!",
        "If it helps: we are in the region eu-west, and the tenant is called \"harbour\".",
    ];
    let mut dice = Dice(3);
    let subjects: Vec<usize> = (0..rows).map(|_| dice.below(SUBJECTS.len())).collect();
    let mut text = |_: usize| {
        let mut text = String::from("Hello,\n");
        let mut next = dice.below(SENTENCES.len());
        while text.len() < 550 {
            text.push_str(SENTENCES[next]);
            text.push_str(if dice.below(4) == 0 { "\n\n" } else { " " });
            next = (next + 1 + dice.below(4)) % SENTENCES.len();
        }
        text.trim_end().to_owned()
    };
    let texts_of_all: Vec<String> = (0..rows).map(&mut text).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("ticket", Arc::new(Int64Array::from_iter_values((0..rows).map(|row| 40_000 + row as i64)))),
        ("subject", texts(&subjects, &SUBJECTS.map(Some))),
        ("priority", Arc::new(Int64Array::from_iter_values(subjects.iter().map(|subject| 1 + *subject as i64)))),
        ("text", Arc::new(StringArray::from_iter_values(texts_of_all))),
    ];
    RecordBatch::try_from_iter(columns)
}

fn texts(chosen: &[usize], choices: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from_iter(chosen.iter().map(|index| choices[*index])))
}

/// Numbers that look random and are the same at each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}
