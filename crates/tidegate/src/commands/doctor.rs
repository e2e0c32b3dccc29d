//! `tidegate doctor`: checks an installation from end to end.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use tidegate_auth::IssuerCheck;
use tidegate_core::{Authenticator, CallTarget, Caller, Error, ErrorKind};
use tidegate_query::{Database, DatabaseKind};
use tidegate_runtime::{Call, ReplyPart};
use tidegate_sql::Statement;
use tidegate_transport::tls::{CertificateValidity, TlsOptions, ValidityState};
use tokio::net::TcpListener;

use crate::application::Application;
use crate::command_error::CommandError;
use crate::config::{CONFIG_FILE_NAME, ServerAddress, to_tls_options, token_options};
use crate::database_argument::DatabaseArgument;
use crate::network_nodes;
use crate::options::GlobalOptions;
use crate::output;
use crate::startup_checks;
use crate::table_problems::{column_notes, database_notes, unreadable_tables};

/// A certificate that expires sooner is reported.
const DAYS_MIN: u64 = 30;
/// A larger difference to the clock of a node is reported.
const CLOCK_OFFSET_SECONDS_MAX: i64 = 5;
/// A longer wait for the functions of a PostgreSQL database is reported.
const FIRST_STATEMENT_WAIT_MAX: Duration = Duration::from_millis(300);

/// Check the whole installation and print how to correct each problem
#[derive(Debug, Args)]
pub(crate) struct DoctorCommand {
    /// Folder, file, SQLite file, postgres:// or mysql:// address to serve as a database, as in serve [default: the
    /// current folder]
    #[arg(value_name = "[NAME=]PATH", value_parser = DatabaseArgument::parse)]
    paths: Vec<DatabaseArgument>,
}

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
        self.lines.push(format!("WRONG  {}", subject.to_string().replace('\n', "\n       ")));
    }
}

impl DoctorCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        match print_report(&self.paths, options).await? {
            0 => Ok(()),
            1 => Err(CommandError::Other(anyhow::anyhow!("1 thing is wrong"))),
            count => Err(CommandError::Other(anyhow::anyhow!("{count} things are wrong"))),
        }
    }
}

/// Checks the installation, with the databases of `paths`, and prints the report. Returns the number of things that are wrong.
pub(super) async fn print_report(paths: &[DatabaseArgument], options: &GlobalOptions) -> Result<usize, CommandError> {
    let application = Application::open(Some(paths), options).await?;
    let mut findings = DoctorReport::default();
    check_configuration(&application, &mut findings);
    check_databases(&application, &mut findings).await?;
    check_identity(&application, &mut findings);
    check_certificates(&application, &mut findings);
    check_issuer(&application, &mut findings).await;
    check_call(&application, &mut findings).await?;
    check_audit(&application, &mut findings);
    check_addresses(&application, &mut findings).await;
    application.close().await;
    output::print(format_args!("{}\n", findings.lines.join("\n")))?;
    Ok(findings.wrong)
}

fn check_configuration(application: &Application, findings: &mut DoctorReport) {
    if application.has_file {
        findings.add_ok(format!(
            "configuration {}: {} tools of your own",
            application.loaded_config.path().display(),
            application.apply_report.tools
        ));
    } else {
        findings.add_ok(format!(
            "no configuration; {CONFIG_FILE_NAME} would be read from {}",
            application.loaded_config.folder().display()
        ));
    }
    for warning in &application.apply_report.warnings {
        findings.add_hint(warning);
    }
}

async fn check_databases(application: &Application, findings: &mut DoctorReport) -> Result<(), CommandError> {
    let caller = application.local_caller(None)?;
    let databases = application.applier.open_databases();
    if databases.is_empty() {
        findings.add_problem("there are no databases; name a folder, or write one under databases");
    }
    for database in databases {
        match database.catalog(&caller.principal).await {
            Ok(catalog) if catalog.tables.is_empty() => {
                findings.add_hint(format!(
                    "database {} has no tables: {}",
                    database.name(),
                    database.no_tables_reason()
                ));
            }
            Ok(catalog) => {
                findings.add_ok(format!("database {}: {} tables", database.name(), catalog.tables.len()));
                // The tables of a federated database are checked in their own databases.
                if database.kind() != DatabaseKind::Federated {
                    let unreadable = unreadable_tables(database.name(), &catalog);
                    unreadable.iter().for_each(|problem| findings.add_problem(problem));
                }
            }
            Err(error) if is_refused_by_node(&*database, &error) => findings.add_hint(format!(
                "database {}: the user of this process has no rights at its nodes ({error}); auth.local gives it roles",
                database.name()
            )),
            Err(error) => {
                let reason = error.detail().map_or_else(|| error.to_string(), str::to_owned);
                findings.add_problem(format!("database {} does not answer: {reason}", database.name()));
            }
        }
        check_nodes(&*database, &caller, findings).await;
        if database.kind() == DatabaseKind::Postgres {
            check_first_statement(&*database, &caller, findings).await;
        }
        database_notes(&*database).await.iter().for_each(|note| findings.add_hint(note));
        column_notes(&*database).await.iter().for_each(|note| findings.add_hint(note));
    }
    Ok(())
}

