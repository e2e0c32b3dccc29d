//! Arrays and composites: values within values.

use arrow::array::{ListArray, NullBufferBuilder, StructArray};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{FieldRef, Fields};

use super::array::ArrayBuilder;
use super::column::ColumnDecoder;
use super::raw::ValueReader;
use super::value_error::ValueError;

/// Lists of the items of arrays of one dimension.
pub(super) struct ListBuilder {
    field: FieldRef,
    /// The type that each array must name.
    oid: u32,
    items: ArrayBuilder,
    /// Where each list begins, and where the last ends.
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl ListBuilder {
    pub(super) fn new(item: &ColumnDecoder) -> Self {
        Self {
            field: item.field.clone().into(),
            oid: item.oid,
            items: ArrayBuilder::new(item),
            offsets: vec![0],
            nulls: NullBufferBuilder::new(0),
        }
    }

    /// Adds an array: the number of its dimensions, whether it has NULLs, the type of its items; for each dimension its
    /// length and its first index, which is of no interest here; the items with their lengths.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), ValueError> {
        let mut reader = ValueReader(bytes);
        let (dimensions, _has_nulls, oid) = (reader.int32()?, reader.int32()?, reader.uint32()?);
        if oid != self.oid {
            return Err(ValueError::Malformed);
        }
        let length = match dimensions {
            0 => 0,
            1 => {
                let (length, _first_index) = (reader.int32()?, reader.int32()?);
                length
            }
            _ => return Err(ValueError::Dimensions(dimensions)),
        };
        for _ in 0..length {
            self.items.append(reader.read_value()?)?;
        }
        reader.expect_end()?;
        self.offsets.push(self.end().checked_add(length.max(0)).ok_or(ValueError::TooLarge)?);
        self.nulls.append_non_null();
        Ok(())
    }

    pub(super) fn append_null(&mut self) {
        self.offsets.push(self.end());
        self.nulls.append_null();
    }

    pub(super) fn bytes(&self) -> usize {
        self.items.bytes() + size_of_val(self.offsets.as_slice())
    }

    pub(super) fn finish(&mut self) -> Result<ListArray, ValueError> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(&mut self.offsets, vec![0])));
        ListArray::try_new(self.field.clone(), offsets, self.items.finish()?, self.nulls.finish())
            .map_err(|_| ValueError::Malformed)
    }

    fn end(&self) -> i32 {
        self.offsets.last().copied().unwrap_or_default()
    }
}

/// Structs of the members of composites.
pub(super) struct StructBuilder {
    fields: Fields,
    /// The type that each member must name, and its values.
    members: Vec<(u32, ArrayBuilder)>,
    nulls: NullBufferBuilder,
}

impl StructBuilder {
    pub(super) fn new(members: &[ColumnDecoder]) -> Self {
        Self {
            fields: members.iter().map(|member| member.field.clone()).collect(),
            members: members.iter().map(|member| (member.oid, ArrayBuilder::new(member))).collect(),
            nulls: NullBufferBuilder::new(0),
        }
    }

    /// Adds a composite: the number of its members, then for each its type and its value with its length.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), ValueError> {
        let mut reader = ValueReader(bytes);
        if usize::try_from(reader.int32()?) != Ok(self.members.len()) {
            return Err(ValueError::Malformed);
        }
        for (oid, values) in &mut self.members {
            if reader.uint32()? != *oid {
                return Err(ValueError::Malformed);
            }
            values.append(reader.read_value()?)?;
        }
        reader.expect_end()?;
        self.nulls.append_non_null();
        Ok(())
    }

    pub(super) fn append_null(&mut self) {
        self.members.iter_mut().for_each(|(_, values)| values.append_null());
        self.nulls.append_null();
    }

    pub(super) fn bytes(&self) -> usize {
        self.members.iter().map(|(_, values)| values.bytes()).sum()
    }

    pub(super) fn finish(&mut self) -> Result<StructArray, ValueError> {
        let arrays = self.members.iter_mut().map(|(_, values)| values.finish()).collect::<Result<Vec<_>, _>>()?;
        StructArray::try_new(self.fields.clone(), arrays, self.nulls.finish()).map_err(|_| ValueError::Malformed)
    }
}
