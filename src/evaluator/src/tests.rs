//! The evaluator, driven directly: real rustc, real cell process, the prebuilt facade.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use stratoscope_wire::MimeBundle;

mod parsed_once;

use super::assist::Assistant;
use super::engine::Engine;
use super::lint::Linter;
use stratoscope_compile::home;
use stratoscope_session::{Cell, CellError, CellOutcome, Evaluate, OutputSink, Stream};

/// Everything a cell has shown, in words.
#[derive(Default)]
struct Seen(Mutex<Vec<String>>);

impl Seen {
    fn add(&self, line: String) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(line);
    }

    fn take(&self) -> String {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *lines).join("\n")
    }
}

impl OutputSink for Seen {
    fn stream(&self, stream: Stream, text: &str) {
        self.add(format!("{}: {text}", stream.name()));
    }
    fn display(&self, data: MimeBundle, _: MimeBundle, _: Option<String>, _: bool) {
        self.add(format!(
            "display: {}",
            data["text/plain"].as_str().unwrap_or_default()
        ));
    }
    fn result(&self, data: MimeBundle) {
        self.add(format!(
            "result: {}",
            data["text/plain"].as_str().unwrap_or_default()
        ));
    }
    fn clear(&self, wait: bool) {
        self.add(format!("clear: {wait}"));
    }
    fn input(&self, prompt: &str, _: bool) -> Option<String> {
        self.add(format!("input: {prompt}"));
        Some("an answer".to_owned())
    }
}

/// A notebook without a front end.
struct Notebook {
    engine: Engine,
    seen: Arc<Seen>,
    number: u64,
    _turn: MutexGuard<'static, ()>,
}

impl Notebook {
    fn open() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        home::choose();
        let start = Instant::now();
        let engine = Engine::start(Linter::default(), Assistant::default()).expect("starts");
        eprintln!("started in {:?}", start.elapsed());
        Self {
            engine,
            seen: Arc::default(),
            number: 0,
            _turn: turn,
        }
    }

    fn run(&mut self, code: &str) -> (CellOutcome, String) {
        self.number += 1;
        let outputs: Arc<dyn OutputSink> = self.seen.clone();
        let cell = Cell {
            code,
            number: self.number,
            silent: false,
        };
        let start = Instant::now();
        let outcome = self.engine.execute(cell, &outputs);
        eprintln!("In[{}] {:?} {code:?}", self.number, start.elapsed());
        (outcome, self.seen.take())
    }

    #[track_caller]
    fn ok(&mut self, code: &str) -> String {
        let (outcome, seen) = self.run(code);
        assert_eq!(outcome, CellOutcome::Ok, "{code}\n{seen}");
        seen
    }

    #[track_caller]
    fn error(&mut self, code: &str) -> CellError {
        match self.run(code) {
            (CellOutcome::Error(error), _) => error,
            (other, seen) => panic!("{code}: {other:?}\n{seen}"),
        }
    }
}

#[test]
fn cells_share_statics_and_keep_tensors_devices_and_loggers() {
    let mut notebook = Notebook::open();
    notebook.ok("let device = Device::flex();");
    notebook.ok("let a = Tensor::<2>::from_data([[1.0, 2.0], [3.0, 4.0]], &device);");
    let shown =
        notebook.ok("let b = a.clone().matmul(a.clone());\nb.clone().sum().into_scalar::<f32>()");
    assert_eq!(shown, "result: 54.0");
    // The device's own registry: a tensor made here and one made there meet.
    let shown = notebook.ok("(b + Tensor::<2>::ones([2, 2], &device)).sum().into_scalar::<f32>()");
    assert_eq!(shown, "result: 58.0");
    // A hook is a static of the standard library, a logger one of a crate: both outlive the cell.
    notebook.ok(
        "static LOGGED: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());\n\
         let logged: &'static std::sync::Mutex<Vec<String>> = &LOGGED;\n\
         std::panic::set_hook(Box::new(|info| { let text = info.to_string(); \
         if let Ok(mut log) = LOGGED.lock() { log.push(text) } }));",
    );
    notebook.ok("let caught = std::panic::catch_unwind(|| panic!(\"heard\")).is_err();");
    let shown =
        notebook.ok("logged.lock().map(|log| log.iter().any(|text| text.contains(\"heard\")))");
    assert_eq!(shown, "result: Ok(true)");
}

