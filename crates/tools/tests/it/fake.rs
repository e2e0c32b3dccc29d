//! Databases in memory, and a registry over them.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray, UnionArray};
use arrow::datatypes::{DataType, Field, SchemaRef, UnionFields};
use async_trait::async_trait;
use futures::StreamExt;
use serde_json::{Map, Value};
use tidegate_core::{
    CallOrigin, CallTarget, Caller, Completion, CompletionReference, CompletionRequest, Content, ContentRole, Error,
    ErrorKind, MissingNodes, Principal, TransportKind, nearest_names,
};
use tidegate_query::{
    Catalog, ColumnEntry, Database, DatabaseKind, Databases, Executor, Plan, QueryRows, TableEntry, TableStatus,
};
use tidegate_runtime::{Call, Job, Registry, Reply, ReplyPart, event::EventDispatcher};
use tidegate_sql::{SqlDialect, Statement};
use tidegate_tools::{NodeIdentity, ToolServices, snapshot};

/// A table in memory; without a batch it cannot be read.
pub(crate) struct FakeTable {
    name: &'static str,
    batch: Result<RecordBatch, &'static str>,
    comment: Option<&'static str>,
    /// Its rows never come.
    is_endless: bool,
}

/// A database in memory; `Err` makes it unavailable.
pub(crate) struct FakeDatabase {
    name: &'static str,
    tables: Result<Vec<FakeTable>, &'static str>,
    /// The nodes whose rows its answers lack.
    missing: Option<Arc<MissingNodes>>,
}

/// Orders of two customers, a table that cannot be read, one that never answers, and one with an unusual name.
pub(crate) fn shop() -> FakeDatabase {
    let columns: [(&str, ArrayRef); 3] = [
        ("id", Arc::new(Int64Array::from(vec![1, 2, 3]))),
        ("customer", Arc::new(StringArray::from(vec![Some("Ann"), Some("Bob"), Some("Ann")]))),
        ("note", Arc::new(StringArray::from(vec![None, Some("said \"hello\""), Some("plain")]))),
    ];
    let orders = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap();
    let customers: [(&str, ArrayRef); 1] = [("name", Arc::new(StringArray::from(vec!["Ann", "Bob"])))];
    let customers = RecordBatch::try_from_iter(customers).unwrap();
    let table = |name, batch| FakeTable { name, batch, comment: None, is_endless: false };
    FakeDatabase {
        name: "shop",
        tables: Ok(vec![
            table("broken", Err("line 3 has 4 fields, not 3")),
            table("customers", Ok(customers.clone())),
            FakeTable { is_endless: true, ..table("endless", Ok(customers.clone())) },
            table("odd \"name\", 2024", Ok(customers)),
            FakeTable { comment: Some("One row an order"), ..table("orders", Ok(orders)) },
        ]),
        missing: None,
    }
}

/// A table whose values have types of their own, as those of SQLite have.
pub(crate) fn typed_values_database() -> FakeDatabase {
    let members = [("integer", DataType::Int64), ("text", DataType::Utf8), ("blob", DataType::Binary)];
    let fields: UnionFields =
        (0_i8..).zip(members.map(|(name, kind)| Arc::new(Field::new(name, kind, true)))).collect();
    let children: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![10])),
        Arc::new(StringArray::from(vec!["north", "two\nlines"])),
        Arc::new(BinaryArray::from_opt_vec(vec![None, Some(b"ab")])),
    ];
    let (types, offsets) = (vec![1, 0, 2, 1, 2], vec![0, 0, 0, 1, 1]);
    let any: ArrayRef = Arc::new(UnionArray::try_new(fields, types.into(), Some(offsets.into()), children).unwrap());
    let batch = RecordBatch::try_from_iter_with_nullable([("any", any, true)]).unwrap();
    FakeDatabase {
        name: "mixed",
        tables: Ok(vec![FakeTable { name: "values", batch: Ok(batch), comment: None, is_endless: false }]),
        missing: None,
    }
}

