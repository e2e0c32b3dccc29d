//! Methods of DataFusion's traits that are the same in several wrappers and operators.

/// Methods of a wrapper that call the same method of its field `inner`.
macro_rules! delegate_to_inner {
    ($(fn $name:ident(&self $(, $arg:ident: $type:ty)*) -> $output:ty;)*) => {
        $(fn $name(&self $(, $arg: $type)*) -> $output {
            self.inner.$name($($arg),*)
        })*
    };
}
pub(crate) use delegate_to_inner;

/// Methods of `ExecutionPlan` for an operator without expressions: a leaf, or one with the field `input`, which is
/// built again from a new input by `rebuild`.
macro_rules! operator_methods {
    (leaf) => {
        fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
            Vec::new()
        }

        crate::embedded::delegation::operator_methods!(@shared this, _inputs => Ok(this));
    };
    (input, $rebuild:expr) => {
        fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
            vec![&self.input]
        }

        crate::embedded::delegation::operator_methods!(@shared this, inputs => {
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
            _: &mut dyn FnMut(&Arc<dyn datafusion::physical_plan::PhysicalExpr>) -> Result<TreeNodeRecursion>,
        ) -> Result<TreeNodeRecursion> {
            Ok(TreeNodeRecursion::Continue)
        }
    };
}
pub(crate) use operator_methods;
