//! `tidegate doctor`: whether a set-up works from end to end, and what to mend if not.

mod proofs;

use std::io::Write as _;
use std::path::Path;

use clap::Args;
use tidegate_core::{Authenticator, Call, Caller, Outcome, ReplyEvent, Target};
use tidegate_query::TableStatus;
use tokio::net::TcpListener;

use crate::auditing;
use crate::config::FILE_NAME;
use crate::failure::Failure;
use crate::opened::{Opened, Sources};
use crate::options::{Audience, Options};
use crate::serving;
use crate::source::Source;

/// Check a set-up from end to end and say what to mend
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Folder or file to serve as a database, as given to serve [default: the current folder]
    #[arg(value_name = "[NAME=]PATH", value_parser = Source::parse)]
    paths: Vec<Source>,
}

/// How many checks went how.
#[derive(Default)]
struct Findings {
    lines: Vec<String>,
    wrong: usize,
}

impl Findings {
    fn good(&mut self, what: impl std::fmt::Display) {
        self.lines.push(format!("ok     {what}"));
    }

    fn hint(&mut self, what: impl std::fmt::Display) {
        self.lines.push(format!("mind   {what}"));
    }

    fn wrong(&mut self, what: impl std::fmt::Display) {
        self.wrong += 1;
        // What has several lines stays together.
        self.lines.push(format!("WRONG  {}", what.to_string().replace('\n', "\n       ")));
    }
}

impl Doctor {
    pub(crate) async fn run(self, options: &Options) -> Result<(), Failure> {
        let opened = Opened::open(Sources::Named(&self.paths), options, Audience::CommandLine).await?;
        let mut findings = Findings::default();
        configuration(&opened, &mut findings);
        databases(&opened, &mut findings).await?;
        identity(&opened, &mut findings);
        proofs::certificates(&opened, &mut findings);
        proofs::issuer(&opened, &mut findings).await;
        a_call(&opened, &mut findings).await?;
        audit(&opened, &mut findings);
        address(&opened, &mut findings).await;
        opened.close().await;
        let mut output = std::io::stdout().lock();
        for line in &findings.lines {
            writeln!(output, "{line}")?;
        }
        output.flush()?;
        match findings.wrong {
            0 => Ok(()),
            1 => Err(Failure::Other(anyhow::anyhow!("1 thing is wrong"))),
            count => Err(Failure::Other(anyhow::anyhow!("{count} things are wrong"))),
        }
    }
}

fn configuration(opened: &Opened, findings: &mut Findings) {
    if opened.has_file {
        findings.good(format!(
            "configuration {}: {} tools of your own",
            opened.loaded.path().display(),
            opened.assembled.tools
        ));
    } else {
        findings.good(format!("no configuration; {FILE_NAME} would be read from {}", opened.loaded.folder().display()));
    }
    for warning in &opened.assembled.warnings {
        findings.hint(warning);
    }
}

async fn databases(opened: &Opened, findings: &mut Findings) -> Result<(), Failure> {
    let caller = opened.local_caller(None)?;
    let databases = opened.assembly.databases_open();
    if databases.is_empty() {
        findings.wrong("there are no databases; name a folder, or write one under databases");
    }
    for database in databases {
        match database.catalog(&caller.principal).await {
            Ok(catalog) if catalog.tables.is_empty() => {
                findings.hint(format!("database {} has no tables: {}", database.name(), emptiness(database.kind())));
            }
            Ok(catalog) => {
                findings.good(format!("database {}: {} tables", database.name(), catalog.tables.len()));
                for table in &catalog.tables {
                    if let TableStatus::Unreadable(reason) = &table.status {
                        findings.wrong(format!("table {}.{} cannot be read: {reason}", database.name(), table.name));
                    }
                }
            }
            Err(error) => findings.wrong(format!("database {} does not answer: {error}", database.name())),
        }
        for note in database.notes().await.unwrap_or_default() {
            findings.hint(format!("database {}: {note}", database.name()));
        }
    }
    Ok(())
}

/// Why a database of that kind may have no tables.
fn emptiness(kind: &str) -> &'static str {
    match kind {
        "postgres" => {
            "none that its role may read; tidegate pg role prints what to grant, and schemas may leave some out"
        }
        "sqlite" => "none was made in its files",
        _ => "no CSV, TSV, Parquet, JSON, NDJSON, Arrow, .xlsx or .ods file",
    }
}

fn identity(opened: &Opened, findings: &mut Findings) {
    let auth = opened.loaded.config.auth();
    if !opened.doorkeeper.is_configured() {
        if serving::refused_address(&opened.loaded).is_none() {
            findings.good("callers over HTTP need no key; therefore only this machine is listened to");
        }
        return;
    }
    if let Some(path) = &auth.keys {
        let path = opened.loaded.resolve(path);
        match tidegate_auth::KeyFile::new(&path).list() {
            Ok(keys) if keys.is_empty() && auth.tokens.is_none() => {
                findings.wrong("nobody has a key yet: tidegate key add NAME --role ROLE");
            }
            Ok(keys) => findings.good(format!("{} keys in {}", keys.len(), path.display())),
            Err(error) => findings.wrong(error),
        }
        others_can_read(&path, findings);
    }
    if let Some(tls) = &opened.loaded.config.server.tls {
        others_can_read(&opened.loaded.resolve(&tls.key), findings);
    }
}

#[cfg(unix)]
fn others_can_read(path: &Path, findings: &mut Findings) {
    use std::os::unix::fs::PermissionsExt as _;
    if std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0) {
        findings.hint(format!("others than you may read {}; chmod 600 mends that", path.display()));
    }
}

#[cfg(not(unix))]
fn others_can_read(_path: &Path, _findings: &mut Findings) {}

/// A real call, through the one door.
async fn a_call(opened: &Opened, findings: &mut Findings) -> Result<(), Failure> {
    let caller: Caller = opened.local_caller(None)?;
    let registry = opened.node().registry();
    let tools = registry.snapshot().tools(&caller).count();
    if tools == 0 {
        findings.wrong("the user of this process reaches no tool; look at auth.local and its roles");
        return Ok(());
    }
    let mut reply = match registry.call(Call::new(Target::Tool("list_databases".to_owned()), caller)) {
        Ok(reply) => reply,
        Err(_) => {
            findings.good(format!("{tools} tools"));
            return Ok(());
        }
    };
    while let Some(event) = reply.next().await {
        match event {
            ReplyEvent::End(Outcome::Done(_)) => findings.good(format!("{tools} tools, and a call was answered")),
            ReplyEvent::End(Outcome::Failed(error)) => findings.wrong(format!("a call failed: {error}")),
            ReplyEvent::Chunk(_) => {}
        }
    }
    Ok(())
}

fn audit(opened: &Opened, findings: &mut Findings) {
    let loaded = &opened.loaded;
    let Some(entry) = &loaded.config.audit else { return };
    match auditing::obstacle(loaded) {
        Some(problem) => findings.wrong(loaded.told(&problem.to_string())),
        None => findings.good(format!("the audit log {} can be written", loaded.resolve(&entry.file).display())),
    }
}

async fn address(opened: &Opened, findings: &mut Findings) {
    if let Some(problem) = serving::refused_address(&opened.loaded) {
        return findings.wrong(opened.loaded.told(&problem.to_string()));
    }
    let address = serving::address(&opened.loaded);
    match TcpListener::bind(address).await {
        Ok(_) => findings.good(format!("{address} is free to listen on")),
        Err(error) => {
            findings.hint(format!("{address} cannot be listened on now ({error}); perhaps a node runs already"))
        }
    }
}
