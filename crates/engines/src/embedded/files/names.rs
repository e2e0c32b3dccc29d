//! Names for tables: what the files are called, made fit for SQL and unique.
//!
//! When several things want one name, all of them get a suffix, so that no name ever changes its
//! meaning in silence when a file is added.

use std::collections::{HashMap, HashSet};

use tidegate_query::{SqlDialect, Statement};

/// A wish for a name.
#[derive(Debug)]
pub(crate) struct Wish {
    /// The name without extensions.
    pub(crate) name: String,
    /// What to add when others wish the same: `csv`, `folder`.
    pub(crate) suffix: String,
    /// Where it lies, which is unique; the order of locations decides what cannot be told apart else.
    pub(crate) location: String,
}

impl Wish {
    /// The names that it may be granted whatever others wish, but for numbers.
    pub(crate) fn lasting_names(&self) -> Vec<String> {
        let fit = fit_for_sql(&self.name);
        let suffixed = fit_for_sql(&format!("{fit}_{}", self.suffix));
        let mut names = vec![fit, self.name.clone(), suffixed];
        names.dedup();
        names
    }
}

/// A name for each wish, in their order; no two are equal.
pub(crate) fn grant(wishes: &[Wish]) -> Vec<String> {
    let fit: Vec<String> = wishes.iter().map(|wish| fit_for_sql(&wish.name)).collect();
    let suffixed: Vec<String> = {
        let counts = counted(&fit);
        let add = |(wish, name): (&Wish, &String)| {
            if counts[name.as_str()] == 1 { name.clone() } else { fit_for_sql(&format!("{name}_{}", wish.suffix)) }
        };
        wishes.iter().zip(&fit).map(add).collect()
    };
    let mut order: Vec<usize> = (0..wishes.len()).collect();
    order.sort_by(|&a, &b| wishes[a].location.cmp(&wishes[b].location));
    let wanted_once: HashSet<&str> =
        counted(&suffixed).into_iter().filter(|(_, count)| *count == 1).map(|(name, _)| name).collect();
    let mut taken: HashSet<String> = wanted_once.iter().map(|name| (*name).to_owned()).collect();
    let mut names = vec![String::new(); wishes.len()];
    for index in order {
        let wanted = &suffixed[index];
        let mut name = wanted.clone();
        let mut number = 2;
        while !wanted_once.contains(wanted.as_str()) && !taken.insert(name.clone()) {
            name = format!("{wanted}_{number}");
            number += 1;
        }
        names[index] = name;
    }
    names
}

fn counted(names: &[String]) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    for name in names {
        *counts.entry(name.as_str()).or_insert(0) += 1;
    }
    counts
}

/// `name` as far as a statement may name it: one that looks like a path or a file is refused
/// there, so what makes it look so becomes an underscore.
fn fit_for_sql(name: &str) -> String {
    let mut name = name.replace(['/', '\\', ':', '\0'], "_");
    if name.chars().all(|character| character.is_alphanumeric() || matches!(character, '_' | '-' | ' ')) {
        return name;
    }
    while !may_be_named(&name) {
        match name.rfind('.') {
            Some(dot) => name.replace_range(dot..=dot, "_"),
            None => return name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect(),
        }
    }
    name
}

fn may_be_named(name: &str) -> bool {
    let dialect = SqlDialect::DataFusion;
    Statement::parse(&format!("SELECT * FROM {}", dialect.quote(name)), dialect).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(wishes: &[(&str, &str)]) -> Vec<String> {
        let wishes: Vec<Wish> = wishes
            .iter()
            .enumerate()
            .map(|(index, (name, suffix))| Wish {
                name: (*name).to_owned(),
                suffix: (*suffix).to_owned(),
                location: format!("{index}"),
            })
            .collect();
        grant(&wishes)
    }

    #[test]
    fn a_name_that_several_want_is_nobodys() {
        assert_eq!(granted(&[("a", "csv"), ("b", "csv")]), ["a", "b"]);
        assert_eq!(granted(&[("a", "csv"), ("a", "folder"), ("b", "csv")]), ["a_csv", "a_folder", "b"]);
        assert_eq!(granted(&[("a", "csv"), ("a", "csv"), ("a_csv", "csv")]), ["a_csv", "a_csv_2", "a_csv_3"]);
        assert_eq!(granted(&[("a", "csv"), ("a", "csv"), ("a_csv_2", "csv")]), ["a_csv", "a_csv_3", "a_csv_2"]);
    }

    #[test]
    fn odd_names_stay_and_names_of_files_do_not() {
        let same = ["a b", "o'brien", "say \"hi\"", "Straße", ";DROP TABLE x", "a.b", "select", "a\nb"];
        for name in same {
            assert_eq!(fit_for_sql(name), name);
        }
        assert_eq!(fit_for_sql("data.csv"), "data_csv");
        assert_eq!(fit_for_sql("c:\\x"), "c__x");
        assert_eq!(fit_for_sql("folder.parquet"), "folder_parquet");
    }
}
