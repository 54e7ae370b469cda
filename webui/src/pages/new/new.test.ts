import { expect, test } from "vitest";

import { unpack, untar, withoutTop } from "./archive";
import { chosen, configurations, ignores, items } from "./code";
import { type Known, lineOf, offers, pathsOf, wrongs } from "./yaml";

const CONFIG = `name: x
hyperparameters:
  lr:
    type: log
    minval: -4
searcher:
  name: adaptive_asha
  metric: loss
bind_mounts:
  - host_path: /a
    container_path: b
`;
const field = (path: string, more: Partial<Known> = {}): Known => ({
  path,
  kind: "text",
  default: null,
  required: false,
  words: [],
  only: [],
  ...more,
});
const FIELDS = [
  field("name"),
  field("max_restarts", { kind: "whole number", default: 5 }),
  field("checkpoint_policy", { kind: "word", words: ["best", "all", "none"] }),
  field("searcher", { kind: "map" }),
  field("searcher.name", { words: ["single", "adaptive_asha"] }),
  field("searcher.max_length"),
  field("searcher.mode", { only: ["adaptive_asha"] }),
  field("searcher.unit", { only: ["custom"] }),
  field("hyperparameters.*.type", { words: ["log", "int"] }),
  field("hyperparameters.*.base", { only: ["log"] }),
  field("bind_mounts[].read_only", { kind: "true or false" }),
];
const encode = (text: string) => new TextEncoder().encode(text) as Uint8Array<ArrayBuffer>;

test("each line knows the keys that lead to it, and each error its line", () => {
  expect(pathsOf(CONFIG)).toContain("hyperparameters.lr.minval");
  expect(pathsOf(CONFIG)).toContain("bind_mounts[].container_path");
  expect(lineOf(CONFIG, "hyperparameters.lr.minval")).toBe(4);
  expect(lineOf(CONFIG, "bind_mounts[0].container_path")).toBe(10);
  // An error about a missing field belongs to the map around it.
  expect(lineOf(CONFIG, "searcher.max_length")).toBe(5);
  expect(lineOf(CONFIG, "entrypoint")).toBe(0);
});

test("errors are reported by field and line", () => {
  const message =
    "invalid experiment configuration:\n  <config>.searcher.max_length: is required and not set\n  <config>.hyperparameters.lr.minval: must be a number";
  expect(wrongs(CONFIG, message).map((wrong) => [wrong.path, wrong.line])).toEqual([
    ["searcher.max_length", 5],
    ["hyperparameters.lr.minval", 4],
  ]);
  expect(wrongs(CONFIG, "the configuration cannot be read as YAML: line 3, column 1: odd")).toMatchObject([{ line: 2, path: "" }]);
});

test("completions are those allowed at the cursor, and none that the other fields forbid", () => {
  const at = (text: string) => offers(text, text.length, FIELDS).offers.map((offer) => offer.label);
  expect(at("")).toEqual(["name", "max_restarts", "checkpoint_policy", "searcher"]);
  expect(at("name: x\nma")).toEqual(["max_restarts"]);
  expect(at("checkpoint_policy: ")).toEqual(["best", "all", "none"]);
  expect(at(`${CONFIG.slice(0, CONFIG.indexOf("bind"))}  m`)).toEqual(["max_length", "mode"]);
  expect(at("searcher:\n  name: si")).toEqual(["single"]);
  expect(at("hyperparameters:\n  lr:\n    type: log\n    ")).toEqual(["base"]);
  expect(at("bind_mounts:\n  - host_path: a\n    read_only: t")).toEqual(["true"]);
});

function tar(files: Record<string, string>): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  for (const [path, content] of Object.entries(files)) {
    const head = new Uint8Array(512);
    head.set(encode(path), 0);
    head.set(encode(encode(content).length.toString(8).padStart(11, "0")), 124);
    head[156] = 48;
    head.set(encode("ustar\0"), 257);
    const body = new Uint8Array(Math.ceil(encode(content).length / 512) * 512);
    body.set(encode(content));
    parts.push(head, body);
  }
  parts.push(new Uint8Array(1024));
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

test("archives are unpacked, and a folder around all files is left out", async () => {
  const files = { "job/train.py": "print(1)\n", "job/data/a.txt": "ä".repeat(600), "job/config.yaml": "searcher: {}\n" };
  expect(untar(tar(files)).map((packed) => packed.path)).toEqual(Object.keys(files));
  const packed = new Uint8Array(
    await new Response(new Blob([tar(files)]).stream().pipeThrough(new CompressionStream("gzip"))).arrayBuffer(),
  );
  const unpacked = withoutTop(await unpack("job.tar.gz", packed));
  expect(unpacked.map((packed) => packed.path)).toEqual(["train.py", "data/a.txt", "config.yaml"]);
  expect(new TextDecoder().decode(unpacked[1]!.bytes)).toBe("ä".repeat(600));
  expect(configurations(unpacked).map((configuration) => configuration.path)).toEqual(["config.yaml"]);
  await expect(unpack("x.rar", packed)).rejects.toThrow("not a supported archive");
  expect(() => untar(encode("x".repeat(600)))).toThrow("damaged");
});

test("a zip is read by its central directory", async () => {
  // Made by Python: one file stored, one deflated.
  const zip = Uint8Array.from(atob(ZIP), (character) => character.charCodeAt(0));
  const files = await unpack("x.zip", zip);
  expect(files.map((packed) => [packed.path, new TextDecoder().decode(packed.bytes)])).toEqual([
    ["a.py", "print(1)\n"],
    ["b/c.txt", "x".repeat(100)],
  ]);
});

test("files that are not code are not submitted", () => {
  const isIgnored = ignores("# big\ndata/\n*.bin\n/out");
  expect(["data/x", "a/b.bin", "out", ".git/HEAD", "a/__pycache__/x.pyc"].every(isIgnored)).toBe(true);
  expect(["train.py", "a/out", "database.py"].some(isIgnored)).toBe(false);
  const files = ["b.py", "a/c.py", ".git/x"].map((path) => ({ path, bytes: encode("1") }));
  expect(items(chosen(files), 5000).map((item) => [item.path, item.type, item.content])).toEqual([
    ["a", 53, ""],
    ["a/c.py", 48, "MQ=="],
    ["b.py", 48, "MQ=="],
  ]);
});

const ZIP =
  "UEsDBBQAAAAAAAAAIQAGHuE8CQAAAAkAAAAEAAAAYS5weXByaW50KDEpClBLAwQUAAAACAAAACEAj10OXgYAAABkAAAABwAAAGIvYy50eHSrqKA9AABQSwECFAMUAAAAAAAAACEABh7hPAkAAAAJAAAABAAAAAAAAAAAAAAAgAEAAAAAYS5weVBLAQIUAxQAAAAIAAAAIQCPXQ5eBgAAAGQAAAAHAAAAAAAAAAAAAACAASsAAABiL2MudHh0UEsFBgAAAAACAAIAZwAAAFYAAAAAAA==";
