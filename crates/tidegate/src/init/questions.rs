//! The questions of `tidegate init`, asked on one stream and answered on another.

use std::borrow::Cow;
use std::io::{self, BufRead, Write};
use std::path::Path;

use super::proposed_database::{ProposedDatabase, path_text, with_unique_names};
use crate::argument_secrets::mask_secrets;
use crate::config::{ServerKind, server_kind_of};
use crate::database_argument::{check_path, is_sqlite};
use crate::mcp_clients::McpClient;

/// The callers that a server is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Programs on this machine, without keys.
    Machine,
    /// Other machines, with keys.
    Network,
}

/// What the new configuration contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InitAnswers {
    pub(crate) sources: Vec<ProposedDatabase>,
    pub(crate) audience: Audience,
    pub(crate) allows_sql: bool,
    pub(crate) clients: Vec<McpClient>,
}

/// What is known before the questions. A flag answers its question.
#[derive(Debug, Clone, Default)]
pub(crate) struct InitProposal {
    pub(crate) found: Vec<ProposedDatabase>,
    pub(crate) sources: Option<Vec<ProposedDatabase>>,
    pub(crate) audience: Option<Audience>,
    pub(crate) allows_sql: Option<bool>,
    pub(crate) found_clients: Vec<McpClient>,
    pub(crate) clients: Option<Vec<McpClient>>,
}

/// Asks what the flags leave open. `None` if the input ends.
///
/// # Errors
/// If the streams cannot be read or written.
pub(crate) fn ask_questions(
    proposal: InitProposal,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> io::Result<Option<InitAnswers>> {
    let InitProposal { found, sources, audience, allows_sql, found_clients, clients } = proposal;
    let mut questions = Questions { input, output };
    let Some(sources) = questions.answer_or(sources, |it| it.sources(&found))? else { return Ok(None) };
    let Some(audience) = questions.answer_or(audience, Questions::audience)? else { return Ok(None) };
    let Some(allows_sql) =
        questions.answer_or(allows_sql, |it| it.confirm("May callers write SQL of their own?", true))?
    else {
        return Ok(None);
    };
    let Some(clients) = questions.answer_or(clients, |it| it.clients(&found_clients))? else { return Ok(None) };
    Ok(Some(InitAnswers { sources: with_unique_names(sources), audience, allows_sql, clients }))
}

struct Questions<'a, I, O> {
    input: &'a mut I,
    output: &'a mut O,
}

impl<I: BufRead, O: Write> Questions<'_, I, O> {
    fn answer_or<T>(
        &mut self,
        known: Option<T>,
        ask: impl FnOnce(&mut Self) -> io::Result<Option<T>>,
    ) -> io::Result<Option<T>> {
        if known.is_some() { Ok(known) } else { ask(self) }
    }

    /// The answer without blanks around it; `None` at the end of the input.
    fn ask(&mut self, question: &str) -> io::Result<Option<String>> {
        write!(self.output, "{question} ")?;
        self.output.flush()?;
        let mut line = String::new();
        if self.input.read_line(&mut line)? == 0 {
            writeln!(self.output)?;
            return Ok(None);
        }
        Ok(Some(line.trim().to_owned()))
    }

    fn confirm(&mut self, question: &str, default: bool) -> io::Result<Option<bool>> {
        let choices = if default { "[Y/n]" } else { "[y/N]" };
        loop {
            let Some(answer) = self.ask(&format!("{question} {choices}"))? else { return Ok(None) };
            match answer.to_ascii_lowercase().as_str() {
                "" => return Ok(Some(default)),
                "y" | "yes" => return Ok(Some(true)),
                "n" | "no" => return Ok(Some(false)),
                _ => writeln!(self.output, "{answer:?} is neither y nor n")?,
            }
        }
    }

    fn sources(&mut self, found: &[ProposedDatabase]) -> io::Result<Option<Vec<ProposedDatabase>>> {
        let question = if found.is_empty() {
            writeln!(self.output, "No data was found here.")?;
            "What is to be served? A folder, a file, or a postgres:// address:"
        } else {
            writeln!(self.output, "Found:")?;
            for (index, source) in found.iter().enumerate() {
                let (name, location) = (&source.name, source.values.join(", "));
                writeln!(self.output, "  {}. {name}: {location} ({})", index + 1, source.description)?;
            }
            "What is to be served? Numbers, paths or addresses with commas between them [all of these]:"
        };
        loop {
            let Some(answer) = self.ask(question)? else { return Ok(None) };
            if answer.is_empty() && !found.is_empty() {
                return Ok(Some(found.to_vec()));
            }
            match parse_sources(&answer, found) {
                Ok(sources) => return Ok(Some(sources)),
                Err(problem) => writeln!(self.output, "{problem}")?,
            }
        }
    }

    fn audience(&mut self) -> io::Result<Option<Audience>> {
        let question = "Who uses the server? 1: programs on this machine. 2: other machines, with keys [1]:";
        loop {
            let Some(answer) = self.ask(question)? else { return Ok(None) };
            match answer.as_str() {
                "" | "1" => return Ok(Some(Audience::Machine)),
                "2" => return Ok(Some(Audience::Network)),
                _ => writeln!(self.output, "{answer:?} is neither 1 nor 2")?,
            }
        }
    }

    fn clients(&mut self, found: &[McpClient]) -> io::Result<Option<Vec<McpClient>>> {
        if found.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let titles: Vec<&str> = found.iter().map(|client| client.title()).collect();
        let question = format!("Add the server to the configuration of {}?", titles.join(", "));
        Ok(self.confirm(&question, false)?.map(|added| if added { found.to_vec() } else { Vec::new() }))
    }
}

