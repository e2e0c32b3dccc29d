//! Which functions of the database itself the SQL of a caller may call: IMMUTABLE and STABLE ones that run with the
//! rights of the caller, and those that the configuration allows.
//!
//! The catalog lists every way to reach another function: by its name, as a field of a row, by an operator, by a cast,
//! by the check of a domain. A statement that mentions one is refused, whichever overload it would call: the catalog is
//! compared with the names in the statement, and not with the types of its expressions.
//!
//! The catalog is read with plain queries, one for each of its tables, and joined here. One statement that did it all had
//! an estimated cost for which a server compiles hundreds of functions (`jit`), in seconds.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tidegate_core::{Error, ErrorKind};
use tidegate_sql::{CalledName, Mentions, Statement};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

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
        scope: CallForm,
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
enum CallForm {
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
        let restrictions = restrictions_by_mention(&catalog);
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
            None => *scope == CallForm::All || *scope == CallForm::Quoted && call.is_quoted,
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

/// The maximum number of rows of one query.
const ROWS_MAX: i64 = 200_000;
/// Functions of the server itself have smaller identifiers; the statement policy checks these.
const FIRST_USER_OID: u32 = 16_384;

/// Functions of the database with the rights of the current role. Triggers cannot be called.
const FUNCTIONS_SQL: &str = "
SELECT p.oid, n.nspname::text, p.proname::text, pg_catalog.format('%I.%I', n.nspname, p.proname),
       p.pronargs::int4, p.pronargdefaults::int4, p.prorettype, p.provolatile::text, p.prosecdef,
       EXISTS (SELECT FROM pg_catalog.pg_aggregate a WHERE a.aggfnoid = p.oid),
       pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE'),
       EXISTS (SELECT FROM pg_catalog.pg_proc b
               WHERE b.pronamespace = 'pg_catalog'::pg_catalog.regnamespace AND b.oid < 16384
                 AND b.proname = p.proname AND b.proargtypes = p.proargtypes)
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE p.oid >= 16384
  AND p.prorettype NOT IN ('pg_catalog.trigger'::pg_catalog.regtype, 'pg_catalog.event_trigger'::pg_catalog.regtype)
LIMIT $1";

const OPERATORS_SQL: &str = "
SELECT o.oid, o.oprname::text, o.oprcode::pg_catalog.oid FROM pg_catalog.pg_operator o WHERE o.oid >= 16384 LIMIT $1";

/// Functions such as to_json use a cast to json without being asked for one.
const CASTS_SQL: &str = "
SELECT k.castsource, k.casttarget, k.castfunc,
       k.castcontext = 'i' OR k.casttarget = 'pg_catalog.json'::pg_catalog.regtype
FROM pg_catalog.pg_cast k WHERE k.castfunc >= 16384 LIMIT $1";

/// Functions and checks of domains that use a function or an operator: its identifier, that of the function or 0, and that
/// of the domain or 0. Identifiers of functions and operators are distinct enough: a wrong match only refuses more.
const DEPENDENCIES_SQL: &str = "
SELECT d.refobjid, CASE WHEN k.oid IS NULL THEN d.objid ELSE 0 END, coalesce(k.contypid, 0)
FROM pg_catalog.pg_depend d
LEFT JOIN pg_catalog.pg_constraint k
  ON d.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass AND k.oid = d.objid AND k.contypid <> 0
WHERE d.refclassid IN ('pg_catalog.pg_proc'::pg_catalog.regclass, 'pg_catalog.pg_operator'::pg_catalog.regclass)
  AND d.refobjid >= 16384
  AND (d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass OR k.oid IS NOT NULL)
LIMIT $1";

const KEYWORDS_SQL: &str = "SELECT k.word FROM pg_catalog.pg_get_keywords() k WHERE k.catcode IN ('C', 'R') LIMIT $1";

const PATH_SQL: &str = "
SELECT s::text FROM pg_catalog.unnest(pg_catalog.current_schemas(true)) WITH ORDINALITY AS path (s, place)
ORDER BY place LIMIT $1";

const TYPES_SQL: &str = "
SELECT t.oid, t.typname::text, t.typarray, t.typbasetype FROM pg_catalog.pg_type t LIMIT $1";

/// The relations with a column of a type of the database, or of a source of a cast: the type, the relation's name and its
/// row type.
const MEMBERS_SQL: &str = "
SELECT a.atttypid, c.relname::text, c.reltype
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
WHERE a.attnum > 0 AND (a.atttypid >= 16384 OR a.atttypid = ANY ($2)) LIMIT $1";

#[derive(Debug, Default)]
struct FunctionCatalog {
    /// By identifier.
    functions: BTreeMap<u32, Function>,
    operators: Vec<Operator>,
    casts: Vec<Cast>,
    /// What uses a function or an operator, by its identifier.
    used_by: HashMap<u32, Vec<User>>,
    keywords: BTreeSet<String>,
    /// The schemas that names without a schema are looked up in.
    path: Vec<String>,
    /// Empty unless [`Self::needs_types`].
    types: HashMap<u32, CatalogType>,
    members: HashMap<u32, Vec<Member>>,
    /// Why each restricted function is; those without a reason of their own call another one.
    restricted: BTreeMap<u32, Reason>,
    /// Whether a query had more rows than are read.
    is_cut_off: bool,
}

#[derive(Debug)]
struct Function {
    schema: String,
    name: String,
    /// With its schema, quoted.
    full_name: String,
    arguments: i32,
    defaults: i32,
    result: u32,
    reason: Option<Reason>,
    is_aggregate: bool,
    /// Whether the current role may call it.
    is_callable: bool,
    /// Whether the server has a function with the same name and arguments.
    is_shadowed: bool,
    is_allowed: bool,
}

#[derive(Debug)]
struct Operator {
    name: String,
    function: u32,
}

#[derive(Debug)]
struct Cast {
    source: u32,
    target: u32,
    function: u32,
    /// Whether it is used without being written.
    is_implicit: bool,
}

#[derive(Debug, Clone, Copy)]
enum User {
    Function(u32),
    Operator(u32),
    Domain(u32),
}

#[derive(Debug)]
struct CatalogType {
    name: String,
    /// The type of its arrays; 0 without.
    array: u32,
    /// The type that a domain is over; 0 for others.
    base: u32,
}

/// A relation with a column of some type.
#[derive(Debug)]
struct Member {
    relation: String,
    row_type: u32,
}

impl FunctionCatalog {
    /// Reads everything but types. All queries are sent together.
    async fn read(client: &Client, allowed: &[String]) -> Result<Self, tokio_postgres::Error> {
        let (functions, operators, casts, dependencies, keywords, path) = futures::try_join!(
            rows(client, FUNCTIONS_SQL),
            rows(client, OPERATORS_SQL),
            rows(client, CASTS_SQL),
            rows(client, DEPENDENCIES_SQL),
            rows(client, KEYWORDS_SQL),
            rows(client, PATH_SQL),
        )?;
        let mut catalog = Self::default();
        let lengths = [&functions, &operators, &casts, &dependencies].map(Vec::len);
        catalog.is_cut_off = lengths.iter().any(|length| *length as i64 >= ROWS_MAX);
        for row in &functions {
            catalog.functions.insert(row.try_get(0)?, Function::from_row(row, allowed)?);
        }
        for row in &operators {
            let operator = Operator { name: row.try_get(1)?, function: row.try_get(2)? };
            catalog.used_by.entry(operator.function).or_default().push(User::Operator(row.try_get(0)?));
            catalog.operators.push(operator);
        }
        for row in &casts {
            let (source, target, function) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            catalog.casts.push(Cast { source, target, function, is_implicit: row.try_get(3)? });
        }
        for row in &dependencies {
            let (function, domain): (u32, u32) = (row.try_get(1)?, row.try_get(2)?);
            let user = if domain == 0 { User::Function(function) } else { User::Domain(domain) };
            catalog.used_by.entry(row.try_get(0)?).or_default().push(user);
        }
        catalog.keywords = keywords.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        catalog.path = path.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        catalog.find_restricted();
        catalog.casts.retain(|cast| catalog.restricted.contains_key(&cast.function));
        catalog.operators.retain(|operator| catalog.restricted.contains_key(&operator.function));
        Ok(catalog)
    }

