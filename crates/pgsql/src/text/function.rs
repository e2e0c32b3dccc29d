//! The type of the functions of text, which are computed row by row.

use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::row_values::{PatternCache, RowArguments, TextArgument, TextOutput};
use super::text_type::TextType;
use crate::data_type::postgres_type_name;
use crate::function::columnar;

type RunRow = fn(&RowArguments<'_>, &mut TextOutput) -> Result<()>;

/// One form of a function.
#[derive(Debug, Clone)]
pub(super) struct Overload {
    params: Vec<TextType>,
    /// Arguments that may follow, in any number.
    rest: Option<TextType>,
    returns: TextType,
    /// Whether the result is NULL if an argument is NULL.
    is_strict: bool,
    run: RunRow,
}

impl Overload {
    pub(super) fn new(params: &[TextType], returns: TextType, run: RunRow) -> Self {
        Self { params: params.to_vec(), rest: None, returns, is_strict: true, run }
    }

    /// Also computes a value for arguments that are NULL.
    pub(super) fn called_on_null_input(mut self) -> Self {
        self.is_strict = false;
        self
    }

    pub(super) fn with_variadic(mut self, rest: TextType) -> Self {
        self.rest = Some(rest);
        self
    }

    fn kinds(&self) -> impl Iterator<Item = TextType> {
        self.params.iter().copied().chain(self.rest.into_iter().cycle())
    }

    fn takes(&self, types: &[DataType]) -> bool {
        let fits = types.len() == self.params.len() || (types.len() > self.params.len() && self.rest.is_some());
        fits && types.iter().zip(self.kinds()).all(|(data_type, kind)| kind.takes(data_type))
    }

    fn signature_text(&self, name: &str) -> String {
        let mut params: Vec<&str> = self.params.iter().map(|kind| kind.name()).collect();
        params.extend(self.rest.map(|_| "…"));
        format!("{name}({})", params.join(", "))
    }
}

/// Returns a simpler equivalent of a call.
pub(super) type Simplify = fn(&[Expr], &SimplifyContext) -> Result<Option<Expr>>;

/// A function of text. Two functions of one name are equal.
#[derive(Debug, Clone)]
pub(super) struct TextFunction {
    name: &'static str,
    aliases: Vec<String>,
    overloads: Vec<Overload>,
    signature: Signature,
    simplify: Option<Simplify>,
}

impl TextFunction {
    pub(super) fn new(name: &'static str, overloads: Vec<Overload>) -> Self {
        let signature = Signature::user_defined(Volatility::Immutable);
        Self { name, aliases: Vec::new(), overloads, signature, simplify: None }
    }

    /// Returns a function with one overload.
    pub(super) fn single(name: &'static str, params: &[TextType], returns: TextType, run: RunRow) -> Self {
        Self::new(name, vec![Overload::new(params, returns, run)])
    }

    pub(super) fn with_alias(mut self, alias: &str) -> Self {
        self.aliases.push(alias.to_owned());
        self
    }

    pub(super) fn with_simplify(mut self, simplify: Simplify) -> Self {
        self.simplify = Some(simplify);
        self
    }

    /// Whether `name` is the name of the function.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.name == name
    }

    /// Plans a call of the function.
    pub(super) fn call(self, args: Vec<Expr>) -> Expr {
        ScalarUDF::new_from_impl(self).call(args)
    }

    fn overload(&self, types: &[DataType]) -> Result<&Overload> {
        if let Some(overload) = self.overloads.iter().find(|overload| overload.takes(types)) {
            return Ok(overload);
        }
        let names: Vec<String> = types.iter().map(postgres_type_name).collect();
        let forms: Vec<String> = self.overloads.iter().map(|overload| overload.signature_text(self.name)).collect();
        plan_err!(
            "function {}({}) does not exist; the available forms are {}; cast the arguments to these types",
            self.name,
            names.join(", "),
            forms.join(", ")
        )
    }
}

crate::compare_by!(TextFunction { name });

impl ScalarUDFImpl for TextFunction {
    crate::name_and_signature!(.name);

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let overload = self.overload(types)?;
        Ok(types.iter().zip(overload.kinds()).map(|(data_type, kind)| kind.coerced(data_type)).collect())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(self.overload(types)?.returns.data_type())
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let simple = self.simplify.map_or(Ok(None), |simplify| simplify(&args, info))?;
        Ok(simple.map_or(ExprSimplifyResult::Original(args), ExprSimplifyResult::Simplified))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        let overload = self.overload(&types)?;
        let columns = args.args.iter().map(TextArgument::new).collect::<Result<Vec<_>>>()?;
        let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let patterns = PatternCache::default();
        let mut output = TextOutput::new(overload.returns);
        for number in 0..if is_constant { 1 } else { args.number_rows } {
            let row = RowArguments { columns: &columns, patterns: &patterns, number };
            if overload.is_strict && (0..columns.len()).any(|argument| row.is_null(argument)) {
                output.null()?;
            } else {
                (overload.run)(&row, &mut output)?;
            }
        }
        columnar(output.finish(), is_constant)
    }
}
