//! Which functions of the database itself the SQL of a caller may call: IMMUTABLE and STABLE ones that run with the
//! rights of the caller, and those that the configuration allows.
//!
//! The catalog lists every way to reach another function: by its name, as a field of a row, by an operator, by a cast,
//! by the check of a domain. A statement that mentions one is refused, whichever overload it would call: the catalog is
//! compared with the names in the statement, and not with the types of its expressions.
//!
//! The catalog is read with plain queries, one for each of its tables, and joined here. One statement that did it all had
//! an estimated cost for which a server compiles hundreds of functions (`jit`), in seconds.

mod catalog;
mod mentions;

use std::collections::HashMap;

use tidegate_core::{Error, ErrorKind};
use tidegate_sql::{CalledName, Mentions, Statement};
use tokio_postgres::Client;

use catalog::FunctionCatalog;

/// The maximum number of restrictions of a database.
const RESTRICTIONS_MAX: usize = 50_000;

/// The mentions that are refused in statements of callers, by name.
#[derive(Debug)]
pub(crate) struct FunctionRestrictions {
    by_name: HashMap<String, Vec<Restriction>>,
    /// Whether there are more than can be checked.
    is_too_large: bool,
}

/// Restrictions of one name are ordered: the first one that applies is reported.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Restriction {
    mention: MentionKind,
    function: String,
    reason: Reason,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum MentionKind {
    Call {
        schema: String,
        scope: CallScope,
    },
    /// It needs a cast to this type, or any explicit cast.
    CastSource(String),
    CastTarget,
    Field,
    Operator,
    Word,
}

/// Which calls without a schema mean the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CallScope {
    All,
    /// None: they mean the function of the server with the same name and arguments.
    Qualified,
    /// Without quotes, the name is a keyword.
    Quoted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    CallsOther,
    Definer,
    Volatile,
}

impl FunctionRestrictions {
    /// Reads the restrictions of the current role; `allowed` are functions, each with or without its schema. `client` is in
    /// a transaction that sees one state of the catalog.
    pub(crate) async fn load(client: &Client, allowed: &[String]) -> Result<Self, tokio_postgres::Error> {
        let mut catalog = FunctionCatalog::read(client, allowed).await?;
        if catalog.needs_types() {
            catalog.read_types(client).await?;
        }
        let mut by_name: HashMap<String, Vec<Restriction>> = HashMap::new();
        let restrictions = mentions::restrictions(&catalog);
        let is_too_large = catalog.is_cut_off || restrictions.len() > RESTRICTIONS_MAX;
        for (name, restriction) in restrictions {
            by_name.entry(name.to_lowercase()).or_default().push(restriction);
        }
        Ok(Self { by_name, is_too_large })
    }

    /// Refuses `statement` if it mentions a restricted function.
    pub(crate) fn check(&self, statement: &Statement) -> Result<(), Error> {
        if self.is_too_large {
            let message = format!("the database has more than {RESTRICTIONS_MAX} functions that SQL may not call");
            return Err(Error::new(ErrorKind::TooLarge, message).with_hint(
                "Use the tools that its owner declared. The owner can declare functions IMMUTABLE or STABLE.",
            ));
        }
        if self.by_name.is_empty() {
            return Ok(());
        }
        let mentions = statement.mentions()?;
        for call in &mentions.calls {
            if let Some(restriction) = self.named(&call.name).find(|restriction| restriction.applies_to_call(call)) {
                return Err(restriction.refusal(&call.name));
            }
        }
        for name in mentions.words.iter().chain(&mentions.operators) {
            if let Some(restriction) = self.named(name).find(|restriction| restriction.applies_to(name, &mentions)) {
                return Err(restriction.refusal(name));
            }
        }
        Ok(())
    }

    fn named(&self, name: &str) -> impl Iterator<Item = &Restriction> {
        self.by_name.get(name).into_iter().flatten()
    }
}

impl Restriction {
    fn applies_to_call(&self, call: &CalledName) -> bool {
        let MentionKind::Call { schema, scope } = &self.mention else { return false };
        match &call.schema {
            Some(named) => named == schema,
            None => *scope == CallScope::All || *scope == CallScope::Quoted && call.is_quoted,
        }
    }

    /// Whether the mention of `name`, other than in a call, may reach the function.
    fn applies_to(&self, name: &str, mentions: &Mentions) -> bool {
        match &self.mention {
            MentionKind::Call { .. } => false,
            MentionKind::Field => mentions.fields.contains(name),
            MentionKind::Operator => mentions.operators.contains(name),
            MentionKind::CastTarget => {
                mentions.cast_targets.contains(name)
                    || mentions.fields.contains(name)
                    || mentions.calls.iter().any(|call| call.name == name)
                    // These read the type from a row.
                    || mentions.calls.iter().any(|call| call.name.contains("populate_record"))
            }
            MentionKind::CastSource(target) => mentions.has_cast || mentions.words.contains(target),
            MentionKind::Word => mentions.words.contains(name),
        }
    }

    fn refusal(&self, name: &str) -> Error {
        let Self { mention, function, reason } = self;
        let reason = match reason {
            Reason::Volatile => "VOLATILE, so it may have side effects",
            Reason::Definer => "SECURITY DEFINER, so it runs with the rights of its owner",
            Reason::CallsOther => "one that calls a function which is VOLATILE or SECURITY DEFINER",
        };
        let calls =
            |subject: String| format!("{subject} is refused: it may call the function {function}, which is {reason}");
        let message = match mention {
            MentionKind::Call { .. } | MentionKind::Field => {
                format!("the function {function} is refused: it is {reason}")
            }
            MentionKind::Operator => calls(format!("the operator {name}")),
            MentionKind::CastTarget => calls(format!("a cast to {name}")),
            MentionKind::CastSource(target) => calls(format!("a cast from {name} to {target}")),
            MentionKind::Word => calls(format!("the name {name}")),
        };
        Error::new(ErrorKind::InvalidArguments, message).with_hint(
            "Leave it out, or ask the owner of the node to list the function in allow_functions of the database.",
        )
    }
}