    /// Whether a cast or a domain calls a restricted function, so that names of types may do so.
    fn needs_types(&self) -> bool {
        !self.casts.is_empty() || !self.restricted_domains().is_empty()
    }

    /// Reads the types, and the relations with columns of types that may matter.
    async fn read_types(&mut self, client: &Client) -> Result<(), tokio_postgres::Error> {
        let types = rows(client, TYPES_SQL).await?;
        for row in &types {
            let (name, array, base) = (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
            self.types.insert(row.try_get(0)?, CatalogType { name, array, base });
        }
        let sources = self.casts.iter().map(|cast| cast.source);
        let sources: Vec<u32> =
            sources.flat_map(|source| [source, self.types.get(&source).map_or(0, |found| found.array)]).collect();
        let limit = ROWS_MAX;
        let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&limit, Type::INT8), (&sources, Type::OID_ARRAY)];
        let members = client.query_typed(MEMBERS_SQL, &parameters).await?;
        self.is_cut_off |= [&types, &members].iter().any(|rows| rows.len() as i64 >= ROWS_MAX);
        for row in &members {
            let member = Member { relation: row.try_get(1)?, row_type: row.try_get(2)? };
            self.members.entry(row.try_get(0)?).or_default().push(member);
        }
        Ok(())
    }

