//! Which functions of the database itself the SQL of a caller may call: IMMUTABLE and STABLE ones that run with the
//! rights of the caller, and those that the configuration allows.
//!
//! The catalog lists every way to reach another function: by its name, as a field of a row, by an operator, by a cast,
//! by the check of a domain. A statement that mentions one is refused, whichever overload it would call: the catalog is
//! compared with the names in the statement, and not with the types of its expressions.

use std::collections::HashMap;

use tidegate_core::{Error, ErrorKind};
use tidegate_sql::{CalledName, Mentions, Statement};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

/// The maximum number of restrictions of a database.
const RESTRICTIONS_MAX: usize = 50_000;

/// Each mention that may call a restricted function. `$1` are the allowed functions. Functions of the server itself
/// have smaller OIDs; the statement policy checks these. Triggers cannot be called.
///
/// A function without own restrictions may call another one by a default of its arguments; an aggregate, by its
/// transitions.
const RESTRICTIONS_SQL: &str = "
WITH RECURSIVE callable AS (
  SELECT p.oid, n.nspname, p.proname, p.pronamespace, p.pronargs, p.pronargdefaults, p.proargtypes, p.prorettype,
         CASE WHEN p.prosecdef THEN 'definer' WHEN p.provolatile = 'v' THEN 'volatile' ELSE '' END AS reason,
         p.proname = ANY ($1) OR n.nspname || '.' || p.proname = ANY ($1) AS is_allowed
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
  WHERE p.oid >= 16384
    AND p.prorettype NOT IN ('pg_catalog.trigger'::pg_catalog.regtype, 'pg_catalog.event_trigger'::pg_catalog.regtype)),
found (oid) AS (
  SELECT oid FROM callable WHERE reason <> '' AND NOT is_allowed
  UNION
  SELECT c.oid FROM found
  CROSS JOIN LATERAL (
    SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass AS class, found.oid
    UNION ALL
    SELECT 'pg_catalog.pg_operator'::pg_catalog.regclass, o.oid FROM pg_catalog.pg_operator o
    WHERE o.oid >= 16384 AND o.oprcode = found.oid) used
  JOIN pg_catalog.pg_depend d ON d.refclassid = used.class AND d.refobjid = used.oid
  JOIN callable c ON d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND c.oid = d.objid
  WHERE NOT c.is_allowed
    AND (c.pronargdefaults > 0 OR EXISTS (SELECT 1 FROM pg_catalog.pg_aggregate a WHERE a.aggfnoid = c.oid))),
restricted AS (
  SELECT c.*, pg_catalog.format('%I.%I', c.nspname, c.proname) AS function FROM found JOIN callable c USING (oid)),
operators AS (
  SELECT o.oid, o.oprname, r.function, r.reason FROM pg_catalog.pg_operator o JOIN restricted r ON o.oprcode = r.oid),
-- Functions such as to_json use a cast to json without being asked for one.
casts AS (
  SELECT k.castsource, k.casttarget, r.function, r.reason,
         k.castcontext = 'i' OR k.casttarget = 'pg_catalog.json'::pg_catalog.regtype AS is_implicit
  FROM pg_catalog.pg_cast k JOIN restricted r ON r.oid = k.castfunc),
domains AS (
  SELECT k.contypid, used.function, used.reason
  FROM (SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass AS class, oid, function, reason FROM restricted
        UNION ALL
        SELECT 'pg_catalog.pg_operator'::pg_catalog.regclass, oid, function, reason FROM operators) used
  JOIN pg_catalog.pg_depend d ON d.refclassid = used.class AND d.refobjid = used.oid
  JOIN pg_catalog.pg_constraint k
    ON d.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass AND k.oid = d.objid AND k.contypid <> 0),
-- A domain over such a domain, and a row with such a member, contain its check.
contained (type, is_domain, function, reason) AS (
  SELECT contypid, true, function, reason FROM domains
  UNION
  SELECT outer_type.oid, outer_type.is_domain, c.function, c.reason
  FROM contained c JOIN pg_catalog.pg_type t ON t.oid = c.type
  CROSS JOIN LATERAL (
    SELECT d.oid, true AS is_domain FROM pg_catalog.pg_type d WHERE d.typbasetype IN (t.oid, nullif(t.typarray, 0))
    UNION ALL
    SELECT r.reltype, false FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class r ON r.oid = a.attrelid
    WHERE a.atttypid IN (t.oid, nullif(t.typarray, 0)) AND a.attnum > 0 AND r.reltype <> 0) outer_type),
types (mention, by_name, by_members, type, target, function, reason) AS (
  SELECT 'cast target', true, true, casttarget, 0, function, reason FROM casts WHERE casttarget >= 16384
  UNION ALL SELECT 'cast source', true, true, castsource, casttarget, function, reason FROM casts WHERE casttarget < 16384
  UNION ALL SELECT 'word', true, true, castsource, 0, function, reason FROM casts WHERE is_implicit AND castsource >= 16384
  UNION ALL SELECT 'word', true, true, casttarget, 0, function, reason FROM casts WHERE is_implicit AND casttarget >= 16384
  UNION ALL SELECT CASE WHEN is_domain THEN 'word' ELSE 'cast target' END, true, false, type, 0, function, reason FROM contained
  UNION ALL SELECT 'cast target', false, true, type, 0, function, reason FROM contained),
