//! Charts: `history.plot()` draws the curves of a run, with titles, axes and a legend, in whatever form matplotlib, pandas or
//! seaborn would.

use stratoscope_diagnostics::CellSpan;

use super::arguments::see_whole;
use super::library::call_value;
use super::thing::Thing;
use super::{Translator, Why, text};
use crate::model::{
    Call, Function, Kind, Statement, StatementKind, Value, each_statement, each_value,
};

/// What draws lines or points.
const DRAWS: [&str; 7] = [
    "plot", "semilogy", "semilogx", "loglog", "scatter", "lineplot", "step",
];

/// Why a picture has no file.
const NO_FILE: &str = "`plot()` shows a chart and writes no file: the saved notebook keeps it, and \
    `std::fs::write(\"loss.svg\", plot(&history[\"loss\"])?.to_svg()).unwrap();` writes one curve as a picture";

/// Why a setting of a chart is not written.
const LOOKS: &str = "charts here have titles, axes and a legend";

impl Translator<'_> {
    /// A call of matplotlib or seaborn, or of a figure of them.
    pub(crate) fn chart(&mut self, last: &str, call: &Call, span: CellSpan) -> Result<(), Why> {
        let whole = call_value(call);
        let mut missing = None;
        whole.visit(&mut |inner| {
            let found = inner.name().and_then(|name| self.missing(name));
            missing = missing.take().or(found);
        });
        if let Some(why) = missing {
            return Err(why);
        }
        if last == "savefig" {
            return Err(NO_FILE.to_owned());
        }
        // `sns.heatmap(matrix)` of a matrix that shows itself.
        let shown = call.arguments.first().and_then(Value::name);
        if let ("heatmap" | "imshow" | "matshow", Some(name)) = (last, shown)
            && matches!(self.things.get(name), Some(Thing::Report))
        {
            call.see_all();
            self.push(format!("display(&{});", text::name(name)), span);
            return Ok(());
        }
        let run = self.run_of(&whole);
        match (DRAWS.contains(&last), run) {
            (true, Some(run)) => {
                see_whole(&whole);
                self.draw(&run, span)
            }
            (true, None) => {
                let history = self.latest_run();
                Err(format!(
                    "the curves of a run are drawn by `{history}.plot()`, other numbers by `plot(&values)?` and `plot_xy(&xs, &ys)?`"
                ))
            }
            (false, _) if is_picture(last) => Err(format!(
                "`plot(&values)?`, `scatter(&xs, &ys)?`, `histogram(&values)?` and `heatmap(&rows)?` are the charts here, not `{last}`"
            )),
            (false, _) => {
                see_whole(&whole);
                self.idle(span, LOOKS);
                Ok(())
            }
        }
    }

    /// Draws a run, once.
    fn draw(&mut self, run: &str, span: CellSpan) -> Result<(), Why> {
        let line = format!("{run}.plot();");
        // A comment may stand behind it.
        let is_there = |it: &crate::Line| it.text.split(" // ").next() == Some(&line);
        if self.translation.lines.iter().any(is_there) {
            let why = format!("`{run}.plot()` draws all that was measured");
            self.idle(span, why);
            return Ok(());
        }
        if !self.things.contains_key(run) {
            self.free(run, "the `History` that `fit!` returns")?;
        }
        self.push(line, span);
        self.note(
            span,
            "`plot()` draws the loss and the metrics of all epochs, those of validation beside them",
        );
        Ok(())
    }

    /// The run whose values stand in a value.
    pub(crate) fn run_of(&self, value: &Value) -> Option<String> {
        let mut found = None;
        value.visit(&mut |inner| {
            let of_values = match inner.name().and_then(|name| self.things.get(name)) {
                Some(Thing::Floats(run)) => run.clone(),
                Some(Thing::Epochs(run)) => Some(run.clone()),
                _ => None,
            };
            found = found.take().or(of_values).or_else(|| self.run(inner));
        });
        found
    }

    /// The latest run, for a message.
    fn latest_run(&self) -> String {
        let mut runs = self.things.iter().rev();
        let found = runs.find(|(_, thing)| matches!(thing, Thing::History));
        found.map_or_else(|| "history".to_owned(), |(name, _)| text::name(name))
    }

    /// `fig, (a, b) = plt.subplots(1, 2)`, `ax = fig.add_subplot(111)`: nothing is made, and the names are figures. `None`: it is
    /// something else.
    pub(crate) fn figure(
        &mut self,
        target: &Value,
        value: &Value,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        let call = value.call()?;
        let Kind::Attribute(object, last) = &call.function.kind else {
            return None;
        };
        let full = self.names.full(&call.function).unwrap_or_default();
        let of_library = full.starts_with("matplotlib.") || full.starts_with("seaborn.");
        if !of_library && !self.is_figure(object) && !self.draws_itself(object, last) {
            return None;
        }
        let done = match is_picture(last) || DRAWS.contains(&last.as_str()) {
            true => self.chart(last, call, span),
            false => {
                see_whole(value);
                self.idle(span, LOOKS);
                Ok(())
            }
        };
        if done.is_ok() {
            target.visit(&mut |inner| {
                if let Some(name) = inner.name() {
                    self.things.insert(name.to_owned(), Thing::Figure);
                }
            });
        }
        Some(done)
    }

    /// Whether a value is a figure, or one of several: `axes[0]`.
    pub(crate) fn is_figure(&self, value: &Value) -> bool {
        match &value.kind {
            Kind::Name(name) => matches!(self.things.get(name), Some(Thing::Figure)),
            Kind::Index(object, _) | Kind::Attribute(object, _) => self.is_figure(object),
            Kind::Call(call) => {
                let full = self.names.full(&call.function);
                full.is_some_and(|it| it.starts_with("matplotlib."))
                    || self.is_figure(&call.function)
            }
            _ => false,
        }
    }

    /// `pd.DataFrame(history.history).plot()`, also of some of its columns.
    pub(crate) fn draws_itself(&self, object: &Value, method: &str) -> bool {
        let is_frame = |value: &Value| match &value.kind {
            Kind::Index(frame, _) => self.run(frame).is_some(),
            _ => self.run(value).is_some(),
        };
        match &object.kind {
            // `frame.plot.line()`
            Kind::Attribute(frame, plot) if plot == "plot" => is_frame(frame),
            _ => method == "plot" && is_frame(object),
        }
    }

    /// A method of a figure, or `plot` of the frame of a history; `None`: it is something else.
    pub(crate) fn chart_method(
        &mut self,
        object: &Value,
        method: &str,
        call: &Call,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        if self.is_figure(object) {
            return Some(self.chart(method, call, span));
        }
        self.draws_itself(object, method)
            .then(|| self.chart("plot", call, span))
    }

    /// Whether a function only draws a run, which is then drawn where it is called.
    pub(crate) fn draws_run(&mut self, it: &Function, span: CellSpan) -> bool {
        let Some(place) = self.draws(it) else {
            return false;
        };
        self.skip_comments(span.end);
        each_value(&it.body, &mut see_whole);
        self.push(
            format!(
                "// `{}` draws the curves of a run: `plot()` of a history does.",
                it.name
            ),
            span,
        );
        let parameter = it.parameters[place].0.clone();
        self.things
            .insert(it.name.clone(), Thing::Draws(place, parameter));
        true
    }

    /// A function that only draws a run that it is given: its parameter. `None`: it does something else.
    fn draws(&self, function: &Function) -> Option<usize> {
        let mut calls = 0;
        let mut is_other = function.has_more;
        let mut figures: Vec<&str> = Vec::new();
        fn is_plain(statement: &Statement) -> bool {
            match &statement.kind {
                StatementKind::For(..) | StatementKind::If(_) | StatementKind::With(..) => {
                    let blocks = statement.blocks();
                    blocks.iter().all(|block| block.iter().all(is_plain))
                }
                StatementKind::Assign(..)
                | StatementKind::Expression(_)
                | StatementKind::Nothing => true,
                _ => false,
            }
        }
        is_other |= !function.body.iter().all(is_plain);
        for statement in &function.body {
            if let StatementKind::Assign(targets, value) = &statement.kind
                && (self.names.called(value)).is_some_and(|it| it.starts_with("matplotlib."))
            {
                for target in targets {
                    target.visit(&mut |it| figures.extend(it.name()));
                }
            }
        }
        each_statement(&function.body, &mut |statement| {
            if let StatementKind::For(target, items, _) = &statement.kind {
                let mut is_of_figure = false;
                items.visit(&mut |it| {
                    is_of_figure |= it.name().is_some_and(|name| figures.contains(&name));
                });
                if is_of_figure {
                    target.visit(&mut |it| figures.extend(it.name()));
                }
            }
        });
        let place = function.parameters.iter().position(|(name, _)| {
            let mut is_run = false;
            each_value(&function.body, &mut |value| {
                is_run |= matches!(&value.kind, Kind::Attribute(it, last) if last == "history" && it.name() == Some(name));
            });
            is_run
        })?;
        each_value(&function.body, &mut |value| {
            let Some(call) = value.call() else { return };
            let mut first = &call.function;
            while let Kind::Attribute(object, _) | Kind::Index(object, _) = &first.kind {
                first = object;
            }
            let full = self.names.full(&call.function).unwrap_or_default();
            let is_chart = full.starts_with("matplotlib.")
                || full.starts_with("seaborn.")
                || first.name().is_some_and(|name| figures.contains(&name));
            calls += usize::from(is_chart);
            let harmless = [
                "range",
                "len",
                "max",
                "min",
                "enumerate",
                "zip",
                "str",
                "list",
            ];
            let is_harmless = call
                .function
                .name()
                .is_some_and(|it| harmless.contains(&it))
                || value.method("format").is_some()
                || value.method("keys").is_some()
                || full.starts_with("numpy.")
                || full == "pandas.DataFrame";
            is_other |= !is_chart && !is_harmless;
        });
        (calls > 0 && !is_other).then_some(place)
    }

    /// `plot_history(history)`: the run is drawn.
    pub(crate) fn drawn(&mut self, place: usize, name: &str, call: &Call) -> Result<(), Why> {
        let given = match call.keyword(name) {
            Some(keyword) => &keyword.value,
            None => call.arguments.get(place).ok_or("it gets no history")?,
        };
        let why = given.name().and_then(|name| self.missing(name));
        let run = match (self.run(given), why) {
            (_, Some(why)) => return Err(why),
            (Some(run), None) => run,
            (None, None) => return Err("what it gets is no history of a `fit`".to_owned()),
        };
        see_whole(&call_value(call));
        let named = call.keywords.iter().filter(|it| it.name != name);
        let others = call
            .arguments
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != place);
        let others = others.map(|(_, it)| it.span);
        for span in others.chain(named.map(|it| it.span)).collect::<Vec<_>>() {
            self.idle(span, LOOKS);
        }
        self.draw(&run, call.span)
    }
}

/// Whether a call draws something that is no curve.
fn is_picture(name: &str) -> bool {
    matches!(
        name,
        "bar"
            | "barh"
            | "boxplot"
            | "contour"
            | "contourf"
            | "countplot"
            | "errorbar"
            | "heatmap"
            | "hist"
            | "histplot"
            | "imshow"
            | "matshow"
            | "pie"
            | "violinplot"
    )
}
