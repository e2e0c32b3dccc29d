//! Arrow lists, as the arrays of PostgreSQL, and their text form: `{1,NULL,"a b"}`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, ListArray, StringArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{CastOptions, SortOptions, cast, cast_with_options, interleave};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::{Result, exec_err, plan_err};

use crate::data_type::texts;
use crate::function::{FunctionCall, check_bytes};

/// Returns the element type if `data_type` is an array.
pub(crate) fn item_type(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => Some(item.data_type()),
        _ => None,
    }
}

/// Returns the array type with elements of type `item`.
pub(crate) fn list_type(item: DataType) -> DataType {
    DataType::new_list(item, true)
}

/// Returns the number of dimensions of a type.
pub(crate) fn dimensions(data_type: &DataType) -> usize {
    item_type(data_type).map_or(0, |item| 1 + dimensions(item))
}

/// Returns the type of the elements of the innermost arrays.
pub(crate) fn innermost_type(data_type: &DataType) -> &DataType {
    item_type(data_type).map_or(data_type, innermost_type)
}

/// Returns the element type of an array argument; NULL is an array of any type.
pub(crate) fn require_item(function: &str, data_type: &DataType) -> Result<DataType> {
    match item_type(data_type) {
        Some(item) => Ok(item.clone()),
        None if data_type.is_null() => Ok(DataType::Null),
        None => plan_err!("function {function}({data_type}) does not exist; its argument must be an array"),
    }
}

/// Converts `array` to a `ListArray`.
pub(crate) fn as_list(array: &ArrayRef) -> Result<ListArray> {
    match array.data_type() {
        DataType::List(_) => Ok(array.as_list::<i32>().clone()),
        other => {
            let item = item_type(other).cloned().unwrap_or(DataType::Utf8);
            Ok(cast(array, &list_type(item))?.as_list::<i32>().clone())
        }
    }
}

/// Returns an argument as lists for all rows.
pub(crate) fn lists(call: &FunctionCall<'_>, index: usize) -> Result<ListArray> {
    as_list(&call.array(index)?)
}

/// Returns the range of the elements of `row` in the values of `list`.
pub(crate) fn range(list: &ListArray, row: usize) -> std::ops::Range<usize> {
    list.value_offsets()[row] as usize..list.value_offsets()[row + 1] as usize
}

/// Returns the range of the elements of `row`; an empty one if the row is NULL.
pub(crate) fn range_or_empty(list: &ListArray, row: usize) -> std::ops::Range<usize> {
    if list.is_valid(row) { range(list, row) } else { 0..0 }
}

/// Builds the list of each row from pairs of the number of a source and the position of an element in it. `None` is NULL.
/// The elements of `sources` all have one type.
pub(crate) fn assemble_lists<I: IntoIterator<Item = (usize, usize)>>(
    rows: usize,
    sources: &[ArrayRef],
    elements: impl Fn(usize) -> Result<Option<I>>,
) -> Result<ArrayRef> {
    let (mut positions, mut lengths, mut valid) = (Vec::new(), Vec::with_capacity(rows), Vec::with_capacity(rows));
    for row in 0..rows {
        let (own, before) = (elements(row)?, positions.len());
        valid.push(own.is_some());
        positions.extend(own.into_iter().flatten());
        check_bytes(positions.len() * size_of::<usize>())?;
        lengths.push(positions.len() - before);
    }
    let values: Vec<&dyn Array> = sources.iter().map(AsRef::as_ref).collect();
    let values = interleave(&values, &positions)?;
    let DataType::List(item) = list_type(values.data_type().clone()) else { return plan_err!("expected a list") };
    Ok(Arc::new(ListArray::try_new(item, OffsetBuffer::from_lengths(lengths), values, Some(valid.into()))?))
}

/// Compares rows as PostgreSQL does. NULLs are equal to each other and sort last.
pub(crate) struct RowComparer {
    converter: RowConverter,
}

impl RowComparer {
    pub(crate) fn new(data_type: &DataType) -> Result<Self> {
        let options = SortOptions { descending: false, nulls_first: false };
        let converter = RowConverter::new(vec![SortField::new_with_options(data_type.clone(), options)])?;
        Ok(Self { converter })
    }

    pub(crate) fn rows(&self, values: &ArrayRef) -> Result<Rows> {
        Ok(self.converter.convert_columns(&[without_negative_zero(values)])?)
    }
}

/// Replaces negative zero, because zeros are equal whatever their sign.
fn without_negative_zero(values: &ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Float32 => {
            let positive: Float32Array = values.as_primitive::<Float32Type>().unary(|value| value + 0.0);
            Arc::new(positive)
        }
        DataType::Float64 => {
            let positive: Float64Array = values.as_primitive::<Float64Type>().unary(|value| value + 0.0);
            Arc::new(positive)
        }
        _ => values.clone(),
    }
}