    /// A function without own restrictions may call another one by a default of its arguments; an aggregate, by its
    /// transitions.
    fn find_restricted(&mut self) {
        let own = self.functions.iter().filter(|(_, function)| !function.is_allowed);
        let mut found: BTreeMap<u32, Reason> =
            own.filter_map(|(oid, function)| Some((*oid, function.reason?))).collect();
        let mut unvisited: Vec<u32> = found.keys().copied().collect();
        while let Some(oid) = unvisited.pop() {
            for user in self.users_of(oid) {
                let User::Function(user) = user else { continue };
                let Some(function) = self.functions.get(&user) else { continue };
                let calls = !function.is_allowed && (function.defaults > 0 || function.is_aggregate);
                if calls && !found.contains_key(&user) {
                    found.insert(user, function.reason.unwrap_or(Reason::CallsOther));
                    unvisited.push(user);
                }
            }
        }
        self.restricted = found;
    }

    /// The functions and domains that use the function, directly or as an operator.
    fn users_of(&self, function: u32) -> Vec<User> {
        let users = |oid: &u32| self.used_by.get(oid).map_or(&[][..], Vec::as_slice);
        let mut found = users(&function).to_vec();
        for user in users(&function) {
            if let User::Operator(operator) = user {
                found.extend(users(operator));
            }
        }
        found
    }

    /// The domains whose checks call a restricted function, with the function.
    fn restricted_domains(&self) -> Vec<(u32, u32)> {
        let domains = self.restricted.keys().flat_map(|function| {
            self.users_of(*function).into_iter().filter_map(|user| match user {
                User::Domain(domain) => Some((domain, *function)),
                User::Function(_) | User::Operator(_) => None,
            })
        });
        domains.collect()
    }
}

impl Function {
    fn from_row(row: &Row, allowed: &[String]) -> Result<Self, tokio_postgres::Error> {
        let (schema, name): (String, String) = (row.try_get(1)?, row.try_get(2)?);
        let (volatility, is_definer): (&str, bool) = (row.try_get(7)?, row.try_get(8)?);
        let full = format!("{schema}.{name}");
        Ok(Self {
            is_allowed: allowed.iter().any(|allowed| *allowed == name || *allowed == full),
            schema,
            name,
            full_name: row.try_get(3)?,
            arguments: row.try_get(4)?,
            defaults: row.try_get(5)?,
            result: row.try_get(6)?,
            reason: match (is_definer, volatility) {
                (true, _) => Some(Reason::Definer),
                (false, "v") => Some(Reason::Volatile),
                _ => None,
            },
            is_aggregate: row.try_get(9)?,
            is_callable: row.try_get(10)?,
            is_shadowed: row.try_get(11)?,
        })
    }
}

async fn rows(client: &Client, sql: &str) -> Result<Vec<Row>, tokio_postgres::Error> {
    let limit = ROWS_MAX;
    let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(&limit, Type::INT8)];
    client.query_typed(sql, &parameters).await
}

/// These read the name of a type from a text.
const TYPE_READERS: [&str; 2] = ["pg_input_is_valid", "pg_input_error_info"];

/// A type whose mention may call a restricted function.
struct RestrictedType {
    mention: MentionKind,
    oid: u32,
    function: u32,
    /// Whether the name of the type is such a mention.
    by_name: bool,
    /// Whether a value of it, from a column or a function, is one.
    by_members: bool,
}

/// Each mention of a restricted function with the name that it has in a statement, in order.
fn restrictions_by_mention(catalog: &FunctionCatalog) -> BTreeSet<(String, Restriction)> {
    let mut found = BTreeSet::new();
    let mut add = |name: &str, mention: MentionKind, function: u32| {
        if let (Some(called), Some(reason)) = (catalog.functions.get(&function), catalog.restricted.get(&function)) {
            found.insert((name.to_owned(), restriction(mention, called, *reason)));
        }
    };
    for (oid, function) in catalog.restricted.keys().filter_map(|oid| Some((*oid, catalog.functions.get(oid)?))) {
        if function.is_callable {
            let (schema, scope) = (function.schema.to_lowercase(), call_scope(catalog, function));
            add(&function.name, MentionKind::Call { schema, scope }, oid);
        }
        // `x.name` is `name(x)` for a value of any type.
        if function.arguments > 0 && function.arguments - function.defaults <= 1 {
            add(&function.name, MentionKind::Field, oid);
        }
    }
    for operator in &catalog.operators {
        add(&operator.name, MentionKind::Operator, operator.function);
    }
    let domains = catalog.restricted_domains();
    for (_, function) in &domains {
        for reader in TYPE_READERS {
            add(reader, MentionKind::Call { schema: "pg_catalog".to_owned(), scope: CallForm::All }, *function);
        }
    }
    for restricted in cast_types(catalog).into_iter().chain(contained_types(catalog, domains)) {
        for name in names_of(catalog, &restricted) {
            add(name, restricted.mention.clone(), restricted.function);
        }
    }
    found
}

