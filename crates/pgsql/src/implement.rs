//! What several types of DataFusion's traits implement in the same way.

/// Compares and hashes values of a type by these fields. The others follow from them, or have no comparison.
#[macro_export]
macro_rules! compare_by {
    ($type:ident { $($field:ident),+ }) => {
        impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                $(PartialEq::eq(&self.$field, &other.$field))&&+
            }
        }

        impl Eq for $type {}

        impl ::std::hash::Hash for $type {
            fn hash<H: ::std::hash::Hasher>(&self, state: &mut H) {
                $(::std::hash::Hash::hash(&self.$field, state);)+
            }
        }
    };
}

/// The methods `name` and `signature` of a function with a field `signature`: the name is a text, or that of a field.
#[macro_export]
macro_rules! name_and_signature {
    (.$name:ident) => {
        fn name(&self) -> &str {
            &self.$name
        }

        $crate::name_and_signature!(@signature);
    };
    (@signature) => {
        fn signature(&self) -> &::datafusion::logical_expr::Signature {
            &self.signature
        }
    };
    ($name:expr) => {
        fn name(&self) -> &str {
            $name
        }

        $crate::name_and_signature!(@signature);
    };
}

/// Methods of a wrapper that call the same method of a field: `delegate_to! { inner => fn name(&self) -> &str; }`.
#[macro_export]
macro_rules! delegate_to {
    ($field:tt => $(fn $name:ident(&self $(, $arg:ident: $type:ty)*) $(-> $output:ty)?;)*) => {
        $(fn $name(&self $(, $arg: $type)*) $(-> $output)? {
            self.$field.$name($($arg),*)
        })*
    };
}

/// Displays an operator as its name.
#[macro_export]
macro_rules! display_as_name {
    ($operator:ty) => {
        impl datafusion::physical_plan::DisplayAs for $operator {
            fn fmt_as(
                &self,
                _: datafusion::physical_plan::DisplayFormatType,
                f: &mut std::fmt::Formatter<'_>,
            ) -> std::fmt::Result {
                f.write_str(datafusion::physical_plan::ExecutionPlan::name(self))
            }
        }
    };
}

/// Methods of `ExecutionPlan` for an operator without expressions: a leaf, or one with the field `input`, which is
/// built again from a new input by `rebuild`.
#[macro_export]
macro_rules! operator_methods {
    (leaf) => {
        fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
            Vec::new()
        }

        $crate::operator_methods!(@shared this, _inputs => Ok(this));
    };
    (input, $rebuild:expr) => {
        fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
            vec![&self.input]
        }

        $crate::operator_methods!(@shared this, inputs => {
            let rebuild: fn(&Self, Arc<dyn ExecutionPlan>) -> Self = $rebuild;
            match inputs.as_slice() {
                [input] => Ok(Arc::new(rebuild(&this, input.clone()))),
                _ => datafusion::common::internal_err!("{} has one input", this.name()),
            }
        });
    };
    (@shared $this:ident, $inputs:ident => $replaced:expr) => {
        fn replace_children(
            self: Arc<Self>,
            $inputs: Vec<Arc<dyn ExecutionPlan>>,
            _: datafusion::physical_plan::ReplaceChildrenOptions,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            let $this = self;
            $replaced
        }

        fn with_new_children(self: Arc<Self>, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
            let mode = datafusion::physical_plan::ChildrenPropertiesMode::Recompute;
            self.replace_children(inputs, datafusion::physical_plan::ReplaceChildrenOptions::new(mode))
        }

        fn apply_expressions(
            &self,
            _: &mut dyn FnMut(&Arc<dyn datafusion::physical_plan::PhysicalExpr>) -> Result<datafusion::common::tree_node::TreeNodeRecursion>,
        ) -> Result<datafusion::common::tree_node::TreeNodeRecursion> {
            Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
        }
    };
}