#[test]
fn early_ends_are_errors_that_say_where_and_what_was_kept() {
    let mut notebook = Notebook::open();
    notebook.ok("let kept = 1;");
    let error = notebook
        .error("let lost = 2;\nlet none: Option<u8> = None;\nnone.expect(\"nothing there\");");
    assert_eq!((&*error.ename, &*error.evalue), ("panic", "nothing there"));
    assert_eq!(
        error.traceback[0],
        format!("Cell In[{}], line 3", notebook.number)
    );
    assert!(
        error.traceback.join("\n").contains("kept: `kept`"),
        "{error:?}"
    );

    let error = notebook.error("let number: i32 = \"x\".parse()?;");
    assert_eq!(
        (&*error.ename, &*error.evalue),
        ("Error", "invalid digit found in string")
    );

    let error = notebook.error(
        "use stratoscope::diagnostics::{Diagnostic, Severity};\n\
         fn fails() -> stratoscope::diagnostics::Result<()> {\n\
         Err(Box::new(Diagnostic::new(\"SC0999\", Severity::Error, \"no\")))\n}\n\
         fails()?;",
    );
    assert_eq!((&*error.ename, &*error.evalue), ("SC0999", "no"));

    let error = notebook.error("let closure = || 1;");
    assert_eq!(error.ename, "SC1011");
    assert!(error.evalue.contains("`closure` is a closure"), "{error:?}");

    let error = notebook.error("let x = 1;\nlet y: String = x;");
    assert_eq!(error.ename, "E0308");
    assert_eq!(
        error.traceback[0],
        format!("Cell In[{}], line 2: E0308", notebook.number),
        "an error with an edit is a card"
    );

    let error = notebook.error("std::process::exit(7);");
    assert_eq!(error.ename, "ProcessEnded");
    assert!(
        error.evalue.contains("exit status 7") && error.evalue.contains("`kept`"),
        "{error:?}"
    );
    assert_eq!(notebook.ok("1 + 1"), "result: 2");
    let error = notebook.error("unsafe { std::ptr::null_mut::<u8>().write_volatile(1) };");
    assert!(error.evalue.contains("SIGSEGV"), "{error:?}");
    assert_eq!(notebook.ok("2 + 2"), "result: 4");
}

#[test]
fn scopes_leave_their_variables_and_never_stay_open() {
    let mut notebook = Notebook::open();
    notebook.ok("let strategy = stratoscope::strategy::MirroredStrategy::logical(2)?;");
    let depth = "stratoscope::strategy::scope::depth()";
    notebook.ok(&format!(
        "scope!(strategy, {{\n    let inside = {depth};\n    scope!(strategy, {{ let deeper = {depth}; }});\n}});"
    ));
    let shown = notebook.ok(&format!("(inside, deeper, {depth})"));
    assert_eq!(shown, "result: (1, 2, 0)");
    let shown = notebook.ok(&format!("%%scope strategy\nlet whole = {depth};\nwhole"));
    assert_eq!(shown, "result: 1");
    let shown = notebook.ok(&format!(
        "let value = scope!(strategy, {{ {depth} + 10 }});\nvalue"
    ));
    assert_eq!(shown, "result: 11");
    for failing in ["None::<u8>.ok_or(\"no\")?;", "panic!(\"no\");"] {
        notebook.error(&format!("scope!(strategy, {{ {failing} }});"));
        assert_eq!(notebook.ok(depth), "result: 0", "{failing}");
    }
}

#[test]
fn what_is_shown_and_printed_arrives_before_the_cell_ends() {
    let mut notebook = Notebook::open();
    let seen = notebook.ok("print!(\"half a line\")");
    assert_eq!(seen, "stdout: half a line");
    let seen = notebook
        .ok("display(&Html(\"<b>1</b>\"));\ndisplay(&Html(\"<b>2</b>\"));\nclear_output(true);");
    assert_eq!(seen, "display: 1\ndisplay: 2\nclear: true");
    let seen = notebook.ok("stratoscope::display::input(\"name?\")");
    assert_eq!(seen, "input: name?\nresult: Some(\"an answer\")");
    assert_eq!(notebook.ok("struct Bare;\nlet bare = Bare;"), "");
    assert_eq!(notebook.ok("()"), "");
    let seen = notebook.ok("for number in 0..200_000 { println!(\"{number}\") }");
    let lines = seen
        .replace("stdout: ", "")
        .lines()
        .filter(|line| !line.is_empty())
        .count();
    assert!(lines >= 200_000, "{lines}");
}

