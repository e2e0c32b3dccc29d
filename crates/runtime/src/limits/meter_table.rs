//! The meters of one level, in bounded number.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use tidegate_core::CallerIdentity;
use tokio::time::Instant;
use uuid::Uuid;

use super::meter::UsageMeter;
use super::usage::{DailyUsage, UsageAmount};

/// The number of meters from which on idle ones are removed.
const SWEEP_THRESHOLD: usize = 1_024;
/// The maximum number of keys with a meter of their own; all others share one meter.
const METERS_MAX: usize = 65_536;
/// The maximum number of keys without a meter whose daily usage is stored.
const EVICTED_MAX: usize = 65_536;
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// What one meter measures. Tools are registered ones, so callers cannot fill the table with other names.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum MeterKey {
    Principal(CallerIdentity),
    Tenant(String),
    /// All callers of a tool together.
    Tool(String),
    ToolTenant {
        tool: String,
        tenant: String,
    },
    ToolPrincipal {
        tool: String,
        owner: CallerIdentity,
    },
}

/// A key in the usage file. It is hashed, so that the file does not reveal the callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct MeterKeyHash(#[serde(with = "uuid::serde::simple")] Uuid);

impl MeterKey {
    fn hash(&self) -> MeterKeyHash {
        let text = match self {
            Self::Principal(owner) => owner.to_text(),
            Self::Tenant(name) | Self::Tool(name) => name.clone(),
            Self::ToolTenant { tool, tenant } => json!(["tenant", tool, tenant]).to_string(),
            Self::ToolPrincipal { tool, owner } => json!(["principal", tool, owner]).to_string(),
        };
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&Sha256::digest(text)[..16]);
        MeterKeyHash(Uuid::from_bytes(bytes))
    }
}

#[derive(Debug, Default)]
pub(super) struct MeterTable {
    state: Mutex<MeterTableState>,
    overflow_meter: Arc<UsageMeter>,
}

#[derive(Debug, Default)]
struct MeterTableState {
    meters: HashMap<MeterKey, Arc<UsageMeter>>,
    /// The usage of keys that are not in `meters`.
    evicted: HashMap<MeterKeyHash, DailyUsage>,
    /// The number of meters from which on they are swept again.
    sweep_from: usize,
    swept_at: Option<Instant>,
}

impl MeterTable {
    /// The meter of `key`; `day` is today.
    pub(super) fn get_or_insert(&self, key: MeterKey, day: u64) -> Arc<UsageMeter> {
        let mut state = self.state.lock();
        if let Some(meter) = state.meters.get(&key) {
            return meter.clone();
        }
        if state.meters.len() >= state.sweep_from.max(SWEEP_THRESHOLD) {
            state.sweep(day);
        }
        if state.meters.len() >= METERS_MAX {
            return self.overflow_meter.clone();
        }
        let usage = match state.evicted.is_empty() {
            true => DailyUsage::default(),
            false => state.evicted.remove(&key.hash()).unwrap_or_default(),
        };
        let meter = Arc::new(UsageMeter::with_usage(usage));
        state.meters.insert(key, meter.clone());
        meter
    }

    pub(super) fn usage_on(&self, day: u64) -> BTreeMap<MeterKeyHash, UsageAmount> {
        let state = self.state.lock();
        let metered = state.meters.iter().map(|(key, meter)| (key, meter.usage_on(day)));
        let metered = metered.filter(|(_, amount)| *amount != UsageAmount::default());
        let metered = metered.map(|(key, amount)| (key.hash(), amount));
        let evicted = state.evicted.iter().map(|(hash, usage)| (*hash, usage.on_day(day)));
        evicted.filter(|(_, amount)| *amount != UsageAmount::default()).chain(metered).collect()
    }

    /// Restores the usage of `day`. Must run before the first meter is requested.
    pub(super) fn restore(&self, day: u64, amounts: BTreeMap<MeterKeyHash, UsageAmount>) {
        let usages = amounts.into_iter().map(|(hash, amount)| (hash, DailyUsage::new(day, amount)));
        self.state.lock().evicted.extend(usages.take(EVICTED_MAX));
    }
}

impl MeterTableState {
    /// Removes idle meters and stores their usage of `day`, which is today.
    fn sweep(&mut self, day: u64) {
        if self.swept_at.is_some_and(|then| then.elapsed() < SWEEP_INTERVAL) && self.sweep_from >= METERS_MAX {
            return;
        }
        let Self { meters, evicted, .. } = self;
        evicted.retain(|_, usage| usage.on_day(day) != UsageAmount::default());
        meters.retain(|key, meter| {
            // A meter that is referenced elsewhere can be used at any time. No new reference can arise while the table
            // is locked.
            if Arc::strong_count(meter) > 1 || !meter.is_idle() {
                return true;
            }
            let amount = meter.usage_on(day);
            if amount != UsageAmount::default() {
                if evicted.len() >= EVICTED_MAX {
                    return true;
                }
                evicted.insert(key.hash(), DailyUsage::new(day, amount));
            }
            false
        });
        self.sweep_from = (2 * self.meters.len()).clamp(SWEEP_THRESHOLD, METERS_MAX);
        self.swept_at = Some(Instant::now());
    }
}