/// An element of an array in its text form.
enum ArrayElement {
    Null,
    Text(String),
    Array(Vec<ArrayElement>),
}

/// Parses the text of one array.
struct ArrayParser<'a> {
    text: &'a str,
    rest: std::iter::Peekable<std::str::Chars<'a>>,
}

impl<'a> ArrayParser<'a> {
    fn parse(text: &'a str) -> Result<Vec<ArrayElement>> {
        let mut parser = Self { text, rest: text.chars().peekable() };
        parser.skip_space();
        if parser.rest.peek() == Some(&'[') {
            return exec_err!(
                "an array literal with explicit bounds, such as {text}, is not supported; omit the bounds"
            );
        }
        let elements = parser.array(0)?;
        parser.skip_space();
        if parser.rest.next().is_some() {
            return parser.malformed("junk after closing right brace");
        }
        Ok(elements)
    }

    fn malformed<T>(&self, detail: &str) -> Result<T> {
        exec_err!("malformed array literal: \"{}\": {detail}", self.text)
    }

    fn skip_space(&mut self) {
        while self.rest.next_if(|character| character.is_ascii_whitespace()).is_some() {}
    }

    fn array(&mut self, depth: usize) -> Result<Vec<ArrayElement>> {
        if depth == 6 {
            return self.malformed("number of array dimensions exceeds the maximum allowed (6)");
        }
        if self.rest.next() != Some('{') {
            return self.malformed("array value must start with \"{\"");
        }
        let mut elements = Vec::new();
        self.skip_space();
        if self.rest.next_if_eq(&'}').is_some() {
            return Ok(elements);
        }
        loop {
            self.skip_space();
            elements.push(match self.rest.peek() {
                Some('{') => ArrayElement::Array(self.array(depth + 1)?),
                Some('"') => self.quoted()?,
                _ => self.bare()?,
            });
            self.skip_space();
            match self.rest.next() {
                Some(',') => {}
                Some('}') => return Ok(elements),
                Some(_) => return self.malformed("unexpected array element"),
                None => return self.malformed("unexpected end of input"),
            }
        }
    }

    fn quoted(&mut self) -> Result<ArrayElement> {
        self.rest.next();
        let mut text = String::new();
        loop {
            match self.rest.next() {
                Some('"') => return Ok(ArrayElement::Text(text)),
                Some('\\') => text.extend(self.rest.next()),
                Some(character) => text.push(character),
                None => return self.malformed("unexpected end of input"),
            }
        }
    }

    fn bare(&mut self) -> Result<ArrayElement> {
        let mut text = String::new();
        let mut has_escape = false;
        // The length of the text without unescaped trailing spaces.
        let mut length = 0;
        while let Some(character) = self.rest.next_if(|character| !matches!(character, ',' | '}' | '{' | '"')) {
            if character == '\\' {
                has_escape = true;
                text.extend(self.rest.next());
                length = text.len();
            } else {
                text.push(character);
                if !character.is_ascii_whitespace() {
                    length = text.len();
                }
            }
        }
        text.truncate(length);
        if text.is_empty() {
            return self.malformed("unexpected \",\" or \"}\" character");
        }
        if !has_escape && text.eq_ignore_ascii_case("null") {
            return Ok(ArrayElement::Null);
        }
        Ok(ArrayElement::Text(text))
    }
}

/// Returns the number of dimensions of the array in `text`; `None` if `text` is not an array.
pub(crate) fn written_dimensions(text: &str) -> Option<usize> {
    fn depth(elements: &[ArrayElement]) -> usize {
        match elements.first() {
            Some(ArrayElement::Array(inner)) => 1 + depth(inner),
            Some(_) => 1,
            None => 0,
        }
    }
    ArrayParser::parse(text).ok().map(|elements| depth(&elements))
}

/// The lengths at each level, and the texts of the elements.
struct ArrayLevels {
    lengths: Vec<Vec<usize>>,
    elements: Vec<Option<String>>,
}

impl ArrayLevels {
    fn add_elements(&mut self, elements: Vec<ArrayElement>, level: usize, text: &str) -> Result<()> {
        let (depth, length) = (self.lengths.len(), elements.len());
        self.lengths[level].push(length);
        let is_innermost = level + 1 == depth;
        let mut inner_length = None;
        for element in elements {
            match element {
                ArrayElement::Array(inner) if !is_innermost => {
                    if *inner_length.get_or_insert(inner.len()) != inner.len() {
                        return exec_err!(
                            "malformed array literal: \"{text}\": \
                             multidimensional arrays must have sub-arrays with matching dimensions"
                        );
                    }
                    self.add_elements(inner, level + 1, text)?;
                }
                ArrayElement::Null if is_innermost => self.elements.push(None),
                ArrayElement::Text(value) if is_innermost => self.elements.push(Some(value)),
                _ => {
                    return exec_err!(
                        "the array \"{text}\" does not have {depth} dimensions; cast it to a type \
                         with one [] for each dimension"
                    );
                }
            }
        }
        Ok(())
    }
}

