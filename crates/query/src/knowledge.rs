//! What people wrote about the data of a database: notes, descriptions, units, example questions and relationships.
//!
//! It has two layers. What the owner of the server wrote is for models as it stands. What a file beside the data says is
//! data, as rows are.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, json};
use tidegate_core::{Error, Principal};

use crate::database::{Catalog, ColumnEntry, Database, Databases};
use crate::spec::QuerySpec;

/// What is known about the data of a database.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Knowledge {
    /// Markdown about the whole database.
    pub notes: Option<String>,
    /// By the name of the table, as its catalog has it.
    pub tables: BTreeMap<String, TableKnowledge>,
    /// Questions with the statements that answer them.
    pub examples: Vec<ExampleQuestion>,
    /// Columns that join tables.
    pub relationships: Vec<Relationship>,
    /// Named expressions over tables. Of several of one table with one name, the first one counts.
    pub measures: Vec<Measure>,
}

/// What is known about a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct TableKnowledge {
    /// What its rows are.
    pub description: Option<String>,
    /// By the name of the column.
    pub columns: BTreeMap<String, ColumnKnowledge>,
}

/// What is known about a column.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ColumnKnowledge {
    /// What its values mean.
    pub description: Option<String>,
    /// The unit of its values.
    pub unit: Option<String>,
    /// Values, each with its meaning.
    pub values: BTreeMap<String, String>,
    /// Other words for it.
    pub synonyms: Vec<String>,
    /// A typical value.
    pub example: Option<String>,
}

/// A question with the statement that answers it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ExampleQuestion {
    /// The question in plain words.
    pub question: String,
    /// The statement.
    pub sql: String,
}

/// A named expression over the rows of a table, such as their revenue.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Measure {
    /// The name, which is also that of its column.
    pub name: String,
    /// The table, as its catalog names it.
    pub table: String,
    /// The expression, such as `sum(amount) FILTER (WHERE state = 1)`.
    pub sql: String,
    /// What it means.
    pub description: Option<String>,
    /// The unit of its value.
    pub unit: Option<String>,
}

impl Measure {
    /// Whether both have the same name and table, so that one of them counts.
    fn has_place_of(&self, other: &Self) -> bool {
        self.name == other.name && self.table == other.table
    }

    /// The query for its value over the whole table.
    ///
    /// # Errors
    /// As [`QuerySpec::from_json`].
    pub fn query(&self) -> Result<QuerySpec, Error> {
        let select = json!([{"expression": self.sql, "as": self.name}]);
        QuerySpec::from_json(&Map::from_iter([
            ("table".to_owned(), self.table.as_str().into()),
            ("select".to_owned(), select),
        ]))
    }
}

/// Two columns with the same values, over which their tables join.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Relationship {
    /// The referencing column.
    pub from: ColumnPath,
    /// The referenced column.
    pub to: ColumnPath,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ColumnPath {
    /// The table, as its catalog names it.
    pub table: String,
    /// The column.
    pub column: String,
}

impl std::fmt::Display for ColumnPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.table, self.column)
    }
}

impl ColumnPath {
    /// Parses `table.column`. The name of the table may contain dots.
    pub fn parse(text: &str) -> Option<Self> {
        let (table, column) = text.rsplit_once('.')?;
        let is_complete = !table.is_empty() && !column.is_empty();
        is_complete.then(|| Self { table: table.to_owned(), column: column.to_owned() })
    }

    fn below(&self, database: &str) -> Self {
        Self { table: format!("{database}.{}", self.table), column: self.column.clone() }
    }
}

impl Knowledge {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// This knowledge, and what only `other` has. What both describe stays as it is here.
    #[must_use]
    pub fn completed_by(mut self, other: &Self) -> Self {
        self.notes = match (self.notes.take(), &other.notes) {
            (Some(own), Some(other)) => Some(format!("{}\n\n{other}", own.trim_end())),
            (own, other) => own.or_else(|| other.clone()),
        };
        for (name, table) in &other.tables {
            self.tables.entry(name.clone()).or_default().complete(table);
        }
        add_missing(&mut self.examples, &other.examples);
        add_missing(&mut self.relationships, &other.relationships);
        for measure in &other.measures {
            if !self.measures.iter().any(|own| own.has_place_of(measure)) {
                self.measures.push(measure.clone());
            }
        }
        self
    }