fn restriction(mention: MentionKind, function: &Function, reason: Reason) -> Restriction {
    Restriction { mention, function: function.full_name.clone(), reason }
}

fn call_scope(catalog: &FunctionCatalog, function: &Function) -> CallForm {
    let place = |schema: &str| catalog.path.iter().position(|other| other == schema);
    let is_after_server = match (place("pg_catalog"), place(&function.schema)) {
        (Some(server), Some(own)) => server < own,
        _ => true,
    };
    if function.is_shadowed && is_after_server {
        CallForm::Qualified
    } else if catalog.keywords.contains(&function.name) {
        CallForm::Quoted
    } else {
        CallForm::All
    }
}

/// The types of casts that call a restricted function.
fn cast_types(catalog: &FunctionCatalog) -> Vec<RestrictedType> {
    let mut found = Vec::new();
    for cast in &catalog.casts {
        let mut add = |mention, oid| {
            found.push(RestrictedType { mention, oid, function: cast.function, by_name: true, by_members: true });
        };
        if cast.target >= FIRST_USER_OID {
            add(MentionKind::CastTarget, cast.target);
        } else {
            let target = catalog.types.get(&cast.target).map_or("", |target| &target.name);
            add(MentionKind::CastSource(target.to_lowercase()), cast.source);
        }
        for oid in [cast.source, cast.target] {
            if cast.is_implicit && oid >= FIRST_USER_OID {
                add(MentionKind::Word, oid);
            }
        }
    }
    found
}

/// The domains with a check that calls a restricted function, and the types that contain one: a domain over such a domain,
/// and a row with such a member.
fn contained_types(catalog: &FunctionCatalog, domains: Vec<(u32, u32)>) -> Vec<RestrictedType> {
    let mut found: BTreeSet<(u32, bool, u32)> = BTreeSet::new();
    let mut unvisited: Vec<(u32, bool, u32)> =
        domains.into_iter().map(|(domain, function)| (domain, true, function)).collect();
    while let Some((oid, is_domain, function)) = unvisited.pop() {
        if !found.insert((oid, is_domain, function)) {
            continue;
        }
        let of = with_array(catalog, oid);
        let over = catalog.types.iter().filter(|(_, other)| other.base != 0 && of.contains(&other.base));
        unvisited.extend(over.map(|(outer, _)| (*outer, true, function)));
        let rows = of.iter().filter_map(|oid| catalog.members.get(oid)).flatten();
        unvisited.extend(rows.filter(|row| row.row_type != 0).map(|row| (row.row_type, false, function)));
    }
    let types = found.into_iter().flat_map(|(oid, is_domain, function)| {
        let by_name = if is_domain { MentionKind::Word } else { MentionKind::CastTarget };
        [
            RestrictedType { mention: by_name, oid, function, by_name: true, by_members: false },
            RestrictedType { mention: MentionKind::CastTarget, oid, function, by_name: false, by_members: true },
        ]
    });
    types.collect()
}

/// The type and the type of its arrays.
fn with_array(catalog: &FunctionCatalog, oid: u32) -> Vec<u32> {
    let array = catalog.types.get(&oid).map_or(0, |found| found.array);
    [oid, array].into_iter().filter(|oid| *oid != 0).collect()
}

/// The names of the type itself, of the relations with a column of it, and of the functions that return it.
fn names_of<'a>(catalog: &'a FunctionCatalog, restricted: &RestrictedType) -> Vec<&'a str> {
    let of = with_array(catalog, restricted.oid);
    let mut names: Vec<&str> = Vec::new();
    if restricted.by_name {
        let types = of.iter().filter_map(|oid| catalog.types.get(oid));
        names.extend(types.map(|CatalogType { name, .. }| name.as_str()));
    }
    if restricted.by_members {
        let relations = of.iter().filter_map(|oid| catalog.members.get(oid)).flatten();
        names.extend(relations.map(|member| member.relation.as_str()));
        let functions = catalog.functions.values().filter(|function| of.contains(&function.result));
        names.extend(functions.map(|function| function.name.as_str()));
    }
    names
}