/// Reports how long the first SQL of a role waits: the functions of the database are read before it.
async fn check_first_statement(database: &dyn Database, caller: &Caller, findings: &mut DoctorReport) {
    let started = Instant::now();
    let Ok(statement) = Statement::parse("SELECT 1", database.dialect()) else { return };
    // A database that does not answer was reported.
    if database.plan(&statement, &caller.principal).await.is_err() {
        return;
    }
    let waited = started.elapsed();
    let subject = format!("database {}: the first SQL of a role waits {:.2} s", database.name(), waited.as_secs_f64());
    match waited <= FIRST_STATEMENT_WAIT_MAX {
        true => findings.add_ok(subject),
        false => findings.add_hint(format!(
            "{subject}, until its functions are read; VACUUM ANALYZE of pg_proc, pg_depend and pg_type may help, and \
             dropping extensions that are not used"
        )),
    }
}

/// Whether nodes have no role for the caller. They may have one for the callers of this server.
fn is_refused_by_node(database: &dyn Database, error: &Error) -> bool {
    database.network().is_some() && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Forbidden)
}

/// Checks the nodes of a network, as far as `caller` may use them.
async fn check_nodes(database: &dyn Database, caller: &Caller, findings: &mut DoctorReport) {
    for node in network_nodes::check_nodes(database, &caller.principal).await {
        match &node.check {
            Ok(check) => {
                findings.add_ok(&node);
                let seconds = check.clock_offset_ms / 1_000;
                if seconds.abs() >= CLOCK_OFFSET_SECONDS_MAX {
                    let message = "set both by NTP: a token that names a caller is valid for a minute";
                    findings.add_hint(format!("the clock of the node differs by {seconds} s: {message}"));
                }
            }
            // It may accept the callers of this server all the same.
            Err(error) if error.kind() == ErrorKind::Forbidden => findings.add_hint(&node),
            Err(_) => findings.add_problem(&node),
        }
    }
}

fn check_identity(application: &Application, findings: &mut DoctorReport) {
    let auth = application.loaded_config.config.auth();
    if !application.applier.authenticator.enforces_authentication() {
        if startup_checks::check_addresses(&application.loaded_config).is_empty() {
            findings.add_ok("callers over HTTP need no key; therefore only this machine is listened to");
        }
        return;
    }
    if let Some(path) = &auth.keys {
        let path = application.loaded_config.resolve(path);
        match tidegate_auth::KeyFile::new(&path).list() {
            Ok(keys) if keys.is_empty() && auth.tokens.is_none() => {
                findings.add_problem("nobody has a key yet: tidegate key add NAME --role ROLE");
            }
            Ok(keys) => findings.add_ok(format!("{} keys in {}", keys.len(), path.display())),
            Err(error) => findings.add_problem(error),
        }
        check_permissions(&path, findings);
    }
    for (_, tls) in application.loaded_config.config.server.tls_entries() {
        check_permissions(&application.loaded_config.resolve(&tls.key), findings);
    }
}

fn check_permissions(path: &Path, findings: &mut DoctorReport) {
    if std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0) {
        findings.add_hint(format!("others than you may read {}; chmod 600 mends that", path.display()));
    }
}

/// Checks how long the certificates of the server are valid. The check of the configuration includes their key.
fn check_certificates(application: &Application, findings: &mut DoctorReport) {
    for (_, tls) in application.loaded_config.config.server.tls_entries() {
        check_certificate(&to_tls_options(tls, &application.loaded_config), findings);
    }
}

fn check_certificate(options: &TlsOptions, findings: &mut DoctorReport) {
    let certificates = match options.certificate_validity(SystemTime::now()) {
        Ok(certificates) => certificates,
        Err(error) => return findings.add_problem(error),
    };
    let file = options.certificate.display();
    for (index, CertificateValidity { subject, state }) in certificates.into_iter().enumerate() {
        // Clients may find another path to a root than the certificates after the first.
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

async fn check_issuer(application: &Application, findings: &mut DoctorReport) {
    let Some(options) = token_options(&application.loaded_config) else { return };
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
        Err(error) => {
            findings.add_problem(format!("the issuer {issuer} is unreachable, and new tokens are rejected: {error}"))
        }
    }
}

async fn check_call(application: &Application, findings: &mut DoctorReport) -> Result<(), CommandError> {
    let caller: Caller = application.local_caller(None)?;
    let registry = application.node().registry();
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
    while let Some(part) = reply.next().await {
        match part {
            ReplyPart::End(Ok(_)) => findings.add_ok(format!("{tools} tools, and a call was answered")),
            ReplyPart::End(Err(error)) => findings.add_problem(format!("a call failed: {error}")),
            _ => {}
        }
    }
    Ok(())
}

fn check_audit(application: &Application, findings: &mut DoctorReport) {
    let loaded = &application.loaded_config;
    let Some(entry) = &loaded.config.audit else { return };
    match startup_checks::find_audit_problem(loaded) {
        Some(problem) => findings.add_problem(loaded.document.redact(&problem.to_string())),
        None => findings.add_ok(format!("the audit log {} can be written", loaded.resolve(&entry.file).display())),
    }
}

async fn check_addresses(application: &Application, findings: &mut DoctorReport) {
    let problems = startup_checks::check_addresses(&application.loaded_config);
    for problem in &problems {
        findings.add_problem(application.loaded_config.document.redact(&problem.to_string()));
    }
    if !problems.is_empty() {
        return;
    }
    for ServerAddress { address, transports, .. } in application.loaded_config.config.server.addresses() {
        let enabled = transports.enabled_names();
        match TcpListener::bind(address).await {
            Ok(_) => findings.add_ok(format!("{address} is free to listen on, for {enabled}")),
            Err(error) => {
                findings.add_hint(format!("{address} cannot be listened on now ({error}); perhaps a node runs already"))
            }
        }
    }
}