    /// The same for a database that joins `database` with others. Notes and statements are those of one database.
    fn below(&self, database: &str) -> Self {
        let tables = self.tables.iter().map(|(name, table)| (format!("{database}.{name}"), table.clone()));
        let relationships = self.relationships.iter().map(|relationship| Relationship {
            from: relationship.from.below(database),
            to: relationship.to.below(database),
        });
        let measures = self
            .measures
            .iter()
            .map(|measure| Measure { table: format!("{database}.{}", measure.table), ..measure.clone() });
        let (tables, relationships, measures) = (tables.collect(), relationships.collect(), measures.collect());
        Self { tables, relationships, measures, ..Self::default() }
    }
}

fn add_missing<T: Clone + PartialEq>(own: &mut Vec<T>, others: &[T]) {
    for other in others {
        if !own.contains(other) {
            own.push(other.clone());
        }
    }
}

impl TableKnowledge {
    fn complete(&mut self, other: &Self) {
        if self.description.is_none() {
            self.description.clone_from(&other.description);
        }
        for (name, column) in &other.columns {
            self.columns.entry(name.clone()).or_default().complete(column);
        }
    }
}

impl ColumnKnowledge {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The part for a caller who sees `column`: nothing if it is masked, because it could reveal values, and no values where
    /// that is unknown.
    #[must_use]
    pub fn visible_with(&self, column: &ColumnEntry) -> Self {
        match column.is_masked {
            Some(false) => self.clone(),
            Some(true) => Self::default(),
            None => Self { values: BTreeMap::new(), example: None, ..self.clone() },
        }
    }

    fn complete(&mut self, other: &Self) {
        if self.description.is_none() {
            self.description.clone_from(&other.description);
        }
        if self.unit.is_none() {
            self.unit.clone_from(&other.unit);
        }
        if self.example.is_none() {
            self.example.clone_from(&other.example);
        }
        if self.values.is_empty() {
            self.values.clone_from(&other.values);
        }
        add_missing(&mut self.synonyms, &other.synonyms);
    }
}

/// Knowledge that stands elsewhere than in the configuration, such as in a file beside the data, and changes by itself.
#[async_trait]
pub trait ExternalKnowledge: Send + Sync + 'static {
    /// What it says now. What cannot be read is left out.
    async fn load(&self) -> Arc<Knowledge>;
}

/// What is known about a database, and from where.
#[derive(Clone, Default)]
pub struct DatabaseKnowledge {
    owner: Arc<Knowledge>,
    source: Option<Arc<dyn ExternalKnowledge>>,
    is_source_trusted: bool,
}

tidegate_core::impl_debug!(DatabaseKnowledge { owner, is_source_trusted });

impl DatabaseKnowledge {
    /// What the owner of the server wrote.
    pub fn new(owner: Knowledge) -> Self {
        Self { owner: Arc::new(owner), ..Self::default() }
    }

    /// Adds what `source` says. It is data, unless it is trusted: then it is as the words of the owner.
    #[must_use]
    pub fn with_source(self, source: Arc<dyn ExternalKnowledge>, is_trusted: bool) -> Self {
        Self { source: Some(source), is_source_trusted: is_trusted, ..self }
    }

    async fn load(&self, database: &str) -> KnowledgeLayers {
        let (owner, database) = (self.owner.clone(), database.to_owned());
        let Some(source) = &self.source else { return KnowledgeLayers { database, owner, files: Arc::default() } };
        let files = source.load().await;
        match self.is_source_trusted && !files.is_empty() {
            true => {
                let owner = Arc::new((*owner).clone().completed_by(&files));
                KnowledgeLayers { database, owner, files: Arc::default() }
            }
            false => KnowledgeLayers { database, owner, files },
        }
    }
}

/// What is known about a database at one moment, by who says it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct KnowledgeLayers {
    database: String,
    /// The words of the owner of the server, for models as they stand.
    pub owner: Arc<Knowledge>,
    /// The words of files, which are data.
    pub files: Arc<Knowledge>,
}

