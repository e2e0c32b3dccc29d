//! `SELECT *` over joins with USING: the merged columns come first, with the values of the left table.

use datafusion::sql::sqlparser::ast::{
    ExcludeSelectItem, Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, Select, SelectItem,
    SelectItemQualifiedWildcardKind, TableFactor, TableWithJoins, WildcardAdditionalOptions,
};

/// A part of what `*` means.
enum Part {
    /// A merged column of a table.
    Merged(Ident, Ident),
    /// The columns of a table, without some of them.
    Rest(Ident, Vec<Ident>),
}

/// Writes out what `*` means in `select`, if a join merges columns and each is known to be of one table.
pub(super) fn expand_wildcards(select: &mut Select) {
    let merges = |join: &Join| matches!(constraint(join), Some(JoinConstraint::Using(_)));
    if !select.from.iter().flat_map(|from| &from.joins).any(merges) {
        return;
    }
    let Some(parts) = select.from.iter().map(parts_of).collect::<Option<Vec<_>>>() else { return };
    let items: Vec<SelectItem> = parts.iter().flatten().map(item).collect();
    let mut expanded = Vec::new();
    for given in std::mem::take(&mut select.projection) {
        match &given {
            SelectItem::Wildcard(options) if *options == WildcardAdditionalOptions::default() => {
                expanded.extend(items.iter().cloned());
            }
            _ => expanded.push(given),
        }
    }
    select.projection = expanded;
}

fn constraint(join: &Join) -> Option<&JoinConstraint> {
    match &join.join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::CrossJoin(constraint) => Some(constraint),
        _ => None,
    }
}

/// The parts of `from`; none where they are not known.
fn parts_of(from: &TableWithJoins) -> Option<Vec<Part>> {
    let mut parts = vec![Part::Rest(name_of(&from.relation)?, Vec::new())];
    for join in &from.joins {
        let table = name_of(&join.relation)?;
        let names: Vec<Ident> = match constraint(join)? {
            JoinConstraint::Using(columns) => columns.iter().map(only_part).collect::<Option<_>>()?,
            JoinConstraint::On(_) | JoinConstraint::None => Vec::new(),
            JoinConstraint::Natural => return None,
        };
        let mut merged = Vec::new();
        for name in &names {
            merged.push(take_merged(&mut parts, name)?);
        }
        merged.append(&mut parts);
        merged.push(Part::Rest(table, names));
        parts = merged;
    }
    Some(parts)
}

/// The column `name` of the left side, which was merged before or is of its only table.
fn take_merged(parts: &mut Vec<Part>, name: &Ident) -> Option<Part> {
    let is_it = |part: &Part| matches!(part, Part::Merged(_, merged) if folded(merged) == folded(name));
    if let Some(place) = parts.iter().position(is_it) {
        return Some(parts.remove(place));
    }
    let mut tables = parts.iter_mut().filter_map(|part| match part {
        Part::Rest(table, without) => Some((table, without)),
        Part::Merged(..) => None,
    });
    match (tables.next(), tables.next()) {
        (Some((table, without)), None) => {
            without.push(name.clone());
            Some(Part::Merged(table.clone(), name.clone()))
        }
        _ => None,
    }
}

fn folded(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() }
}

fn only_part(name: &ObjectName) -> Option<Ident> {
    match name.0.as_slice() {
        [part] => part.as_ident().cloned(),
        _ => None,
    }
}

/// The name by which the columns of `factor` are qualified.
pub(super) fn name_of(factor: &TableFactor) -> Option<Ident> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. } => Some(alias.name.clone()),
        TableFactor::Table { name, alias: None, args: None, .. } => name.0.last()?.as_ident().cloned(),
        _ => None,
    }
}

fn item(part: &Part) -> SelectItem {
    match part {
        Part::Merged(table, column) => {
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(vec![table.clone(), column.clone()]))
        }
        Part::Rest(table, without) => {
            let names = without.iter().map(|name| ObjectName::from(vec![name.clone()])).collect();
            let exclude = (!without.is_empty()).then_some(ExcludeSelectItem::Multiple(names));
            let options = WildcardAdditionalOptions { opt_exclude: exclude, ..Default::default() };
            let name = ObjectName::from(vec![table.clone()]);
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
        }
    }
}
