//! The list of jobs: those that run or wait, and the last ended ones.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_core::{Caller, tenant_share};
use uuid::Uuid;

use super::Job;
use super::status::{JobId, JobStatus};

/// All open jobs and a bounded number of ended jobs.
#[derive(Debug)]
pub struct Jobs {
    ended_max: usize,
    table: Mutex<JobTable>,
}

#[derive(Debug, Default)]
struct JobTable {
    open: HashMap<JobId, Arc<Job>>,
    ended: VecDeque<JobStatus>,
}

impl Jobs {
    pub(crate) fn new(ended_max: usize) -> Self {
        Self { ended_max, table: Mutex::default() }
    }

    /// Adds `job`. Returns false if `open_max` jobs are open already.
    pub(crate) fn open(&self, job: Arc<Job>, open_max: usize) -> bool {
        let mut table = self.table.lock();
        if table.open.len() >= open_max {
            return false;
        }
        table.open.insert(job.id(), job);
        true
    }

    pub(crate) fn close(&self, job: &Job) {
        let status = job.status();
        let mut table = self.table.lock();
        table.open.remove(&job.id());
        if self.ended_max == 0 {
            return;
        }
        if table.ended.len() >= self.ended_max {
            let index = table.index_to_evict(&status, self.ended_max);
            table.ended.remove(index);
        }
        table.ended.push_back(status);
    }

    /// The number of jobs that run or wait.
    pub fn open_count(&self) -> usize {
        self.table.lock().open.len()
    }

    /// The number of jobs of the caller's tenant that run or wait; of all callers without a tenant if it has none, and
    /// of all callers for the user of the process.
    pub fn open_count_for(&self, caller: &Caller) -> usize {
        let table = self.table.lock();
        table.open.values().filter(|job| caller.shares_tenant_with(job.caller())).count()
    }

    /// The jobs of `caller`, newest first. A caller with the access `operator` gets all jobs of its tenant.
    pub fn list(&self, caller: &Caller) -> Vec<JobStatus> {
        let mut jobs: Vec<JobStatus> = {
            let table = self.table.lock();
            let open = table.open.values().map(|job| job.status());
            open.chain(table.ended.iter().cloned()).filter(|job| caller.can_see_activity_of(&job.caller)).collect()
        };
        jobs.sort_by_key(|job| std::cmp::Reverse((job.started, job.started_at)));
        jobs
    }

    /// The job `id`, if `caller` can see it: an open job, or one of the last ended jobs.
    pub fn get(&self, id: &str, caller: &Caller) -> Option<JobStatus> {
        let id = JobId(Uuid::try_parse(id.trim()).ok()?);
        let table = self.table.lock();
        let open = table.open.get(&id).map(|job| job.status());
        let status = open.or_else(|| table.ended.iter().find(|job| job.id == id).cloned());
        status.filter(|job| caller.can_see_activity_of(&job.caller))
    }

    /// Cancels an open job that `caller` can see. Returns false if there is none with that id.
    pub fn cancel(&self, id: JobId, caller: &Caller) -> bool {
        let job = self.table.lock().open.get(&id).filter(|job| caller.can_see_activity_of(job.caller())).cloned();
        job.inspect(|job| job.cancel()).is_some()
    }

    /// Cancels every open job.
    pub fn cancel_all(&self) {
        for job in self.table.lock().open.values() {
            job.cancel();
        }
    }
}

impl JobTable {
    /// The ended job to evict: the oldest one, of the same tenant if that tenant has used its share of `ended_max`.
    fn index_to_evict(&self, job: &JobStatus, ended_max: usize) -> usize {
        let tenant = &job.caller.principal.tenant;
        let is_same_tenant = |job: &&JobStatus| tenant.is_some() && job.caller.principal.tenant == *tenant;
        if self.ended.iter().filter(is_same_tenant).count() < tenant_share(ended_max) {
            return 0;
        }
        self.ended.iter().position(|job| is_same_tenant(&job)).unwrap_or_default()
    }
}
