//! `tidegate doctor`: whether a set-up works from end to end, and what to mend if not.

use std::path::Path;
use std::time::SystemTime;

use clap::Args;
use tidegate_auth::IssuerCheck;
use tidegate_core::{Authenticator, CallTarget, Caller};
use tidegate_query::TableStatus;
use tidegate_runtime::{Call, Outcome, ReplyEvent};
use tidegate_transport::tls::{CertificateValidity, ValidityState};
use tokio::net::TcpListener;

use crate::command_error::CommandError;
use crate::config::{CONFIG_FILE_NAME, tls_options, token_options};
use crate::open_node::{OpenNode, ServedSources};
use crate::options::{Audience, GlobalOptions};
use crate::output;
use crate::source::DatabaseSource;
use crate::startup_checks;

/// A certificate that ends sooner should be renewed by now.
const DAYS_MIN: u64 = 30;

/// Check the whole installation and print how to correct each problem
#[derive(Debug, Args)]
pub(crate) struct DoctorCommand {
    /// Folder or file to serve as a database, as in serve [default: the current folder]
    #[arg(value_name = "[NAME=]PATH", value_parser = DatabaseSource::parse)]
    paths: Vec<DatabaseSource>,
}

/// How many checks went how.
#[derive(Default)]
struct DoctorReport {
    lines: Vec<String>,
    wrong: usize,
}

impl DoctorReport {
    fn add_ok(&mut self, subject: impl std::fmt::Display) {
        self.lines.push(format!("ok     {subject}"));
    }

    fn add_hint(&mut self, subject: impl std::fmt::Display) {
        self.lines.push(format!("mind   {subject}"));
    }

    fn add_problem(&mut self, subject: impl std::fmt::Display) {
        self.wrong += 1;
        // What has several lines stays together.
        self.lines.push(format!("WRONG  {}", subject.to_string().replace('\n', "\n       ")));
    }
}

impl DoctorCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let opened = OpenNode::open(ServedSources::Named(&self.paths), options, Audience::CommandLine).await?;
        let mut findings = DoctorReport::default();
        check_configuration(&opened, &mut findings);
        check_databases(&opened, &mut findings).await?;
        check_identity(&opened, &mut findings);
        check_certificates(&opened, &mut findings);
        check_issuer(&opened, &mut findings).await;
        check_call(&opened, &mut findings).await?;
        check_audit(&opened, &mut findings);
        check_address(&opened, &mut findings).await;
        opened.close().await;
        output::print(format_args!("{}\n", findings.lines.join("\n")))?;
        match findings.wrong {
            0 => Ok(()),
            1 => Err(CommandError::Other(anyhow::anyhow!("1 thing is wrong"))),
            count => Err(CommandError::Other(anyhow::anyhow!("{count} things are wrong"))),
        }
    }
}

fn check_configuration(opened: &OpenNode, findings: &mut DoctorReport) {
    if opened.has_file {
        findings.add_ok(format!(
            "configuration {}: {} tools of your own",
            opened.loaded_config.path().display(),
            opened.apply_report.tools
        ));
    } else {
        findings.add_ok(format!(
            "no configuration; {CONFIG_FILE_NAME} would be read from {}",
            opened.loaded_config.folder().display()
        ));
    }
    for warning in &opened.apply_report.warnings {
        findings.add_hint(warning);
    }
}

async fn check_databases(opened: &OpenNode, findings: &mut DoctorReport) -> Result<(), CommandError> {
    let caller = opened.local_caller(None)?;
    let databases = opened.assembly.open_databases();
    if databases.is_empty() {
        findings.add_problem("there are no databases; name a folder, or write one under databases");
    }
    for database in databases {
        match database.catalog(&caller.principal).await {
            Ok(catalog) if catalog.tables.is_empty() => {
                findings.add_hint(format!(
                    "database {} has no tables: {}",
                    database.name(),
                    explain_empty_database(database.kind())
                ));
            }
            Ok(catalog) => {
                findings.add_ok(format!("database {}: {} tables", database.name(), catalog.tables.len()));
                for table in &catalog.tables {
                    if let TableStatus::Unreadable(reason) = &table.status {
                        findings.add_problem(format!(
                            "table {}.{} cannot be read: {reason}",
                            database.name(),
                            table.name
                        ));
                    }
                }
            }
            Err(error) => findings.add_problem(format!("database {} does not answer: {error}", database.name())),
        }
        for note in database.notes().await.unwrap_or_default() {
            findings.add_hint(format!("database {}: {note}", database.name()));
        }
    }
    Ok(())
}

/// Why a database of that kind may have no tables.
fn explain_empty_database(kind: &str) -> &'static str {
    match kind {
        "postgres" => {
            "none that its role may read; tidegate pg role prints what to grant, and schemas may leave some out"
        }
        "sqlite" => "none was made in its files",
        _ => "no CSV, TSV, Parquet, JSON, NDJSON, Arrow, .xlsx or .ods file",
    }
}

fn check_identity(opened: &OpenNode, findings: &mut DoctorReport) {
    let auth = opened.loaded_config.config.auth();
    if !opened.authenticator.enforces_authentication() {
        if startup_checks::check_address(&opened.loaded_config).is_none() {
            findings.add_ok("callers over HTTP need no key; therefore only this machine is listened to");
        }
        return;
    }
    if let Some(path) = &auth.keys {
        let path = opened.loaded_config.resolve(path);
        match tidegate_auth::KeyFile::new(&path).list() {
            Ok(keys) if keys.is_empty() && auth.tokens.is_none() => {
                findings.add_problem("nobody has a key yet: tidegate key add NAME --role ROLE");
            }
            Ok(keys) => findings.add_ok(format!("{} keys in {}", keys.len(), path.display())),
            Err(error) => findings.add_problem(error),
        }
        check_permissions(&path, findings);
    }
    if let Some(tls) = &opened.loaded_config.config.server.tls {
        check_permissions(&opened.loaded_config.resolve(&tls.key), findings);
    }
}

