//! Detects changes of a declared file by its length and modification time.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{Caller, Error, TemplateVariables};
use tidegate_runtime::ResourceWatcher;

use super::TextTemplate;
use super::file_resource::is_safe_path_component;
use super::resource::ResourceSource;
use super::uri_variables::TypedUriVariables;

/// Watches the file of a declared resource. A file that the resource could not read counts as absent.
pub(super) struct FileWatcher {
    folder: PathBuf,
    path: TextTemplate,
    variables: TypedUriVariables,
}

impl FileWatcher {
    /// The watcher of `source`, whose URI has `variables`; `None` if it is not a file.
    pub(super) fn for_source(source: &ResourceSource, variables: &[String]) -> Option<Arc<dyn ResourceWatcher>> {
        let ResourceSource::File { folder, path, inputs } = source else { return None };
        let variables = TypedUriVariables::new(variables, inputs.clone()).ok()?;
        Some(Arc::new(Self { folder: folder.clone(), path: path.clone(), variables }))
    }

    async fn metadata(&self, variables: &TemplateVariables) -> Option<std::fs::Metadata> {
        let value = |name: &str| variables.get(name).cloned().unwrap_or_default();
        self.variables.parse_values(value).ok()?;
        if self.path.names().iter().any(|name| !is_safe_path_component(&value(name))) {
            return None;
        }
        let path = tokio::fs::canonicalize(self.folder.join(self.path.fill(value))).await.ok()?;
        let folder = tokio::fs::canonicalize(&self.folder).await.ok()?;
        let metadata = tokio::fs::metadata(&path).await.ok()?;
        (path.starts_with(&folder) && metadata.is_file()).then_some(metadata)
    }
}

#[async_trait]
impl ResourceWatcher for FileWatcher {
    async fn version_tag(&self, variables: &TemplateVariables, _caller: &Caller) -> Result<Option<String>, Error> {
        let metadata = self.metadata(variables).await;
        Ok(metadata.map(|metadata| format!("{} {:?}", metadata.len(), metadata.modified().ok())))
    }
}
