"""Stage 0: a training script without any platform code. The "model" is one number that grows."""

import time


def main(growth: int) -> None:
    weight = 0
    for step in range(1, 51):
        weight += growth
        time.sleep(0.05)
        print(f"step {step}: weight {weight}", flush=True)


if __name__ == "__main__":
    main(growth=1)
