"""Names of other libraries in a cell: the card says what is written here, and the cell after its fix compiles. The cells are those
of `tests/cells/values.md`; what the text decides is tested on all of them in `src/diagnostics/tests/values.rs`."""

import re

import pytest

import cell_files
from kernel_client import DIAGNOSTIC, check_card, without_ansi

SECTIONS = cell_files.read("values.md")
GIVEN = SECTIONS["Before each cell"].given
CASES = {name: case for section in SECTIONS.values() for name, case in section.cases.items() if case.expected != "none"}

# Errors of rustc.
COMPILES_NOT = re.compile(r"E\d{4}$|CompilationError|SC0130|SC0126")


@pytest.fixture(scope="module", autouse=True)
def given(kernel):
    kernel.run(GIVEN)


def with_all_variables(kernel, code):
    """The cell, after the first one has run again if an earlier cell has used up a variable."""
    cell = kernel.execute(code)
    if any("moved it" in error["evalue"] for error in cell.errors):
        kernel.run(GIVEN)
        cell = kernel.execute(code)
    return cell


@pytest.mark.sampled
@pytest.mark.parametrize("name", CASES)
def test_a_name_of_another_library_has_an_answer(kernel, name):
    case = CASES[name]
    said = [word for word in case.words if not word.startswith(("rustc ", "label ", "also "))]
    cell = with_all_variables(kernel, case.code)
    if said[0] not in "".join(error["evalue"] for error in cell.errors):
        # The type of a variable that an earlier cell has used up is not known.
        kernel.run(GIVEN)
        cell = kernel.execute(case.code)
    has_edit = any(fix["edits"] for bundle in cell.diagnostics for fix in bundle[DIAGNOSTIC]["fixes"])
    if len(case.blocks) > 1 and not has_edit:
        # A fix that names a variable needs it to be the only one, such as the data set: earlier cells have made others.
        kernel.run("%reset")
        kernel.run(GIVEN)
        cell = kernel.execute(case.code)
    card = check_card(cell, case.expected)[DIAGNOSTIC]
    assert card["message"] == said[0], card
    edited = [fix for fix in card["fixes"] if fix["edits"]]
    if len(case.blocks) == 1:
        assert not edited, edited
        return
    fixed = cell_files.applied(case.code, edited[0])
    assert fixed == case.blocks[1]
    cell = with_all_variables(kernel, fixed)
    # A file that is not there is found when the cell runs.
    failed = [error for error in cell.errors if COMPILES_NOT.match(error["ename"])]
    assert not failed, without_ansi("\n".join(failed[0]["traceback"]))


def shown(cell):
    """All that a reader sees of a cell that failed."""
    return cell.shown() + without_ansi("\n".join(line for error in cell.errors for line in error["traceback"]))


FOREIGN = re.compile(r"pliron|wide::|winnow|typed_path|cubecl|cargo add|Cargo\.toml|let _ =")


@pytest.mark.parametrize("code", [
    "(v[0] * 2.0 + 1.0)^2", "n^2.0", "print(n)", "v.slice(0, 2)", "use rand::Rng;", "np::array([1.0]);", "net.predict(dev)?", "name.format(1)",
])
def test_no_crate_is_named_that_the_notebook_does_not_use(kernel, code):
    cell = with_all_variables(kernel, code)
    assert cell.errors
    assert not FOREIGN.search(shown(cell)), shown(cell)


def test_a_variable_that_another_cell_replaced(kernel):
    first = kernel.run("let model = Sequential([Dense(3).input_shape(4)])?;").number
    second = kernel.run("let model = \"bert\";").number
    cell = kernel.execute("model.summary()")
    assert f"In[{second}] replaced `model`" in cell.errors[0]["evalue"], cell.errors
    assert f"run In[{first}] again" in shown(cell), shown(cell)


def test_a_function_gets_the_variable_as_a_parameter(kernel):
    code = "fn train_it(model: &Sequential) -> f64 { fit!(model, data, epochs = 1).unwrap().epochs[0].loss }"
    cell = with_all_variables(kernel, code)
    card = check_card(cell, "SC1015")[DIAGNOSTIC]
    fixed = cell_files.applied(code, card["fixes"][0])
    kernel.run(GIVEN)
    kernel.run(fixed + "\ntrain_it(&net, &data);")


def test_paths_of_burn_are_those_of_its_book(kernel):
    kernel.run("use burn::module::Module;")
    kernel.run("use burn::nn::{Linear, LinearConfig};\n#[derive(Module, Debug)]\npub struct Two { hidden: Linear, last: Linear }")
    kernel.run(GIVEN)
    kernel.run("use burn::tensor::activation::gelu;\ngelu(t.clone());")


def test_a_main_that_nobody_calls_is_noted(kernel):
    code = "fn main() { println!(\"hello\"); }"
    card = check_card(kernel.run(code), "SC1016")[DIAGNOSTIC]
    cell = kernel.run(cell_files.applied(code, card["fixes"][0]))
    assert cell.stream() == "hello\n" and not cell.diagnostics


def test_a_type_without_debug_says_how_it_gets_one(kernel):
    assert "#[derive(Debug)]" in kernel.run("struct Plain { x: i32 }\nlet plain = Plain { x: 1 };\nplain").shown()