/// Parses arrays of type `data_type`. `convert` converts texts to the innermost element type.
pub(crate) fn parse_arrays(
    array_texts: &StringArray,
    data_type: &DataType,
    convert: &dyn Fn(ArrayRef, &DataType) -> Result<ArrayRef>,
) -> Result<ArrayRef> {
    let depth = dimensions(data_type);
    let mut levels = ArrayLevels { lengths: vec![Vec::new(); depth], elements: Vec::new() };
    for text in array_texts {
        match text {
            None => levels.lengths[0].push(0),
            Some(text) => levels.add_elements(ArrayParser::parse(text)?, 0, text)?,
        }
    }
    let mut values = convert(Arc::new(StringArray::from(levels.elements)), innermost_type(data_type))?;
    for (level, lengths) in levels.lengths.into_iter().enumerate().rev() {
        let DataType::List(item) = list_type(values.data_type().clone()) else {
            return plan_err!("expected a list");
        };
        let nulls = if level == 0 { array_texts.nulls().cloned() } else { None };
        values = Arc::new(ListArray::try_new(item, OffsetBuffer::from_lengths(lengths), values, nulls)?);
    }
    Ok(values)
}

/// Parses arrays of type `data_type`, whose elements Arrow converts.
pub(crate) fn cast_arrays(array_texts: &StringArray, data_type: &DataType) -> Result<ArrayRef> {
    parse_arrays(array_texts, data_type, &|values, item| {
        Ok(cast_with_options(&values, item, &CastOptions { safe: false, ..Default::default() })?)
    })
}

/// Writes the text of an element, in quotes where necessary.
pub(crate) fn write_element(text: &str, out: &mut String) {
    let is_special =
        |character: char| matches!(character, '{' | '}' | ',' | '"' | '\\') || character.is_ascii_whitespace();
    if !text.is_empty() && !text.contains(is_special) && !text.eq_ignore_ascii_case("null") {
        out.push_str(text);
        return;
    }
    out.push('"');
    for character in text.chars() {
        if matches!(character, '"' | '\\') {
            out.push('\\');
        }
        out.push(character);
    }
    out.push('"');
}

/// Returns the elements of arrays of text, or of array literals.
pub(crate) fn text_lists(array: &ArrayRef) -> Result<Vec<Option<Vec<Option<String>>>>> {
    let list = match array.data_type() {
        data_type if item_type(data_type).is_some() => as_list(array)?,
        _ => as_list(&parse_arrays(&texts(array)?, &list_type(DataType::Utf8), &|values, _| Ok(values))?)?,
    };
    let values = texts(list.values())?;
    let row = |row: usize| -> Option<Vec<Option<String>>> {
        if list.is_null(row) {
            return None;
        }
        Some(
            range(&list, row)
                .map(|position| values.is_valid(position).then(|| values.value(position).to_owned()))
                .collect(),
        )
    };
    Ok((0..list.len()).map(row).collect())
}

/// Pairs of elements.
pub(crate) type TextPairs = Vec<(Option<String>, Option<String>)>;

/// Splits each array of text, or each array literal, into pairs: consecutive elements, or rows of two elements.
pub(crate) fn text_pairs(array: &ArrayRef) -> Result<Vec<Option<TextPairs>>> {
    let depth = dimensions(array.data_type());
    if depth == 0 {
        let texts = texts(array)?;
        let parsed = (0..texts.len()).map(|row| {
            let one = StringArray::from(vec![texts.is_valid(row).then(|| texts.value(row))]);
            let has_rows = texts.is_valid(row)
                && matches!(ArrayParser::parse(texts.value(row))?.first(), Some(ArrayElement::Array(_)));
            let list = list_type(DataType::Utf8);
            let list = if has_rows { list_type(list) } else { list };
            Ok(text_pairs(&parse_arrays(&one, &list, &|values, _| Ok(values))?)?.into_iter().next().flatten())
        });
        return parsed.collect();
    }
    let list = as_list(array)?;
    let row = |row: usize| {
        if list.is_null(row) {
            return Ok(None);
        }
        let values = list.value(row);
        let elements: Vec<Option<String>> = match depth {
            1 if values.len().is_multiple_of(2) => element_texts(&values)?,
            1 => return exec_err!("array must have even number of elements"),
            2 => {
                let rows = as_list(&values)?;
                if (0..rows.len()).any(|row| rows.value_length(row) != 2) {
                    return exec_err!("array must have two columns");
                }
                element_texts(rows.values())?
            }
            _ => return exec_err!("wrong number of array subscripts"),
        };
        Ok(Some(elements.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()))
    };
    (0..list.len()).map(row).collect()
}

fn element_texts(values: &ArrayRef) -> Result<Vec<Option<String>>> {
    Ok(texts(values)?.iter().map(|text| text.map(str::to_owned)).collect())
}
