from datasets import load_dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding, Trainer, TrainingArguments

dataset = load_dataset("csv", data_files="train.csv")
tokenizer = AutoTokenizer.from_pretrained("tiny")
model = AutoModelForSequenceClassification.from_pretrained("tiny", num_labels=3)

def tokenize(batch):
    return tokenizer(batch["text"], truncation=True, max_length=32)

tokenized = dataset.map(tokenize, batched=True)

args = TrainingArguments(
    output_dir="linear",
    learning_rate=1e-2,
    per_device_train_batch_size=8,
    num_train_epochs=1,
    weight_decay=0.01,
    train_sampling_strategy="sequential",
    save_strategy="no",
    report_to="none",
)
trainer = Trainer(
    model=model,
    args=args,
    train_dataset=tokenized["train"],
    data_collator=DataCollatorWithPadding(tokenizer=tokenizer),
)
result = trainer.train()