impl KnowledgeLayers {
    /// Both layers; what the first one says counts.
    pub fn layers(&self) -> impl Iterator<Item = &Knowledge> {
        [&*self.owner, &*self.files].into_iter()
    }

    /// What the layers say about `table`, whose name may begin with that of the database.
    fn tables<'a>(&'a self, table: &str) -> Vec<&'a TableKnowledge> {
        let short = table.strip_prefix(self.database.as_str()).and_then(|rest| rest.strip_prefix('.'));
        let named = |layer: &'a Knowledge| layer.tables.get(table).or_else(|| layer.tables.get(short?));
        self.layers().filter_map(named).collect()
    }

    /// Without the measures of files that the owner defines otherwise, also for callers that may not see those of the owner.
    fn without_replaced_measures(mut self) -> Self {
        let of_owner = &self.owner.measures;
        let is_replaced = |measure: &Measure| of_owner.iter().any(|own| own.has_place_of(measure));
        if self.files.measures.iter().any(is_replaced) {
            let mut files = Arc::unwrap_or_clone(std::mem::take(&mut self.files));
            files.measures.retain(|measure| !is_replaced(measure));
            self.files = Arc::new(files);
        }
        self
    }

    /// Whether only files describe `table`, so that its description is data.
    pub fn is_described_by_files(&self, table: &str) -> bool {
        let of_owner = Self { files: Arc::default(), ..self.clone() };
        of_owner.table_description(table).is_none() && self.table_description(table).is_some()
    }

    /// The description of `table`.
    pub fn table_description(&self, table: &str) -> Option<&str> {
        self.tables(table).into_iter().find_map(|table| table.description.as_deref())
    }

    /// What is known about `column` of `table`, as [`ColumnKnowledge::visible_with`] it.
    pub fn column(&self, table: &str, column: &ColumnEntry) -> ColumnKnowledge {
        let mut known = ColumnKnowledge::default();
        for own in self.tables(table).into_iter().filter_map(|table| table.columns.get(&column.name)) {
            known.complete(own);
        }
        known.visible_with(column)
    }

    /// Replaces comments in `columns` of `table` by descriptions. What the database itself states stays.
    pub fn describe_columns(&self, table: &str, columns: &mut [ColumnEntry]) {
        for column in columns {
            if let Some(description) = self.column(table, column).description {
                column.comment = Some(join_facts(column.facts.as_deref(), &description));
            }
        }
    }

    /// `catalog`, with descriptions of tables in place of their comments.
    pub fn describe_catalog(&self, catalog: Arc<Catalog>) -> Arc<Catalog> {
        if !catalog.tables.iter().any(|table| self.table_description(&table.name).is_some()) {
            return catalog;
        }
        let mut described = Arc::unwrap_or_clone(catalog);
        for table in &mut described.tables {
            if let Some(description) = self.table_description(&table.name) {
                table.comment = Some(join_facts(table.facts.as_deref(), description));
            }
        }
        Arc::new(described)
    }

    /// A version tag, which changes with what is known.
    pub fn version_tag(&self) -> String {
        let mut hash = DefaultHasher::new();
        self.hash(&mut hash);
        format!("{:016x}", hash.finish())
    }
}

fn join_facts(facts: Option<&str>, description: &str) -> String {
    match facts {
        Some(facts) => format!("{facts}; {description}"),
        None => description.to_owned(),
    }
}

impl Databases {
    /// Adds what is known about databases, by their names.
    #[must_use]
    pub fn with_knowledge(mut self, knowledge: BTreeMap<String, DatabaseKnowledge>) -> Self {
        self.knowledge = knowledge;
        self
    }

    /// What is known about `database`. A federated one has what is known about the tables of its members.
    pub async fn knowledge(&self, database: &dyn Database) -> KnowledgeLayers {
        let name = database.name();
        let mut layers = match self.knowledge.get(name) {
            Some(known) => known.load(name).await,
            None => KnowledgeLayers { database: name.to_owned(), ..KnowledgeLayers::default() },
        };
        for member in database.members() {
            let Some(known) = self.knowledge.get(member.name()) else { continue };
            let known = known.load(member.name()).await;
            let complete = |own: Arc<Knowledge>, of_member: &Knowledge| {
                Arc::new(Arc::unwrap_or_clone(own).completed_by(&of_member.below(member.name())))
            };
            layers.owner = complete(layers.owner, known.owner.as_ref());
            layers.files = complete(layers.files, known.files.as_ref());
        }
        layers.without_replaced_measures()
    }

