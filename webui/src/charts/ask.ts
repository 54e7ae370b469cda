/** The filter of a list of trials: ids, states, hyperparameters, the metric. */

import { stateName } from "../parts/format";
import type { Known } from "./looks";

const TERM = /^(hp\.[^<>=!:~]+|metric|state|tag|id)(<=|>=|!=|<|>|=|:|~)(.+)$/;

type Test = (one: Known) => boolean;

function compares(sign: string, asked: string): (value: unknown) => boolean {
  const wanted = Number(asked);
  return (value) => {
    if (value === undefined || value === null) return false;
    const text = typeof value === "string" ? value : JSON.stringify(value);
    if (sign === "~") return text.toLowerCase().includes(asked.toLowerCase());
    const numbers = typeof value === "number" && Number.isFinite(wanted);
    const equal = numbers ? value === wanted : text.toLowerCase() === asked.toLowerCase();
    if (sign === "=" || sign === ":") return equal;
    if (sign === "!=") return !equal;
    if (!numbers) return false;
    return sign === "<" ? value < wanted : sign === ">" ? value > wanted : sign === "<=" ? value <= wanted : value >= wanted;
  };
}

function testOf(term: string): Test {
  const [, field, sign, value] = TERM.exec(term) ?? [];
  if (!field) return (one) => plain(one).includes(term.toLowerCase());
  const fits = compares(sign!, value!);
  if (field === "id") return (one) => fits(one.id);
  if (field === "metric") return (one) => fits(one.value);
  if (field === "state") return (one) => fits(stateName(one.state));
  if (field === "tag") return (one) => one.tags.some(fits);
  return (one) => fits(one.hparams[field.slice(3)]);
}

const plain = (one: Known) => `${one.id} ${stateName(one.state)} ${JSON.stringify(one.hparams)}`.toLowerCase();

/** Every term must match: `hp.lr<1e-3 state:ERROR`. A bare number is an id; any other word may match anywhere. */
export function asks(text: string): Test {
  const tests = text
    .trim()
    .split(/\s+/)
    .filter(Boolean)
    .map((term): Test => (/^\d+$/.test(term) ? (one) => String(one.id).startsWith(term) : testOf(term)));
  return (one) => tests.every((test) => test(one));
}