#[cfg(unix)]
fn check_permissions(path: &Path, findings: &mut DoctorReport) {
    use std::os::unix::fs::PermissionsExt as _;
    if std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0) {
        findings.add_hint(format!("others than you may read {}; chmod 600 mends that", path.display()));
    }
}

#[cfg(not(unix))]
fn check_permissions(_path: &Path, _findings: &mut DoctorReport) {}

/// How long the certificates of the server are good. That the key is theirs was asked when the configuration was.
fn check_certificates(opened: &OpenNode, findings: &mut DoctorReport) {
    let Some(options) = tls_options(&opened.loaded_config) else { return };
    let lives = match options.certificate_validity(SystemTime::now()) {
        Ok(lives) => lives,
        Err(error) => return findings.add_problem(error),
    };
    let file = options.certificate.display();
    for (index, CertificateValidity { subject, state }) in lives.into_iter().enumerate() {
        // Clients may know another way to a root than by those that follow the first.
        let is_own = index == 0;
        let description =
            if is_own { format!("certificate {file}") } else { format!("certificate {file}: {subject} in it") };
        match state {
            ValidityState::Valid { ends, days } if days >= DAYS_MIN => {
                if is_own {
                    findings.add_ok(format!("{description} is good until {ends}"));
                }
            }
            ValidityState::Valid { ends, days } => {
                let renewed = "a renewed file counts without a restart";
                findings.add_hint(format!("{description} is good for {days} days more, until {ends}; {renewed}"));
            }
            ValidityState::Expired { ended } if is_own => {
                findings.add_problem(format!("{description} is good no longer, since {ended}: clients refuse it"));
            }
            ValidityState::NotYetValid { begins } if is_own => {
                findings.add_problem(format!(
                    "{description} is not good before {begins}: clients refuse it, or a clock is wrong"
                ));
            }
            ValidityState::Expired { ended: time } | ValidityState::NotYetValid { begins: time } => {
                findings.add_hint(format!("{description} is not good now ({time}): some clients may refuse the chain"));
            }
        }
    }
}

/// Whether tokens can be checked.
async fn check_issuer(opened: &OpenNode, findings: &mut DoctorReport) {
    let Some(options) = token_options(&opened.loaded_config) else { return };
    let issuer = &options.issuer;
    match options.check_issuer().await {
        Ok(IssuerCheck::NotNeeded) => findings.add_ok("signed tokens are checked"),
        Ok(IssuerCheck::Introspects) => findings.add_ok(format!("the issuer {issuer} answers about tokens")),
        Ok(IssuerCheck::RejectsProbe) => findings.add_hint(format!(
            "the issuer {issuer} answers 400 about a text that is no token: if it does so about good ones too, the \
             url or the client of auth.tokens.introspection is wrong, and all tokens are rejected; try a token"
        )),
        Ok(IssuerCheck::Keys { count: 0, .. }) => {
            findings.add_problem(format!("the issuer {issuer} shows no key that can be used: no token is taken"));
        }
        Ok(IssuerCheck::Keys { count, missing_algorithms: without }) => {
            findings.add_ok(format!("the issuer {issuer} shows {count} keys"));
            for algorithm in without {
                findings.add_hint(format!("none of the keys of {issuer} is for {algorithm} (auth.tokens.algorithms)"));
            }
        }
        Err(trouble) => {
            findings.add_problem(format!("the issuer {issuer} cannot be asked, and no new token is taken: {trouble}"))
        }
    }
}

/// A real call, through the one door.
async fn check_call(opened: &OpenNode, findings: &mut DoctorReport) -> Result<(), CommandError> {
    let caller: Caller = opened.local_caller(None)?;
    let registry = opened.node().registry();
    let tools = registry.snapshot().tools(&caller).count();
    if tools == 0 {
        findings.add_problem("the user of this process reaches no tool; look at auth.local and its roles");
        return Ok(());
    }
    let mut reply = match registry.call(Call::new(CallTarget::Tool("list_databases".to_owned()), caller)) {
        Ok(reply) => reply,
        Err(_) => {
            findings.add_ok(format!("{tools} tools"));
            return Ok(());
        }
    };
    while let Some(event) = reply.next().await {
        match event {
            ReplyEvent::End(Outcome::Done(_)) => findings.add_ok(format!("{tools} tools, and a call was answered")),
            ReplyEvent::End(Outcome::Failed(error)) => findings.add_problem(format!("a call failed: {error}")),
            ReplyEvent::Chunk(_) => {}
        }
    }
    Ok(())
}

fn check_audit(opened: &OpenNode, findings: &mut DoctorReport) {
    let loaded = &opened.loaded_config;
    let Some(entry) = &loaded.config.audit else { return };
    match startup_checks::find_audit_problem(loaded) {
        Some(problem) => findings.add_problem(loaded.document.redact(&problem.to_string())),
        None => findings.add_ok(format!("the audit log {} can be written", loaded.resolve(&entry.file).display())),
    }
}

async fn check_address(opened: &OpenNode, findings: &mut DoctorReport) {
    if let Some(problem) = startup_checks::check_address(&opened.loaded_config) {
        return findings.add_problem(opened.loaded_config.document.redact(&problem.to_string()));
    }
    let address = startup_checks::configured_address(&opened.loaded_config);
    match TcpListener::bind(address).await {
        Ok(_) => findings.add_ok(format!("{address} is free to listen on")),
        Err(error) => {
            findings.add_hint(format!("{address} cannot be listened on now ({error}); perhaps a node runs already"))
        }
    }
}
