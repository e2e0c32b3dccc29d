//! Reads the state of the whole server before and after each attempt: changes that outlive the session of the attempt.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client, Error, NoTls, Statement};

use super::state_diff::{StateByAspect, query_state};

pub(crate) struct ServerMonitor {
    client: Client,
    /// The server's process for it.
    pub(crate) process: i32,
    /// Major version of the server.
    pub(crate) version: u32,
    /// The notifications on the channel that the corpus uses.
    notices: mpsc::Receiver<String>,
    received: BTreeSet<String>,
    marks: u32,
    tables: Statement,
    /// The position of the write-ahead log and of the transactions at the last read, and the result of `tables` then.
    last: (String, StateByAspect),
    others: Statement,
    place: Statement,
    alive: Statement,
}

const WAL_POSITION_SQL: &str =
    "SELECT format('%s %s', pg_current_wal_insert_lsn(), pg_snapshot_xmax(pg_current_snapshot()))";

const BACKEND_COUNT_SQL: &str = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1";

/// The maximum number of unread notifications. There are never more between two reads.
const NOTICES_MAX: usize = 1024;

impl ServerMonitor {
    pub(crate) async fn new(superuser: &str) -> Self {
        let (client, mut connection) = tokio_postgres::connect(superuser, NoTls).await.unwrap();
        let (sender, notices) = mpsc::channel(NOTICES_MAX);
        tokio::spawn(async move {
            while let Some(Ok(message)) = std::future::poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notification(notice) = message {
                    let _ = sender.try_send(notice.payload().to_owned());
                }
            }
        });
        client.batch_execute("LISTEN evil").await.unwrap();
        let own = "SELECT pg_backend_pid(), current_setting('server_version_num')::integer / 10000";
        let own = client.query_one(own, &[]).await.unwrap();
        Self {
            process: own.get(0),
            version: own.get::<_, i32>(1).unsigned_abs(),
            notices,
            received: BTreeSet::new(),
            marks: 0,
            tables: client.prepare(&tables_sql(&client).await).await.unwrap(),
            last: (String::new(), StateByAspect::new()),
            others: client.prepare(SERVER_STATE_SQL).await.unwrap(),
            place: client.prepare(WAL_POSITION_SQL).await.unwrap(),
            alive: client.prepare(BACKEND_COUNT_SQL).await.unwrap(),
            client,
        }
    }

    /// A monitor on a new connection, with the notifications of this one.
    pub(crate) async fn reconnect(&self, superuser: &str) -> Self {
        Self { received: self.received.clone(), marks: self.marks, ..Self::new(superuser).await }
    }

    /// Whether an attempt ended its session.
    pub(crate) fn is_disconnected(&self) -> bool {
        self.client.is_closed()
    }

    pub(crate) async fn state(&mut self, process: Option<i32>) -> Result<StateByAspect, Error> {
        while process.is_some() && self.client.query_one(&self.alive, &[&process]).await?.get::<_, i64>(0) > 0 {
            tokio::task::yield_now().await;
        }
        // No row changes without a transaction number or a record in the log. That spares most of the work.
        if self.wal_position().await? != self.last.0 {
            self.last.1 = query_state(&self.client, &self.tables).await?;
        }
        let mut now = self.last.1.clone();
        now.extend(self.server_state().await?);
        self.receive_notifications().await?;
        now.insert("notices".to_owned(), self.received.clone());
        self.last.0 = self.wal_position().await?;
        Ok(now)
    }

    /// The engine reads the catalog in the background, and holds locks meanwhile. What it keeps for longer remains.
    async fn server_state(&self) -> Result<StateByAspect, Error> {
        let engines = self.client.query(ENGINE_PROCESSES_SQL, &[]).await?;
        let engines: Vec<String> = engines.iter().map(|row| format!(" of {}", row.get::<_, i32>(0))).collect();
        let mut tries = 0;
        loop {
            let state = query_state(&self.client, &self.others).await?;
            let mut locks = state.get(REMAINING_LOCKS).into_iter().flatten();
            let is_reading = locks.any(|lock| engines.iter().any(|engine| lock.ends_with(engine)));
            if !is_reading || tries == LOOKUP_POLLS_MAX {
                return Ok(state);
            }
            tries += 1;
            tokio::time::sleep(LOOKUP_POLL).await;
        }
    }

    async fn wal_position(&self) -> Result<String, Error> {
        Ok(self.client.query_one(&self.place, &[]).await?.get(0))
    }

    /// Notifications arrive in the order in which they were committed, so all earlier ones precede the mark.
    async fn receive_notifications(&mut self) -> Result<(), Error> {
        self.marks += 1;
        let mark = format!("mark {}", self.marks);
        self.client.batch_execute(&format!("NOTIFY evil, '{mark}'")).await?;
        while let Some(notice) = self.notices.recv().await.filter(|notice| *notice != mark) {
            self.received.insert(format!("{} {notice}", self.marks));
        }
        Ok(())
    }
}

