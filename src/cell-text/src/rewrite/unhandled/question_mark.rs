//! Where a `?` ends the cell.

use proc_macro2::Span;
use stratoscope_cell_syntax::CellSyntax;
use syn::Macro;
use syn::spanned::Spanned;
use syn::visit::Visit;

/// Whether a `?` at byte `offset` of a cell would be the cell's own, and not that of a closure or a function.
pub fn is_the_cells(cell: &CellSyntax, offset: usize) -> bool {
    if offset < cell.head() {
        return false;
    }
    let is_inside = cell.read(move |syntax| {
        let statements = syntax.statements_as_typed()?;
        let mut functions = Functions {
            offset,
            is_inside: false,
        };
        statements.iter().for_each(|it| functions.visit_stmt(it));
        Some(functions.is_inside)
    });
    is_inside == Some(false)
}

/// Looks for what has a `?` of its own.
struct Functions {
    offset: usize,
    is_inside: bool,
}

impl Functions {
    fn note(&mut self, span: Span) {
        self.is_inside |= span.byte_range().contains(&self.offset);
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        self.note(item.span());
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        self.note(closure.span());
    }

    fn visit_expr_async(&mut self, block: &'ast syn::ExprAsync) {
        self.note(block.span());
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        // Whatever becomes of its operands.
        self.note(called.delimiter.span().join());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ParsedCell;

    #[test]
    fn closures_functions_and_operands_of_macros_have_their_own() {
        let check = |cell: &str, expected: bool| {
            let at = cell.find('§').expect("a place is marked");
            let code = cell.replace('§', "");
            let syntax = ParsedCell::of(&code).syntax;
            assert_eq!(is_the_cells(&syntax, at), expected, "{cell}");
        };
        check("f()§;", true);
        check("if x { for y in z { f()§; } }", true);
        check("%time f()§;", true);
        check("let g = || { f()§; };", false);
        check("fn g() { f()§; }", false);
        check("async { f()§; };", false);
        check("vec![f()§];", false);
        check("f(§", false);
    }
}