#[test]
fn what_the_standard_library_gives_out_has_a_type() {
    let mut notebook = Notebook::open();
    notebook.ok("use std::collections::{BTreeMap, HashMap, HashSet};\n\
                 let map = HashMap::from([(\"a\", 1), (\"b\", 2)]); let set = HashSet::from([1, 2]);");
    for (code, shown) in [
        ("let found = map.get(\"a\").copied(); found", "Some(1)"),
        (
            "let more = map.values().map(|it| it + 1).max(); more",
            "Some(3)",
        ),
        ("let first = set.iter().copied().min(); first", "Some(1)"),
        (
            "let keys = map.iter().map(|(k, v)| (k.len(), *v)).collect::<HashMap<_, _>>(); keys.len()",
            "1",
        ),
        (
            "let tree = BTreeMap::from([(1, 2)]); let last = tree.values().next_back().copied(); last",
            "Some(2)",
        ),
        ("let bytes = 5_i32.to_le_bytes(); bytes", "[5, 0, 0, 0]"),
        ("let power = 2_u64.pow(3).checked_add(1); power", "Some(9)"),
        (
            "let part = std::num::NonZeroU8::new(3).map(|it| it.get()); part",
            "Some(3)",
        ),
        (
            "let size = [0_u8; std::mem::size_of::<u32>()]; size.len()",
            "4",
        ),
        (
            "let joined = std::thread::spawn(|| 3_u8).join().ok(); joined",
            "Some(3)",
        ),
        (
            "let time = std::time::Duration::from_millis(1500).as_secs_f64(); time",
            "1.5",
        ),
        (
            "let words = \"a b\".split(' ').map(str::to_owned).collect::<Vec<_>>(); words",
            "[\"a\", \"b\"]",
        ),
    ] {
        assert_eq!(notebook.ok(code), format!("result: {shown}"), "{code}");
    }
}

#[test]
fn cells_link_what_they_name() {
    let mut notebook = Notebook::open();
    // What the processor cannot do by itself comes from rustc's own library.
    let shown = notebook
        .ok("let big = std::hint::black_box(u128::MAX) / std::hint::black_box(7); big % 1000");
    assert_eq!(shown, "result: 636");
    let shown = notebook.ok("unsafe extern \"C\" { fn abs(x: i32) -> i32; }\nunsafe { abs(-3) }");
    assert_eq!(shown, "result: 3");
    let error = notebook
        .error("unsafe extern \"C\" { fn nobody_has_this(); }\nunsafe { nobody_has_this() }");
    assert!(
        error.traceback.join("\n").contains("nobody_has_this"),
        "{error:?}"
    );
    assert_eq!(notebook.ok("1 + 1"), "result: 2");
}

#[test]
fn interrupts_lose_nothing_where_the_cell_listens_or_compiles() {
    let mut notebook = Notebook::open();
    notebook.ok("let kept = 5;");
    let interrupt = |notebook: &Notebook, after: u64| {
        let handle = notebook.engine.interrupt_handle();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(after));
            handle.interrupt();
        })
    };
    let pressed = interrupt(&notebook, 2500);
    let listens = "while !stratoscope::cell::interrupted() { std::thread::sleep(std::time::Duration::from_millis(5)) }";
    let (outcome, _) = notebook.run(listens);
    assert_eq!(outcome, CellOutcome::Interrupted { lost: None });
    pressed.join().expect("no panic");
    assert_eq!(notebook.ok("kept"), "result: 5");

    // While it compiles: enough code that rustc is still at it.
    let long: String = (0..3000)
        .map(|index| format!("fn f{index}(x: Vec<u64>) -> Vec<u64> {{ x.into_iter().map(|y| y + {index}).rev().collect() }}\n"))
        .collect();
    let calls: String = (0..3000).map(|index| format!("v = f{index}(v);")).collect();
    let pressed = interrupt(&notebook, 700);
    let (outcome, _) = notebook.run(&format!("{{ {long} let mut v = vec![1]; {calls} }}"));
    assert_eq!(outcome, CellOutcome::Interrupted { lost: None });
    pressed.join().expect("no panic");
    assert_eq!(notebook.ok("kept"), "result: 5");

    let pressed = interrupt(&notebook, 1500);
    let (outcome, _) = notebook.run("loop { std::hint::black_box(1); }");
    let CellOutcome::Interrupted { lost: Some(lost) } = outcome else {
        panic!("{outcome:?}")
    };
    assert!(lost.contains("`kept`"), "{lost}");
    pressed.join().expect("no panic");
    assert_eq!(notebook.ok("1 + 1"), "result: 2");
}

impl Notebook {
    fn completions(&mut self, code: &str) -> Vec<String> {
        let found = self.engine.complete(code, code.len());
        found.items.into_iter().map(|item| item.text).collect()
    }
}

