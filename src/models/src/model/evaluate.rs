//! `evaluate!(model, data, …)`: loss and metrics without dropout, the batches split over the replicas as in training.

use std::sync::Arc;

use stratoscope_data::{Data, IntoData};
use stratoscope_diagnostics::rules::NoLoss;
use stratoscope_diagnostics::{Place, Result, Rule};
use stratoscope_strategy::Origin;

use crate::model::Model;
use crate::report::history::{CutTexts, Evaluation, OtherLength};
use stratoscope_arguments::EvaluateArgs;
use stratoscope_arguments::context::RunContext;
use stratoscope_arguments::context::interrupt::Listening;
use stratoscope_arguments::context::warnings::begin_call;
use stratoscope_step::evaluation::{Measures, evaluate_batches};
use stratoscope_step::head::Head;
use stratoscope_step::prepare;
use stratoscope_train::watch::new_head;

impl Model {
    /// Loss and metrics of a data set, without dropout, as means over its examples; of tagged words and hidden tokens, over
    /// these.
    ///
    /// # Errors
    /// SC0112 for a model that was not compiled, SC0113 without a loss, SC0520 if it is interrupted;
    /// what is wrong with the data.
    #[track_caller]
    pub fn evaluate<'d>(&self, data: impl IntoData<'d>, args: EvaluateArgs) -> Result<Evaluation> {
        self.evaluate_data(data.into_data(), args, Origin::current())
    }

    fn evaluate_data(
        &self,
        data: Data<'_>,
        args: EvaluateArgs,
        origin: Origin,
    ) -> Result<Evaluation> {
        begin_call();
        let plan = args.resolve()?;
        let _listening = Listening::begin();
        let mut state = self.state();
        if state.compiled.is_some() {
            state.ready_for(data, "evaluate", origin)?;
        }
        let compiled = Arc::clone(state.compiled_for("evaluate")?);
        let Some(loss) = compiled.loss else {
            let mut problem = NoLoss.diagnostic();
            problem
                .labels
                .iter_mut()
                .for_each(|label| label.place = Place::model("evaluate"));
            return Err(Box::new(problem));
        };
        let first = match plan.steps {
            Some(batches) => data.first(batches.saturating_mul(plan.batch_size))?,
            None => None,
        };
        let data = first.as_ref().map_or(data, Data::Held);
        let encoded = prepare::encode_data(
            &*state.files,
            &state.head_written(),
            Some(loss),
            data,
            (plan.max_length.or(state.trained_length), false),
            "evaluate",
        )?;
        new_head(&state, "evaluate")?;
        let context = RunContext::current();
        let observer = context.observer_of_a_run(plan.verbose);
        let (run, total) = (context.next_run(), encoded.len());
        let report = |done: usize| observer.evaluated(run, done, total);
        let measures = Measures {
            loss,
            metrics: &compiled.metrics,
            classes: state.files.classes(),
            task: state.files.task(),
            precision: state.step.policy.precision(),
        };
        let replicas = state.settled()?;
        let head = Head::of(&*state.files, replicas.first(), Some(loss));
        let mut found = evaluate_batches(&replicas, &encoded, plan.batch_size, measures, &report)?;
        found.predictions.label_names = head.label_names(&*state.files);
        found.cut = CutTexts::of(encoded.report());
        found.other_length = OtherLength::of(plan.max_length, state.trained_length);
        Ok(found)
    }
}
