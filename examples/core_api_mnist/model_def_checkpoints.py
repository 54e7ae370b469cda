"""Step 3: it saves checkpoints, can be paused after any epoch, and resumes there."""

import torch
from torch import nn, optim
from torch.nn import functional
from torch.utils.data import DataLoader

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


def train(core_context, model, loader, optimizer, epoch):
    model.train()
    for batch, (images, labels) in enumerate(loader):
        optimizer.zero_grad()
        loss = functional.nll_loss(model(images), labels)
        loss.backward()
        optimizer.step()
        if batch % 10 == 0:
            print(f"epoch {epoch} batch {batch}: loss {loss.item():.4f}")
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
    core_context.train.report_validation_metrics(
        steps_completed=steps_completed,
        metrics={"test_loss": loss / count, "test_accuracy": right / count, "epoch": epoch},
    )


# NEW: read what an earlier run has saved.
def load_state(path, trial_id, model, optimizer):
    """The epochs that are done: those of this trial, or none when it continues from another one."""
    state = torch.load(path / "checkpoint.pt", weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epochs"] if state["trial_id"] == trial_id else 0


# NEW: save what a later run needs.
def save_state(core_context, trial_id, model, optimizer, epoch, steps_completed):
    with core_context.checkpoint.store_path({"steps_completed": steps_completed}) as (path, _):
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state | {"epochs": epoch, "trial_id": trial_id}, path / "checkpoint.pt")


def main(core_context):
    # NEW: which trial this is, and its latest checkpoint, if any.
    info = det.get_cluster_info()
    assert info is not None, "this script runs as a trial: det e create checkpoints.yaml . -f"
    trial_id, latest_checkpoint, epochs_done = info.trial.trial_id, info.latest_checkpoint, 0
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    train_loader = DataLoader(data.load(train=True), BATCH_SIZE, shuffle=True)
    test_loader = DataLoader(data.load(train=False), 256)
    model = Net()
    optimizer = optim.Adadelta(model.parameters(), lr=LEARNING_RATE)
    # NEW: resume from it.
    if latest_checkpoint is not None:
        with core_context.checkpoint.restore_path(latest_checkpoint) as path:
            epochs_done = load_state(path, trial_id, model, optimizer)
    for epoch in range(epochs_done + 1, EPOCHS + 1):
        train(core_context, model, train_loader, optimizer, epoch)
        steps_completed = epoch * len(train_loader)
        test(core_context, model, test_loader, epoch, steps_completed)
        # NEW: save, then leave if the platform asks for it, for example after `det e pause`.
        save_state(core_context, trial_id, model, optimizer, epoch, steps_completed)
        if core_context.preempt.should_preempt():
            return


if __name__ == "__main__":
    with det.core.init() as core_context:
        main(core_context)
