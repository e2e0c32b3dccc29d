//! The names by which a statement may reach a restricted function.

use std::collections::BTreeSet;

use super::catalog::{CatalogType, FIRST_USER_OID, Function, FunctionCatalog};
use super::{CallScope, MentionKind, Reason, Restriction};

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
pub(super) fn restrictions(catalog: &FunctionCatalog) -> BTreeSet<(String, Restriction)> {
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
            add(reader, MentionKind::Call { schema: "pg_catalog".to_owned(), scope: CallScope::All }, *function);
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

fn call_scope(catalog: &FunctionCatalog, function: &Function) -> CallScope {
    let place = |schema: &str| catalog.path.iter().position(|other| other == schema);
    let is_after_server = match (place("pg_catalog"), place(&function.schema)) {
        (Some(server), Some(own)) => server < own,
        _ => true,
    };
    if function.is_shadowed && is_after_server {
        CallScope::Qualified
    } else if catalog.keywords.contains(&function.name) {
        CallScope::Quoted
    } else {
        CallScope::All
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
