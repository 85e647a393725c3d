//! No argument of `TrainingArguments` is dropped without a word: it changes the translated cell, or the card names it.

use stratoscope_python::{Answer, Known, answer};

/// Arguments with a value that is no default, and what the cell then has.
const WRITTEN: &[(&str, &str)] = &[
    ("learning_rate=0.0123", "warmup_linear(0.0123, 0.0)"),
    ("per_device_train_batch_size=17", "batch_size = 17"),
    (
        "gradient_accumulation_steps=5",
        "gradient_accumulation_steps = 5",
    ),
    ("num_train_epochs=6", "epochs = 6"),
    ("num_train_epochs=6.0", "epochs = 6"),
    ("max_steps=77", "steps_per_epoch = 77"),
    ("weight_decay=0.03", ".weight_decay(0.03)"),
    ("adam_beta1=0.81", ".beta_1(0.81)"),
    ("adam_beta2=0.97", ".beta_2(0.97)"),
    ("adam_epsilon=1e-7", ".epsilon(1e-7)"),
    ("max_grad_norm=0.7", ".global_clipnorm(0.7)"),
    ("warmup_ratio=0.06", "warmup_linear(5e-5, 0.06)"),
    ("warmup_steps=0.06", "warmup_linear(5e-5, 0.06)"),
    (
        "warmup_steps=12",
        "warmup_linear(5e-5, (12.0 / training_steps as f64).min(1.0))",
    ),
    ("lr_scheduler_type=\"constant\"", "AdamW::new(5e-5)"),
    (
        "lr_scheduler_type=\"cosine\"",
        "CosineDecay::new(5e-5, training_steps)",
    ),
    ("label_smoothing_factor=0.2", ".label_smoothing(0.2)"),
    ("group_by_length=True", "group_by_length = true"),
    (
        "train_sampling_strategy=\"group_by_length\"",
        "group_by_length = true",
    ),
    ("train_sampling_strategy=\"sequential\"", "shuffle = false"),
    ("seed=13", "seed = 13"),
    ("save_steps=123", "every = 123"),
    ("save_total_limit=4", "keep_last = 4"),
    ("fp16=True", "set_global_policy(\"mixed_float16\")?;"),
    ("bf16=True", "set_global_policy(\"mixed_bfloat16\")?;"),
    ("eval_strategy=\"epoch\"", "validation_data = dev"),
    ("gradient_checkpointing=True", "recompute = true"),
    ("auto_find_batch_size=True", "batch_size = auto(8)"),
    ("optim=\"sgd\"", "SGD::new(warmup_linear(5e-5, 0.0))"),
    ("report_to=\"tensorboard\"", "TensorBoard::new("),
    ("report_to=\"wandb\"", "WandbLogger::new("),
    ("report_to=\"mlflow\"", "MlflowLogger::new("),
    ("disable_tqdm=True", "verbose = false"),
    ("resume_from_checkpoint=\"old\"", "resume_from = \"old\""),
];

/// Arguments that the card names.
const NAMED: &[&str] = &[
    "eval_steps=11",
    "per_device_eval_batch_size=3",
    "logging_steps=9",
    "logging_dir=\"l\"",
    "report_to=\"neptune\"",
    "dataloader_num_workers=3",
    "dataloader_drop_last=True",
    "remove_unused_columns=False",
    "push_to_hub=True",
    "hub_model_id=\"a\"",
    "deepspeed=\"d.json\"",
    "fsdp=\"full_shard\"",
    "lr_scheduler_kwargs={\"num_cycles\": 3}",
    "optim_args=\"a=1\"",
    "neftune_noise_alpha=5",
    "torch_compile=True",
    "tf32=True",
    "data_seed=4",
    "eval_delay=2",
    "eval_on_start=True",
    "save_only_model=True",
    "ddp_timeout=9",
    "use_cpu=True",
    "no_cuda=True",
    "metric_for_best_model=\"f1\"",
    "greater_is_better=True",
    "load_best_model_at_end=True",
    "full_determinism=True",
    "predict_with_generate=True",
    "generation_max_length=9",
    "unknown_argument=3",
    "overwrite_output_dir=True",
    "include_for_metrics=[\"inputs\"]",
    "run_name=\"r\"",
];

fn answered(argument: &str, eval: &str) -> Answer {
    let python = format!(
        "from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments\n\
         model = AutoModelForSequenceClassification.from_pretrained(\"bert-base-uncased\", num_labels=2)\n\
         args = TrainingArguments(\"out\", {argument})\n\
         trainer = Trainer(model=model, args=args, train_dataset=train{eval})\n\
         trainer.train()\n\
         trainer.evaluate(dev)\n"
    );
    answer(&python, &Known::default()).expect("it is Python")
}

/// The lines of the cell without its comments.
fn code(answer: &Answer) -> String {
    let lines = answer
        .translation
        .lines
        .iter()
        .filter(|line| !line.is_comment);
    let lines: Vec<&str> = lines.map(|line| line.text.as_str()).collect();
    lines.join("\n")
}

fn card(answer: &Answer) -> String {
    let evidence = answer.diagnostics.iter().flat_map(|card| &card.evidence);
    let values: Vec<&str> = evidence.map(|it| it.value.as_str()).collect();
    values.join("\n")
}

#[test]
fn each_argument_of_the_run_is_in_the_cell() {
    for (argument, expected) in WRITTEN {
        let answer = answered(argument, ", eval_dataset=dev");
        let code = code(&answer);
        assert!(code.contains(expected), "{argument}:\n{code}");
        assert!(code.contains("fit!("), "{argument}:\n{code}");
    }
}

#[test]
fn each_other_argument_is_on_the_card() {
    for argument in NAMED {
        let (name, value) = argument.split_once('=').expect("a value");
        let answer = answered(argument, ", eval_dataset=dev");
        let (code, card) = (code(&answer), card(&answer));
        let is_used =
            name == "per_device_eval_batch_size" && code.contains(&format!("batch_size = {value}"));
        assert!(
            card.contains(name) || is_used,
            "{argument}:\n{code}\n{card}"
        );
    }
}

#[test]
fn what_the_trainer_refuses_is_found() {
    let found = |argument: &str, eval: &str| -> Vec<String> {
        let answer = answered(argument, eval);
        answer
            .translation
            .findings
            .iter()
            .map(|it| it.code.clone())
            .collect()
    };
    assert_eq!(found("eval_strategy=\"epoch\"", ""), ["SC0103"]);
    assert_eq!(
        found("eval_strategy=\"epoch\"", ", eval_dataset=dev"),
        [""; 0]
    );
    assert_eq!(
        found("load_best_model_at_end=True", ", eval_dataset=dev"),
        ["SC0103"]
    );
    let both = "load_best_model_at_end=True, eval_strategy=\"epoch\"";
    assert_eq!(found(both, ", eval_dataset=dev"), ["SC0103"]);
    let same = "load_best_model_at_end=True, eval_strategy=\"epoch\", save_strategy=\"epoch\"";
    assert_eq!(found(same, ", eval_dataset=dev"), [""; 0]);
}