#[test]
fn a_panic_of_rust_analyzer_costs_one_answer() {
    let mut notebook = Notebook::open();
    notebook.ok("let keep = vec![1];");
    for code in [
        "let x: i32 = ",
        "let n: usize = ke",
        "return ",
        "let v = keep; v",
        "f(ke",
    ] {
        assert!(!notebook.completions(code).is_empty(), "{code}");
        // As it is typed: there rust-analyzer searches, and panics.
        let _ = notebook.engine.complete_as_typed(code);
        assert_eq!(notebook.completions("kee"), ["keep"], "{code}");
        let found = notebook.completions("keep.pu");
        assert!(found.contains(&"push".to_owned()), "{code}: {found:?}");
        let described = notebook.engine.inspect("keep", 2, 0);
        assert!(described.is_some(), "{code}");
    }
    assert_eq!(notebook.ok("keep"), "result: [1]");
    let own = "struct Own { inner: u8 }\nlet own = Own { inner: 1 };\n\
               let mirrored = MirroredStrategy::logical(2)?;";
    notebook.ok(own);
    assert!(notebook.completions("own.").contains(&"inner".to_owned()));
    let found = notebook.completions("MirroredStrategy::");
    assert!(found.contains(&"logical".to_owned()) && !found.contains(&"with".to_owned()));
}

#[test]
fn items_that_a_macro_makes_are_those_of_the_notebook() {
    let mut notebook = Notebook::open();
    notebook.ok(
        "macro_rules! make { ($n:ident) => { #[derive(Debug)] struct $n { x: i32 } }; }\n\
         macro_rules! more { ($t:ident) => { impl $t { fn twice(&self) -> i32 { 2 * self.x } } \
         const LIMIT: i32 = 3; fn limited(x: i32) -> i32 { x.min(LIMIT) } #[derive(Debug)] enum Kind { One } }; }",
    );
    notebook.ok("make!(Q); let q = Q { x: 2 };");
    assert_eq!(notebook.ok("q"), "result: Q { x: 2 }");
    notebook.ok("more!(Q)");
    notebook.ok("let kinds: Vec<Kind> = vec![Kind::One];");
    assert_eq!(
        notebook.ok("(q.twice(), limited(9), kinds.len())"),
        "result: (4, 3, 1)"
    );
    // Run again, and with another definition.
    notebook.ok("more!(Q)");
    notebook.ok("make!(Q); let q: Q = Q { x: 5 };");
    assert_eq!(notebook.ok("q.twice()"), "result: 10");
    notebook.ok("%reset q");
    assert_eq!(notebook.ok("1 + 1"), "result: 2");
}

#[test]
fn a_variable_whose_type_ends_with_its_cell_is_refused() {
    let mut notebook = Notebook::open();
    notebook.ok("let kept = 1;");
    notebook.ok("macro_rules! both { ($n:ident) => { struct $n { x: i32 } let _ = 1; }; }");
    for (code, name) in [
        ("both!(Q); let q: Q = Q { x: 1 };", "`q`"),
        ("both!(E); let all: Vec<E> = vec![E { x: 1 }];", "`all`"),
    ] {
        let error = notebook.error(code);
        assert_eq!(error.ename, "SC1011", "{error:?}");
        assert!(error.evalue.contains(name), "{error:?}");
        assert!(
            error.evalue.contains("a macro of this cell makes"),
            "{error:?}"
        );
        assert_eq!(notebook.ok("kept + 1"), "result: 2");
    }
}

#[test]
fn a_cell_that_cannot_be_loaded_costs_nothing() {
    let mut notebook = Notebook::open();
    notebook.ok("let keep = vec![1]; let moved = String::from(\"there\");");
    notebook.ok(
        "let fs: Vec<_> = (0..1_000_000).map_while(|_| std::fs::File::open(\"/dev/null\").ok()).collect();",
    );
    assert_eq!(notebook.ok("keep.len()"), "result: 1");
    notebook.ok("drop(fs);");
    let folder = tempfile::tempdir().expect("a folder");
    let signal = folder.path().join("restore");
    // No descriptor has a number below 3 free, until another thread sees the file.
    notebook.ok(&format!(
        "unsafe extern \"C\" {{ fn getrlimit(of: i32, limit: *mut [u64; 2]) -> i32; \
         fn setrlimit(of: i32, limit: *const [u64; 2]) -> i32; }}\n\
         std::thread::spawn(|| {{ let mut limit = [0, 0];\n\
         unsafe {{ getrlimit(7, &mut limit); setrlimit(7, &[3, limit[1]]); }}\n\
         while !std::path::Path::new({signal:?}).exists() {{ std::thread::sleep(std::time::Duration::from_millis(5)) }}\n\
         unsafe {{ setrlimit(7, &limit) }} }});\n\
         std::thread::sleep(std::time::Duration::from_millis(200));"
    ));
    let error = notebook.error("drop(moved); let new = 1; let keep = 2;");
    assert_eq!(error.ename, "NotLoaded", "{error:?}");
    assert!(error.evalue.contains("file descriptors"), "{error:?}");
    assert!(
        error
            .traceback
            .join("\n")
            .contains("kept: `keep` and `moved`"),
        "{error:?}"
    );
    std::fs::write(&signal, "").expect("writes");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(notebook.ok("(keep, moved)"), "result: ([1], \"there\")");
    assert_eq!(notebook.error("new").ename, "E0425");
}
