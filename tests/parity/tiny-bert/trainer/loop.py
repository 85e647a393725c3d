import torch
from datasets import load_dataset
from torch.optim import AdamW
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding, get_linear_schedule_with_warmup

dataset = load_dataset("csv", data_files="train.csv", split="train")
tokenizer = AutoTokenizer.from_pretrained("tiny")
model = AutoModelForSequenceClassification.from_pretrained("tiny", num_labels=3)

def tokenize(batch):
    return tokenizer(batch["text"], truncation=True, max_length=32)

tokenized = dataset.map(tokenize, batched=True, remove_columns=["text"]).rename_column("label", "labels")
train_loader = DataLoader(tokenized, batch_size=8, shuffle=False, collate_fn=DataCollatorWithPadding(tokenizer))

epochs = 1
optimizer = AdamW(model.parameters(), lr=1e-2)
total_steps = len(train_loader) * epochs
scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=1, num_training_steps=total_steps)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model.to(device)

for epoch in range(epochs):
    model.train()
    for batch in train_loader:
        batch = {k: v.to(device) for k, v in batch.items()}
        outputs = model(**batch)
        loss = outputs.loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
