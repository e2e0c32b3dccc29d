//! Writes the eight tables of TPC-H as Parquet files: `tpch-data SCALE FOLDER`.

use std::fs::File;
use std::path::Path;

use anyhow::Context as _;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RecordBatchIterator, RegionArrow,
    SupplierArrow,
};

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(scale), Some(folder)) = (arguments.next(), arguments.next()) else {
        anyhow::bail!("usage: tpch-data SCALE FOLDER");
    };
    let scale: f64 = scale.parse().context("the scale must be a number")?;
    std::fs::create_dir_all(&folder)?;
    for (name, table) in tables(scale) {
        write(table, &Path::new(&folder).join(name).with_extension("parquet"))?;
    }
    Ok(())
}

type Table = Box<dyn RecordBatchIterator>;

/// All tables at `scale`, each as one part of one.
fn tables(scale: f64) -> [(&'static str, Table); 8] {
    [
        ("nation", Box::new(NationArrow::new(NationGenerator::new(scale, 1, 1)))),
        ("region", Box::new(RegionArrow::new(RegionGenerator::new(scale, 1, 1)))),
        ("part", Box::new(PartArrow::new(PartGenerator::new(scale, 1, 1)))),
        ("supplier", Box::new(SupplierArrow::new(SupplierGenerator::new(scale, 1, 1)))),
        ("partsupp", Box::new(PartSuppArrow::new(PartSuppGenerator::new(scale, 1, 1)))),
        ("customer", Box::new(CustomerArrow::new(CustomerGenerator::new(scale, 1, 1)))),
        ("orders", Box::new(OrderArrow::new(OrderGenerator::new(scale, 1, 1)))),
        ("lineitem", Box::new(LineItemArrow::new(LineItemGenerator::new(scale, 1, 1)))),
    ]
}

fn write(table: Table, path: &Path) -> anyhow::Result<()> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(File::create(path)?, table.schema().clone(), Some(properties))?;
    for batch in table {
        writer.write(&batch)?;
    }
    writer.close()?;
    Ok(())
}
