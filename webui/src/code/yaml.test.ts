import { expect, test } from "vitest";

import { asYaml } from "./yaml";

test("data becomes equivalent YAML", () => {
  const data = {
    name: "a b",
    on: true,
    odd: "yes",
    n: 1e-3,
    none: null,
    empty: {},
    list: [1, { a: 1, b: [] }, [2]],
    deep: { "x y": "a: b" },
  };
  expect(asYaml(data)).toBe(
    'name: a b\n"on": true\nodd: "yes"\nn: 0.001\nnone: null\nempty: {}\nlist:\n  - 1\n  - a: 1\n    b: []\n  -\n    - 2\ndeep:\n  x y: "a: b"\n',
  );
  expect(asYaml('{"a": 1}')).toBe("a: 1\n");
  expect(asYaml("# mine\na: 1\n")).toBe("# mine\na: 1\n");
  expect(asYaml("{broken")).toBe("{broken");
});
