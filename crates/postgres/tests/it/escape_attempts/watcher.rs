//! One who looks at the whole server before and after each attempt: what outlives the session that made it.

use std::collections::BTreeSet;

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
    /// What `tables` said last, and where the server was then: how far its log of changes, and its transactions.
    last: (String, StateByAspect),
    others: Statement,
    place: Statement,
    alive: Statement,
}

const WAL_POSITION_SQL: &str =
    "SELECT format('%s %s', pg_current_wal_insert_lsn(), pg_snapshot_xmax(pg_current_snapshot()))";

const BACKEND_COUNT_SQL: &str = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1";

/// The maximum number of unread notices, which is enough for the time between two reads.
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

    /// Another watcher with the same notifications.
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
        now.extend(query_state(&self.client, &self.others).await?);
        self.receive_notifications().await?;
        now.insert("notices".to_owned(), self.received.clone());
        self.last.0 = self.wal_position().await?;
        Ok(now)
    }

    async fn wal_position(&self) -> Result<String, Error> {
        Ok(self.client.query_one(&self.place, &[]).await?.get(0))
    }

    /// Notices come in the order in which they were committed, so that those before one's own mark are all there are.
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

/// The statement that returns the state of all tables: of the database's own by a checksum over their rows, of the
/// server's by the place of each row and the transaction that wrote it. Schemas for temporary tables stay once they
/// were made, empty.
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

/// State that is in no table, or that its table does not show: a sequence may advance without a trace in the log.
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
