//! A sample stream for the demo: readings of three weather stations that arrive while the server runs.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use tidegate_core::Error;
use tidegate_query::{TableWrite, WriteMode, WriteRequest, WriteStart, WriteTarget};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

pub(super) const DATABASE: &str = "live";
const TABLE: &str = "readings";
/// The airports of the flights, so that the readings can be joined with them.
const STATIONS: [&str; 3] = ["EWR", "JFK", "LGA"];
const PAUSE: Duration = Duration::from_secs(1);
/// A temperature in °C, and how far it rises and falls around it.
const MEAN_TEMPERATURE: f64 = 12.0;
const TEMPERATURE_SWING: f64 = 6.0;
/// The seconds in which temperatures rise and fall once, so that somebody who looks sees it.
const PERIOD_SECONDS: f64 = 600.0;

/// Writes a reading of each station per second, until `ended` fires.
pub(super) async fn send(target: Arc<dyn WriteTarget>, ended: CancellationToken) {
    let mut ticks = tokio::time::interval(PAUSE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while ended.run_until_cancelled(ticks.tick()).await.is_some() {
        if let Err(error) = write(target.as_ref()).await {
            tracing::warn!("the sample stream has lost a reading: {error}");
        }
    }
}

async fn write(target: &dyn WriteTarget) -> Result<(), Error> {
    let rows = readings(SystemTime::now()).map_err(|error| Error::internal(error.to_string()))?;
    let tables = vec![TableWrite { table: TABLE.to_owned(), schema: rows.schema() }];
    let request = WriteRequest { tables, mode: WriteMode::Append, key: None };
    if let WriteStart::Writer(mut writer) = target.begin(request).await? {
        writer.write(0, rows).await?;
        writer.commit().await?;
    }
    Ok(())
}

/// A reading of each station at `time`.
fn readings(time: SystemTime) -> Result<RecordBatch, arrow::error::ArrowError> {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let phase = since_epoch.as_secs_f64() * std::f64::consts::TAU / PERIOD_SECONDS;
    let temperatures =
        (0..STATIONS.len()).map(|station| MEAN_TEMPERATURE + TEMPERATURE_SWING * (phase + station as f64).sin());
    let microseconds = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
    let times = TimestampMicrosecondArray::from(vec![microseconds; STATIONS.len()]).with_timezone("UTC");
    let schema = Schema::new(vec![
        Field::new("time", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
        Field::new("station", DataType::Utf8, true),
        Field::new("temperature", DataType::Float64, true),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(times),
        Arc::new(StringArray::from_iter_values(STATIONS)),
        Arc::new(Float64Array::from_iter_values(temperatures)),
    ];
    RecordBatch::try_new(Arc::new(schema), columns)
}