/// The sources of an answer such as `1,3,./data`.
fn parse_sources(answer: &str, found: &[ProposedDatabase]) -> Result<Vec<ProposedDatabase>, String> {
    let parts = answer.split(',').map(str::trim).filter(|part| !part.is_empty());
    let sources: Vec<ProposedDatabase> = parts
        .map(|part| match part.parse::<usize>() {
            Ok(number) => found
                .get(number.wrapping_sub(1))
                .cloned()
                .ok_or_else(|| format!("there is no number {number}; the last one is {}", found.len())),
            Err(_) => parse_source(part),
        })
        .collect::<Result<_, _>>()?;
    if sources.is_empty() { Err("at least one is needed".to_owned()) } else { Ok(sources) }
}

/// A path that exists, or a connection string without a password.
pub(crate) fn parse_source(text: &str) -> Result<ProposedDatabase, String> {
    if let Some(server) = server_kind_of(text) {
        return parse_address(server, text);
    }
    check_path(text)?;
    let path = Path::new(text);
    if !path.exists() {
        return Err(format!("{text} does not exist"));
    }
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = if whole.is_dir() { whole.file_name() } else { whole.file_stem() };
    let name = name.unwrap_or_default().to_string_lossy();
    Ok(if is_sqlite(path) {
        ProposedDatabase::new(&name, "sqlite", vec![path_text(path)], "SQLite")
    } else {
        ProposedDatabase::new(&name, "files", vec![path_text(path)], "files")
    })
}

fn parse_address(server: &ServerKind, text: &str) -> Result<ProposedDatabase, String> {
    if matches!(mask_secrets(text), Cow::Owned(_)) {
        let advice = server.password_advice;
        return Err(format!("the address contains a password, which would stand in the file. {advice}"));
    }
    let name = (server.database)(text).map_err(|error| format!("{}: {error}", server.key))?;
    Ok(ProposedDatabase::on_server(server, &name, text.to_owned(), ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(found: &[&str], lines: &str) -> (String, Option<InitAnswers>) {
        let source = |name: &&str| ProposedDatabase::new(name, "files", vec![format!("./{name}")], "1 file");
        let proposal = InitProposal {
            found: found.iter().map(source).collect(),
            found_clients: vec![McpClient::Cursor, McpClient::VsCode],
            ..InitProposal::default()
        };
        let mut printed = Vec::new();
        let answers = ask_questions(proposal, &mut lines.as_bytes(), &mut printed).unwrap();
        (String::from_utf8(printed).unwrap(), answers)
    }

    #[test]
    fn empty_answers_take_the_proposals() {
        let (printed, answers) = check(&["a", "b"], "\n\n\n\n");
        let answers = answers.unwrap();
        assert_eq!(answers.sources.len(), 2);
        assert_eq!((answers.audience, answers.allows_sql), (Audience::Machine, true));
        assert_eq!(answers.clients, [], "no file outside of the folder changes without a yes");
        assert!(printed.contains("  2. b: ./b (1 file)\n"), "{printed}");
    }

    #[test]
    fn invalid_answers_repeat_the_question() {
        let (printed, answers) = check(&["a", "b"], "3\nnowhere\n2\n3\n2\nmaybe\nn\ny\n");
        let answers = answers.unwrap();
        assert_eq!(answers.sources.iter().map(|source| source.name.as_str()).collect::<Vec<_>>(), ["b"]);
        assert_eq!((answers.audience, answers.allows_sql), (Audience::Network, false));
        assert_eq!(answers.clients, [McpClient::Cursor, McpClient::VsCode]);
        for text in ["there is no number 3; the last one is 2", "nowhere does not exist", "neither 1 nor 2"] {
            assert!(printed.contains(text), "{text} is missing in {printed}");
        }
    }

    #[test]
    fn end_of_input_cancels() {
        assert_eq!(check(&["a"], "\n1\n").1, None);
        assert_eq!(check(&[], "\n").1, None, "nothing found and nothing named");
    }

    #[test]
    fn passwords_are_refused() {
        for text in [
            "postgres://ann:secret@db/shop",
            "postgres://db/shop?password=secret",
            "host=db dbname=shop password=secret",
            "postgresql+asyncpg://ann:secret@db/shop",
        ] {
            assert!(parse_source(text).unwrap_err().contains("DATABASE_URL"), "{text}");
        }
        assert!(!parse_source("mysql://ann:secret@db/shop").unwrap_err().contains("secret"));
        assert_eq!(parse_source("postgres://ann@db:5433/shop?sslmode=require").unwrap().name, "shop");
        assert_eq!(parse_source("host=db dbname=shop user=ann").unwrap().name, "shop");
    }
}
