//! Whether the login of a database on a server can do more than read.

use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind};
use tidegate_runtime::{CacheAges, LoadingCache};

use crate::database::RoleFinding;

/// The findings about the login of a database. They are loaded again while the database is used.
pub struct LoginCheck {
    database: Arc<str>,
    login: &'static str,
    is_strict: bool,
    findings: LoadingCache<(), Vec<RoleFinding>>,
    /// Those that the owner knows.
    reported: Mutex<Arc<Vec<RoleFinding>>>,
}

impl LoginCheck {
    /// A check of the `login` of `database`, as messages call it. With `is_strict`, findings close the database.
    pub fn new(database: Arc<str>, login: &'static str, is_strict: bool, ages: CacheAges) -> Self {
        Self { database, login, is_strict, findings: LoadingCache::new(ages), reported: Mutex::default() }
    }

    /// The findings that the owner does not know yet, for the log. If the check is not strict, no call waits for them.
    ///
    /// # Errors
    /// `Unavailable` if the check is strict and there are findings; the error of `load` if it waited for that.
    pub async fn check<F>(&self, load: impl FnOnce() -> F) -> Result<Vec<RoleFinding>, Error>
    where
        F: Future<Output = Result<Vec<RoleFinding>, Error>> + Send + 'static,
    {
        if !self.is_strict {
            let findings = self.findings.peek(&(), load);
            return Ok(findings.map_or_else(Vec::new, |findings| self.take_unreported(findings)));
        }
        if self.findings.get(&(), load).await?.is_empty() {
            return Ok(Vec::new());
        }
        let message = format!("the database {} is closed: its {} can do more than read", self.database, self.login);
        Err(Error::new(ErrorKind::Unavailable, message)
            .with_hint("The owner of the node finds the reasons in its log and with tidegate doctor."))
    }

    /// All findings, for the owner, who knows them then.
    ///
    /// # Errors
    /// The error of `load`.
    pub async fn findings_for_owner<F>(&self, load: impl FnOnce() -> F) -> Result<Arc<Vec<RoleFinding>>, Error>
    where
        F: Future<Output = Result<Vec<RoleFinding>, Error>> + Send + 'static,
    {
        let findings = self.findings.get(&(), load).await?;
        *self.reported.lock() = findings.clone();
        Ok(findings)
    }

    fn take_unreported(&self, findings: Arc<Vec<RoleFinding>>) -> Vec<RoleFinding> {
        let mut reported = self.reported.lock();
        if Arc::ptr_eq(&reported, &findings) {
            return Vec::new();
        }
        let unreported = findings.iter().filter(|finding| !reported.contains(finding)).cloned().collect();
        *reported = findings;
        unreported
    }
}
