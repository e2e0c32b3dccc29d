//! All meters of a node, and the questions that its doors ask of them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::allowance::{Allowance, Daily, Rate};
use super::charges::Charges;
use super::door::{Admitted, Held, Line, Places};
use super::level::{Level, Measure, Reached};
use super::meter::Meter;
use super::table::{OfTool, Table};
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
    tools: Table<OfTool>,
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
    /// Whether its calls take turns with those of others, rather than having places of their own.
    takes_turns: bool,
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
        for Bounded { level, meter, allowance, .. } in &bounded {
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
        for Bounded { meter, allowance, .. } in bounded.iter().filter(|bounded| bounded.level == Level::Tool) {
            allowance.rate.map_or(Ok(()), |rate| admit(meter, rate, Level::Tool))?;
        }
        if !is_on_behalf {
            return Ok(Admitted { places: Some(places(&bounded)), charges, held });
        }
        // It holds places already, and were it to wait for another, those who wait for its places could wait for it.
        let tool = bounded.iter().find(|bounded| bounded.level == Level::Tool && !bounded.takes_turns);
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
        for Bounded { level, meter, allowance, .. } in &bounded {
            if let Some(open_max) = allowance.open_calls_max() {
                held.open.push(meter.open(open_max).ok_or_else(|| Reached::calls(*level, open_max))?);
            }
        }
        // It is in no list of jobs, which bounds calls.
        let open_max = limits.open_calls_max;
        held.open.push(self.node.open(open_max).ok_or_else(|| Reached::calls(Level::Node, open_max))?);
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
        let mut bounded = Vec::with_capacity(6);
        let mut add = |level, meter, allowance| bounded.push(Bounded { level, meter, allowance, takes_turns: false });
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
            bounded.extend(self.of_tool(name, caller, *of_all));
        }
        // How many of all calls are open is bounded by the list of jobs.
        let running_calls_max = Some(limits.running_calls_max);
        let allowance = Allowance { running_calls_max, daily: limits.daily, ..Allowance::default() };
        bounded.push(Bounded { level: Level::Node, meter: self.node.clone(), allowance, takes_turns: false });
        bounded
    }

    /// Whose bounds hold for `caller` of the tool `name`, whose callers together may have `of_all`. How many of its calls run
    /// is bounded for everybody together, who take turns; its rate and its day are each tenant's own.
    fn of_tool(&self, name: &str, caller: &Caller, of_all: Allowance) -> Vec<Bounded> {
        let tool = name.to_owned();
        let is_known = caller.principal.proof != Proof::Process;
        let tenant = caller.principal.tenant.clone().filter(|_| is_known);
        let bounded = |level, holder, allowance, takes_turns| {
            let meter = self.tools.of(holder, self.calendar.day());
            Bounded { level, meter, allowance, takes_turns }
        };
        let takes_turns = of_all.running_calls_max.is_some();
        let quota = Allowance { rate: of_all.rate, daily: of_all.daily, ..Allowance::default() };
        // Nobody fills the line by itself.
        let waiting_calls_max = of_all.waiting_calls_max.map(|waiting| waiting.div_ceil(2));
        let turns =
            Allowance { waiting_calls_max, running_calls_max: of_all.running_calls_max, ..Allowance::default() };
        let mut all = Vec::with_capacity(3);
        if takes_turns && is_known {
            let owner = Owner::counted(caller);
            all.push(bounded(Level::Tool, OfTool::Principal { tool: tool.clone(), owner }, turns, true));
        }
        let of_everybody = match tenant {
            None => of_all,
            Some(tenant) => {
                let holder = OfTool::Tenant { tool: tool.clone(), tenant };
                all.push(bounded(Level::Tool, holder, turns.or(quota), takes_turns));
                Allowance { rate: None, daily: Daily::default(), ..of_all }
            }
        };
        all.push(bounded(Level::Tool, OfTool::All(tool), of_everybody, false));
        all
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
    let lines = bounded.iter().filter_map(|bounded| match bounded.takes_turns {
        true => Some(Line::Turn(bounded.meter.slots.sized(1))),
        false => Some(Line::Place(bounded.meter.slots.sized(bounded.allowance.running_calls_max?))),
    });
    Places(lines.collect())
}