/// The statement that reads the state of all tables. Tables of the database have a checksum over their rows; those of
/// the server have the position of each row and the transaction that wrote it. Empty schemas for temporary tables stay.
async fn tables_sql(watcher: &Client) -> String {
    let tables = "
        SELECT oid::regclass::text, relnamespace <> 'pg_catalog'::regnamespace, relisshared FROM pg_class
        WHERE relkind = 'r' AND relnamespace NOT IN ('pg_toast'::regnamespace, 'information_schema'::regnamespace)
            AND oid::regclass::text NOT IN ('pg_statistic', 'pg_namespace')";
    let mut parts = vec![
        "SELECT 'definitions', format('pg_namespace: %s, %s', nspname, xmin) FROM pg_namespace \
         WHERE nspname !~ '^pg_(toast_)?temp_'"
            .to_owned(),
    ];
    for row in watcher.query(tables, &[]).await.unwrap() {
        let (name, is_user, is_shared): (String, bool, bool) = (row.get(0), row.get(1), row.get(2));
        let text = name.replace('\'', "''");
        let aspect = match &*name {
            _ if is_user => "rows",
            _ if is_shared => "roles and databases",
            "pg_largeobject" | "pg_largeobject_metadata" => "large objects",
            _ => "definitions",
        };
        let line = if is_user { "t::text" } else { "ctid::text || xmin::text" };
        parts.push(format!(
            "SELECT '{aspect}', format('{text}: %s rows, %s', count(*), coalesce(sum(hashtextextended({line}, 0)), 0)) \
             FROM {name} AS t"
        ));
    }
    parts.join(" UNION ALL ")
}

const REMAINING_LOCKS: &str = "locks that remain";
const ENGINE_PROCESSES_SQL: &str = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'tidegate/%'";
const LOOKUP_POLL: Duration = Duration::from_millis(20);
const LOOKUP_POLLS_MAX: u32 = 250;

/// State that is in no table or that a table does not show: a sequence may advance without a record in the log.
const SERVER_STATE_SQL: &str = "
    SELECT 'sequences', format('ticket: %s, %s', last_value, is_called) FROM ticket
    UNION ALL SELECT 'files', format('%s, %s', folder, name)
        FROM unnest(ARRAY['.', 'base', 'pg_replslot', 'pg_tblspc']) AS folder, pg_ls_dir(folder) AS name
    UNION ALL SELECT 'files', format('%s, %s, %s', name, (pg_stat_file(name)).size, (pg_stat_file(name)).modification)
        FROM unnest(ARRAY['postgresql.conf', 'postgresql.auto.conf', 'pg_hba.conf', 'pg_ident.conf']) AS name
    UNION ALL SELECT 'log of changes', pg_walfile_name(pg_current_wal_insert_lsn())
    UNION ALL SELECT 'log of changes', format('slot %s', slot_name) FROM pg_replication_slots
    UNION ALL SELECT 'log of changes', format('prepared %s', gid) FROM pg_prepared_xacts
    UNION ALL SELECT 'statistics', format('reset %s', stats_reset) FROM pg_stat_database
        WHERE datname = current_database()
    UNION ALL SELECT 'locks that remain', format('%s %s of %s', locktype, mode, pid) FROM pg_locks
        WHERE pid <> pg_backend_pid() AND locktype <> 'virtualxid'";
