"""Step 2: the same script reports its metrics."""

import torch
from torch import nn, optim
from torch.nn import functional
from torch.utils.data import DataLoader

# NEW: the platform's library.
import determined as det

import data

EPOCHS, BATCH_SIZE, LEARNING_RATE, SEED = 4, 64, 0.5, 1


class Net(nn.Module):
    """Two convolutions and two linear layers: (batch, 1, 28, 28) -> log-probabilities (batch, 10)."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 2)
        self.conv2 = nn.Conv2d(8, 16, 3, 2)
        self.dropout = nn.Dropout(0.1)
        self.fc1 = nn.Linear(16 * 36, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = functional.relu(self.conv2(functional.relu(self.conv1(x))))
        x = functional.relu(self.fc1(self.dropout(torch.flatten(x, 1))))
        return functional.log_softmax(self.fc2(x), dim=1)


# NEW: train() and test() get the context to report through.
def train(core_context, model, loader, optimizer, epoch):
    model.train()
    for batch, (images, labels) in enumerate(loader):
        optimizer.zero_grad()
        loss = functional.nll_loss(model(images), labels)
        loss.backward()
        optimizer.step()
        if batch % 10 == 0:
            print(f"epoch {epoch} batch {batch}: loss {loss.item():.4f}")
            # NEW: steps count over all epochs, so that no step is reported twice.
            core_context.train.report_training_metrics(
                steps_completed=(epoch - 1) * len(loader) + batch + 1,
                metrics={"train_loss": loss.item(), "epoch": epoch},
            )


@torch.no_grad()
def test(core_context, model, loader, epoch, steps_completed):
    model.eval()
    loss, right, count = 0.0, 0, 0
    for images, labels in loader:
        scores = model(images)
        loss += functional.nll_loss(scores, labels, reduction="sum").item()
        right += int((scores.argmax(1) == labels).sum())
        count += len(labels)
    print(f"test: loss {loss / count:.4f}, accuracy {right / count:.3f}")
    # NEW: report the test results.
    core_context.train.report_validation_metrics(
        steps_completed=steps_completed,
        metrics={"test_loss": loss / count, "test_accuracy": right / count, "epoch": epoch},
    )


def main(core_context):
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    train_loader = DataLoader(data.load(train=True), BATCH_SIZE, shuffle=True)
    test_loader = DataLoader(data.load(train=False), 256)
    model = Net()
    optimizer = optim.Adadelta(model.parameters(), lr=LEARNING_RATE)
    for epoch in range(1, EPOCHS + 1):
        train(core_context, model, train_loader, optimizer, epoch)
        test(core_context, model, test_loader, epoch, steps_completed=epoch * len(train_loader))


if __name__ == "__main__":
    # NEW: the context stays open during the training.
    with det.core.init() as core_context:
        main(core_context)
