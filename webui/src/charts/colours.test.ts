import { expect, test } from "vitest";

import { bestOf, choose, drop, inCommon, NONE, readChosen, recolour, SLOTS, slotColour, slotDash, writeChosen } from "./colours";

const chosen = (text: string) => readChosen(text)!;

test("a trial takes the lowest free slot and keeps it while it is chosen", () => {
  const three = [7, 8, 9].reduce(choose1, NONE);
  expect(writeChosen(three)).toBe("7.1,8.2,9.3");
  const without = drop(three, 8);
  expect(writeChosen(without)).toBe("7.1,9.3");
  expect(writeChosen(choose(without, 5))).toBe("7.1,9.3,5.2");
});

const choose1 = (before: ReturnType<typeof drop>, trial: number) => choose(before, trial);

test("no two trials share a colour: in a link the later one moves, and there are twelve at most", () => {
  expect(writeChosen(chosen("3.2,4.2,5.1"))).toBe("3.2,4.1,5.3");
  const many = Array.from({ length: 20 }, (_, at) => at + 1).reduce(choose1, NONE);
  expect(many.size).toBe(SLOTS);
  expect(new Set(many.values()).size).toBe(SLOTS);
});

test("taking another trial's colour swaps the two", () => {
  expect(writeChosen(recolour(chosen("3.1,4.2"), 3, 2))).toBe("3.2,4.1");
  expect(writeChosen(recolour(chosen("3.1,4.2"), 3, 9))).toBe("3.9,4.2");
});

test("a link holds the chosen trials, and also that none is chosen", () => {
  expect(readChosen(null)).toBeNull();
  expect(readChosen("rank")).toBeNull();
  expect(writeChosen(NONE)).toBe("0");
  expect(chosen("0").size).toBe(0);
  expect(writeChosen(chosen("12,40.7"))).toBe("12.1,40.7");
  expect(writeChosen(chosen("12.99,x.3"))).toBe("12.1");
});

test("without a choice, the best five are chosen", () => expect(writeChosen(bestOf([9, 2, 4, 1, 6, 3]))).toBe("9.1,2.2,4.3,1.4,6.5"));

test("compared trials keep the colours of their experiments, and no two of them share one", () => {
  expect(writeChosen(inCommon([chosen("7.4,8.2,9.1")], [8, 7]))).toBe("7.4,8.2");
  expect(writeChosen(inCommon([bestOf([7, 8]), bestOf([17, 18])], [7, 8, 17, 18]))).toBe("7.1,8.2,17.3,18.4");
  expect(writeChosen(inCommon([chosen("7.3")], [7, 20, 21]))).toBe("7.3,20.1,21.2");
  expect(
    inCommon(
      [],
      Array.from({ length: 20 }, (_, at) => at + 1),
    ).size,
  ).toBe(SLOTS);
});

test("slots 7 to 12 are dashed, and the other trials are grey", () => {
  expect([slotColour(1), slotColour(12), slotColour(undefined)]).toEqual(["--s1", "--s12", "--s-rest"]);
  expect([slotDash(6), slotDash(7), slotDash(undefined)]).toEqual([[], [6, 3], []]);
});
