/** The filter of a list of trials: ids, states, hyperparameters, the metric. */

import { stateName } from "../parts/format";
import type { Known } from "./looks";

const TERM = /^(hp\.[^<>=!:~]+|metric|state|tag|id)(<=|>=|!=|<|>|=|:|~)(.+)$/;

type Test = (trial: Known) => boolean;

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
  if (!field) return (trial) => plain(trial).includes(term.toLowerCase());
  const fits = compares(sign!, value!);
  if (field === "id") return (trial) => fits(trial.id);
  if (field === "metric") return (trial) => fits(trial.value);
  if (field === "state") return (trial) => fits(stateName(trial.state));
  if (field === "tag") return (trial) => trial.tags.some(fits);
  return (trial) => fits(trial.hparams[field.slice(3)]);
}

const plain = (trial: Known) => `${trial.id} ${stateName(trial.state)} ${JSON.stringify(trial.hparams)}`.toLowerCase();

/** Every term must match: `hp.lr<1e-3 state:ERROR`. A bare number is an id; any other word may match anywhere. */
export function asks(text: string): Test {
  const tests = text
    .trim()
    .split(/\s+/)
    .filter(Boolean)
    .map((term): Test => (/^\d+$/.test(term) ? (trial) => String(trial.id).startsWith(term) : testOf(term)));
  return (trial) => tests.every((test) => test(trial));
}
