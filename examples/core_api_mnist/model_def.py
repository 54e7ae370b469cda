"""Step 1: a training script without any platform code."""

import torch
from torch import nn, optim
from torch.nn import functional
from torch.utils.data import DataLoader

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


def train(model, loader, optimizer, epoch):
    model.train()
    for batch, (images, labels) in enumerate(loader):
        optimizer.zero_grad()
        loss = functional.nll_loss(model(images), labels)
        loss.backward()
        optimizer.step()
        if batch % 10 == 0:
            print(f"epoch {epoch} batch {batch}: loss {loss.item():.4f}")


@torch.no_grad()
def test(model, loader):
    model.eval()
    loss, right, count = 0.0, 0, 0
    for images, labels in loader:
        scores = model(images)
        loss += functional.nll_loss(scores, labels, reduction="sum").item()
        right += int((scores.argmax(1) == labels).sum())
        count += len(labels)
    print(f"test: loss {loss / count:.4f}, accuracy {right / count:.3f}")


def main():
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    train_loader = DataLoader(data.load(train=True), BATCH_SIZE, shuffle=True)
    test_loader = DataLoader(data.load(train=False), 256)
    model = Net()
    optimizer = optim.Adadelta(model.parameters(), lr=LEARNING_RATE)
    for epoch in range(1, EPOCHS + 1):
        train(model, train_loader, optimizer, epoch)
        test(model, test_loader)
    torch.save(model.state_dict(), "mnist_cnn.pt")


if __name__ == "__main__":
    main()