/// A network with these tables, whose answers lack the rows of `missing`.
pub(crate) fn network(tables: Vec<(&'static str, RecordBatch)>, missing: MissingNodes) -> FakeDatabase {
    let table = |(name, batch)| FakeTable { name, batch: Ok(batch), comment: None, is_endless: false };
    FakeDatabase {
        name: "sites",
        tables: Ok(tables.into_iter().map(table).collect()),
        missing: Some(Arc::new(missing)),
    }
}

/// Tables with the column `id`. Of those whose name begins with `slow`, the columns never come.
pub(crate) fn tables_with_ids(names: &[&'static str]) -> FakeDatabase {
    let ids: [(&str, ArrayRef); 1] = [("id", Arc::new(Int64Array::from(vec![1])))];
    let batch = RecordBatch::try_from_iter(ids).unwrap();
    let table = |name: &&'static str| FakeTable { name, batch: Ok(batch.clone()), comment: None, is_endless: false };
    FakeDatabase { name: "many", tables: Ok(names.iter().map(table).collect()), missing: None }
}

/// An unavailable database.
pub(crate) fn unreachable() -> FakeDatabase {
    FakeDatabase { name: "warehouse", tables: Err("the disk is away"), missing: None }
}

impl FakeDatabase {
    fn tables(&self) -> Result<&[FakeTable], Error> {
        let error = |reason: &&'static str| {
            Error::new(ErrorKind::Unavailable, *reason).with_detail(format!("detail of {}", self.name))
        };
        self.tables.as_deref().map_err(error)
    }

    fn table(&self, name: &str) -> Result<(&FakeTable, &RecordBatch), Error> {
        let tables = self.tables()?;
        let table = tables.iter().find(|table| table.name == name).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no table {name:?} in database {:?}", self.name))
                .with_choices(nearest_names(name, tables.iter().map(|table| table.name)))
        })?;
        let batch = table.batch.as_ref().map_err(|reason| Error::new(ErrorKind::Unavailable, *reason))?;
        Ok((table, batch))
    }
}

#[async_trait]
impl Database for FakeDatabase {
    fn name(&self) -> &str {
        self.name
    }

    fn kind(&self) -> DatabaseKind {
        DatabaseKind::Other("memory")
    }

    fn dialect(&self) -> SqlDialect {
        SqlDialect::DataFusion
    }

    async fn catalog(&self, _principal: &Principal) -> Result<Arc<Catalog>, Error> {
        let entry = |table: &FakeTable| TableEntry {
            name: table.name.to_owned(),
            rows: table.batch.as_ref().ok().map(|batch| batch.num_rows() as u64).filter(|_| self.missing.is_none()),
            comment: table.comment.map(str::to_owned),
            facts: None,
            status: match table.batch {
                Ok(_) => TableStatus::Readable,
                Err(reason) => TableStatus::Unreadable(reason.to_owned()),
            },
        };
        Ok(Arc::new(Catalog::from_tables(self.tables()?.iter().map(entry).collect())))
    }

    async fn columns(&self, table: &str, _principal: &Principal) -> Result<Vec<ColumnEntry>, Error> {
        let (_, batch) = self.table(table)?;
        if table.starts_with("slow") {
            std::future::pending::<()>().await;
        }
        let column = |field: &Arc<arrow::datatypes::Field>| ColumnEntry {
            name: field.name().clone(),
            type_name: field.data_type().to_string().to_uppercase(),
            nullable: field.is_nullable(),
            is_masked: Some(false),
            ..ColumnEntry::default()
        };
        Ok(batch.schema().fields().iter().map(column).collect())
    }

    async fn plan(&self, statement: &Statement, _principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        let (table, batch) = self.table(statement.tables().first().map_or("", String::as_str))?;
        let missing = self.missing.clone();
        Ok(Box::new(FakePlan { batch: batch.clone(), is_endless: table.is_endless, missing }))
    }
}

/// All rows of one table, for any statement.
struct FakePlan {
    batch: RecordBatch,
    is_endless: bool,
    missing: Option<Arc<MissingNodes>>,
}

#[async_trait]
impl Plan for FakePlan {
    fn schema(&self) -> SchemaRef {
        self.batch.schema()
    }

    fn estimated_rows(&self) -> Option<u64> {
        Some(self.batch.num_rows() as u64)
    }

    async fn explain(&self) -> Result<String, tidegate_core::Error> {
        Ok("Scan: memory\n".to_owned())
    }

