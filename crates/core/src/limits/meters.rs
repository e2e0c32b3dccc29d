//! All meters of a node, and the questions that its doors ask of them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::allowance::{Allowance, Rate};
use super::charges::Charges;
use super::door::{Admitted, Held, Places};
use super::level::{Level, Measure, Reached};
use super::meter::Meter;
use super::table::Table;
use super::usage::{Calendar, Usage};
use super::usage_file::{self, Written};
use super::{CallLimits, Limits};
use crate::call::{Call, Target};
use crate::caller::Caller;
use crate::owner::Owner;
use crate::principal::Proof;

/// All meters of a node.
#[derive(Debug)]
pub(crate) struct Meters {
    principals: Table<Owner>,
    tenants: Table<String>,
    /// By names that the registry has, so that others cannot fill it.
    tools: Table<String>,
    node: Arc<Meter>,
    calendar: Calendar,
    /// Whether anybody was charged since it was written down.
    has_changed: Arc<AtomicBool>,
}

/// One holder's meter and what it is to be held to.
struct Bounded {
    level: Level,
    meter: Arc<Meter>,
    allowance: Allowance,
}

impl Meters {
    pub(crate) fn new(calendar: Calendar) -> Self {
        Self {
            principals: Table::default(),
            tenants: Table::default(),
            tools: Table::default(),
            node: Arc::default(),
            calendar,
            has_changed: Arc::default(),
        }
    }

    /// Counts a request of `caller`: first among its own, so that whoever asks too often takes nothing from the others.
    pub(crate) fn admit_request(&self, caller: &Caller, limits: &Limits) -> Result<(), Reached> {
        let (principal, tenant) = (of_principal(caller, limits), of_tenant(caller, limits));
        if let Some(rate) = principal.rate {
            admit(&self.principal(caller), rate, Level::Principal)?;
        }
        if let (Some(rate), Some(name)) = (tenant.rate, &caller.principal.tenant) {
            admit(&self.tenant(name), rate, Level::Tenant)?;
        }
        limits.rate.map_or(Ok(()), |rate| admit(&self.node, rate, Level::Node))
    }

    /// Lets `call` in, to an entry with the bounds `entry`: everybody whose bounds hold for it has room for one more call
    /// and something left of the day.
    pub(crate) fn admit_call(&self, call: &Call, entry: &CallLimits, limits: &Limits) -> Result<Admitted, Reached> {
        let bounded = self.bounded(&call.caller, Some((&call.target, entry)), limits);
        let is_on_behalf = call.on_behalf_of.is_some();
        let mut held = Held::default();
        let mut charges = Charges::new(self.calendar.clone(), self.has_changed.clone());
        for Bounded { level, meter, allowance } in &bounded {
            self.has_some_left(*level, meter, allowance)?;
            if let Some(open_max) = allowance.open_calls_max() {
                held.open.push(meter.open(open_max).ok_or_else(|| Reached::calls(*level, open_max))?);
            }
            if !allowance.daily.is_unbounded() {
                // The call on whose behalf this one is made tells no rows of its own, and all else.
                let is_rows_alone = is_on_behalf && *level != Level::Tool;
                charges.add(*level, meter.clone(), allowance.daily, is_rows_alone);
            }
        }
        let tool = bounded.iter().find(|bounded| bounded.level == Level::Tool);
        if let Some((tool, rate)) = tool.and_then(|tool| Some((tool, tool.allowance.rate?))) {
            admit(&tool.meter, rate, Level::Tool)?;
        }
        if !is_on_behalf {
            return Ok(Admitted { places: Some(places(&bounded)), charges, held });
        }
        // It holds places already, and were it to wait for another, those who wait for its places could wait for it.
        if let Some((tool, running_max)) = tool.and_then(|tool| Some((tool, tool.allowance.running_calls_max?))) {
            let place = tool.meter.slots.sized(running_max).try_acquire_owned();
            held.place = Some(place.map_err(|_| Reached::calls(Level::Tool, running_max))?);
        }
        Ok(Admitted { places: None, charges, held })
    }

    /// Lets `caller` in to something that takes a place and is no call.
    pub(crate) fn admit_work(&self, caller: &Caller, limits: &Limits) -> Result<(Places, Held), Reached> {
        let bounded = self.bounded(caller, None, limits);
        let mut held = Held::default();
        for Bounded { level, meter, allowance } in &bounded {
            if let Some(open_max) = allowance.open_calls_max() {
                held.open.push(meter.open(open_max).ok_or_else(|| Reached::calls(*level, open_max))?);
            }
        }
        Ok((places(&bounded), held))
    }

