/** Syntax colours by highlight.js, for the languages that training code is written in. */

import bash from "highlight.js/lib/languages/bash";
import ini from "highlight.js/lib/languages/ini";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import yaml from "highlight.js/lib/languages/yaml";
import hljs from "highlight.js/lib/core";
import { Fragment, type ReactNode, useMemo } from "react";

for (const [name, language] of Object.entries({ bash, ini, json, python, yaml })) hljs.registerLanguage(name, language);

const LARGEST = 200_000;
const ENDINGS: Record<string, string> = {
  py: "python",
  pyi: "python",
  yaml: "yaml",
  yml: "yaml",
  json: "json",
  ipynb: "json",
  sh: "bash",
  toml: "ini",
  ini: "ini",
  cfg: "ini",
};
export const languageOf = (path: string): string => ENDINGS[path.split(".").at(-1)!.toLowerCase()] ?? "";

interface Node {
  scope?: string;
  children: (Node | string)[];
}

interface Token {
  text: string;
  scope: string;
}

const tokens = (node: Node | string, scope: string): Token[] =>
  typeof node === "string" ? [{ text: node, scope }] : node.children.flatMap((child) => tokens(child, node.scope?.split(".")[0] ?? scope));

/** The tokens of each line, as highlight.js finds them. Its HTML output is never used. Very long text stays plain. */
export function tokensOf(text: string, language: string): Token[][] {
  const tree =
    language && text.length <= LARGEST
      ? (hljs.highlight(text, { language, ignoreIllegals: true })._emitter as unknown as { rootNode: Node }).rootNode
      : text;
  const lines: Token[][] = [[]];
  for (const token of tokens(tree, "")) {
    const [first, ...more] = token.text.split("\n");
    lines.at(-1)!.push({ ...token, text: first! });
    for (const line of more) lines.push([{ ...token, text: line }]);
  }
  return lines;
}

const drawn = (tokens: Token[]): ReactNode =>
  tokens
    .filter((token) => token.text)
    .map((token, at) => (
      <span key={at} className={token.scope ? `hl-${token.scope}` : undefined}>
        {token.text}
      </span>
    ));

export const colouredLines = (text: string, language: string): ReactNode[] => tokensOf(text, language).map(drawn);

export function Colours({ text, language }: { text: string; language: string }) {
  const lines = useMemo(() => colouredLines(text, language), [text, language]);
  return lines.map((line, at) => (
    <Fragment key={at}>
      {line}
      {"\n"}
    </Fragment>
  ));
}