    /// The notes that the owner wrote about the databases of `principal`, with their names.
    pub fn owner_notes<'a>(&'a self, principal: &'a Principal) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.visible_to(principal).filter_map(|database| {
            let known = self.knowledge.get(database.name())?;
            Some((database.name(), known.owner.notes.as_deref()?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{TableEntry, TableStatus};

    fn described(description: &str, column: ColumnKnowledge) -> TableKnowledge {
        let columns = BTreeMap::from([("status".to_owned(), column)]);
        TableKnowledge { description: Some(description.to_owned()), columns }
    }

    fn knowledge(description: &str, column: ColumnKnowledge) -> Knowledge {
        let tables = BTreeMap::from([("orders".to_owned(), described(description, column))]);
        Knowledge { tables, ..Knowledge::default() }
    }

    fn layers() -> KnowledgeLayers {
        let unit = ColumnKnowledge { unit: Some("EUR".to_owned()), ..ColumnKnowledge::default() };
        let files = ColumnKnowledge {
            description: Some("State".to_owned()),
            unit: Some("USD".to_owned()),
            ..ColumnKnowledge::default()
        };
        KnowledgeLayers {
            database: "shop".to_owned(),
            owner: Arc::new(knowledge("Orders since 2020", unit)),
            files: Arc::new(knowledge("All orders", files)),
        }
    }

    #[test]
    fn the_owner_counts_first() {
        let column = ColumnEntry { name: "status".to_owned(), ..ColumnEntry::default() };
        for table in ["orders", "shop.orders"] {
            let known = layers().column(table, &column);
            assert_eq!((known.unit.as_deref(), known.description.as_deref()), (Some("EUR"), Some("State")), "{table}");
        }
        assert!(layers().column("order", &column).is_empty());
        let entry = |facts: Option<&str>| TableEntry {
            name: "orders".to_owned(),
            rows: None,
            comment: Some("from the database".to_owned()),
            facts: facts.map(str::to_owned),
            status: TableStatus::Readable,
        };
        let catalog = Arc::new(Catalog::from_tables(vec![entry(None), entry(Some("view"))]));
        let described = layers().describe_catalog(catalog);
        let comments: Vec<Option<&str>> = described.tables.iter().map(|table| table.comment.as_deref()).collect();
        assert_eq!(comments, [Some("Orders since 2020"), Some("view; Orders since 2020")]);
    }

    #[test]
    fn a_masked_column_has_no_description() {
        let masked = ColumnEntry { name: "status".to_owned(), is_masked: Some(true), ..ColumnEntry::default() };
        assert!(layers().column("orders", &masked).is_empty());
        let mut columns = [masked.clone()];
        layers().describe_columns("orders", &mut columns);
        assert_eq!(columns, [masked]);
    }

    #[test]
    fn a_column_with_unknown_masks_has_no_values() {
        let column = ColumnEntry { name: "status".to_owned(), ..ColumnEntry::default() };
        let values = BTreeMap::from([("1".to_owned(), "paid".to_owned())]);
        let known = ColumnKnowledge { values, unit: Some("EUR".to_owned()), ..ColumnKnowledge::default() };
        let without_values = ColumnKnowledge { values: BTreeMap::new(), ..known.clone() };
        assert_eq!(known.visible_with(&column), without_values);
        let unmasked = ColumnEntry { is_masked: Some(false), ..column };
        assert_eq!(known.visible_with(&unmasked), known);
    }

    #[test]
    fn a_path_ends_with_the_column() {
        let path = ColumnPath::parse("sales.orders.customer_id").unwrap();
        assert_eq!((path.table.as_str(), path.column.as_str()), ("sales.orders", "customer_id"));
        assert!(["orders", "orders.", ".id", ""].iter().all(|text| ColumnPath::parse(text).is_none()));
    }
}