    /// Takes over what was written down in `file`, if that was today.
    ///
    /// # Errors
    /// When there is a file that cannot be read.
    pub(crate) fn restore(&self, file: &Path) -> std::io::Result<()> {
        let Some(written) = usage_file::read(file)? else { return Ok(()) };
        let day = self.calendar.day();
        if written.day == day {
            self.principals.restore(day, written.principals);
            self.tenants.restore(day, written.tenants);
            self.tools.restore(day, written.tools);
            self.node.restore(Usage::new(day, written.node));
        }
        Ok(())
    }

    /// What is to be written down, if anything has changed since this was asked.
    pub(crate) fn to_write(&self) -> Option<Written> {
        let day = self.calendar.day();
        self.has_changed.swap(false, Ordering::Relaxed).then(|| Written {
            day,
            principals: self.principals.taken(day),
            tenants: self.tenants.taken(day),
            tools: self.tools.taken(day),
            node: self.node.taken(day),
        })
    }

    /// Says that what was to be written down was not.
    pub(crate) fn was_not_written(&self) {
        self.has_changed.store(true, Ordering::Relaxed);
    }

    /// Everybody whose bounds hold for `caller`, and for the target that it calls; in the order in which calls wait.
    fn bounded(&self, caller: &Caller, call: Option<(&Target, &CallLimits)>, limits: &Limits) -> Vec<Bounded> {
        let mut bounded = Vec::with_capacity(4);
        let mut add = |level, meter, allowance| bounded.push(Bounded { level, meter, allowance });
        let (principal, tenant) = (of_principal(caller, limits), of_tenant(caller, limits));
        if bounds_calls(&principal) {
            add(Level::Principal, self.principal(caller), principal);
        }
        if let Some(name) = caller.principal.tenant.as_ref().filter(|_| bounds_calls(&tenant)) {
            add(Level::Tenant, self.tenant(name), tenant);
        }
        if let Some((Target::Tool(name), CallLimits { of_all, .. })) = call
            && (bounds_calls(of_all) || of_all.rate.is_some())
        {
            add(Level::Tool, self.tools.of(name.clone(), self.calendar.day()), *of_all);
        }
        // How many of all calls are open is bounded by the list of jobs.
        let running_calls_max = Some(limits.running_calls_max);
        let node = Allowance { running_calls_max, daily: limits.daily, ..Allowance::default() };
        add(Level::Node, self.node.clone(), node);
        bounded
    }

    fn has_some_left(&self, level: Level, meter: &Meter, allowance: &Allowance) -> Result<(), Reached> {
        if allowance.daily.is_unbounded() {
            return Ok(());
        }
        let used_up = meter.taken(self.calendar.day()).uses_up(&allowance.daily);
        used_up.map_or(Ok(()), |(measure, bound)| {
            Err(Reached { level, measure, bound, retry_after: self.calendar.until_tomorrow() })
        })
    }

    fn principal(&self, caller: &Caller) -> Arc<Meter> {
        self.principals.of(Owner::counted(caller), self.calendar.day())
    }

    fn tenant(&self, name: &str) -> Arc<Meter> {
        self.tenants.of(name.to_owned(), self.calendar.day())
    }
}

fn admit(meter: &Meter, rate: Rate, level: Level) -> Result<(), Reached> {
    let bound = rate.burst().get().into();
    meter.rate.admit(rate).map_err(|retry_after| Reached { level, measure: Measure::Requests, bound, retry_after })
}

/// What the principal of `caller` may have. The user of the process, whose node it is, is held to what its roles say alone.
fn of_principal(caller: &Caller, limits: &Limits) -> Allowance {
    let of_roles = caller.principal.grants.limits;
    if caller.principal.proof == Proof::Process { of_roles } else { of_roles.or(limits.of_principal) }
}

/// What the tenant of `caller` may have, if it has one.
fn of_tenant(caller: &Caller, limits: &Limits) -> Allowance {
    let is_bounded = caller.principal.tenant.is_some() && caller.principal.proof != Proof::Process;
    if is_bounded { limits.of_tenant } else { Allowance::default() }
}

fn bounds_calls(allowance: &Allowance) -> bool {
    allowance.running_calls_max.is_some() || !allowance.daily.is_unbounded()
}

fn places(bounded: &[Bounded]) -> Places {
    let lines = bounded.iter().filter_map(|bounded| {
        let running_max = bounded.allowance.running_calls_max?;
        Some(bounded.meter.slots.sized(running_max))
    });
    Places(lines.collect())
}
