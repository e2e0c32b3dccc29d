//! The meters of one level by holder, in bounded number.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use sha2::{Digest, Sha256};
use tidegate_core::Owner;
use tokio::time::Instant;

use super::meter::UsageMeter;
use super::usage::{DailyUsage, UsageAmount};

/// The number of meters from which on idle ones are removed.
const SWEEP_THRESHOLD: usize = 1_024;
/// The maximum number of holders with a meter of their own; all others share one meter.
const HOLDERS_MAX: usize = 65_536;
/// The maximum number of holders without a meter whose daily usage is stored.
const EVICTED_MAX: usize = 65_536;
/// The minimum time between two sweeps of a full table.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The id of a holder in the usage file: a part of the hash of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct HolderId(pub(super) [u8; 16]);

/// The holder of a meter.
pub(super) trait Holder: Eq + Hash {
    /// Everything that identifies the holder, as text.
    fn to_key(&self) -> String;
}

impl Holder for Owner {
    fn to_key(&self) -> String {
        self.to_text()
    }
}

impl Holder for String {
    fn to_key(&self) -> String {
        self.clone()
    }
}

/// The holder of a meter of a tool. Only names of registered tools occur, so callers cannot fill the table with others.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum ToolHolder {
    /// All callers of the tool together.
    AllCallers(String),
    /// The callers of one tenant.
    Tenant { tool: String, tenant: String },
    /// One principal.
    Principal { tool: String, owner: Owner },
}

impl Holder for ToolHolder {
    fn to_key(&self) -> String {
        match self {
            Self::AllCallers(tool) => tool.clone(),
            Self::Tenant { tool, tenant } => json!(["tenant", tool, tenant]).to_string(),
            Self::Principal { tool, owner } => json!(["principal", tool, owner]).to_string(),
        }
    }
}

/// The meters of one level.
#[derive(Debug)]
pub(super) struct MeterTable<H> {
    state: Mutex<MeterTableState<H>>,
    /// The meter shared by all holders for which there is no room.
    overflow_meter: Arc<UsageMeter>,
}

#[derive(Debug)]
struct MeterTableState<H> {
    meters: HashMap<H, Arc<UsageMeter>>,
    /// The usage of holders that are not in `meters`.
    evicted: HashMap<HolderId, DailyUsage>,
    /// The number of meters from which on they are swept.
    sweep_from: usize,
    swept_at: Option<Instant>,
}

impl<H: Holder> Default for MeterTable<H> {
    fn default() -> Self {
        let (meters, absent) = (HashMap::new(), HashMap::new());
        let known = MeterTableState { meters, evicted: absent, sweep_from: SWEEP_THRESHOLD, swept_at: None };
        Self { state: Mutex::new(known), overflow_meter: Arc::default() }
    }
}

impl<H: Holder> MeterTable<H> {
    /// The meter of `holder`; `day` is today.
    pub(super) fn get_or_insert(&self, holder: H, day: u64) -> Arc<UsageMeter> {
        let mut known = self.state.lock();
        if let Some(meter) = known.meters.get(&holder) {
            return meter.clone();
        }
        if known.meters.len() >= known.sweep_from {
            known.sweep(day);
        }
        if known.meters.len() >= HOLDERS_MAX {
            return self.overflow_meter.clone();
        }
        let usage = match known.evicted.is_empty() {
            true => DailyUsage::default(),
            false => known.evicted.remove(&HolderId::from_holder(&holder)).unwrap_or_default(),
        };
        let meter = Arc::new(UsageMeter::with_usage(usage));
        known.meters.insert(holder, meter.clone());
        meter
    }

    /// The usage of each holder on `day`.
    pub(super) fn usage_on(&self, day: u64) -> BTreeMap<HolderId, UsageAmount> {
        let known = self.state.lock();
        let present = known.meters.iter().map(|(holder, meter)| (holder, meter.usage_on(day)));
        let present = present.filter(|(_, taken)| *taken != UsageAmount::default());
        let present = present.map(|(holder, taken)| (HolderId::from_holder(holder), taken));
        let absent = known.evicted.iter().map(|(id, usage)| (*id, usage.on_day(day)));
        absent.filter(|(_, taken)| *taken != UsageAmount::default()).chain(present).collect()
    }

    /// Restores the usage of `day`. Must run before the first meter is requested.
    pub(super) fn restore(&self, day: u64, taken: BTreeMap<HolderId, UsageAmount>) {
        let usages = taken.into_iter().map(|(id, taken)| (id, DailyUsage::new(day, taken)));
        self.state.lock().evicted.extend(usages.take(EVICTED_MAX));
    }
}

impl<H: Holder> MeterTableState<H> {
    /// Removes idle meters and stores their usage of `day`, which is today.
    fn sweep(&mut self, day: u64) {
        if self.swept_at.is_some_and(|then| then.elapsed() < SWEEP_INTERVAL) && self.sweep_from >= HOLDERS_MAX {
            return;
        }
        let Self { meters, evicted: absent, .. } = self;
        absent.retain(|_, usage| usage.on_day(day) != UsageAmount::default());
        meters.retain(|holder, meter| {
            // A meter that is referenced elsewhere can be used at any moment. No new reference can arise while the
            // table is locked.
            if Arc::strong_count(meter) > 1 || !meter.is_idle() {
                return true;
            }
            let taken = meter.usage_on(day);
            if taken != UsageAmount::default() {
                if absent.len() >= EVICTED_MAX {
                    return true;
                }
                absent.insert(HolderId::from_holder(holder), DailyUsage::new(day, taken));
            }
            false
        });
        self.sweep_from = (2 * self.meters.len()).clamp(SWEEP_THRESHOLD, HOLDERS_MAX);
        self.swept_at = Some(Instant::now());
    }
}

impl HolderId {
    fn from_holder(holder: &impl Holder) -> Self {
        let hash: [u8; 32] = Sha256::digest(holder.to_key().as_bytes()).into();
        let mut id = [0; 16];
        id.copy_from_slice(&hash[..16]);
        Self(id)
    }
}