    async fn run(self: Box<Self>, job: &Arc<Job>) -> Result<QueryRows, Error> {
        if !self.is_endless {
            return Ok(QueryRows { missing: self.missing, ..QueryRows::from_batch(self.batch) });
        }
        let cancellation = job.cancellation();
        let batches = futures::stream::once(async move {
            cancellation.cancelled().await;
            Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"))
        });
        Ok(QueryRows::new(self.batch.schema(), batches.boxed()))
    }
}

/// A node over `databases`.
pub(crate) fn node(databases: impl IntoIterator<Item = FakeDatabase>) -> Arc<Registry> {
    let services = services(databases);
    let registry = Registry::new(snapshot(&services), EventDispatcher::default());
    services.attach(&registry);
    registry
}

/// A node whose tools have no registry attached.
pub(crate) fn view_without_registry() -> Arc<Registry> {
    Registry::new(snapshot(&services([])), EventDispatcher::default())
}

pub(crate) fn services(databases: impl IntoIterator<Item = FakeDatabase>) -> Arc<ToolServices> {
    let databases = databases.into_iter().map(|database| Arc::new(database) as Arc<dyn Database>);
    let identity = NodeIdentity { name: "tidegate".into(), title: "Tidegate".into(), version: "1.2.3".into() };
    ToolServices::new(Databases::new(databases), Executor::new(EventDispatcher::default()), identity)
}

/// The owner on the command line.
pub(crate) fn owner() -> Caller {
    Caller::new(Principal::process_user(), CallOrigin { transport: TransportKind::CommandLine, peer: None })
}

pub(crate) fn call(target: CallTarget, arguments: Value) -> Call {
    let mut call = Call::new(target, owner());
    call.arguments = match arguments {
        Value::Object(arguments) => arguments,
        Value::Null => Map::new(),
        other => panic!("arguments must be an object: {other}"),
    };
    call
}

/// The result of a call: its blocks of text, with the roles of a prompt's messages.
#[derive(Debug, Default)]
pub(crate) struct CollectedAnswer {
    pub(crate) texts: Vec<String>,
    pub(crate) messages: Vec<(ContentRole, String)>,
    pub(crate) completion: Option<Completion>,
}

pub(crate) async fn collect_answer(mut reply: Reply) -> Result<CollectedAnswer, Error> {
    let mut answer = CollectedAnswer::default();
    let mut is_open = false;
    while let Some(part) = reply.next().await {
        match part {
            ReplyPart::Text(text) => match answer.texts.last_mut().filter(|_| is_open) {
                Some(open) => open.push_str(&text),
                None => {
                    answer.texts.push(text);
                    is_open = true;
                }
            },
            ReplyPart::EndOfText => is_open = false,
            ReplyPart::Item(Content::Text { text, .. }) => {
                answer.texts.push(text);
                is_open = false;
            }
            ReplyPart::PromptMessage(role, Content::Text { text, .. }) => {
                answer.messages.push((role, text));
            }
            ReplyPart::Completion(completion) => answer.completion = Some(completion),
            ReplyPart::End(Ok(_)) => return Ok(answer),
            ReplyPart::End(Err(error)) => return Err(error),
            _ => {}
        }
    }
    panic!("the reply had no end")
}

/// Calls a tool and gives its text, or its error as the caller reads it.
pub(crate) async fn call_tool(registry: &Arc<Registry>, tool: &str, arguments: Value) -> String {
    let reply = registry.call(call(CallTarget::Tool(tool.to_owned()), arguments));
    match reply {
        Ok(reply) => match collect_answer(reply).await {
            Ok(answer) => answer.texts.join("\n"),
            Err(error) => format!("{}: {error}", error.kind().name()),
        },
        Err(error) => format!("{}: {error}", error.kind().name()),
    }
}

/// The values that complete `argument` of `reference`.
pub(crate) async fn complete_argument(
    registry: &Arc<Registry>,
    reference: CompletionReference,
    argument: &str,
    value: &str,
    context: &[(&str, &str)],
) -> Vec<String> {
    let request = CompletionRequest {
        reference,
        argument: argument.to_owned(),
        value: value.to_owned(),
        context: context.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    };
    let reply = registry.call(call(CallTarget::Completion(request), Value::Null)).unwrap();
    collect_answer(reply).await.unwrap().completion.unwrap().values
}
