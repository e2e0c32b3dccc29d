//! What one and the same answer costs a model in each format: prints a Markdown table for each of three answers,
//! counted by the tokenizers of two models.

mod answers;

use std::sync::Arc;

use anyhow::{Context as _, bail};
use arrow::array::RecordBatch;
use tidegate_bench::print_line;
use tidegate_core::{Budget, CallOrigin, CallTarget, Caller, Format, Limits, Principal, TransportKind};
use tidegate_query::{Executor, OutputOptions, QueryRows};
use tidegate_runtime::{Call, Registry, ReplyPart, SnapshotBuilder, Tool, event::EventDispatcher, handler_fn};
use tiktoken_rs::CoreBPE;

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let tokenizers = [tiktoken_rs::o200k_base()?, tiktoken_rs::cl100k_base()?];
    for (title, rows) in answers::all()? {
        print_line(&format!("\n### {title}\n"))?;
        print_line("| format | bytes | tokens, o200k | tokens, cl100k | of mcp |")?;
        print_line("|---|---:|---:|---:|---:|")?;
        let mut of_mcp = None;
        for format in Format::FOR_MODELS {
            let text = runtime.block_on(answer(&rows, format))?;
            let [newer, older] = tokenizers.each_ref().map(|tokenizer| tokens(tokenizer, &text));
            let part = newer as f64 / *of_mcp.get_or_insert(newer) as f64;
            let line = [grouped(text.len()), grouped(newer), grouped(older), format!("{part:.2}")].join(" | ");
            print_line(&format!("| `{}` | {line} |", format.name()))?;
        }
    }
    Ok(())
}

fn tokens(tokenizer: &CoreBPE, text: &str) -> usize {
    tokenizer.encode_ordinary(text).len()
}

/// The text that a model reads: `rows`, answered in `format` by a tool without a budget.
async fn answer(rows: &RecordBatch, format: Format) -> anyhow::Result<String> {
    let rows = rows.clone();
    let handler = handler_fn(move |_call| {
        let batches = Box::pin(futures::stream::iter([Ok(rows.clone())]));
        let rows = QueryRows::new(rows.schema(), batches);
        let output_options = OutputOptions { format: Some(format), ..OutputOptions::default() };
        async { Ok(Executor::new(EventDispatcher::default()).answer_rows(rows, output_options)) }
    });
    let limits = Limits { inline: Budget::default(), ..Limits::default() };
    let snapshot = SnapshotBuilder::new().tool(Tool::new("rows", "Gives all rows.", handler)).limits(limits).build();
    let registry: Arc<Registry> = Registry::new(snapshot, EventDispatcher::default());
    let origin = CallOrigin { transport: TransportKind::CommandLine, peer: None };
    let call = Call::new(CallTarget::Tool("rows".to_owned()), Caller::new(Principal::process_user(), origin));
    let mut reply = registry.call(call)?;
    let mut text = String::new();
    loop {
        match reply.next().await.context("the answer has an end")? {
            ReplyPart::Text(piece) => text.push_str(&piece),
            ReplyPart::End(Ok(_)) => return Ok(text),
            ReplyPart::End(Err(error)) => bail!("{error}"),
            _ => {}
        }
    }
}

/// A number with a comma before each three digits.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