-- The qualifier is the schema of a call, or the target of a cast.
mentions (mention, qualifier, name, scope, function, reason) AS (
  SELECT 'call', r.nspname::text, r.proname,
         CASE WHEN EXISTS (SELECT 1 FROM pg_catalog.pg_proc b
                           WHERE b.pronamespace = 'pg_catalog'::pg_catalog.regnamespace AND b.oid < 16384
                             AND b.proname = r.proname AND b.proargtypes = r.proargtypes)
                    AND coalesce(pg_catalog.array_position(path, 'pg_catalog') < pg_catalog.array_position(path, r.nspname), true)
              THEN 'qualified'
              WHEN r.proname::text IN (SELECT k.word FROM pg_catalog.pg_get_keywords() k WHERE k.catcode IN ('C', 'R'))
              THEN 'quoted' ELSE '' END,
         r.function, r.reason
  FROM restricted r, pg_catalog.current_schemas(true) AS path
  WHERE pg_catalog.has_schema_privilege(r.pronamespace, 'USAGE') AND pg_catalog.has_function_privilege(r.oid, 'EXECUTE')
  UNION ALL
  -- `x.name` is `name(x)` for a value of any type.
  SELECT 'field', '', r.proname, '', r.function, r.reason
  FROM restricted r WHERE r.pronargs > 0 AND r.pronargs - r.pronargdefaults <= 1
  UNION ALL
  SELECT 'operator', '', oprname, '', function, reason FROM operators
  UNION ALL
  -- These read the name of the type from a text.
  SELECT 'call', 'pg_catalog', f.name::pg_catalog.name, '', function, reason FROM domains
  CROSS JOIN pg_catalog.unnest(ARRAY['pg_input_is_valid', 'pg_input_error_info']) AS f (name)
  UNION ALL
  SELECT x.mention, coalesce((SELECT g.typname::text FROM pg_catalog.pg_type g WHERE g.oid = x.target), ''), m.name, '',
         x.function, x.reason
  FROM types x JOIN pg_catalog.pg_type t ON t.oid = x.type
  CROSS JOIN LATERAL (
    SELECT t.typname AS name WHERE x.by_name
    UNION ALL SELECT a.typname FROM pg_catalog.pg_type a WHERE x.by_name AND a.oid = t.typarray
    UNION ALL SELECT c.relname FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
              WHERE x.by_members AND a.atttypid IN (t.oid, nullif(t.typarray, 0)) AND a.attnum > 0
    UNION ALL SELECT f.proname FROM callable f
              WHERE x.by_members AND f.prorettype IN (t.oid, nullif(t.typarray, 0))) m)
SELECT DISTINCT mention, qualifier, name::text, scope, function, reason FROM mentions ORDER BY 3, 1, 2, 4, 5, 6 LIMIT $2";

/// The mentions that are refused in statements of callers, by name.
#[derive(Debug)]
pub(crate) struct FunctionRestrictions(HashMap<String, Vec<Restriction>>);

#[derive(Debug)]
struct Restriction {
    mention: MentionKind,
    function: String,
    reason: Reason,
}

#[derive(Debug)]
enum MentionKind {
    Call {
        schema: String,
        scope: CallScope,
    },
    Field,
    Operator,
    CastTarget,
    /// It needs a cast to this type, or any explicit cast.
    CastSource(String),
    Word,
}

/// Which calls without a schema mean the function.
#[derive(Debug, PartialEq, Eq)]
enum CallScope {
    All,
    /// Without quotes, the name is a keyword.
    Quoted,
    /// None: they mean the function of the server with the same name and arguments.
    Qualified,
}

#[derive(Debug)]
enum Reason {
    Volatile,
    Definer,
    CallsOther,
}

impl FunctionRestrictions {
    /// Reads the restrictions of the current role; `allowed` are functions, each with or without its schema.
    pub(crate) async fn load(client: &Client, allowed: &[String]) -> Result<Self, tokio_postgres::Error> {
        // One more, so that a list that is cut off is noticed.
        let limit = RESTRICTIONS_MAX as i64 + 1;
        let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
            [(&allowed, Type::TEXT_ARRAY), (&limit, Type::INT8)];
        let mut by_name: HashMap<String, Vec<Restriction>> = HashMap::new();
        for row in client.query_typed(RESTRICTIONS_SQL, &parameters).await? {
            let name: &str = row.try_get(2)?;
            by_name.entry(name.to_lowercase()).or_default().push(Restriction::from_row(&row)?);
        }
        Ok(Self(by_name))
    }

    /// Refuses `statement` if it mentions a restricted function.
    pub(crate) fn check(&self, statement: &Statement) -> Result<(), Error> {
        if self.0.is_empty() {
            return Ok(());
        }
        if self.0.values().map(Vec::len).sum::<usize>() > RESTRICTIONS_MAX {
            let message = format!("the database has more than {RESTRICTIONS_MAX} functions that SQL may not call");
            return Err(Error::new(ErrorKind::TooLarge, message).with_hint(
                "Use the tools that its owner declared. The owner can declare functions IMMUTABLE or STABLE.",
            ));
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
        self.0.get(name).into_iter().flatten()
    }
}

impl Restriction {
    fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let (mention, qualifier, scope): (&str, &str, &str) = (row.try_get(0)?, row.try_get(1)?, row.try_get(3)?);
        let scope = match scope {
            "qualified" => CallScope::Qualified,
            "quoted" => CallScope::Quoted,
            _ => CallScope::All,
        };
        let mention = match mention {
            "call" => MentionKind::Call { schema: qualifier.to_lowercase(), scope },
            "field" => MentionKind::Field,
            "operator" => MentionKind::Operator,
            "cast target" => MentionKind::CastTarget,
            "cast source" => MentionKind::CastSource(qualifier.to_lowercase()),
            _ => MentionKind::Word,
        };
        let reason = match row.try_get(5)? {
            "volatile" => Reason::Volatile,
            "definer" => Reason::Definer,
            _ => Reason::CallsOther,
        };
        Ok(Self { mention, function: row.try_get(4)?, reason })
    }

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
