/** House rules of the sources, as `tests/architecture` has them for Python. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { expect, test } from "vitest";

const SOURCES = import.meta.dirname;
/** Written by `make types`: its names are those of the API. */
const GENERATED = "api/schema.ts";
/** Names that say the grammar of a sentence, and not what a variable holds. */
const VAGUE = new Set(["found", "kept", "known", "one", "said", "told", "wish"]);

/** Fields of the REST API: the line that says why a trial failed. */
const OF_THE_API = new Set(["said"]);

/** Variables, parameters, functions and fields with one of the `VAGUE` names. */
function vagueNames(text: string): string[] {
  const source = ts.createSourceFile("x.tsx", text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
  const names: string[] = [];
  const visit = (node: ts.Node) => {
    const name = declared(node);
    const isField = ts.isPropertySignature(node) || ts.isPropertyAssignment(node);
    if (name && VAGUE.has(name.text) && !(isField && OF_THE_API.has(name.text)))
      names.push(`${name.text} in line ${source.getLineAndCharacterOfPosition(name.getStart()).line + 1}`);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return names;
}

function declared(node: ts.Node): ts.Identifier | null {
  const declares =
    ts.isVariableDeclaration(node) ||
    ts.isParameter(node) ||
    ts.isBindingElement(node) ||
    ts.isFunctionDeclaration(node) ||
    ts.isPropertyDeclaration(node) ||
    ts.isPropertySignature(node) ||
    ts.isPropertyAssignment(node) ||
    ts.isMethodDeclaration(node) ||
    ts.isMethodSignature(node);
  return declares && node.name && ts.isIdentifier(node.name) ? node.name : null;
}

test("variables and fields are named for what they hold", () => {
  const paths = readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).filter((path) => /\.tsx?$/.test(path) && path !== GENERATED);
  expect(paths.length).toBeGreaterThan(200);
  const faults = paths.flatMap((path) => vagueNames(readFileSync(join(SOURCES, path), "utf8")).map((name) => `${path}: ${name}`));
  expect(faults).toEqual([]);
});

test("a vague name is found", () => {
  const text = `
interface Answer { found: number }
const read = (one: Answer, { kept = 0, at: said }: Looks) => one.found;
function told() {
  for (const known of list) send({ wish: known, said: 1, ...trial.found });
}`;
  expect(vagueNames(text)).toEqual([
    "found in line 2",
    "one in line 3",
    "kept in line 3",
    "said in line 3",
    "told in line 4",
    "known in line 5",
    "wish in line 5",
  ]);
});
