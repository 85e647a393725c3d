//! Imports: the names that they give to the cell.

use ruff_python_ast as ast;

use crate::model::Import;

pub(super) fn imported(it: &ast::Alias) -> Import {
    let path = it.name.to_string();
    match &it.asname {
        Some(name) => Import {
            name: name.to_string(),
            path,
        },
        None => {
            // `import a.b` binds `a`.
            let first = path.split('.').next().unwrap_or_default().to_owned();
            Import {
                name: first.clone(),
                path: first,
            }
        }
    }
}

pub(super) fn imported_from(it: &ast::StmtImportFrom) -> Vec<Import> {
    let module = it
        .module
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    let names = it.names.iter().map(|alias| Import {
        name: alias.asname.as_ref().unwrap_or(&alias.name).to_string(),
        path: format!("{module}.{}", alias.name),
    });
    names.collect()
}
