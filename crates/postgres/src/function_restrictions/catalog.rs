//! What the catalog of the server says of functions, and of everything that calls them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

use super::Reason;

/// The maximum number of rows of one query.
const ROWS_MAX: i64 = 200_000;
/// Functions of the server itself have smaller identifiers; the statement policy checks these.
pub(super) const FIRST_USER_OID: u32 = 16_384;

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
pub(super) struct FunctionCatalog {
    /// By identifier.
    pub(super) functions: BTreeMap<u32, Function>,
    pub(super) operators: Vec<Operator>,
    pub(super) casts: Vec<Cast>,
    /// What uses a function or an operator, by its identifier.
    used_by: HashMap<u32, Vec<User>>,
    pub(super) keywords: BTreeSet<String>,
    /// The schemas that names without a schema are looked up in.
    pub(super) path: Vec<String>,
    /// Empty unless [`Self::needs_types`].
    pub(super) types: HashMap<u32, CatalogType>,
    pub(super) members: HashMap<u32, Vec<Member>>,
    /// Why each restricted function is; those without a reason of their own call another one.
    pub(super) restricted: BTreeMap<u32, Reason>,
    /// Whether a query had more rows than are read.
    pub(super) is_cut_off: bool,
}

#[derive(Debug)]
pub(super) struct Function {
    pub(super) schema: String,
    pub(super) name: String,
    /// With its schema, quoted.
    pub(super) full_name: String,
    pub(super) arguments: i32,
    pub(super) defaults: i32,
    pub(super) result: u32,
    reason: Option<Reason>,
    is_aggregate: bool,
    /// Whether the current role may call it.
    pub(super) is_callable: bool,
    /// Whether the server has a function with the same name and arguments.
    pub(super) is_shadowed: bool,
    is_allowed: bool,
}

#[derive(Debug)]
pub(super) struct Operator {
    pub(super) name: String,
    pub(super) function: u32,
}

#[derive(Debug)]
pub(super) struct Cast {
    pub(super) source: u32,
    pub(super) target: u32,
    pub(super) function: u32,
    /// Whether it is used without being written.
    pub(super) is_implicit: bool,
}

#[derive(Debug, Clone, Copy)]
enum User {
    Function(u32),
    Operator(u32),
    Domain(u32),
}

#[derive(Debug)]
pub(super) struct CatalogType {
    pub(super) name: String,
    /// The type of its arrays; 0 without.
    pub(super) array: u32,
    /// The type that a domain is over; 0 for others.
    pub(super) base: u32,
}

/// A relation with a column of some type.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) relation: String,
    pub(super) row_type: u32,
}

impl FunctionCatalog {
    /// Reads everything but types. All queries are sent together.
    pub(super) async fn read(client: &Client, allowed: &[String]) -> Result<Self, Error> {
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
    pub(super) fn needs_types(&self) -> bool {
        !self.casts.is_empty() || !self.restricted_domains().is_empty()
    }

    /// Reads the types, and the relations with columns of types that may matter.
    pub(super) async fn read_types(&mut self, client: &Client) -> Result<(), Error> {
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
    pub(super) fn restricted_domains(&self) -> Vec<(u32, u32)> {
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
    fn from_row(row: &Row, allowed: &[String]) -> Result<Self, Error> {
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

async fn rows(client: &Client, sql: &str) -> Result<Vec<Row>, Error> {
    let limit = ROWS_MAX;
    let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(&limit, Type::INT8)];
    client.query_typed(sql, &parameters).await
}
