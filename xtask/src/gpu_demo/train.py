"""A training loop for `cargo xtask gpu-demo`: the same steps give the same loss.

It fills as many GiB of a GPU as it is told, trains on what is in there, looks in the end whether
all of it is still there, and knows nothing of being suspended. It saves nothing: whoever starts it
again begins with the first step. With --pretend it needs neither a GPU nor PyTorch.
"""

import argparse
import math
import os
import time

WIDTH = 2048
LAYERS = 8
BATCH = 1024

# Seconds between two steps from which on it did not run: a step takes milliseconds.
PAUSE = 0.3
ROWS_PRETENDED = 100_000


def on_gpu(gib, seed):
    """A step of the training, and a sum over all that it has in memory."""
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    import torch

    torch.use_deterministic_algorithms(True)
    torch.manual_seed(seed)
    rows = gib * 2**30 // (4 * WIDTH)
    data = torch.empty(rows, WIDTH, device="cuda")
    for part in data.split(2**16):
        part.normal_()
    teacher = torch.randn(WIDTH, 1, device="cuda") / WIDTH**0.5
    layers = []
    for _ in range(LAYERS):
        layers += [torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(WIDTH, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step(number):
        # Steps go all over the memory.
        at = number * 1_000_003 * BATCH % (rows - BATCH)
        batch = data[at : at + BATCH]
        loss = torch.nn.functional.mse_loss(model(batch), torch.tanh(batch @ teacher))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    def memory():
        parts = (part.view(torch.int32).sum(dtype=torch.int64) for part in data.split(2**16))
        return sum(int(part) for part in parts) % 2**32

    return step, memory


def pretended(seed):
    """The same without a GPU: figures that depend on all steps before."""
    data = [(seed + row) * 1_103_515_245 % 2**31 for row in range(ROWS_PRETENDED)]
    numbers = [seed]

    def step(number):
        time.sleep(0.01)
        row = data[number * 1_000_003 % len(data)]
        numbers.append((numbers[-1] * 1_103_515_245 + row) % 2**31)
        return numbers[-1] / 2**31

    return step, lambda: sum(data) % 2**32


def say(word, value):
    print(word, value, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--pretend", action="store_true")
    args = parser.parse_args()
    say("begins", time.time())
    step, memory = pretended(args.seed) if args.pretend else on_gpu(args.gib, args.seed)
    before = memory()
    loss, pauses = step(0), []
    first = last = time.time()
    say("first-step", first)
    for number in range(1, args.steps):
        loss = step(number)
        now = time.time()
        if now - last > PAUSE:
            pauses.append(now - last)
        last = now
    if not math.isfinite(loss):
        raise SystemExit(f"the loss is {loss}")
    if memory() != before:
        raise SystemExit("its memory is not what it was")
    say("loss", f"{loss:.9g}")
    say("memory", before)
    say("pauses", len(pauses))
    say("worked", f"{last - first - sum(pauses):.3f}")


main()
