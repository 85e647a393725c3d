from datasets import load_dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding, Trainer, TrainingArguments

dataset = load_dataset("csv", data_files="train.csv", split="train")
tokenizer = AutoTokenizer.from_pretrained("tiny")
model = AutoModelForSequenceClassification.from_pretrained("tiny", num_labels=3)
tokenized = dataset.map(lambda batch: tokenizer(batch["text"], truncation=True, max_length=32), batched=True)

args = TrainingArguments(
    output_dir="cosine",
    learning_rate=2e-2,
    lr_scheduler_type="cosine",
    warmup_steps=2,
    per_device_train_batch_size=4,
    gradient_accumulation_steps=2,
    num_train_epochs=1,
    label_smoothing_factor=0.1,
    max_grad_norm=0.5,
    adam_beta2=0.99,
    adam_epsilon=1e-6,
    train_sampling_strategy="sequential",
    save_strategy="no",
    report_to="none",
)
trainer = Trainer(model, args, train_dataset=tokenized, data_collator=DataCollatorWithPadding(tokenizer))
result = trainer.train()
